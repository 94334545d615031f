//! Walks over trees of files. A walk itself reads no file, so nothing in the tree can make it block or grow.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, Match, WalkBuilder};
use parking_lot::Mutex;

use crate::file_systems::answering;
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
    /// Gets what the ignore files and the last two filters leave out.
    pub left_out: Option<Arc<SkippedPlaces>>,
}

/// Why a walk leaves something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutReason {
    Ignored,
    Hidden,
}

/// Files and folders that a walk left out. They were not judged: whoever shows them does that first.
#[derive(Debug, Default)]
pub struct SkippedPlaces(Mutex<Vec<(PathBuf, bool, LeftOutReason)>>);

impl SkippedPlaces {
    /// Further ones are not kept.
    const MAX: usize = 1000;

    fn add(&self, entry: &DirEntry, is_folder: bool, reason: LeftOutReason) {
        let mut all = self.0.lock();
        if all.len() < Self::MAX {
            all.push((entry.path().to_owned(), is_folder, reason));
        }
    }

    /// The paths, whether each is a folder, and why it was left out; sorted.
    pub fn take(&self) -> Vec<(PathBuf, bool, LeftOutReason)> {
        let mut all = std::mem::take(&mut *self.0.lock());
        all.sort();
        all
    }
}

impl Tree {
    pub fn new(ignore_files: Option<Arc<IgnoreFiles>>) -> Self {
        let (globs, types) = (Override::empty(), Types::empty());
        Self { globs, ignore_files, types, skips_hidden: true, enters_tracked: false, left_out: None }
    }

    /// A walk below `root`, an absolute path. `wanted` further filters the entries that [`Tree`] lets through.
    pub fn walk(self, root: &Path, wanted: impl Fn(&DirEntry) -> bool + Send + Sync + 'static) -> WalkBuilder {
        let mut walk = WalkBuilder::new(root);
        walk.standard_filters(false).filter_entry(move |entry| self.has(entry) && wanted(entry));
        walk
    }

    fn has(&self, entry: &DirEntry) -> bool {
        if entry.depth() == 0 {
            return true;
        }
        let (path, is_folder) = (entry.path(), entry.file_type().is_some_and(|kind| kind.is_dir()));
        if is_folder && let Err(error) = answering::ask(path) {
            self.ignore_files.iter().for_each(|files| files.note(path, &error.to_string()));
            return false;
        }
        match self.globs.matched(path, is_folder) {
            Match::Ignore(_) => return false,
            Match::Whitelist(_) => return true,
            Match::None => {}
        }
        let ignored = self.ignore_files.as_ref().map_or(Match::None, |files| files.matched(path, is_folder));
        let leave_out = |reason: LeftOutReason| {
            // Git's own folder is in nobody's way.
            if let Some(left_out) = self.left_out.as_ref().filter(|_| entry.file_name() != ".git") {
                left_out.add(entry, is_folder, reason);
            }
            false
        };
        if ignored.is_ignore() {
            return leave_out(LeftOutReason::Ignored);
        }
        let of_type = self.types.matched(path, is_folder);
        if of_type.is_ignore() {
            return false;
        }
        let is_brought_back = ignored.is_whitelist() || of_type.is_whitelist();
        if is_brought_back || !self.skips_hidden || !entry.file_name().as_encoded_bytes().starts_with(b".") {
            return true;
        }
        let tracked = self.ignore_files.as_ref().filter(|_| self.enters_tracked && is_folder);
        if entry.file_name() != ".git" && tracked.is_some_and(|files| files.tracks_folder(path)) {
            return true;
        }
        leave_out(LeftOutReason::Hidden)
    }
}
