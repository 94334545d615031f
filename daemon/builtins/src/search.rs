//! One search over a tree of files, in parallel, with its results in order.
//!
//! [`FileSearch`] is what `grep` runs. Files that a call may not read are neither opened nor counted: a count of matches
//! would reveal their content.

mod collector;
pub(crate) mod left_out;
mod sniff;

use std::collections::HashMap;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::types::TypesBuilder;
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkState};
use tokio_util::sync::CancellationToken;
use toold_host::exclude::Exclusions;
use toold_host::files::{self, open_entry};
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::ReadAccess;
use toold_host::tree::{LeftOutReason, SkippedPlaces, Tree, TreeWalk, WalkedTree};

use crate::blocking::{CancellableFile, check};
use crate::buffers::Buffer;
use crate::globs;
use crate::search::collector::Collector;
use crate::search::sniff::{DecodedFile, DecodedText, SniffedFile};

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
    pub(crate) is_file: bool,
    /// Globs are relative to it.
    pub(crate) cwd: PathBuf,
    pub(crate) include: Option<String>,
    pub(crate) file_type: Option<String>,
    /// Whether ignored and hidden files are searched too.
    pub(crate) include_ignored: bool,
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
    /// How many files were searched; and how many of them as binary ones are not, with the first of these.
    pub(crate) searched: u64,
    pub(crate) binary: u64,
    pub(crate) binary_files: Vec<PathBuf>,
    /// Places that were not searched and that the caller may read; empty unless nothing was found.
    pub(crate) left_out: Vec<(PathBuf, bool, LeftOutReason)>,
    /// How many of the files were searched as unsaved text.
    pub(crate) unsaved_files: u64,
    /// The first files with matches that were searched only up to a NUL byte, which is at this place; and how many there are.
    pub(crate) cut: Vec<(PathBuf, u64)>,
    pub(crate) cut_count: u64,
    pub(crate) problems: Vec<String>,
    pub(crate) problem_count: u64,
}

#[derive(Debug)]
pub(crate) struct FileHits {
    pub(crate) path: PathBuf,
    /// Lines that match; matches if they may span lines.
    pub(crate) count: u64,
    pub(crate) rows: Vec<Row>,
    /// How many of the matches are behind the first NUL byte of a binary file: these are not shown.
    pub(crate) hidden: u64,
    /// The place of the NUL byte that ended the search of the file.
    pub(crate) searched_to: Option<u64>,
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

/// A search that has not begun.
pub(crate) struct FileSearch {
    query: SearchQuery,
    place: SearchRoot,
    window: Window,
    judge: Arc<ReadAccess>,
    matcher: RegexMatcher,
    /// `None` if the root is a file.
    tree: Option<SearchTree>,
}

struct SearchTree {
    ignore_files: Option<Arc<IgnoreFiles>>,
    left_out: Arc<SkippedPlaces>,
    walk: TreeWalk,
}

/// The length of a pattern for a search in place, in bytes.
const MAX_SIMPLE: usize = 128;
/// How much is searched in place, in bytes.
const IN_PLACE: usize = 256 * 1024;

impl FileSearch {
    /// Reads the ignore files above the root.
    ///
    /// # Errors
    /// An invalid pattern, glob or file type.
    pub(crate) fn new(
        query: SearchQuery,
        place: SearchRoot,
        window: Window,
        judge: Arc<ReadAccess>,
    ) -> anyhow::Result<Self> {
        let matcher = matcher(&query)?;
        let tree = if place.is_file { None } else { Some(SearchTree::new(&place, &judge)?) };
        Ok(Self { query, place, window, judge, matcher, tree })
    }

    pub(crate) fn query(&self) -> &SearchQuery {
        &self.query
    }

    pub(crate) fn place(&self) -> &SearchRoot {
        &self.place
    }

