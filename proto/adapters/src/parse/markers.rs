//! The marks between which calls stand, and how a mark is found in a stream.

use std::ops::Range;
use std::sync::LazyLock;

use super::formats::FORMATS;

/// The meaning of a mark. What each format calls it is in [`super::formats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A section of calls begins.
    SectionOpen,
    /// The same, of objects whose only key is the name of a tool.
    KeyedSectionOpen,
    SectionClose,
    /// The header of one call begins, up to the separator: the name, or something like `function`.
    CallBegin,
    CallSeparator,
    CallEnd,
    /// A tag that names a tool, of this style: see [`super::shapes::element::STYLES`].
    ElementOpen(usize),
    ElementClose,
    /// A tag that names an argument, of this style.
    ParameterOpen(usize),
    ParameterClose,
    /// `<arg_key>` and its like: the key of an argument.
    KeyOpen,
    KeyClose,
    ValueOpen,
    ValueClose,
    /// `[TOOL_CALLS]`.
    ToolCalls,
    /// `<|python_tag|>` or `<|python_start|>`.
    PythonOpen,
    PythonClose,
    /// A message of a channel begins, with its header.
    MessageStart,
    /// Within the header.
    MessagePart,
    /// The header ends and the message follows.
    MessageBody,
    MessageEnd,
    /// Kimi K3: a header that opens something, up to [`Mark::HeaderEnd`].
    HeaderOpen,
    /// The same of one that closes something.
    HeaderClose,
    HeaderEnd,
    /// A token that says nothing about calls and is no text either.
    Wrapper,
    /// The model has ended its turn.
    End,
}

impl Mark {
    /// Whether a call, or several, may follow.
    pub(crate) fn opens(self) -> bool {
        match self {
            Self::SectionOpen
            | Self::KeyedSectionOpen
            | Self::CallBegin
            | Self::ElementOpen(_)
            | Self::ToolCalls
            | Self::PythonOpen
            | Self::MessageStart
            | Self::HeaderOpen => true,
            Self::SectionClose
            | Self::CallSeparator
            | Self::CallEnd
            | Self::ElementClose
            | Self::ParameterOpen(_)
            | Self::ParameterClose
            | Self::KeyOpen
            | Self::KeyClose
            | Self::ValueOpen
            | Self::ValueClose
            | Self::PythonClose
            | Self::MessagePart
            | Self::MessageBody
            | Self::MessageEnd
            | Self::HeaderClose
            | Self::HeaderEnd
            | Self::Wrapper
            | Self::End => false,
        }
    }
}

/// All marks, sorted. Each begins with a character that does not occur in it again, and none begins another, so a mark
/// is found without going back: see [`Matcher`].
static MARKS: LazyLock<Vec<(&str, Mark)>> = LazyLock::new(|| {
    let mut marks: Vec<(&str, Mark)> = FORMATS.iter().flat_map(|format| format.marks).copied().collect();
    marks.sort_unstable_by_key(|(text, _)| *text);
    marks
});

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
            if c != '<' && c != '[' {
                return Match::None(String::new());
            }
            self.candidates = 0..MARKS.len();
        }
        let next = |mark: &(&str, Mark)| mark.0[self.held.len()..].chars().next();
        let among = &MARKS[self.candidates.clone()];
        let start = self.candidates.start + among.partition_point(|mark| next(mark) < Some(c));
        let end = self.candidates.start + among.partition_point(|mark| next(mark) <= Some(c));
        if start == end {
            return Match::None(std::mem::take(&mut self.held));
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

    #[test]
    fn a_mark_needs_no_going_back() {
        for (text, _) in MARKS.iter() {
            let first = text.chars().next().unwrap();
            assert!(!text[1..].contains(first), "{text}");
            assert!(!text[1..].contains(['<']), "{text}");
            assert_eq!(MARKS.iter().filter(|(other, _)| other.starts_with(text)).count(), 1, "{text}");
        }
    }
}
