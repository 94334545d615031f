//! Arguments that are paths, and the files that a beginning of a path may mean.

use std::fs;
use std::path::Path;

/// Guessed from the name; the schema has no type for paths.
pub(crate) fn is_path(name: &str) -> bool {
    let words = ["path", "paths", "file", "files", "folder", "folders", "dir", "dirs", "directory", "cwd"];
    words.iter().any(|word| name == *word || name.ends_with(&format!("_{word}")))
}

/// As [`matching`], for a value that is the content of a file: `@` and its path.
pub(crate) fn contents_matching(input: &str) -> Vec<String> {
    let Some(path) = input.strip_prefix('@') else { return Vec::new() };
    // Only a tool knows `~`.
    if path.starts_with("~/") {
        return Vec::new();
    }
    matching(path).into_iter().map(|name| format!("@{name}")).collect()
}

/// The files that begin with the input, sorted, folders with a slash; `~/` is the home folder, as for tools. Hidden files only when a dot is typed. Names that
/// are not UTF-8 or hold control characters are left out.
pub(crate) fn matching(input: &str) -> Vec<String> {
    let (folder, start) = match input.rfind('/') {
        Some(slash) => input.split_at(slash + 1),
        None => ("", input),
    };
    let place = match folder.strip_prefix("~/") {
        Some(below) => std::env::home_dir().unwrap_or_default().join(below),
        None => Path::new(if folder.is_empty() { "." } else { folder }).to_owned(),
    };
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
    found
}
