//! One search over a tree of files, in parallel, with its results in order.
//!
//! [`search`] is what `grep` runs. Files that a call may not read are neither opened nor counted: a count of matches
//! would reveal their content.

mod collector;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;
use toold_host::exclude::Exclusions;
use toold_host::files::open_entry;
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::ReadAccess;
use toold_host::tree::Tree;

use crate::blocking::{CancellableFile, check};
use crate::buffers::Buffer;
use crate::search::collector::Collector;

/// Longer lines are shown in part.
const MAX_LINE: usize = 1000;
/// A file is read into memory as a whole only if matches may span lines, and then at most this much of it.
const MAX_HEAP: usize = 64 * 1024 * 1024;

/// The pattern and its options.
pub(crate) struct SearchQuery {
    pub(crate) pattern: String,
    pub(crate) fixed: bool,
    pub(crate) ignore_case: bool,
    pub(crate) multiline: bool,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) mode: SearchMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchMode {
    Content,
    Files,
    Count,
}

/// The files to search.
pub(crate) struct SearchRoot {
    /// Resolved: a file or a folder.
    pub(crate) root: PathBuf,
    /// Globs are relative to it.
    pub(crate) cwd: PathBuf,
    pub(crate) include: Option<String>,
    pub(crate) file_type: Option<String>,
    /// Unsaved texts, searched in place of their files.
    pub(crate) buffers: HashMap<PathBuf, Arc<Buffer>>,
}

/// The results that are shown: matches in `Content`, files in the other modes.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) skip: u64,
    pub(crate) show: u64,
}

/// The results.
#[derive(Debug, Default)]
pub(crate) struct SearchResults {
    /// Sorted by path; enough of them for the window.
    pub(crate) files: Vec<FileHits>,
    pub(crate) total_matches: u64,
    pub(crate) total_files: u64,
    /// How many of the files were searched as unsaved text.
    pub(crate) unsaved_files: u64,
    pub(crate) problems: Vec<String>,
    pub(crate) problem_count: u64,
}

#[derive(Debug)]
pub(crate) struct FileHits {
    pub(crate) path: PathBuf,
    /// Lines that match; matches if they may span lines.
    pub(crate) count: u64,
    pub(crate) rows: Vec<Row>,
    /// The file is binary: matches are reported but not shown.
    pub(crate) binary: bool,
}

/// A line of a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: RowKind,
    pub(crate) line: u64,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The first line of a match.
    Match,
    /// Another line of a match.
    More,
    Context,
    /// A gap in the context.
    Break,
}

/// Searches on one thread per core, up to a limit. Returns soon after `cancel` fires.
///
/// # Errors
/// An invalid pattern, glob or file type. Files that cannot be read are reported in the results.
pub(crate) fn search(
    query: &SearchQuery,
    place: &SearchRoot,
    window: Window,
    judge: &Arc<ReadAccess>,
    cancel: &CancellationToken,
) -> anyhow::Result<SearchResults> {
    let matcher = matcher(query)?;
    let mut collector = Collector::new(window, query.mode);
    if place.root.is_file() {
        let mut worker = SearchWorker::new(query, &matcher, &place.buffers, judge, cancel, &collector);
        worker.named = true;
        worker.file(&place.root);
    } else {
        let ignore_files = Arc::new(IgnoreFiles::new(&place.root, &place.cwd, judge.clone()));
        let walk = walk(place, ignore_files.clone())?.build_parallel();
        walk.visit(&mut SearchWorkers {
            query,
            matcher: &matcher,
            buffers: &place.buffers,
            judge,
            cancel,
            found: &collector,
        });
        ignore_files.problems().into_iter().for_each(|problem| collector.problem(problem));
    }
    check(cancel)?;
    Ok(collector.finish())
}

fn matcher(query: &SearchQuery) -> anyhow::Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(query.ignore_case).multi_line(true).unicode(true).octal(false).fixed_strings(query.fixed);
    if !query.multiline {
        builder.line_terminator(Some(b'\n')).dot_matches_new_line(false);
    }
    builder.build(&query.pattern).map_err(|error| {
        anyhow::anyhow!("can't use the pattern: {error}\nto search for it as plain text set fixed=true")
    })
}

