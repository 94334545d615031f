//! Finds a text in a file although the two differ in their line ends, in no-break spaces or in bytes that are not valid:
//! models send a plain line end, a plain space and U+FFFD for each of them.

use std::ops::Range;

use similar::DiffOp;

use crate::bad_bytes;
use crate::comparison::{chars, steps};

/// The spaces that look like a plain one: no-break, figure, narrow no-break and ideographic.
pub(crate) fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{3000}')
}

/// The text with plain spaces only, and with the bytes that are not valid as readers see them.
pub(crate) fn without_odd_spaces(text: &str) -> String {
    text.chars().filter_map(plain_char).collect()
}

/// `None` for a byte that readers do not see.
fn plain_char(c: char) -> Option<char> {
    if is_odd_space(c) { Some(' ') } else { bad_bytes::shown_char(c) }
}

/// A text without the differences, and where each of its characters is in the original.
struct PlainCopy {
    text: String,
    /// For each byte of `text`, the place of its character in the original; at the end, the original's length.
    places: Vec<usize>,
}

impl PlainCopy {
    fn of(original: &str) -> Self {
        let mut copy = Self { text: String::with_capacity(original.len()), places: Vec::new() };
        let mut chars = original.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
                chars.next();
                copy.push('\n', at);
            } else if let Some(c) = plain_char(c) {
                copy.push(c, at);
            }
        }
        copy.places.push(original.len());
        copy
    }

    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.places.resize(self.text.len(), at);
    }
}

/// Where `old` is in the text, apart from line ends and no-break spaces. Matches do not overlap.
pub(crate) fn find(text: &str, old: &str) -> Vec<Range<usize>> {
    let (copy, wanted) = (PlainCopy::of(text), PlainCopy::of(old).text);
    let found = copy.text.match_indices(&wanted);
    found.map(|(at, _)| copy.places[at]..copy.places[at + wanted.len()]).collect()
}

/// How the matched text differs from `old`, in words.
pub(crate) fn difference(found: &str, old: &str) -> String {
    let odd = |text: &str| text.chars().filter(|c| is_odd_space(*c)).count();
    let all = [
        ("line ends", found.matches("\r\n").count() != old.matches("\r\n").count()),
        ("no-break spaces", odd(found) != odd(old)),
        ("bytes that are not valid", bad_bytes::has_any(found)),
    ];
    all.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect::<Vec<_>>().join(" and ")
}

/// The replacement of the matched text `found`: what `old` and `new` have in common keeps the bytes of the file, and
/// new lines end as the line of the match does.
pub(crate) fn replacement(found: &str, old: &str, new: &str, line_end: &str) -> String {
    let copy = PlainCopy::of(found);
    let (old, new) = (PlainCopy::of(old).text, new.replace("\r\n", "\n"));
    let (old, new) = (chars(&old), chars(&new));
    // `found` and `old` are the same, character by character.
    let mut starts: Vec<usize> = copy.text.char_indices().map(|(at, _)| copy.places[at]).collect();
    starts.push(found.len());
    let mut result = String::new();
    for step in steps(&old, &new) {
        match step {
            DiffOp::Equal { old_index, len, .. } => result.push_str(&found[starts[old_index]..starts[old_index + len]]),
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                let text = new[new_index..new_index + new_len].concat();
                result.push_str(&text.replace('\n', line_end));
            }
        }
    }
    result
}

/// The end of the line in which the byte `at` is; of the line above, if that is the last one.
pub(crate) fn line_end_at(text: &str, at: usize) -> &'static str {
    let end = text[at..].find('\n').map(|end| at + end).or_else(|| text[..at].rfind('\n'));
    if end.is_some_and(|end| text[..end].ends_with('\r')) { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_in_common_are_the_file_s_own() {
        let replaced = |found: &str, old: &str, new: &str| replacement(found, old, new, line_end_at(found, 0));
        assert_eq!(replaced("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n"), "a\r\nB\nc\r\n");
        assert_eq!(replaced("a\r\nb\n", "a\nb\n", "a\nx\nb\n"), "a\r\nx\r\nb\n");
        assert_eq!(replaced("10\u{a0}kg of\u{202f}x", "10 kg of x", "12 kg of x"), "12\u{a0}kg of\u{202f}x");
    }

    proptest! {
        #[test]
        fn what_is_found_is_the_same_text(text in "[ab \u{a0}\u{202f}\r\n]{0,20}", old in "[ab \r\n]{1,4}") {
            for range in find(&text, &old) {
                let found = &text[range.clone()];
                prop_assert_eq!(PlainCopy::of(found).text, PlainCopy::of(&old).text);
                prop_assert_eq!(replacement(found, &old, &old, "\n"), found);
            }
        }
    }
}