    /// The results, if there are a few small files that the system has in memory: that takes no longer than to have another
    /// thread do it.
    ///
    /// # Errors
    /// The call was cancelled.
    pub(crate) fn in_place(&self, cancel: &CancellationToken) -> anyhow::Result<Option<SearchResults>> {
        let mut exclusions = self.judge.exclusions();
        let found = match &self.tree {
            Some(tree) => tree.walk.few(|folder| self.judge.may_read(folder, true, &mut exclusions)),
            None => Some(WalkedTree::of_file(&self.place.root)),
        };
        let Some(found) = found else { return Ok(None) };
        let (mut room, mut contents) = (IN_PLACE, HashMap::new());
        for (path, kind) in &found.entries {
            let is_searched = kind.is_file() && !self.place.buffers.contains_key(path);
            if is_searched && self.judge.may_read(path, false, &mut exclusions) {
                let Some(content) = files::read_cached(path, room) else { return Ok(None) };
                room -= content.len();
                contents.insert(path.clone(), content);
            }
        }
        self.search(Some(found), contents, cancel).map(Some)
    }

    /// Searches on one thread per core, up to a limit. Returns soon after `cancel` fires. Files that cannot be read are
    /// reported in the results.
    ///
    /// # Errors
    /// The call was cancelled.
    pub(crate) fn run(&self, cancel: &CancellationToken) -> anyhow::Result<SearchResults> {
        // A search in place may have got so far.
        self.tree.iter().for_each(|tree| drop(tree.left_out.take()));
        self.search(None, HashMap::new(), cancel)
    }

    /// `contents` are those of files that were read already.
    fn search(
        &self,
        found: Option<WalkedTree>,
        contents: HashMap<PathBuf, Vec<u8>>,
        cancel: &CancellationToken,
    ) -> anyhow::Result<SearchResults> {
        let Self { query, place, matcher, judge, .. } = self;
        let mut collector = Collector::new(self.window, query.mode);
        // One byte more, with which the end is seen.
        let longest = contents.values().map(|content| content.len() + 1).max();
        let (buffers, memory) = (&place.buffers, longest.unwrap_or(MAX_HEAP));
        let mut workers = SearchWorkers { query, matcher, memory, buffers, judge, cancel, found: &collector };
        match &self.tree {
            None => {
                let mut worker = workers.worker();
                (worker.named, worker.contents) = (true, contents);
                worker.file(&place.root);
            }
            Some(SearchTree { walk, ignore_files, left_out }) => {
                let mut exclusions = judge.exclusions();
                let may_enter = |folder: &Path| !cancel.is_cancelled() && judge.may_read(folder, true, &mut exclusions);
                match found.or_else(|| walk.small(may_enter)) {
                    Some(tree) => {
                        let mut worker = workers.worker();
                        worker.contents = contents;
                        let entries = tree.entries.iter().take_while(|_| !cancel.is_cancelled());
                        entries.for_each(|(path, kind)| match () {
                            () if kind.is_file() => worker.file(path),
                            () if kind.is_dir() => worker.unjudged(path),
                            () => {}
                        });
                        tree.problems.iter().for_each(|error| worker.problem(error));
                    }
                    None => walk.parallel().threads(threads()).build_parallel().visit(&mut workers),
                }
                let problems = ignore_files.iter().flat_map(|files| files.problems());
                problems.for_each(|problem| collector.problem(problem));
                if collector.is_empty() {
                    collector.left_out(left_out::readable(left_out, judge));
                }
            }
        }
        check(cancel)?;
        Ok(collector.finish())
    }
}

impl SearchTree {
    fn new(place: &SearchRoot, judge: &Arc<ReadAccess>) -> anyhow::Result<Self> {
        let ignore_files =
            (!place.include_ignored).then(|| Arc::new(IgnoreFiles::new(&place.root, &place.cwd, judge.clone())));
        let left_out = Arc::new(SkippedPlaces::default());
        let walk = walk(place, ignore_files.clone(), left_out.clone())?;
        Ok(Self { ignore_files, left_out, walk })
    }
}

fn matcher(query: &SearchQuery) -> anyhow::Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(query.ignore_case).multi_line(true).unicode(true).octal(false).fixed_strings(query.fixed);
    if !query.multiline {
        builder.line_terminator(Some(b'\n')).dot_matches_new_line(false);
        if query.ends_crlf() {
            builder.crlf(true);
        }
    }
    builder.build(&query.pattern).map_err(|error| {
        let mistake = error.to_string();
        let hint = match () {
            () if mistake.contains("look-around") || mistake.contains("backreferences") => {
                "look-around and backreferences are not known here: search for a part of it, or use `rg -P` in bash"
            }
            // The pattern can match a line end, which a search of single lines cannot.
            () if !query.multiline && !query.fixed && spans_lines(query) => {
                "to match over several lines set multiline=true"
            }
            () if query.fixed => "a plain text over several lines needs multiline=true",
            () => "to search for it as plain text set fixed=true",
        };
        anyhow::anyhow!("can't use the pattern: {mistake}\n{hint}")
    })
}

