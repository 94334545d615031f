//! Walks over trees of files: which entries they come to. A walk reads no file by itself, so nothing in the tree can make
//! it wait or grow.

use std::path::Path;
use std::sync::Arc;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, Match, WalkBuilder};

use crate::file_systems::answering;
use crate::ignore_files::IgnoreFiles;

/// What a walk passes over, in the order in which it is asked: the first that has something to say decides.
pub struct Tree {
    /// Globs: what one names is walked even when an ignore file names it; what none names is passed over.
    pub globs: Override,
    /// `None` where they do not count.
    pub ignore_files: Option<Arc<IgnoreFiles>>,
    pub types: Types,
    /// Whether what begins with a dot is passed over, unless something above brought it back.
    pub skips_hidden: bool,
}

impl Tree {
    pub fn new(ignore_files: Option<Arc<IgnoreFiles>>) -> Self {
        Self { globs: Override::empty(), ignore_files, types: Types::empty(), skips_hidden: true }
    }

    /// A walk below `root`, an absolute path. Of what [`Tree`] lets through, `wanted` chooses.
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
        if ignored.is_ignore() {
            return false;
        }
        let of_type = self.types.matched(path, is_folder);
        if of_type.is_ignore() {
            return false;
        }
        let is_brought_back = ignored.is_whitelist() || of_type.is_whitelist();
        is_brought_back || !self.skips_hidden || !entry.file_name().as_encoded_bytes().starts_with(b".")
    }
}
