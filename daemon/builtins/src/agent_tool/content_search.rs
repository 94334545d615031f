//! The files that an agent's search for a text reads without permission.
//!
//! The agent's own program searches, mostly ripgrep. A walk with the same filters finds the files among them that a rule, a
//! secret name or an ignore file of tools keeps from the agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use tokio_util::sync::CancellationToken;
use toold_adapters::agents::ContentSearch;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_host::exclude::Exclusions;
use toold_host::file_needs::entry_read_need;
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::ReadAccess;
use toold_host::tree::Tree;

use crate::blocking::{blocking, check};

/// How many files and folders one walk visits. The judgement of a search in more of them is not whole.
const MAX_ENTRIES: usize = 20_000;
/// How many files are named. One that is denied denies the search.
const MAX_UNREADABLE: usize = 16;

/// The result.
#[derive(Debug, Default)]
pub(super) struct SearchedFiles {
    /// The needs of files that the search reads, and that may not be read without asking.
    pub(super) unreadable: Vec<Need>,
    /// Why it may read others too.
    pub(super) partial: Option<String>,
}

/// Looks for them below `root`, which is resolved.
///
/// # Errors
/// The call was cancelled.
pub(super) async fn look(root: PathBuf, search: &ContentSearch, cx: &Cx) -> anyhow::Result<SearchedFiles> {
    let access = Arc::new(ReadAccess::new(cx, cx.outer_chain.clone(), root.clone()));
    let (search, cwd) = (search.clone(), cx.cwd.clone());
    // A file is a need by itself.
    blocking(cx, move |cancel| match root.is_dir() {
        true => SearchWalk { root: &root, cwd: &cwd, search: &search, access: &access, cancel }.run(),
        false => Ok(SearchedFiles::default()),
    })
    .await
}

struct SearchWalk<'a> {
    root: &'a Path,
    cwd: &'a Path,
    search: &'a ContentSearch,
    access: &'a Arc<ReadAccess>,
    cancel: &'a CancellationToken,
}

/// The filters of one walk.
struct WalkFilters {
    globs: Override,
    types: Types,
    skips_hidden: bool,
}

impl SearchWalk<'_> {
    fn run(&self) -> anyhow::Result<SearchedFiles> {
        let (Ok(globs), Ok(types)) = (self.globs(self.cwd), self.types()) else {
            return self.in_doubt("its glob or file type is not known");
        };
        let filters = WalkFilters { globs, types, skips_hidden: self.search.hidden != Some(true) };
        let mut found = self.walk(filters)?;
        // Globs with a folder are relative to the agent's folder, or to the one that is searched.
        if self.root != self.cwd && self.search.globs.iter().any(|glob| glob.contains('/')) {
            let filters = WalkFilters {
                globs: self.globs(self.root)?,
                types: self.types()?,
                skips_hidden: self.search.hidden != Some(true),
            };
            let below = self.walk(filters)?;
            found.unreadable.extend(below.unreadable);
            found.partial = found.partial.or(below.partial);
        }
        if found.unreadable.is_empty() && found.partial.is_none() && self.search.hidden.is_none() {
            return self.in_doubt("it may search hidden files");
        }
        Ok(found)
    }

    /// The judgement where it is not certain what is searched: no file is denied, and the search is allowed only if it may
    /// read every file.
    fn in_doubt(&self, why: &str) -> anyhow::Result<SearchedFiles> {
        let globs = self.globs(self.cwd).unwrap_or_else(|_| Override::empty());
        let all = self.walk(WalkFilters { globs, types: Types::empty(), skips_hidden: false })?;
        let partial = (!all.unreadable.is_empty()).then(|| why.to_owned());
        Ok(SearchedFiles { unreadable: Vec::new(), partial: all.partial.or(partial) })
    }

    fn globs(&self, base: &Path) -> Result<Override, ignore::Error> {
        let mut globs = OverrideBuilder::new(base);
        for glob in &self.search.globs {
            globs.add(glob)?;
        }
        globs.build()
    }

    fn types(&self) -> Result<Types, ignore::Error> {
        let mut types = TypesBuilder::new();
        if let Some(name) = &self.search.file_type {
            types.add_defaults().select(name);
        }
        types.build()
    }

    fn walk(&self, filters: WalkFilters) -> anyhow::Result<SearchedFiles> {
        let WalkFilters { globs, types, skips_hidden } = filters;
        let ignore_files =
            (!self.search.ignored).then(|| Arc::new(IgnoreFiles::new(self.root, self.cwd, self.access.clone())));
        let tree = Tree { globs, types, skips_hidden, ..Tree::new(ignore_files) };
        let mut exclusions = Exclusions::of_walk();
        let mut found = SearchedFiles::default();
        // Repositories are searched by no agent.
        let walk = tree.walk(self.root, |entry| entry.depth == 0 || entry.name != ".git").parallel().build();
        for (number, entry) in walk.enumerate() {
            check(self.cancel)?;
            if number >= MAX_ENTRIES {
                found.partial = Some(format!("it searches more than {MAX_ENTRIES} files and folders"));
                break;
            }
            // The agent runs as the same user, so it cannot search a folder that cannot be listed here.
            let Ok(entry) = entry else { continue };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !is_file || self.access.may_read(entry.path(), false, &mut exclusions) {
                continue;
            }
            let reason = "the search reads it: leave it out with a glob or a path".to_owned();
            found.unreadable.push(entry_read_need(entry.path(), false, &mut exclusions).because(reason));
            if found.unreadable.len() == MAX_UNREADABLE {
                break;
            }
        }
        Ok(found)
    }
}
