//! Which of many paths exist: a folder with several of them is read once, in place of a question for each.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// From this number of paths on, reading their folder is cheaper.
const SEVERAL: usize = 6;
/// A folder with more entries is not read.
const MAX_ENTRIES: usize = 4096;

/// The names in a folder; `None` if they are unknown.
type FolderEntries = Option<HashSet<OsString>>;

/// Those of the paths that exist, in their order. A link exists whatever it leads to. Blocks.
pub(super) fn existing(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut numbers: HashMap<&Path, usize> = HashMap::new();
    for folder in paths.iter().filter_map(|path| path.parent()) {
        *numbers.entry(folder).or_default() += 1;
    }
    let several = numbers.into_iter().filter(|(_, number)| *number >= SEVERAL);
    let known: HashMap<PathBuf, FolderEntries> =
        several.map(|(folder, _)| (folder.to_owned(), entries(folder))).collect();
    paths.retain(|path| {
        let names = path.parent().and_then(|folder| known.get(folder)?.as_ref()).zip(path.file_name());
        names.map_or_else(|| path.symlink_metadata().is_ok(), |(names, name)| names.contains(name))
    });
    paths
}

fn entries(folder: &Path) -> FolderEntries {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(HashSet::new()),
        Err(_) => return None,
    };
    let mut names = HashSet::new();
    for entry in entries {
        if names.len() == MAX_ENTRIES {
            return None;
        }
        names.insert(entry.ok()?.file_name());
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_that_is_read_gives_the_answers_of_its_entries() {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: String| folder.path().join(name);
        std::fs::create_dir(below("some".into())).unwrap();
        std::fs::write(below("some/1".into()), "").unwrap();
        symlink("nowhere", below("some/2".into())).unwrap();
        let all: Vec<PathBuf> = ["some", "none"]
            .iter()
            .flat_map(|name| (0..SEVERAL).map(move |number| format!("{name}/{number}")))
            .map(below)
            .chain([folder.path().to_owned(), "/".into(), folder.path().join("single")])
            .collect();
        let each: Vec<PathBuf> = all.iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
        assert_eq!(each.len(), 4);
        assert_eq!(existing(all), each);
    }
}