/// A walk that honours the ignore files of Git and ripgrep and skips hidden files.
fn walk(place: &SearchRoot, ignore_files: Arc<IgnoreFiles>) -> anyhow::Result<WalkBuilder> {
    let mut tree = Tree::new(Some(ignore_files));
    if let Some(include) = &place.include {
        let mut overrides = OverrideBuilder::new(&place.cwd);
        overrides.add(include).map_err(|error| anyhow::anyhow!("can't use the glob: {error}"))?;
        tree.globs = overrides.build()?;
    }
    if let Some(file_type) = &place.file_type {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        types.select(file_type);
        tree.types = types.build().map_err(|_| {
            anyhow::anyhow!("there is no file type {file_type}: types are rust, py, js, ts, go, c, cpp, java, md, ...")
        })?;
    }
    let mut walk = tree.walk(&place.root, |_| true);
    walk.threads(threads());
    Ok(walk)
}

/// More threads than this wait for each other.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(12))
}

fn searcher(query: &SearchQuery, named: bool) -> Searcher {
    let content = query.mode == SearchMode::Content;
    SearcherBuilder::new()
        .line_number(content)
        .before_context(if content { query.before } else { 0 })
        .after_context(if content { query.after } else { 0 })
        .multi_line(query.multiline)
        .heap_limit(Some(MAX_HEAP))
        // A file that the caller named is searched to its end; in others a NUL ends the search.
        .binary_detection(if named { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) })
        .build()
}

struct SearchWorkers<'a> {
    query: &'a SearchQuery,
    matcher: &'a RegexMatcher,
    buffers: &'a HashMap<PathBuf, Arc<Buffer>>,
    judge: &'a ReadAccess,
    cancel: &'a CancellationToken,
    found: &'a Collector,
}

impl<'a> ParallelVisitorBuilder<'a> for SearchWorkers<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(SearchWorker::new(self.query, self.matcher, self.buffers, self.judge, self.cancel, self.found))
    }
}

/// One thread of a search.
struct SearchWorker<'a> {
    query: &'a SearchQuery,
    matcher: RegexMatcher,
    searcher: Searcher,
    buffers: &'a HashMap<PathBuf, Arc<Buffer>>,
    judge: &'a ReadAccess,
    exclusions: Exclusions,
    cancel: &'a CancellationToken,
    found: &'a Collector,
    /// The caller named this very file.
    named: bool,
}

impl ParallelVisitor for SearchWorker<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.cancel.is_cancelled() {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => self.file(entry.path()),
            // A caller that may not read the folder must not learn of its ignore files, nor whether it can be listed.
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_dir()) => {
                if !self.judge.may_read(entry.path(), true, &mut self.exclusions) {
                    return WalkState::Skip;
                }
            }
            Ok(_) => {}
            Err(error) => {
                if let Some(problem) = self.judge.problem(&error, &mut self.exclusions) {
                    self.found.problem(problem);
                }
            }
        }
        WalkState::Continue
    }
}

impl<'a> SearchWorker<'a> {
    fn new(
        query: &'a SearchQuery,
        matcher: &RegexMatcher,
        buffers: &'a HashMap<PathBuf, Arc<Buffer>>,
        judge: &'a ReadAccess,
        cancel: &'a CancellationToken,
        found: &'a Collector,
    ) -> Self {
        Self {
            query,
            matcher: matcher.clone(),
            searcher: searcher(query, false),
            buffers,
            judge,
            exclusions: Exclusions::of_walk(),
            cancel,
            found,
            named: false,
        }
    }

