//! Comparisons of two lists of texts. All code compares through this module, which gives each text a number and uses one algorithm
//! of `similar`: its general functions would compile all six algorithms for each type of items.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, IdentifyDistinct, Replace, myers};
use similar::{DiffOp, group_diff_ops};

/// After this time a comparison finds less in common instead of taking longer.
const MAX_TIME: Duration = Duration::from_millis(200);

/// Equal lines around each change of a unified diff, as in Git.
const CONTEXT: usize = 3;

/// How `new` is made from `old`, in order.
pub(crate) fn steps(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let numbers = IdentifyDistinct::<u32>::new(old, 0..old.len(), new, 0..new.len());
    let mut hook = Compact::new(Replace::new(Capture::new()), numbers.old_lookup(), numbers.new_lookup());
    let Ok(()) = myers::diff_deadline(
        &mut hook,
        numbers.old_lookup(),
        numbers.old_range(),
        numbers.new_lookup(),
        numbers.new_range(),
        Some(Instant::now() + MAX_TIME),
    );
    hook.into_inner().into_inner().into_ops()
}

/// A unified diff with these names in its header, of lines that end with `\n` but for the last ones, which are marked as in Git.
/// Empty if nothing differs.
pub(crate) fn unified(old: &[&str], new: &[&str], steps: Vec<DiffOp>, [from, to]: [&str; 2]) -> String {
    let mut text = String::new();
    let add = |tag: char, lines: &[&str], text: &mut String| {
        for line in lines {
            let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            text.push(tag);
            text.push_str(line);
            text.push_str(end);
        }
    };
    for (n, hunk) in group_diff_ops(steps, CONTEXT).into_iter().enumerate() {
        if n == 0 {
            text.push_str(&format!("--- {from}\n+++ {to}\n"));
        }
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let of_old = range(first.old_range().start..last.old_range().end);
        let of_new = range(first.new_range().start..last.new_range().end);
        text.push_str(&format!("@@ -{of_old} +{of_new} @@\n"));
        for step in hunk {
            let (before, after) = (&old[step.old_range()], &new[step.new_range()]);
            if let DiffOp::Equal { .. } = step {
                add(' ', before, &mut text);
            } else {
                add('-', before, &mut text);
                add('+', after, &mut text);
            }
        }
    }
    text
}

/// The lines of one side of a hunk: the first one, counted from 1, and how many if not one. No lines are after the one named.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        many => format!("{},{many}", lines.start + 1),
    }
}

/// The lines of a text, with their ends.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The characters of a text.
pub(crate) fn chars(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}