/// Whether the pattern is right if it may span lines.
fn spans_lines(query: &SearchQuery) -> bool {
    RegexMatcherBuilder::new().multi_line(true).build(&query.pattern).is_ok()
}

/// Whether globs are so short that to prepare them takes no time.
pub(crate) fn is_short(globs: &str) -> bool {
    globs.len() <= MAX_SIMPLE
}

impl SearchQuery {
    /// Whether a few small files can be searched in place: the time that it takes grows with the pattern, and counted
    /// repetitions make short patterns large.
    pub(crate) fn is_simple(&self) -> bool {
        self.pattern.len() <= MAX_SIMPLE && (self.fixed || !self.pattern.contains('{'))
    }

    /// Whether `\r\n` ends a line as `\n` does: unless the pattern names a carriage return itself.
    fn ends_crlf(&self) -> bool {
        !self.pattern.contains('\r') && (self.fixed || !self.pattern.contains("\\r"))
    }
}

/// A walk that honours the ignore files of Git and ripgrep and skips hidden files, but not folders that Git tracks.
fn walk(
    place: &SearchRoot,
    ignore_files: Option<Arc<IgnoreFiles>>,
    left_out: Arc<SkippedPlaces>,
) -> anyhow::Result<TreeWalk> {
    let mut tree = Tree::new(ignore_files);
    tree.skips_hidden = !place.include_ignored;
    tree.enters_tracked = true;
    tree.left_out = Some(left_out.clone());
    if let Some(include) = &place.include {
        tree.globs = globs::build(include, &place.cwd)?;
    }
    if let Some(file_type) = &place.file_type {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        types.select(file_type);
        tree.types = types.build().map_err(|_| {
            anyhow::anyhow!("there is no file type {file_type}: types are rust, py, js, ts, go, c, cpp, java, md, ...; for others give a glob in `include`")
        })?;
    }
    Ok(tree.walk(&place.root, move |entry| !left_out::is_repository(entry, &left_out)))
}

/// More threads than this wait for each other.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(12))
}

/// `memory` is the most that it takes for a part of a file, in bytes.
fn searcher(query: &SearchQuery, memory: usize) -> Searcher {
    let content = query.mode == SearchMode::Content;
    SearcherBuilder::new()
        .line_number(content)
        .before_context(if content { query.before } else { 0 })
        .after_context(if content { query.after } else { 0 })
        .multi_line(query.multiline)
        // The file as it is read does that, so that its first read is a whole chunk.
        .bom_sniffing(false)
        .line_terminator(if query.ends_crlf() && !query.multiline {
            LineTerminator::crlf()
        } else {
            LineTerminator::byte(b'\n')
        })
        .heap_limit(Some(memory))
        .build()
}

struct SearchWorkers<'a> {
    query: &'a SearchQuery,
    matcher: &'a RegexMatcher,
    memory: usize,
    buffers: &'a HashMap<PathBuf, Arc<Buffer>>,
    judge: &'a ReadAccess,
    cancel: &'a CancellationToken,
    found: &'a Collector,
}

