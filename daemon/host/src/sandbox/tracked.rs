//! Which files have the content that Git's index names for them: what they hold is in the repository's objects already.
//!
//! The index itself proves nothing, since a command that may change it can list any file: the content must match.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use crate::checked_out::git_folder;
use crate::files;
use crate::git_index::{self, GitIndex, OBJECT};

/// Secrets are small.
const MAX_FILE: u64 = 1 << 20;

/// Where Git would look up a file: the nearest repository above it.
#[derive(Debug)]
pub(super) struct TrackingRepository {
    top: PathBuf,
    pub(super) index: PathBuf,
}

impl TrackingRepository {
    /// The index of a folder with `.git` in it.
    pub(super) fn of(top: &Path) -> Option<Self> {
        Some(Self { index: git_folder(top)?.join("index"), top: top.to_owned() })
    }
}

/// The indexes that a walk has needed, each read once.
#[derive(Debug, Default)]
pub(super) struct GitIndexes(HashMap<PathBuf, Option<GitIndex>>);

impl GitIndexes {
    /// Whether the repository tracks the file with the content that it has.
    pub(super) fn tracks(&mut self, repository: &TrackingRepository, file: &Path) -> bool {
        let index = self.0.entry(repository.index.clone()).or_insert_with_key(|index| git_index::read(index));
        let name = file.strip_prefix(&repository.top).ok().and_then(Path::to_str);
        let entry = index.as_ref().zip(name).and_then(|(index, name)| index.entry(name.as_bytes()));
        entry.is_some_and(|entry| files::read_named(file, MAX_FILE).is_ok_and(|content| blob(&content) == entry.object))
    }
}

fn blob(content: &[u8]) -> [u8; OBJECT] {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_is_tracked_while_its_content_is_that_of_the_index() {
        for version in ["2", "3", "4"] {
            let folder = tempfile::tempdir().unwrap();
            let top = folder.path().canonicalize().unwrap();
            let git = |arguments: &[&str]| {
                let mut command = Command::new("git");
                command.args(["-C", top.to_str().unwrap(), "-c", "user.name=n", "-c", "user.email=e@example.org"]);
                assert!(command.args(arguments).env("HOME", &top).output().unwrap().status.success(), "{arguments:?}");
            };
            git(&["init", "-q"]);
            for name in ["a", "src/abc.rs", "src/abd.rs", ".env", "deep/.env.local"] {
                std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
                std::fs::write(top.join(name), format!("of {name}\n")).unwrap();
            }
            git(&["add", "-A"]);
            git(&["update-index", "--index-version", version]);
            std::fs::write(top.join("new.env"), "x\n").unwrap();
            let tracked = |name: &str| {
                let file = top.join(name);
                TrackingRepository::of(&top).is_some_and(|of| GitIndexes::default().tracks(&of, &file))
            };
            assert!(tracked(".env") && tracked("deep/.env.local") && tracked("src/abd.rs"), "version {version}");
            assert!(!tracked("new.env") && !tracked("missing"), "version {version}");
            // In the index, but not what the index says.
            std::fs::write(top.join(".env"), "other\n").unwrap();
            assert!(!tracked(".env"));
        }
    }
}
