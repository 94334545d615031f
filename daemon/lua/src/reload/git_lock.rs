//! The lock that git holds while it replaces files of a working tree: nothing below it is whole until the lock is gone.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::plugin::content::{read_file, real_path};

/// Older locks are from a git that crashed.
pub(crate) const OLDEST: Duration = Duration::from_secs(60);

/// The file `.git` of a linked working tree or a submodule is one line.
const MAX_LINE: usize = 8 * 1024;

/// Device, inode number and time of the last change.
type FileIdentity = (u64, u64, i64, i64);

/// The lock of a repository's index. Another lock at the same path is another value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexLock {
    path: PathBuf,
    identity: FileIdentity,
    /// The folder of the files that git may be replacing.
    pub(crate) tree: PathBuf,
}

impl IndexLock {
    fn at(path: PathBuf, tree: &Path) -> Option<Self> {
        let facts = path.symlink_metadata().ok()?;
        let age = facts.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let lock = Self { path, identity: identity(&facts), tree: tree.to_owned() };
        age.is_none_or(|age| age <= OLDEST).then_some(lock)
    }

    /// Whether git still holds it.
    pub(crate) fn is_held(&self) -> bool {
        Self::at(self.path.clone(), &self.tree).as_ref() == Some(self)
    }
}

/// The working trees that contain a plugin, as they are before its files are read.
pub(crate) struct GitTrees(Vec<GitTree>);

struct GitTree {
    folder: PathBuf,
    /// The folder of the repository.
    git_dir: PathBuf,
    /// Git replaces the index after it has replaced files.
    index: Option<FileIdentity>,
}

impl GitTrees {
    /// The plugin need not exist.
    pub(crate) fn around(plugin: &Path) -> Self {
        // A link and its target may be in different repositories.
        let is_link = plugin.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
        let real = if is_link { real_path(plugin).ok() } else { None };
        let folders = plugin.ancestors().chain(real.iter().flat_map(|real| real.ancestors()));
        let tree = |folder: &Path| {
            let git_dir = git_dir(folder)?;
            let index = index_of(&git_dir);
            Some(GitTree { folder: folder.to_owned(), git_dir, index })
        };
        Self(folders.filter_map(tree).collect())
    }

    /// A lock that git holds now, except these.
    pub(crate) fn lock(&self, stale: &BTreeSet<IndexLock>) -> Option<IndexLock> {
        let mut locks = self.0.iter().filter_map(|tree| IndexLock::at(tree.git_dir.join("index.lock"), &tree.folder));
        locks.find(|lock| !stale.contains(lock))
    }

    /// Whether git has replaced files since.
    pub(crate) fn were_replaced(&self) -> bool {
        self.0.iter().any(|tree| index_of(&tree.git_dir) != tree.index)
    }
}

fn index_of(git_dir: &Path) -> Option<FileIdentity> {
    git_dir.join("index").symlink_metadata().ok().map(|facts| identity(&facts))
}

fn identity(facts: &Metadata) -> FileIdentity {
    (facts.dev(), facts.ino(), facts.ctime(), facts.ctime_nsec())
}

/// The folder of the repository with this working tree.
fn git_dir(tree: &Path) -> Option<PathBuf> {
    let path = tree.join(".git");
    if !path.symlink_metadata().ok()?.is_file() {
        return Some(path);
    }
    let line = String::from_utf8(read_file(&path, MAX_LINE).ok()?).ok()?;
    Some(tree.join(line.strip_prefix("gitdir:")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index_lock(plugin: &Path) -> Option<IndexLock> {
        GitTrees::around(plugin).lock(&BTreeSet::new())
    }

    #[test]
    fn a_lock_is_found_from_files_folders_and_linked_working_trees() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("tree/.git/worktrees/other")).unwrap();
        std::fs::create_dir_all(root.join("tree/plugins/f")).unwrap();
        std::fs::create_dir_all(root.join("other")).unwrap();
        std::fs::write(root.join("other/.git"), "gitdir: ../tree/.git/worktrees/other\n").unwrap();
        assert_eq!(index_lock(&root.join("tree/plugins/f")), None);
        let lock = root.join("tree/.git/index.lock");
        std::fs::write(&lock, "").unwrap();
        for plugin in ["tree/plugins/f", "tree/plugins/a.lua", "tree"] {
            assert_eq!(index_lock(&root.join(plugin)).unwrap().tree, root.join("tree"), "{plugin}");
        }
        assert_eq!(index_lock(&root.join("other/a.lua")), None);
        std::fs::write(root.join("tree/.git/worktrees/other/index.lock"), "").unwrap();
        assert_eq!(index_lock(&root.join("other/a.lua")).unwrap().tree, root.join("other"));
        let first = index_lock(&root.join("tree")).unwrap();
        assert!(first.is_held());
        std::fs::remove_file(&lock).unwrap();
        assert!(!first.is_held());
        std::fs::write(&lock, "").unwrap();
        let long_ago = SystemTime::now() - OLDEST * 2;
        std::fs::File::options().write(true).open(&lock).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(index_lock(&root.join("tree")), None, "its git crashed");
        let before = GitTrees::around(&root.join("tree/plugins/a.lua"));
        assert!(!before.were_replaced());
        std::fs::rename(&lock, root.join("tree/.git/index")).unwrap();
        assert!(before.were_replaced());
    }
}
