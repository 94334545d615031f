//! Replaces texts by texts: all or nothing, with help when a text is not found.

use crate::closest_match;
use crate::loose;

/// One replacement.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) all: bool,
}

/// Why a replacement cannot be made; the message is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoFit(pub(crate) String);

/// How many line numbers are listed when there are too many matches.
const MAX_LINES: usize = 10;

/// A text after its replacements.
#[derive(Debug)]
pub(crate) struct EditedText {
    pub(crate) text: String,
    /// Where a match differed from `old`, in words; once for each such replacement.
    pub(crate) notes: Vec<String>,
}

/// Makes all replacements, each in the result of the one before. A text that occurs only with other line ends or with
/// no-break spaces is found too: then the file's own bytes stay in the parts that `old` and `new` have in common.
///
/// # Errors
/// When one of them does not apply. Then the caller must change nothing.
pub(crate) fn apply(text: &str, replacements: &[Replacement]) -> Result<EditedText, NoFit> {
    let mut edited = EditedText { text: text.to_owned(), notes: Vec::new() };
    for (index, replacement) in replacements.iter().enumerate() {
        let place = if replacements.len() > 1 { format!("edit {}: ", index + 1) } else { String::new() };
        let (after, note) = one(&edited.text, replacement).map_err(|NoFit(words)| {
            let earlier =
                if index > 0 { "; the edits before it were applied first, and nothing was written" } else { "" };
            NoFit(format!("{place}{words}{earlier}"))
        })?;
        edited.text = after;
        edited.notes.extend(note.map(|note| format!("{place}{note}")));
    }
    Ok(edited)
}

fn one(text: &str, replacement: &Replacement) -> Result<(String, Option<String>), NoFit> {
    let Replacement { old, new, all } = replacement;
    if old.is_empty() {
        return Err(NoFit("`old` is empty: to make a new file use `write`".to_owned()));
    }
    if old == new {
        return Err(NoFit("`old` and `new` are the same: nothing would change".to_owned()));
    }
    let places: Vec<usize> = text.match_indices(old.as_str()).map(|(at, _)| at).collect();
    match (places.as_slice(), all) {
        ([], _) => loosely(text, replacement),
        ([at], _) => match overlapping(text, old, *at).filter(|_| !all) {
            Some(second) => Err(ambiguous(text, &[*at, second])),
            None => Ok((format!("{}{new}{}", &text[..*at], &text[at + old.len()..]), None)),
        },
        (_, true) => Ok((text.replace(old.as_str(), new), None)),
        (many, false) => Err(ambiguous(text, many)),
    }
}

/// Where `old` occurs a second time, within the occurrence at `first`.
fn overlapping(text: &str, old: &str, first: usize) -> Option<usize> {
    let next = first + old.chars().next()?.len_utf8();
    text[next..].find(old).map(|at| next + at)
}

/// As `one`, apart from line ends and no-break spaces.
fn loosely(text: &str, Replacement { old, new, all }: &Replacement) -> Result<(String, Option<String>), NoFit> {
    let found = loose::find(text, old);
    let Some(first) = found.first().cloned() else { return Err(NoFit(closest_match::help(text, old))) };
    if found.len() > 1 && !all {
        return Err(ambiguous(text, &found.iter().map(|range| range.start).collect::<Vec<usize>>()));
    }
    let mut result = String::new();
    let mut next = 0;
    for range in found {
        result.push_str(&text[next..range.start]);
        let line_end = loose::line_end_at(text, range.start);
        result.push_str(&loose::replacement(&text[range.clone()], old, new, line_end));
        next = range.end;
    }
    result.push_str(&text[next..]);
    let note = format!(
        "`old` was found at line {} with other {}: the file's own stay where `new` has any",
        closest_match::line_of(text, first.start),
        loose::difference(&text[first], old)
    );
    Ok((result, Some(note)))
}

