//! Replaces texts by texts: all or nothing, with help when a text is not found.

use crate::closest_match;

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

/// Makes all replacements, each in the result of the one before. Returns the text and the number of replacements.
///
/// # Errors
/// When one of them does not apply. Then the caller must change nothing.
pub(crate) fn apply(text: &str, replacements: &[Replacement]) -> Result<(String, usize), NoFit> {
    let mut text = text.to_owned();
    let mut count = 0;
    for (index, replacement) in replacements.iter().enumerate() {
        let place = if replacements.len() > 1 { format!("edit {}: ", index + 1) } else { String::new() };
        let (after, made) = one(&text, replacement).map_err(|NoFit(words)| {
            let earlier =
                if index > 0 { "; the edits before it were applied first, and nothing was written" } else { "" };
            NoFit(format!("{place}{words}{earlier}"))
        })?;
        text = after;
        count += made;
    }
    Ok((text, count))
}

fn one(text: &str, Replacement { old, new, all }: &Replacement) -> Result<(String, usize), NoFit> {
    if old.is_empty() {
        return Err(NoFit("`old` is empty: to make a new file use `write`".to_owned()));
    }
    if old == new {
        return Err(NoFit("`old` and `new` are the same: nothing would change".to_owned()));
    }
    let places: Vec<usize> = text.match_indices(old.as_str()).map(|(at, _)| at).collect();
    match (places.as_slice(), all) {
        ([], _) => Err(NoFit(closest_match::help(text, old))),
        ([at], _) => Ok((format!("{}{new}{}", &text[..*at], &text[at + old.len()..]), 1)),
        (many, true) => Ok((text.replace(old.as_str(), new), many.len())),
        (many, false) => {
            let lines: Vec<String> =
                many.iter().take(MAX_LINES).map(|at| closest_match::line_of(text, *at).to_string()).collect();
            let more = if many.len() > MAX_LINES { ", ..." } else { "" };
            Err(NoFit(format!(
                "`old` occurs {} times, at lines {}{more}: include more of the surrounding text, or set replace_all",
                many.len(),
                lines.join(", ")
            )))
        }
    }
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
            Ok((text, _)) => assert_eq!(text, expected),
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
        check("a", &[replacement("", "x", false)], "`old` is empty");
        check("a", &[replacement("a", "a", false)], "the same");
        check("a b", &[replacement("a", "x", false), replacement("a", "y", false)], "edit 2: ");
    }

    proptest! {
        #[test]
        fn replacement_changes_only_its_match(
            before in "[ab\n]{0,12}", old in "[cd]{1,4}", after in "[ab\n]{0,12}", new in "[a-d\n]{0,6}",
        ) {
            prop_assume!(old != new);
            let text = format!("{before}{old}{after}");
            let (changed, count) = apply(&text, &[replacement(&old, &new, false)]).unwrap();
            prop_assert_eq!((changed, count), (format!("{before}{new}{after}"), 1));
        }

        #[test]
        fn replace_all_equals_the_standard_library(text in "[ab]{0,20}", old in "[ab]{1,3}", new in "[abc]{0,3}") {
            prop_assume!(old != new);
            match apply(&text, &[replacement(&old, &new, true)]) {
                Ok((changed, count)) => {
                    prop_assert_eq!(count, text.matches(&old).count());
                    prop_assert_eq!(changed, text.replace(&old, &new));
                }
                Err(_) => prop_assert!(!text.contains(&old)),
            }
        }
    }
}
