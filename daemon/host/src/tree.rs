//! Walks over trees of files. A walk itself reads no file, so nothing in the tree can make it block or grow.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{Match, WalkBuilder};
use parking_lot::Mutex;

use crate::file_systems::answering;
use crate::files::{self, FileType};
use crate::ignore_files::IgnoreFiles;

/// The filters of a walk, in order of precedence: the first filter with an opinion decides.
pub struct Tree {
    /// Globs: a match is visited even if an ignore file names it; anything else is skipped.
    pub globs: Override,
    /// `None` if ignore files do not apply.
    pub ignore_files: Option<Arc<IgnoreFiles>>,
    pub types: Types,
    /// Whether hidden files are skipped, unless something above re-included them.
    pub skips_hidden: bool,
    /// Whether hidden folders are entered if Git tracks files in them.
    pub enters_tracked: bool,
    /// Gets what the ignore files and the last two filters leave out, the links, which no walk follows, and what nobody can search,
    /// such as pipes.
    pub left_out: Option<Arc<SkippedPlaces>>,
}

/// Why a walk leaves something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutReason {
    Ignored,
    Hidden,
    Link,
    /// Git's own folder.
    Repository,
    /// A pipe, a socket or a device.
    Special,
}

/// Files and folders that a walk left out. They were not judged: whoever shows them does that first.
#[derive(Debug, Default)]
pub struct SkippedPlaces(Mutex<Vec<(PathBuf, bool, LeftOutReason)>>);

impl SkippedPlaces {
    /// Further ones are not kept.
    const MAX: usize = 1000;

    pub fn add(&self, entry: &VisitedEntry<'_>, reason: LeftOutReason) {
        let mut all = self.0.lock();
        if all.len() < Self::MAX {
            all.push((entry.path.to_owned(), entry.is_folder, reason));
        }
    }

    fn clear(&self) {
        self.0.lock().clear();
    }

    /// The paths, whether each is a folder, and why it was left out; sorted.
    pub fn take(&self) -> Vec<(PathBuf, bool, LeftOutReason)> {
        let mut all = std::mem::take(&mut *self.0.lock());
        all.sort();
        all
    }
}

/// A file or a folder that a walk has come to.
pub struct VisitedEntry<'a> {
    pub path: &'a Path,
    /// The last part of the path.
    pub name: &'a OsStr,
    pub is_folder: bool,
    pub is_link: bool,
    /// Neither a file nor one of the two.
    pub is_special: bool,
    /// 0 for the root of the walk.
    pub depth: usize,
}

impl WalkedTree {
    /// One file, which is the root itself.
    pub fn of_file(root: &Path) -> Self {
        Self { entries: vec![(root.to_owned(), FileType::RegularFile)], ..Self::default() }
    }
}

/// A walk that has not begun.
pub struct TreeWalk {
    root: PathBuf,
    filter: Arc<dyn Fn(&VisitedEntry<'_>) -> bool + Send + Sync>,
    left_out: Option<Arc<SkippedPlaces>>,
}

/// What a walk by one thread has found.
#[derive(Default)]
pub struct WalkedTree {
    /// Everything below the root, a folder before its contents.
    pub entries: Vec<(PathBuf, FileType)>,
    /// The files and folders that the filters left out; what is in such a folder is not listed.
    pub left_out: Vec<(PathBuf, FileType)>,
    /// Folders that could not be read.
    pub problems: Vec<ignore::Error>,
    /// There is more than was asked for.
    pub more: bool,
}

impl TreeWalk {
    /// A walk by the threads of `ignore`.
    pub fn parallel(&self) -> WalkBuilder {
        let (mut walk, filter) = (WalkBuilder::new(&self.root), self.filter.clone());
        walk.standard_filters(false).filter_entry(move |entry| {
            let kind = entry.file_type();
            let (is_folder, is_link) = kind.map_or((false, false), |kind| (kind.is_dir(), kind.is_symlink()));
            let is_special = kind.is_some_and(|kind| !kind.is_file()) && !is_folder && !is_link;
            let (path, name, depth) = (entry.path(), entry.file_name(), entry.depth());
            filter(&VisitedEntry { path, name, is_folder, is_link, is_special, depth })
        });
        walk
    }

