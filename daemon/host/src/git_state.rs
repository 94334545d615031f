//! The state of a repository of Git besides its working tree, to find out whether a command has changed it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::checked_out::{git_folder, top_around};
use crate::file_systems::answering;
use crate::files;
use crate::git_index::{self, GitIndex};

/// Bytes of `HEAD` and `commondir`.
const MAX_NAME: u64 = 4096;
/// Further folders of branches are not looked at.
const MAX_FOLDERS: usize = 1000;
/// Files in which names of commits are, beside those below `refs`: they are replaced when they change.
const FILES: [&str; 2] = ["packed-refs", "logs/refs/stash"];

/// The number of the file, its size, and the time of its last change in seconds and nanoseconds.
type RefStamp = (u64, u64, i64, i64);

/// The branches, tags, stashes and the index of a repository. What only refreshes the index, as `git status` does, makes no
/// difference.
#[derive(Clone, Debug)]
pub struct GitState {
    head: Vec<u8>,
    /// Stamps of the folders in which the files of branches and tags are, which are replaced when they change.
    refs: BTreeMap<PathBuf, Option<RefStamp>>,
    index: IndexState,
}

#[derive(Clone, Debug, Default)]
struct IndexState {
    stamp: Option<RefStamp>,
    /// A hash of the names and objects in it; `None` if they cannot be read.
    entries: Option<blake3::Hash>,
}

impl GitState {
    /// The state of the repository that has `git` as its `.git`, a folder or the file of a work tree; `None` if there is none.
    /// `known` is an earlier state of the same one, whose index is not read again if it is still the same file. Blocks.
    pub fn of(git: &Path, known: Option<&Self>) -> Option<Self> {
        let top = git.parent()?;
        answering::ask(top).ok()?;
        let own = files::resolve(&git_folder(top)?, top).ok()?;
        let head = files::read_named(&own.join("HEAD"), MAX_NAME).ok()?;
        // Linked worktrees share their branches.
        let shared = files::read_text(&own.join("commondir"), MAX_NAME).ok();
        let shared = shared.and_then(|shared| files::resolve(Path::new(shared.trim()), &own).ok());
        let shared = shared.unwrap_or_else(|| own.clone());
        let mut refs = BTreeMap::new();
        let mut left = vec![own.join("refs"), shared.join("refs")];
        while let Some(folder) = left.pop() {
            if refs.len() >= MAX_FOLDERS || refs.contains_key(&folder) {
                continue;
            }
            let names = files::list(&folder, MAX_FOLDERS).unwrap_or_default();
            left.extend(names.iter().filter(|(_, kind)| kind.is_dir()).map(|(name, _)| folder.join(name)));
            let stamp = stamp(&folder);
            refs.insert(folder, stamp);
        }
        for file in FILES.map(|name| shared.join(name)) {
            let stamp = stamp(&file);
            refs.insert(file, stamp);
        }
        let index = IndexState::of(&own.join("index"), known.map(|known| &known.index));
        Some(Self { head, refs, index })
    }

    /// Whether branches, tags, stashes or the index are other ones.
    pub fn is_changed(&self, since: &Self) -> bool {
        self.head != since.head || self.refs != since.refs || self.index.is_changed(&since.index)
    }
}

impl IndexState {
    fn of(index: &Path, known: Option<&Self>) -> Self {
        let stamp = stamp(index);
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return known.clone();
        }
        let hash = |index: GitIndex| {
            let mut hasher = blake3::Hasher::new();
            for entry in index.entries {
                hasher.update(&entry.name).update(&[0]).update(&entry.object);
            }
            hasher.finalize()
        };
        Self { stamp, entries: stamp.and_then(|_| git_index::read(index)).map(hash) }
    }

    fn is_changed(&self, since: &Self) -> bool {
        self.stamp != since.stamp && (self.entries.is_none() || self.entries != since.entries)
    }
}

fn stamp(path: &Path) -> Option<RefStamp> {
    let facts = path.symlink_metadata().ok()?;
    Some((facts.ino(), facts.size(), facts.mtime(), facts.mtime_nsec()))
}

/// The `.git` of the repository in which a folder lies, if it lies in one.
pub fn around(folder: &Path) -> Option<PathBuf> {
    top_around(folder).map(|top| top.join(".git"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn branches_and_the_index_are_compared_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let run = |line: &str| {
            let words = "-c user.name=n -c user.email=e@example.com -c commit.gpgsign=false";
            let line = line.replace("git ", &format!("git {words} "));
            let done = Command::new("sh").args(["-c", &line]).current_dir(&top).output().unwrap();
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        };
        let git = top.join(".git");
        assert!(GitState::of(&git, None).is_none());
        run("git init -q . && echo a > a && echo b > b && git add a && git commit -qm first && git branch other");
        assert_eq!(around(&top.join("deep/er")), Some(git.clone()));
        let mut before = GitState::of(&git, None).unwrap();
        for (line, is_change) in [
            ("echo more >> a; touch a b; git status >/dev/null; git diff >/dev/null", false),
            ("git checkout -q -- .", false),
            ("git add b", true),
            ("git commit -qm second", true),
            ("git commit -q --amend -m again", true),
            ("git checkout -q other", true),
            ("git checkout -q -b deep/new", true),
            ("git tag t", true),
            ("echo c > a; git stash -q", true),
            ("git stash drop -q", true),
            ("git pack-refs --all", true),
            ("git log >/dev/null", false),
            ("git worktree add -q tree other", true),
        ] {
            run(line);
            let after = GitState::of(&git, Some(&before)).unwrap();
            assert_eq!(after.is_changed(&before), is_change, "{line}");
            before = after;
        }
    }
}
