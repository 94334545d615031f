//! The output of a command as a model gets it: without the control sequences that colour it or move the cursor, and of a
//! line that was written over by carriage returns, such as a progress bar, only its last state.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// A longer line is passed on in parts.
const MAX_LINE: usize = 64 * 1024;
/// The length of a sequence that may continue in the next piece of output.
const MAX_SEQUENCE: usize = 64;

/// ECMA-48: control sequences, operating system commands up to the end of their line, and other escapes.
static SEQUENCES: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-Z\\-~]|\x1b";
    Regex::new(text).expect("the pattern is valid")
});

/// Output that arrives in pieces, line by line.
#[derive(Default)]
pub(crate) struct PlainLines {
    line: String,
}

impl PlainLines {
    /// The lines that are complete now.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut lines = String::new();
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') || self.line.len() > MAX_LINE {
                lines.push_str(&plain_line(&self.line));
                self.line.clear();
            }
        }
        lines
    }

    /// The last line, which has no end.
    pub(crate) fn finish(self) -> String {
        plain_line(&self.line).into_owned()
    }
}

/// A text of any number of lines.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(['\x1b', '\r']) {
        true => Cow::Owned(text.split_inclusive('\n').map(plain_line).collect()),
        false => Cow::Borrowed(text),
    }
}

/// How many bytes of the text to take if more follow: all but a sequence at its end that is not complete yet.
pub(crate) fn whole_sequences(text: &str) -> usize {
    let near_end = text.ceil_char_boundary(text.len().saturating_sub(MAX_SEQUENCE));
    match text[near_end..].rfind('\x1b').map(|at| near_end + at) {
        Some(at) if at > 0 && SEQUENCES.find_at(text, at).is_some_and(|found| found.as_str() == "\x1b") => at,
        _ => text.len(),
    }
}

fn plain_line(line: &str) -> Cow<'_, str> {
    if !line.contains(['\x1b', '\r']) {
        return Cow::Borrowed(line);
    }
    let bare = SEQUENCES.replace_all(line, "");
    let (text, end) = bare.strip_suffix('\n').map_or((bare.as_ref(), ""), |text| (text, "\n"));
    let last = text.rsplit('\r').find(|state| !state.is_empty()).unwrap_or_default();
    Cow::Owned(format!("{last}{end}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(plain(text), expected);
    }

    #[test]
    fn colours_and_progress_leave_the_text() {
        check("a\nb", "a\nb");
        check("\x1b[1;31merror\x1b[0m: x\r\n", "error: x\n");
        check(" 10%\r 50%\r100%\ndone\n", "100%\ndone\n");
        check("50%\r\x1b[K", "50%");
        check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "alink\n");
        check("\x1b]never ended\nnext", "never ended\nnext");
        check("\x1b(B\x1b=\x1bMa", "a");
    }

    #[test]
    fn cut_sequence_waits_for_its_rest() {
        assert_eq!(whole_sequences("a\x1b[3"), 1);
        assert_eq!(whole_sequences("a\x1b[31m"), 6);
        assert_eq!(whole_sequences("\x1b"), 1);
        assert_eq!(whole_sequences(&format!("é{}", "x".repeat(100))), 102);
    }

    proptest! {
        #[test]
        fn pieces_give_the_same_text(text in "[ab\r\n\x1b\\[1m]{0,40}", at in 0usize..40) {
            let at = text.floor_char_boundary(at.min(text.len()));
            let mut lines = PlainLines::default();
            let mut whole = lines.push(&text[..at]);
            whole.push_str(&lines.push(&text[at..]));
            whole.push_str(&lines.finish());
            prop_assert_eq!(whole, plain(&text));
        }
    }
}
