//! The file names that a command gets from wildcards or from another command.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// Folders with more entries are not searched: the answer must not take seconds.
pub(super) const MAX_ENTRIES: usize = 50_000;
const MAX_DEPTH: usize = 64;

/// Files that one word may stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameSet {
    /// The folder that contains all of them.
    pub(super) folder: PathBuf,
    /// Absolute; links are not followed.
    pub(super) files: Vec<PathBuf>,
    /// The folder for relative names.
    pub(super) base: PathBuf,
    /// Each of them stays one word without quotes, and one line.
    pub(super) is_plain: bool,
    /// One of them might be taken for an option.
    pub(super) has_dash: bool,
}

impl NameSet {
    /// Names as they are printed or found in `base`.
    pub(super) fn printed(folder: PathBuf, files: Vec<PathBuf>, base: &Path) -> Self {
        let relative = |file: &'_ PathBuf| file.strip_prefix(base).map_or_else(|_| file.clone(), Path::to_owned);
        let is_plain = files.iter().all(|file| is_plain(&relative(file)));
        let has_dash = files.iter().any(|file| relative(file).as_os_str().as_encoded_bytes().starts_with(b"-"));
        Self { folder, files, base: base.to_owned(), is_plain, has_dash }
    }
}

/// One entry of a folder that was looked through.
pub(super) struct TreeEntry<'a> {
    pub(super) path: &'a Path,
    pub(super) name: &'a str,
    /// It is directly in the tree's own folder.
    pub(super) is_at_top: bool,
}

/// The files in and below `folder`, except what `enters` refuses to enter and `takes` refuses to include. `None` if
/// there are too many, or if a name is not a text.
pub(super) fn tree(
    folder: &Path,
    enters: impl FnMut(&TreeEntry) -> bool,
    takes: impl FnMut(&TreeEntry) -> bool,
) -> Option<Vec<PathBuf>> {
    walk(folder, enters, takes, false)
}

/// The same with the folders that `takes` includes.
pub(super) fn tree_with_folders(
    folder: &Path,
    enters: impl FnMut(&TreeEntry) -> bool,
    takes: impl FnMut(&TreeEntry) -> bool,
) -> Option<Vec<PathBuf>> {
    walk(folder, enters, takes, true)
}

fn walk(
    folder: &Path,
    mut enters: impl FnMut(&TreeEntry) -> bool,
    mut takes: impl FnMut(&TreeEntry) -> bool,
    with_folders: bool,
) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut waiting = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = waiting.pop_front() {
        // If it cannot be read here, the command cannot read it either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || depth > MAX_DEPTH {
                return None;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let (name, kind) = (name.to_str()?, entry.file_type().ok()?);
            let entry = TreeEntry { path: &path, name, is_at_top: depth == 0 };
            if kind.is_dir() {
                if with_folders && takes(&entry) {
                    found.push(path.clone());
                }
                if enters(&entry) {
                    waiting.push_back((path, depth + 1));
                }
            } else if takes(&entry) {
                found.push(path);
            }
        }
    }
    Some(found)
}

/// Whether a name stays one word if a program reads it as a line, `xargs` as a word, or the shell without quotes.
fn is_plain(path: &Path) -> bool {
    let plain = |name: &str| !name.contains([' ', '\t', '\n', '\'', '"', '\\', '*', '?', '[']);
    path.iter().all(|name| name.to_str().is_some_and(plain))
}

/// Converts an `fnmatch` wildcard so that no matching name is missed; `None` if that is not certain.
pub(super) fn wildcard(text: &str, ignores_case: bool) -> Option<GlobMatcher> {
    let plain = |c: char| c.is_alphanumeric() || "_-.+@~#%= *?".contains(c);
    if !text.chars().all(plain) || text.contains("**") {
        return None;
    }
    // A character may be several bytes, depending on the locale.
    let wide = text.replace('?', "*");
    let glob = GlobBuilder::new(&wide).case_insensitive(ignores_case).build().ok()?;
    Some(glob.compile_matcher())
}

/// The same for exclusions, so that no name is excluded that the program includes.
pub(super) fn leaves_out(text: &str) -> Option<GlobMatcher> {
    wildcard(text, false).filter(|_| !text.contains('?') && text.is_ascii())
}
