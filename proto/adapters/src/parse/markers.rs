//! Finding marks in a stream.

use std::ops::Range;
use std::sync::LazyLock;

use crate::families::FORMATS;
use crate::mark::Mark;

/// All marks, sorted. None begins another, and but for MiniMax's each begins with a character that does not occur in it
/// again, so a mark is found without going back: see [`Matcher`].
static MARKS: LazyLock<Vec<(&str, Mark)>> = LazyLock::new(|| {
    let mut marks: Vec<(&str, Mark)> = FORMATS.iter().flat_map(|format| format.marks).copied().collect();
    marks.sort_unstable_by_key(|(text, _)| *text);
    marks
});

/// The characters that begin marks.
const BEGINNINGS: [char; 3] = ['<', '[', ']'];

/// Finds marks, one character at a time.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    held: String,
    /// The marks that begin with what is held, if anything is.
    candidates: Range<usize>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Match {
    /// The character may belong to a mark and is held.
    Partial,
    /// The mark and its text.
    Full(Mark, &'static str),
    /// No mark: what was held, if anything, and then the character itself, which may begin one.
    None(String),
}

impl Matcher {
    pub(crate) fn push(&mut self, c: char) -> Match {
        if self.held.is_empty() {
            if !BEGINNINGS.contains(&c) {
                return Match::None(String::new());
            }
            self.candidates = 0..MARKS.len();
        }
        let next = |mark: &(&str, Mark)| mark.0[self.held.len()..].chars().next();
        let among = &MARKS[self.candidates.clone()];
        let start = self.candidates.start + among.partition_point(|mark| next(mark) < Some(c));
        let end = self.candidates.start + among.partition_point(|mark| next(mark) <= Some(c));
        if start == end {
            return Match::None(self.release());
        }
        self.held.push(c);
        self.candidates = start..end;
        match MARKS[start] {
            (text, mark) if text == self.held => {
                self.held.clear();
                Match::Full(mark, text)
            }
            _ => Match::Partial,
        }
    }

    /// Releases held text that begins no mark. MiniMax's mark contains beginnings of others: if one of those has begun,
    /// it stays held.
    fn release(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let mut released = String::with_capacity(held.len());
        let mut rest = held.chars();
        released.extend(rest.next());
        for c in rest {
            match self.push(c) {
                Match::Partial => {}
                Match::Full(..) => unreachable!("no mark stands within the beginning of another"),
                Match::None(text) => {
                    released.push_str(&text);
                    if let Match::None(_) = self.push(c) {
                        released.push(c);
                    }
                }
            }
        }
        released
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// The held text, released.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// All marks with their texts.
#[cfg(test)]
pub(crate) fn marks() -> impl Iterator<Item = (&'static str, Mark)> {
    MARKS.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text around the marks, and the marks in `<>`.
    fn found(text: &str) -> String {
        let mut matcher = Matcher::default();
        let mut out = String::new();
        for c in text.chars() {
            loop {
                match matcher.push(c) {
                    Match::Partial => {}
                    Match::Full(_, mark) => out.push_str(&format!("{{{mark}}}")),
                    Match::None(held) if held.is_empty() => out.push(c),
                    Match::None(held) => {
                        out.push_str(&held);
                        continue;
                    }
                }
                break;
            }
        }
        out + &matcher.take()
    }

    #[test]
    fn a_mark_may_begin_within_what_is_none() {
        assert_eq!(found("]<tool_call>"), "]{<tool_call>}");
        assert_eq!(found("]<]<tool_call>"), "]<]{<tool_call>}");
        assert_eq!(found("]<]minimax[>[<tool_call>"), "{]<]minimax[>[}{<tool_call>}");
        assert_eq!(found("]<]minimax[TOOL_CALLS]"), "]<]minimax{[TOOL_CALLS]}");
        assert_eq!(found("]]<]<"), "]]<]<");
    }

    #[test]
    fn a_mark_needs_no_going_back() {
        for (text, _) in MARKS.iter() {
            let first = text.chars().next().unwrap();
            assert!(BEGINNINGS.contains(&first), "{text}");
            assert!(first == ']' || !text[1..].contains(BEGINNINGS) || first == '[', "{text}");
            assert_eq!(MARKS.iter().filter(|(other, _)| other.starts_with(text)).count(), 1, "{text}");
        }
    }
}
