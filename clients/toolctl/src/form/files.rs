//! Completes file names while a path is typed.

use inquire::{Autocomplete, CustomUserError};

use crate::path_names::matching;

/// More would not fit on a screen.
const MOST: usize = 20;

#[derive(Clone)]
pub(super) struct FileCompleter;

impl Autocomplete for FileCompleter {
    fn get_suggestions(&mut self, input: &str) -> Result<Vec<String>, CustomUserError> {
        let mut found = matching(input);
        found.truncate(MOST);
        Ok(found)
    }

    fn get_completion(&mut self, input: &str, highlighted: Option<String>) -> Result<Option<String>, CustomUserError> {
        Ok(highlighted.or_else(|| common_start(&matching(input))))
    }
}

fn common_start(found: &[String]) -> Option<String> {
    let (first, rest) = found.split_first()?;
    let length = rest.iter().fold(first.len(), |length, other| {
        first
            .char_indices()
            .map(|(at, c)| at + c.len_utf8())
            .take_while(|end| other.get(..*end) == first.get(..*end))
            .last()
            .unwrap_or(0)
            .min(length)
    });
    (length > 0).then(|| first[..length].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_with_the_prefix_are_offered() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["alpha.rs", "alps.md", ".hidden", "be\u{1b}[31mta"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("al")).unwrap();
        let at = |text: &str| format!("{}/{text}", folder.path().display());
        assert_eq!(matching(&at("al")), [at("al/"), at("alpha.rs"), at("alps.md")]);
        assert_eq!(matching(&at("")).len(), 3);
        assert_eq!(matching(&at(".h")), [at(".hidden")]);
        assert_eq!(common_start(&matching(&at("alp"))), Some(at("alp")));
        assert_eq!(matching(&at("nothing")), Vec::<String>::new());
    }
}
