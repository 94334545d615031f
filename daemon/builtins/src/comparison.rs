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

/// A unified diff with these names in its header. Lines that do not end with `\n` are marked, as in Git: for `similar`, `\r` ends a
/// line too.
pub(crate) fn unified(diff: &TextDiff<'_, '_, str>, [from, to]: [&str; 2]) -> String {
    let mut text = String::new();
    for (n, hunk) in diff.unified_diff().context_radius(3).iter_hunks().enumerate() {
        if n == 0 {
            text.push_str(&format!("--- {from}\n+++ {to}\n"));
        }
        text.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            let end = if change.value().ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            text.push_str(&format!("{}{}{end}", change.tag(), change.value()));
        }
    }
    text
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