impl<'a> ParallelVisitorBuilder<'a> for SearchWorkers<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(self.worker())
    }
}

impl<'a> SearchWorkers<'a> {
    fn worker(&self) -> SearchWorker<'a> {
        let Self { query, matcher, memory, buffers, judge, cancel, found } = *self;
        SearchWorker {
            query,
            matcher: matcher.clone(),
            searcher: searcher(query, memory),
            buffers,
            judge,
            exclusions: judge.exclusions(),
            cancel,
            found,
            head: Vec::new(),
            contents: HashMap::new(),
            named: false,
        }
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
    /// Memory for the beginning of a file.
    head: Vec<u8>,
    /// The contents of files that were judged and read already.
    contents: HashMap<PathBuf, Vec<u8>>,
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
                    self.unjudged(entry.path());
                    return WalkState::Skip;
                }
            }
            Ok(_) => {}
            Err(error) => self.problem(&error),
        }
        WalkState::Continue
    }
}

impl<'a> SearchWorker<'a> {
    fn problem(&mut self, error: &ignore::Error) {
        if let Some(problem) = self.judge.problem(error, &mut self.exclusions) {
            self.found.problem(problem);
        }
    }

    /// What may not be read, if it is only for its name.
    fn unjudged(&mut self, path: &Path) {
        if let Some(problem) = self.judge.unjudged(path, &mut self.exclusions) {
            self.found.problem(problem);
        }
    }

    fn file(&mut self, path: &Path) {
        let content = self.contents.remove(path);
        // Checked before the file is opened: otherwise counts or timing would reveal that it was searched.
        if content.is_none() && !self.judge.may_read(path, false, &mut self.exclusions) {
            return self.unjudged(path);
        }
        let mut hits = self.no_hits(path);
        let buffer = self.buffers.get(path);
        let searched = match buffer {
            Some(buffer) => {
                self.searcher.set_binary_detection(BinaryDetection::none());
                self.search_text(buffer.text.as_bytes(), &mut hits)
            }
            None => match content {
                Some(content) => {
                    let length = content.len();
                    self.search_file(path, io::Cursor::new(content), length, &mut hits)
                }
                None => match open_entry(path) {
                    Ok(file) => {
                        let file = CancellableFile { file, cancel: self.cancel };
                        self.search_file(path, file, usize::MAX, &mut hits)
                    }
                    Err(error) => return self.found.problem(error.to_string()),
                },
            },
        };
        if let Err(error) = searched {
            if !self.cancel.is_cancelled() {
                self.found.problem(format!("{}: {error}", path.display()));
            }
            return;
        }
        self.found.searched();
        let Hits { count, rows, hidden, nul, .. } = hits;
        let searched_to = nul.filter(|_| !self.named);
        if count > 0 {
            self.found.add(buffer.is_some(), FileHits { path: path.to_owned(), count, rows, hidden, searched_to });
        } else if searched_to.is_some() {
            self.found.binary(path);
        }
    }
}

