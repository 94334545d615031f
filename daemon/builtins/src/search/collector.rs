//! Collects the results of a search's threads, sorted and in bounded memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use toold_host::tree::LeftOutReason;

use super::{FileHits, SearchMode, SearchResults, Window};

/// Merges the threads' results. Keeps the first files by path that fill the window, and only counts the others, so that
/// memory use depends on the window and not on the number of results.
pub(super) struct Collector {
    window: Window,
    mode: SearchMode,
    searched: AtomicU64,
    binary: AtomicU64,
    inner: Mutex<CollectorState>,
}

#[derive(Default)]
struct CollectorState {
    files: BTreeMap<PathBuf, FileHits>,
    kept: u64,
    /// The first of the files of which only a part was searched.
    cut: BTreeMap<PathBuf, u64>,
    /// The first of the files that are binary.
    binary: BTreeSet<PathBuf>,
    found: SearchResults,
}

impl Collector {
    const MAX_PROBLEMS: usize = 5;

    pub(super) fn new(window: Window, mode: SearchMode) -> Self {
        Self { window, mode, searched: AtomicU64::new(0), binary: AtomicU64::new(0), inner: Mutex::default() }
    }

    /// The most matches of a file that can be in the window, as far as is known now.
    pub(super) fn room(&self, path: &Path) -> u64 {
        let inner = self.inner.lock();
        let full = inner.kept >= self.wanted();
        match inner.files.last_key_value() {
            Some((last, _)) if full && path > last.as_path() => 0,
            _ => self.wanted(),
        }
    }

    pub(super) fn add(&self, unsaved: bool, hits: FileHits) {
        let wanted = self.wanted();
        let mut inner = self.inner.lock();
        inner.found.total_matches += hits.count;
        inner.found.total_files += 1;
        inner.found.unsaved_files += u64::from(unsaved);
        if let Some(at) = hits.searched_to {
            inner.found.cut_count += 1;
            inner.cut.insert(hits.path.clone(), at);
            if inner.cut.len() > Self::MAX_PROBLEMS {
                inner.cut.pop_last();
            }
        }
        inner.kept += self.weight(&hits);
        inner.files.insert(hits.path.clone(), hits);
        while let Some(last) = inner.files.last_entry() {
            let weight = self.weight(last.get());
            if inner.kept - weight < wanted {
                break;
            }
            inner.files.pop_last();
            inner.kept -= weight;
        }
    }

    pub(super) fn searched(&self) {
        self.searched.fetch_add(1, Ordering::Relaxed);
    }

    /// A file was binary, and had no match before that was known.
    pub(super) fn binary(&self, path: &Path) {
        self.binary.fetch_add(1, Ordering::Relaxed);
        let names = &mut self.inner.lock().binary;
        if names.len() < Self::MAX_PROBLEMS || names.last().is_some_and(|last| path < last) {
            names.insert(path.to_owned());
        }
        if names.len() > Self::MAX_PROBLEMS {
            names.pop_last();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inner.lock().found.total_files == 0
    }

    pub(super) fn left_out(&self, left_out: Vec<(PathBuf, bool, LeftOutReason)>) {
        self.inner.lock().found.left_out = left_out;
    }

    pub(super) fn problem(&self, words: String) {
        let mut inner = self.inner.lock();
        inner.found.problem_count += 1;
        if inner.found.problems.len() < Self::MAX_PROBLEMS {
            inner.found.problems.push(words);
        }
    }

    pub(super) fn finish(&mut self) -> SearchResults {
        let inner = std::mem::take(self.inner.get_mut());
        let mut found = inner.found;
        found.files = inner.files.into_values().collect();
        found.cut = inner.cut.into_iter().collect();
        found.binary_files = inner.binary.into_iter().collect();
        found.problems.sort();
        (found.searched, found.binary) = (*self.searched.get_mut(), *self.binary.get_mut());
        found
    }

    /// Keeping one more than is shown would be useless: the totals already say that there are more.
    fn wanted(&self) -> u64 {
        self.window.skip.saturating_add(self.window.show)
    }

    fn weight(&self, hits: &FileHits) -> u64 {
        match self.mode {
            SearchMode::Content => hits.count,
            SearchMode::Files | SearchMode::Count => 1,
        }
    }
}
