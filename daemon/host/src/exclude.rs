//! Files that users exclude from tools: `.aiexclude` and `.toolignore`, in the syntax of `.gitignore`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files;
use crate::folder_names::FolderNames;
use crate::pattern_budget::{MAX_BYTES, MAX_FOLDERS, MAX_PATTERNS, take_room};

/// A set of ignore files for each thread of a walk.
const THREADS: usize = 5;
/// How long a call uses the exclusions that it has read: a call that waits for a person or for its turn takes longer, and
/// reads them again.
const FRESH: Duration = Duration::from_millis(50);
/// The two files are independent: a `!` in one does not re-include what the other excludes.
const NAMES: [&str; 2] = [".aiexclude", ".toolignore"];

/// The excluded files, as one call sees them. Caches the files that it has read: create a new one for each call.
#[derive(Clone, Debug)]
pub struct Exclusions {
    /// By their text: equal texts are the same folder, and any other text is looked up.
    folders: HashMap<OsString, ExcludedFolder>,
    /// The last folder without rules in or above it: walks ask about many files of one folder.
    free: Option<PathBuf>,
    /// Assumes that no folder is a link.
    is_walk: bool,
    made: Instant,
    /// How many more plain patterns may be kept.
    room: usize,
}

impl Default for Exclusions {
    fn default() -> Self {
        Self { folders: HashMap::new(), free: None, is_walk: false, made: Instant::now(), room: MAX_PATTERNS / THREADS }
    }
}

/// A folder that was visited.
#[derive(Clone, Debug, Default)]
struct ExcludedFolder {
    /// `None` if they were not looked for.
    names: Option<FolderNames>,
    rules: FolderRules,
    /// It is a link, so it has no rules.
    is_link: bool,
}

/// The rules of one folder, by index in [`NAMES`].
type FolderRules = [Option<Arc<ExclusionRules>>; NAMES.len()];

#[derive(Debug)]
enum ExclusionRules {
    Read {
        rules: Gitignore,
        /// The file is a link: whoever receives a refusal must not learn its target.
        is_link: bool,
    },
    /// Its rules are unknown, so it excludes everything.
    Broken(String),
}

impl Exclusions {
    /// For paths that a walk visits. The walk has entered their folders, so none of them is a link, and that is not
    /// checked.
    pub fn of_walk() -> Self {
        Self { is_walk: true, ..Self::default() }
    }

    /// Whether what was read is recent enough for the next step of a call.
    pub fn is_fresh(&self) -> bool {
        self.made.elapsed() < FRESH
    }

    /// Why the absolute, resolved `path` is excluded from tools; `None` if it is not.
    ///
    /// As in Git, a deeper file overrides, `!` re-includes, and nothing in an excluded folder is re-included. A rules
    /// file that cannot be read excludes everything beside and below it.
    pub fn reason(&mut self, path: &Path, is_folder: bool) -> Option<String> {
        if self.free.as_ref().zip(path.parent()).is_some_and(|(free, folder)| free.as_os_str() == folder.as_os_str()) {
            return None;
        }
        // From the top: an excluded folder decides before its contents.
        let mut steps: Vec<&Path> = path.ancestors().filter(|step| step.parent().is_some()).collect();
        steps.reverse();
        // A path that is checked as the caller named it may contain a link. Its target is not looked at.
        let mut is_beyond = false;
        let mut rules_of = |folder: &Path| {
            let known = if is_beyond { ExcludedFolder::default() } else { self.folder(folder) };
            is_beyond |= known.is_link;
            known.rules
        };
        let folders: Vec<FolderRules> = steps.iter().filter_map(|step| step.parent()).map(&mut rules_of).collect();
        if folders.iter().flatten().all(Option::is_none) {
            self.free = path.parent().map(Path::to_owned);
            return None;
        }
        (0..NAMES.len()).find_map(|name| {
            steps.iter().enumerate().find_map(|(depth, step)| {
                let is_folder = is_folder || depth + 1 < steps.len();
                let rules = folders[..=depth].iter().rev().filter_map(|folder| folder[name].as_deref());
                excluded(rules, step, is_folder)
            })
        })
    }

    /// Looks into a folder whose contents will be asked about.
    pub fn visit(&mut self, folder: &Path) {
        self.folder(folder);
    }

    fn rules(&mut self, folder: &Path, names: FolderNames) -> FolderRules {
        NAMES.map(|name| names.may_have(name).then(|| load(folder, name, &mut self.room)).flatten().map(Arc::new))
    }

    /// The names that the folder may have, as they were when it was first asked about. Blocks.
    pub(crate) fn names_of(&self, folder: &Path) -> FolderNames {
        let known = self.folders.get(folder.as_os_str()).and_then(|known| known.names);
        known.unwrap_or_else(|| FolderNames::of(folder))
    }

    fn folder(&mut self, folder: &Path) -> ExcludedFolder {
        if let Some(known) = self.folders.get(folder.as_os_str()) {
            return known.clone();
        }
        let is_link = !self.is_walk && std::fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink());
        let names = (!is_link).then(|| FolderNames::of(folder));
        let rules = names.map(|names| self.rules(folder, names)).unwrap_or_default();
        let known = ExcludedFolder { names, rules, is_link };
        if self.folders.len() >= MAX_FOLDERS {
            // Folders with rules are bounded by the pattern limit.
            self.folders.retain(|_, known| known.rules.iter().any(Option::is_some));
        }
        self.folders.insert(folder.into(), known.clone());
        known
    }
}