    fn file(&mut self, path: &Path) {
        // Checked before the file is opened: otherwise counts or timing would reveal that it was searched.
        if !self.judge.may_read(path, false, &mut self.exclusions) {
            return;
        }
        if self.named {
            self.searcher = searcher(self.query, true);
        }
        let mut hits = Hits {
            matcher: &self.matcher,
            mode: self.query.mode,
            path,
            found: self.found,
            room: None,
            cancel: self.cancel,
            count: 0,
            rows: Vec::new(),
            binary: false,
        };
        let buffer = self.buffers.get(path);
        let searched = match buffer {
            Some(buffer) => self.searcher.search_slice(&self.matcher, buffer.text.as_bytes(), &mut hits),
            None => match open_entry(path) {
                Ok(file) => {
                    let reader = CancellableFile { file, cancel: self.cancel };
                    self.searcher.search_reader(&self.matcher, reader, &mut hits)
                }
                Err(error) => return self.found.problem(error.to_string()),
            },
        };
        if let Err(error) = searched {
            if !self.cancel.is_cancelled() {
                self.found.problem(format!("{}: {error}", path.display()));
            }
            return;
        }
        let Hits { count, mut rows, binary, .. } = hits;
        if count == 0 {
            return;
        }
        if binary && self.named {
            // The lines are meaningless: NULs were treated as line ends.
            rows.clear();
        }
        self.found.add(buffer.is_some(), FileHits { path: path.to_owned(), count, rows, binary });
    }
}

/// Collects the matches of one file.
struct Hits<'a> {
    matcher: &'a RegexMatcher,
    mode: SearchMode,
    path: &'a Path,
    found: &'a Collector,
    /// The most matches that can be shown; determined at the first match.
    room: Option<u64>,
    cancel: &'a CancellationToken,
    count: u64,
    rows: Vec<Row>,
    binary: bool,
}

impl Hits<'_> {
    fn has_room(&mut self) -> bool {
        self.count <= *self.room.get_or_insert_with(|| self.found.room(self.path))
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.mode {
            SearchMode::Files => {
                self.count = 1;
                return Ok(false);
            }
            SearchMode::Count if searcher.multi_line_with_matcher(self.matcher) => {
                let range = found.bytes_range_in_buffer();
                let mut inside = 0;
                self.matcher
                    .find_iter_at(found.buffer(), range.start, |at| {
                        let within = at.start() < range.end;
                        inside += u64::from(within);
                        within
                    })
                    .map_err(io::Error::other)?;
                self.count += inside.max(1);
            }
            SearchMode::Count => self.count += 1,
            SearchMode::Content => {
                self.count += 1;
                if self.has_room() {
                    let first = found.line_number().unwrap_or(1);
                    for (number, line) in (first..).zip(found.lines()) {
                        let kind = if number == first { RowKind::Match } else { RowKind::More };
                        // Only a long line needs the position, to choose the part to show.
                        let long = line.len() > MAX_LINE;
                        let at =
                            long.then(|| self.matcher.find(line).ok().flatten()).flatten().map_or(0, |at| at.start());
                        self.rows.push(Row { kind, line: number, text: row_text(line, at) });
                    }
                }
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.has_room() {
            let line = context.line_number().unwrap_or(1);
            self.rows.push(Row { kind: RowKind::Context, line, text: row_text(context.bytes(), 0) });
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.has_room() {
            self.rows.push(Row { kind: RowKind::Break, line: 0, text: String::new() });
        }
        // Checked here too, since one file may contain many matches.
        Ok(!self.cancel.is_cancelled())
    }

    fn binary_data(&mut self, searcher: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        // After its first match, a file that the caller named is known to match.
        Ok(searcher.binary_detection().convert_byte().is_none() || self.count == 0)
    }

    fn finish(&mut self, searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        if finish.binary_byte_offset().is_some() && searcher.binary_detection().quit_byte().is_some() {
            self.binary = true;
            if self.mode != SearchMode::Content {
                self.count = 0;
            }
        }
        Ok(())
    }
}

/// A line without its line end. If it is long, the part around the byte `at`.
fn row_text(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = at.min(line.len()).saturating_sub(MAX_LINE / 4);
    let until = (from + MAX_LINE).min(line.len());
    let mut text = String::new();
    if from > 0 {
        text.push_str(&format!("[{from} bytes cut ...]"));
    }
    let part = String::from_utf8_lossy(&line[from..until]);
    text.push_str(part.trim_matches('\u{fffd}'));
    if until < line.len() {
        text.push_str(&format!("[... {} bytes cut]", line.len() - until));
    }
    text
}