impl<'a> SearchWorker<'a> {
    fn no_hits<'p>(&self, path: &'p Path) -> Hits<'p>
    where
        'a: 'p,
    {
        Hits {
            matcher: self.matcher.clone(),
            mode: self.query.mode,
            path,
            found: self.found,
            room: None,
            cancel: self.cancel,
            count: 0,
            rows: Vec::new(),
            hidden: 0,
            nul: None,
        }
    }

    /// The file has at most `length` bytes.
    fn search_file<'p>(
        &mut self,
        path: &'p Path,
        file: impl Read + Seek,
        length: usize,
        hits: &mut Hits<'p>,
    ) -> io::Result<()>
    where
        'a: 'p,
    {
        let mut file = SniffedFile::new(file, length, std::mem::take(&mut self.head));
        // In a text, a NUL is a character, and a file is binary if it is for `read`. One that the caller named is searched to its
        // end, where a NUL ends a line too.
        self.searcher.set_binary_detection(match file.is_binary()? {
            false => BinaryDetection::none(),
            true if self.named => BinaryDetection::convert(0),
            true => BinaryDetection::quit(0),
        });
        // A search over several lines needs the whole file anyway.
        let searched = match self.query.multiline {
            true => file.read_whole(MAX_HEAP).and_then(|bytes| self.search_text(&bytes, hits)),
            false => self.searcher.search_reader(&self.matcher, &mut file, &mut *hits),
        };
        let decoded = file.decoded(MAX_HEAP as u64);
        self.head = file.into_head();
        let DecodedText { text, has_same_bytes } = match decoded? {
            DecodedFile::Same => return searched,
            DecodedFile::Text(text) => text,
            DecodedFile::TooLong(encoding) => {
                let found = if encoding.is_ascii_compatible() { ", so that only ASCII is found in it" } else { "" };
                let name = encoding.name();
                self.found.problem(format!(
                    "{}: in {name} and longer than {} MiB{found}: convert it to UTF-8",
                    path.display(),
                    MAX_HEAP >> 20
                ));
                return searched;
            }
        };
        let of_bytes = std::mem::replace(hits, self.no_hits(path));
        let searched_text = self.search_text(text.as_bytes(), hits);
        if has_same_bytes && of_bytes.count > hits.count {
            *hits = of_bytes;
            return searched;
        }
        searched_text
    }

    /// Over several lines, `\n` in the pattern stands for the line ends of the file.
    fn search_text(&mut self, text: &[u8], hits: &mut Hits<'_>) -> io::Result<()> {
        let plain = (self.query.multiline && self.query.ends_crlf()).then(|| without_crlf(text)).flatten();
        self.searcher.search_slice(&self.matcher, plain.as_deref().unwrap_or(text), hits)
    }
}

/// The text with `\n` for `\r\n`; `None` if it has none.
fn without_crlf(text: &[u8]) -> Option<Vec<u8>> {
    let mut ends = memchr::memmem::find_iter(text, b"\r\n").peekable();
    ends.peek()?;
    let mut plain = Vec::with_capacity(text.len());
    let mut next = 0;
    for end in ends {
        plain.extend_from_slice(&text[next..end]);
        next = end + 1;
    }
    plain.extend_from_slice(&text[next..]);
    Some(plain)
}

/// Collects the matches of one file.
struct Hits<'a> {
    matcher: RegexMatcher,
    mode: SearchMode,
    path: &'a Path,
    found: &'a Collector,
    /// The most matches that can be shown; determined at the first match.
    room: Option<u64>,
    cancel: &'a CancellationToken,
    count: u64,
    rows: Vec<Row>,
    /// How many of the matches are behind the NUL.
    hidden: u64,
    /// The place of the first NUL of a binary file.
    nul: Option<u64>,
}

impl Hits<'_> {
    fn has_room(&mut self) -> bool {
        self.count <= *self.room.get_or_insert_with(|| self.found.room(self.path))
    }

    /// Whether lines at this place are no lines, because NULs were treated as line ends.
    fn is_behind_nul(&self, at: u64) -> bool {
        self.nul.is_some_and(|nul| at > nul)
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
            SearchMode::Count if searcher.multi_line_with_matcher(&self.matcher) => {
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
                if self.is_behind_nul(found.absolute_byte_offset()) {
                    self.hidden += 1;
                } else if self.has_room() {
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
        if self.has_room() && !self.is_behind_nul(context.absolute_byte_offset()) {
            let line = context.line_number().unwrap_or(1);
            self.rows.push(Row { kind: RowKind::Context, line, text: row_text(context.bytes(), 0) });
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.has_room() && self.hidden == 0 {
            self.rows.push(Row { kind: RowKind::Break, line: 0, text: String::new() });
        }
        // Checked here too, since one file may contain many matches.
        Ok(!self.cancel.is_cancelled())
    }

    fn binary_data(&mut self, _: &Searcher, at: u64) -> io::Result<bool> {
        self.nul.get_or_insert(at);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.nul = self.nul.or(finish.binary_byte_offset());
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
