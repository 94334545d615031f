//! What two lists of texts have in common. Everything compares through this module: the algorithms of `similar` are generic, and
//! each further type of items would compile all of them again.

use std::time::Duration;

use similar::{Algorithm, DiffOp, TextDiff};

/// After this time a comparison finds less in common instead of taking longer.
const MAX_TIME: Duration = Duration::from_millis(200);

/// The comparison of two lists of lines, which end with `\n` but for the last ones.
pub(crate) fn of_lines<'a>(old: &'a [&'a str], new: &'a [&'a str]) -> TextDiff<'a, 'a, str> {
    TextDiff::configure().algorithm(Algorithm::Myers).timeout(MAX_TIME).newline_terminated(true).diff_slices(old, new)
}

/// How `new` is made from `old`, in order.
pub(crate) fn steps(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    of_lines(old, new).ops().to_vec()
}

/// The lines of a text, with their ends.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The characters of a text.
pub(crate) fn chars(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}
