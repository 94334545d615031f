//! Walks over trees of files. A walk itself reads no file, so nothing in the tree can make it block or grow.

use std::path::Path;
use std::sync::Arc;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, Match, WalkBuilder};

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
}

impl Tree {
    pub fn new(ignore_files: Option<Arc<IgnoreFiles>>) -> Self {
        Self { globs: Override::empty(), ignore_files, types: Types::empty(), skips_hidden: true }
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