    /// A walk by this thread, which takes less time for a small tree than to start others. It ends after `most` entries.
    /// `may_enter` is asked about each folder before it is read, the root included. Blocks.
    pub fn serial(&self, most: usize, mut may_enter: impl FnMut(&Path) -> bool) -> WalkedTree {
        let mut found = WalkedTree::default();
        let mut folders = vec![(self.root.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            if !may_enter(&folder) {
                continue;
            }
            let names = match files::list(&folder, most.saturating_add(1)) {
                Ok(names) => names,
                Err(error) => {
                    let err = Box::new(ignore::Error::Io(error.into()));
                    found.problems.push(ignore::Error::WithPath { path: folder, err });
                    continue;
                }
            };
            let before = found.entries.len();
            self.visit(&folder, depth, names, most, &mut found);
            if found.more {
                break;
            }
            let inside = found.entries[before..].iter().filter(|(_, kind)| kind.is_dir());
            folders.extend(inside.map(|(path, _)| (path.clone(), depth + 1)));
        }
        found
    }

    /// Adds the entries of a folder.
    fn visit(
        &self,
        folder: &Path,
        depth: usize,
        names: Vec<(OsString, FileType)>,
        most: usize,
        found: &mut WalkedTree,
    ) {
        for (name, kind) in names {
            let path = folder.join(&name);
            let (is_folder, is_link) = (kind.is_dir(), kind.is_symlink());
            let is_special = !kind.is_file() && !is_folder && !is_link;
            let entry = VisitedEntry { path: &path, name: &name, is_folder, is_link, is_special, depth: depth + 1 };
            if !(self.filter)(&entry) {
                if found.left_out.len() < most {
                    found.left_out.push((path, kind));
                }
                continue;
            }
            if found.entries.len() == most {
                found.more = true;
                return;
            }
            found.entries.push((path, kind));
        }
    }

    /// As [`TreeWalk::small`], if the root has a few files and no folders: that takes no longer than to have another thread
    /// do it.
    pub fn few(&self, mut may_enter: impl FnMut(&Path) -> bool) -> Option<WalkedTree> {
        let mut found = WalkedTree::default();
        if may_enter(&self.root) {
            let names = files::list(&self.root, FEW + 1).ok()?;
            if names.len() > FEW || names.iter().any(|(_, kind)| kind.is_dir()) {
                return None;
            }
            self.visit(&self.root, 0, names, FEW, &mut found);
        }
        Some(found)
    }

    /// As [`TreeWalk::serial`], if the tree is small; otherwise `None`, and nothing has been left out yet.
    pub fn small(&self, may_enter: impl FnMut(&Path) -> bool) -> Option<WalkedTree> {
        let found = Some(self.serial(SMALL, may_enter)).filter(|found| !found.more);
        if found.is_none() {
            self.left_out.iter().for_each(|left_out| left_out.clear());
        }
        found
    }
}

/// The most entries of a small tree, and of a folder that is read in place.
const SMALL: usize = 200;
const FEW: usize = 32;

impl Tree {
    pub fn new(ignore_files: Option<Arc<IgnoreFiles>>) -> Self {
        let (globs, types) = (Override::empty(), Types::empty());
        Self { globs, ignore_files, types, skips_hidden: true, enters_tracked: false, left_out: None }
    }

    /// A walk below `root`, an absolute path. `wanted` further filters the entries that [`Tree`] lets through.
    pub fn walk(self, root: &Path, wanted: impl Fn(&VisitedEntry<'_>) -> bool + Send + Sync + 'static) -> TreeWalk {
        let left_out = self.left_out.clone();
        let filter = Arc::new(move |entry: &VisitedEntry<'_>| {
            let is_visited = self.has(entry) && wanted(entry);
            if let Some(left_out) = self.left_out.as_ref().filter(|_| is_visited && (entry.is_link || entry.is_special))
            {
                left_out.add(entry, if entry.is_link { LeftOutReason::Link } else { LeftOutReason::Special });
            }
            is_visited
        });
        TreeWalk { root: root.to_owned(), filter, left_out }
    }

    fn has(&self, entry: &VisitedEntry<'_>) -> bool {
        let VisitedEntry { path, name, is_folder, is_link, depth, .. } = *entry;
        if depth == 0 {
            return true;
        }
        if is_folder && let Err(error) = answering::ask(path) {
            self.ignore_files.iter().for_each(|files| files.note(path, &error.to_string()));
            return false;
        }
        // A link may lead to a folder that has what the filters of files look for.
        let may_be_folder = is_folder || is_link;
        match self.globs.matched(path, may_be_folder) {
            Match::Ignore(_) => return false,
            Match::Whitelist(_) => return true,
            Match::None => {}
        }
        let ignored = self.ignore_files.as_ref().map_or(Match::None, |files| files.matched(path, is_folder));
        let leave_out = |reason: LeftOutReason| {
            // Git's own folder is in nobody's way.
            if let Some(left_out) = self.left_out.as_ref().filter(|_| name != ".git") {
                left_out.add(entry, reason);
            }
            false
        };
        if ignored.is_ignore() {
            return leave_out(LeftOutReason::Ignored);
        }
        let of_type = self.types.matched(path, may_be_folder);
        if of_type.is_ignore() {
            return false;
        }
        let is_brought_back = ignored.is_whitelist() || of_type.is_whitelist();
        if is_brought_back || !self.skips_hidden || !name.as_encoded_bytes().starts_with(b".") {
            return true;
        }
        let tracked = self.ignore_files.as_ref().filter(|_| self.enters_tracked && is_folder);
        if name != ".git" && tracked.is_some_and(|files| files.tracks_folder(path)) {
            return true;
        }
        leave_out(LeftOutReason::Hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_of_a_few_files_is_read_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |count: usize| (0..count).for_each(|n| std::fs::write(root.join(n.to_string()), "").unwrap());
        let walk = Tree::new(None).walk(&root, |entry| entry.name != "1");
        make(3);
        let found = walk.few(|_| true).unwrap();
        let names = |all: &[(PathBuf, FileType)]| {
            let mut names: Vec<PathBuf> =
                all.iter().map(|(path, _)| path.strip_prefix(&root).unwrap().into()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&found.entries), [Path::new("0"), Path::new("2")]);
        assert_eq!(names(&found.left_out), [Path::new("1")]);
        assert_eq!(walk.few(|_| false).unwrap().entries, []);
        make(FEW);
        assert!(walk.few(|_| true).is_some());
        make(FEW + 1);
        assert!(walk.few(|_| true).is_none());
        std::fs::remove_file(root.join("0")).unwrap();
        std::fs::remove_file(root.join("2")).unwrap();
        std::fs::create_dir(root.join("2")).unwrap();
        assert!(walk.few(|_| true).is_none());
    }
}
