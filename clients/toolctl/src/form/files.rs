//! Completes file names while a path is typed.

use std::fs;
use std::path::Path;

use inquire::{Autocomplete, CustomUserError};

/// More would not fit on a screen.
const MOST: usize = 20;

#[derive(Clone)]
pub(super) struct FileCompleter;

impl Autocomplete for FileCompleter {
    fn get_suggestions(&mut self, input: &str) -> Result<Vec<String>, CustomUserError> {
        Ok(matching(input))
    }

    fn get_completion(&mut self, input: &str, highlighted: Option<String>) -> Result<Option<String>, CustomUserError> {
        Ok(highlighted.or_else(|| common_start(&matching(input))))
    }
}

/// The files that begin with the input, sorted, folders with a slash. Hidden files only when a dot is typed. Names that
/// are not UTF-8 or hold control characters are left out.
fn matching(input: &str) -> Vec<String> {
    let (folder, start) = match input.rfind('/') {
        Some(slash) => input.split_at(slash + 1),
        None => ("", input),
    };
    let place = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
    let mut found: Vec<String> = fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            if hidden || !name.starts_with(start) || name.contains(char::is_control) {
                return None;
            }
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{folder}{name}{slash}"))
        })
        .collect();
    found.sort();
    found.truncate(MOST);
    found
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