fn ambiguous(text: &str, found: &[usize]) -> NoFit {
    let mut lines: Vec<String> =
        found.iter().take(MAX_LINES).map(|at| closest_match::line_of(text, *at).to_string()).collect();
    lines.dedup();
    let more = if found.len() > MAX_LINES { ", ..." } else { "" };
    let lines_are = if lines.len() == 1 && more.is_empty() { "line" } else { "lines" };
    NoFit(format!(
        "`old` occurs {} times, at {lines_are} {}{more}: include more of the surrounding text, or set replace_all",
        found.len(),
        lines.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replacement(old: &str, new: &str, all: bool) -> Replacement {
        Replacement { old: old.to_owned(), new: new.to_owned(), all }
    }

    #[track_caller]
    fn check(text: &str, replacements: &[Replacement], expected: &str) {
        match apply(text, replacements) {
            Ok(EditedText { text, .. }) => assert_eq!(text, expected),
            Err(NoFit(words)) => assert!(words.contains(expected), "{words}"),
        }
    }

    #[test]
    fn replacements_are_made_in_order() {
        check("a b", &[replacement("a", "b c", false), replacement("b c", "x", false)], "x b");
        check("a a a", &[replacement("a", "", true)], "  ");
        check("$1 \\0", &[replacement("$1", "$2 \\1", false)], "$2 \\1 \\0");
    }

    #[test]
    fn replacement_that_does_not_apply_is_reported() {
        check("a\nb\na\n", &[replacement("a", "x", false)], "2 times, at lines 1, 3:");
        check("a a\n", &[replacement("a", "x", false)], "2 times, at line 1:");
        // The two overlap.
        check("aaa\n", &[replacement("aa", "b", false)], "2 times, at line 1:");
        check("x\n\nx\n\nx\n", &[replacement("x\n\nx", "y", false)], "2 times, at lines 1, 3:");
        check("aaa\n", &[replacement("aa", "b", true)], "ba\n");
        check("a", &[replacement("", "x", false)], "`old` is empty");
        check("a", &[replacement("a", "a", false)], "the same");
        check("a b", &[replacement("a", "x", false), replacement("a", "y", false)], "edit 2: ");
    }

    #[test]
    fn match_with_other_line_ends_or_spaces_keeps_the_file_s_own() {
        check("a\r\nb\nc\r\n", &[replacement("a\nb", "a\nB", false)], "a\r\nB\nc\r\n");
        check("10\u{a0}kg\n", &[replacement("10 kg", "12 kg", false)], "12\u{a0}kg\n");
        check("a\r\nb\na\r\nb\n", &[replacement("a\nb", "c", false)], "2 times, at lines 1, 3:");
        check("a\r\nb\na\r\nb\n", &[replacement("a\nb", "c", true)], "c\nc\n");
        let edited = apply("x\na\u{202f}b\n", &[replacement("a b", "a c", false)]).unwrap();
        assert_eq!(
            edited.notes,
            ["`old` was found at line 2 with other no-break spaces: the file's own stay where `new` has any"]
        );
    }

    proptest! {
        #[test]
        fn replacement_changes_only_its_match(
            before in "[ab\n]{0,12}", old in "[cd]{1,4}", after in "[ab\n]{0,12}", new in "[a-d\n]{0,6}",
        ) {
            prop_assume!(old != new);
            let text = format!("{before}{old}{after}");
            let changed = apply(&text, &[replacement(&old, &new, false)]).unwrap();
            prop_assert_eq!(changed.text, format!("{before}{new}{after}"));
            prop_assert!(changed.notes.is_empty());
        }

        #[test]
        fn replace_all_equals_the_standard_library(text in "[ab]{0,20}", old in "[ab]{1,3}", new in "[abc]{0,3}") {
            prop_assume!(old != new);
            match apply(&text, &[replacement(&old, &new, true)]) {
                Ok(changed) => prop_assert_eq!(changed.text, text.replace(&old, &new)),
                Err(_) => prop_assert!(!text.contains(&old)),
            }
        }
    }
}