/// The verdict of the nearest rules that match `path`.
fn excluded<'a>(rules: impl Iterator<Item = &'a ExclusionRules>, path: &Path, is_folder: bool) -> Option<String> {
    for rules in rules {
        let (matched, is_link) = match rules {
            ExclusionRules::Broken(why) => return Some(why.clone()),
            ExclusionRules::Read { rules, is_link } => (rules.matched(path, is_folder), *is_link),
        };
        match matched {
            Match::None => {}
            Match::Whitelist(_) => return None,
            Match::Ignore(glob) => {
                let file = glob.from().map(|file| file.display().to_string()).unwrap_or_default();
                return Some(if is_link { file } else { format!("{file} ({})", glob.original()) });
            }
        }
    }
    None
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).map_or(true, |metadata| metadata.is_symlink())
}

/// Subtracts the patterns that it keeps from `room`.
fn load(folder: &Path, name: &str, room: &mut usize) -> Option<ExclusionRules> {
    let path = folder.join(name);
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        // In a folder that cannot be searched, nothing can be opened either.
        Err(error) if is_absent(&error) => return None,
        Err(error) => return Some(ExclusionRules::Broken(format!("can't read {}: {error}", path.display()))),
    };
    if !metadata.is_file() {
        return Some(ExclusionRules::Broken(format!("{} is not a file", path.display())));
    }
    let read = files::read_named(&path, MAX_BYTES).map_err(|error| error.to_string());
    let bytes = match read.and_then(|bytes| take_room(&bytes, room).map(|()| bytes)) {
        Ok(bytes) => bytes,
        // Whoever receives a refusal must not learn the target of a link.
        Err(_) if is_link(&path) => return Some(ExclusionRules::Broken(format!("can't read {}", path.display()))),
        Err(error) => return Some(ExclusionRules::Broken(format!("can't read {}: {error}", path.display()))),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(folder);
    let is_link = is_link(&path);
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if builder.add_line(Some(path.clone()), line).is_err() {
            // Never the line itself: the reader of the refusal may be excluded from this file, too.
            let number = if is_link { String::new() } else { format!(":{}", number + 1) };
            return Some(ExclusionRules::Broken(format!("{}{number} has an invalid pattern", path.display())));
        }
    }
    Some(match builder.build() {
        Ok(rules) => ExclusionRules::Read { rules, is_link },
        Err(_) => ExclusionRules::Broken(format!("{} has invalid patterns", path.display())),
    })
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], path: &str, excluded: bool) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in files {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let reason = Exclusions::default().reason(&root.join(path), path.ends_with('/'));
        assert_eq!(reason.is_some(), excluded, "{path}: {reason:?}");
    }

    #[test]
    fn patterns_are_those_of_gitignore() {
        let files = [(".aiexclude", "*.key\n/top\nbuild/\n# comment\ndocs/**/draft\n")];
        check(&files, "a/b.key", true);
        check(&files, "top", true);
        check(&files, "a/top", false);
        check(&files, "a/build/x/y", true);
        check(&files, "build", false);
        check(&files, "docs/a/b/draft", true);
        check(&files, "comment", false);
    }

    #[test]
    fn nearer_files_override_and_negation_brings_back() {
        let files = [(".toolignore", "*.log\n!keep.log\n"), ("a/.toolignore", "keep.log\n!other.log\n")];
        check(&files, "x.log", true);
        check(&files, "keep.log", false);
        check(&files, "a/keep.log", true);
        check(&files, "a/other.log", false);
    }

    #[test]
    fn nothing_comes_back_out_of_an_excluded_folder() {
        let files = [(".aiexclude", "private/\n"), ("private/.aiexclude", "!*\n")];
        check(&files, "private/a", true);
    }

    #[test]
    fn rules_that_are_a_link_hold_and_are_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work/deep")).unwrap();
        std::fs::write(root.join("rules"), "TOKEN=abc\n").unwrap();
        std::fs::write(root.join("broken"), "[z-a]xyz\n").unwrap();
        std::os::unix::fs::symlink("../rules", root.join("work/.aiexclude")).unwrap();
        std::os::unix::fs::symlink("../../broken", root.join("work/deep/.aiexclude")).unwrap();
        let reason = |path: &str| Exclusions::default().reason(&root.join(path), false);
        assert_eq!(reason("work/TOKEN=abc"), Some(root.join("work/.aiexclude").display().to_string()));
        assert_eq!(reason("work/other"), None);
        let words = format!("{} has an invalid pattern", root.join("work/deep/.aiexclude").display());
        assert_eq!(reason("work/deep/other"), Some(words));
    }

    #[test]
    fn one_file_does_not_reinclude_what_the_other_excludes() {
        check(&[(".aiexclude", "a\n"), (".toolignore", "!a\n")], "a", true);
    }

    #[test]
    fn rules_that_cannot_be_read_exclude_everything() {
        check(&[(".aiexclude", "ok\n[z-a]\n")], "other", true);
        check(&[(".toolignore/not-a-file", "")], "other", true);
    }
}
