//! `grep`: matching lines in a tree of files.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::files::{self, FileType};
use toold_proto::tool::Category;

use crate::blocking::blocking;
use crate::buffers::Buffer;
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::globs;
use crate::near_names::{self, MissingKind};
use crate::paths::{self, ReadableTree};
use crate::search::{FileHits, FileSearch, RowKind, SearchMode, SearchQuery, SearchResults, SearchRoot, Window};
use crate::search::{is_short, left_out};
use crate::text::counted;
use crate::toolkit::Toolkit;

const DEFAULT_RESULTS: u64 = 200;

/// Arguments of `grep`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepInput {
    /// A regular expression, as ripgrep takes it.
    pattern: String,
    /// The file or folder to search; the working folder by default.
    path: Option<String>,
    /// Only files that match these globs, such as `*.rs` or `src/**/*.{ts,tsx}`; a leading `!` excludes them.
    include: Option<String>,
    /// Only files of this type, such as `rust`, `py`, `js`.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// `content` shows matching lines, `files` the files that have any, `count` how many each has.
    #[serde(default)]
    output_mode: OutputMode,
    /// Lines to show before each match.
    #[cfg_attr(test, schemars(range(max = 1000)))]
    before: Option<usize>,
    /// Lines to show after each match.
    #[cfg_attr(test, schemars(range(max = 1000)))]
    after: Option<usize>,
    /// Lines to show before and after each match.
    #[cfg_attr(test, schemars(range(max = 1000)))]
    context: Option<usize>,
    /// Ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// Allow matches to span lines.
    #[serde(default)]
    multiline: bool,
    /// Treat the pattern as plain text.
    #[serde(default)]
    fixed: bool,
    /// How many matches to show, or files in the other modes; 200 by default.
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000)))]
    max_results: Option<u64>,
    /// How many to skip: the next page.
    offset: Option<u64>,
    /// Also search hidden files, and files that .gitignore names.
    #[serde(default)]
    include_ignored: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    Content,
    Files,
    Count,
}

pub(crate) struct GrepTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for GrepTool {
    type Input = GrepInput;

    const NAME: &'static str = "grep";
    const FACTS: ToolFacts = ToolFacts {
        label: "Search in files",
        description: "Searches files for a regular expression, as ripgrep does, and shows `path:line:text`, sorted \
                      by path. Honours .gitignore, .ignore and .rgignore, and skips hidden files, unless asked not to, \
                      and binary ones; hidden folders that Git tracks are searched. Links and `.git` are searched only \
                      if `path` names them. Results come in pages: continue with `offset`.",
        parallelizable: true,
        permissions: &[Category::FileRead],
        timeout: None,
        annotations: READS,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &GrepInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        ReadableTree::needs(input.path.as_deref(), cx)
    }

    async fn run(&self, input: GrepInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let tree = ReadableTree::open(input.path.as_deref(), cx).await?;
        let other_kind = tree.other_kind();
        let ReadableTree { root, kind, dangling, access, cwd, is_quick, turn } = tree;
        if let Some(why) = dangling {
            anyhow::bail!(why);
        }
        let buffers = self.toolkit.buffers.of_project(cx.session.project());
        let max_bytes = cx.engine.settings.load().max_result_text.saturating_sub(1024);
        let Some(kind) = kind else {
            let is_glob = root.to_str().is_some_and(|root| root.contains(['*', '?', '{', '[']));
            let glob = if is_glob { ": a glob belongs into `include`" } else { "" };
            let (shown, shared) = (paths::shown(&root, &cwd), cx.shared());
            let hint = blocking(cx, move |_| Ok(near_names::hint(&root, MissingKind::Either, &shared))).await?;
            let hint = hint.unwrap_or_else(|| if is_glob { String::new() } else { ": find it with `glob`".to_owned() });
            anyhow::bail!("there is no file or folder {shown}{glob}{hint}");
        };
        if let Some(other) = other_kind.filter(|_| !kind.is_file()) {
            anyhow::bail!("{} is {other}, and neither a file nor a folder", paths::shown(&root, &cwd));
        }
        let (query, place, window) = plan(input, root, kind, &cwd, buffers);
        let is_quick = is_quick && query.is_simple() && place.include.as_ref().is_none_or(|globs| is_short(globs));
        let prepare = move || FileSearch::new(query, place, window, access);
        let search = match is_quick {
            true => prepare()?,
            false => blocking(cx, move |_| prepare()).await?,
        };
        if is_quick && let Some(found) = search.in_place(&cx.cancel)? {
            return output(&found, &search, window, &cwd, max_bytes);
        }
        blocking(cx, move |cancel| {
            let _turn = turn;
            let found = search.run(cancel)?;
            output(&found, &search, window, &cwd, max_bytes)
        })
        .await
    }
}

fn plan(
    input: GrepInput,
    root: PathBuf,
    kind: FileType,
    cwd: &Path,
    buffers: HashMap<PathBuf, Arc<Buffer>>,
) -> (SearchQuery, SearchRoot, Window) {
    let context = input.context.unwrap_or(0);
    let query = SearchQuery {
        pattern: input.pattern,
        fixed: input.fixed,
        ignore_case: input.ignore_case,
        multiline: input.multiline,
        before: input.before.unwrap_or(context),
        after: input.after.unwrap_or(context),
        mode: match input.output_mode {
            OutputMode::Content => SearchMode::Content,
            OutputMode::Files => SearchMode::Files,
            OutputMode::Count => SearchMode::Count,
        },
    };
    let (include, file_type, include_ignored) = (input.include, input.file_type, input.include_ignored);
    let place =
        SearchRoot { root, is_file: kind.is_file(), cwd: cwd.to_owned(), include, file_type, include_ignored, buffers };
    let window = Window { skip: input.offset.unwrap_or(0), show: input.max_results.unwrap_or(DEFAULT_RESULTS) };
    (query, place, window)
}

/// One page of the results, as text of at most `max_bytes` plus some notes.
///
/// # Errors
/// Nothing could be searched: there is no result.
fn output(
    found: &SearchResults,
    search: &FileSearch,
    window: Window,
    cwd: &Path,
    max_bytes: usize,
) -> anyhow::Result<ToolOutput> {
    let query = search.query();
    if found.searched == 0 && found.problem_count > 0 {
        anyhow::bail!(
            "nothing was searched: {}; check the permissions, or search another file or folder",
            found.problems.join("; ")
        );
    }
    let mut page = GrepPage { text: String::new(), max_bytes, full: false, shown: 0 };
    let mode = query.mode;
    let total = match mode {
        SearchMode::Content => {
            content(found, query, window, cwd, &mut page);
            found.total_matches
        }
        SearchMode::Files | SearchMode::Count => {
            let files = found.files.iter().skip(window.skip as usize).take(window.show as usize);
            for FileHits { path, count, .. } in files {
                let path = paths::shown(path, cwd);
                page.push(
                    &if mode == SearchMode::Count { format!("{path}:{count}\n") } else { format!("{path}\n") },
                    1,
                );
            }
            found.total_files
        }
    };
    let GrepPage { mut text, shown, .. } = page;
    let next = window.skip.saturating_add(shown);
    let what = if mode == SearchMode::Content { "matches" } else { "files" };
    if next < total && shown > 0 {
        text.push_str(&format!(
            "[{what} {} to {next} of {total}; continue with offset={next}]\n",
            window.skip.saturating_add(1)
        ));
    } else if total == 0 {
        text.push_str(&format!(
            "[no matches in {}{}{}{}{}{}]\n",
            counted(found.searched, "file"),
            binary(found, cwd),
            packed(search.place()),
            gnu_syntax(query),
            if found.searched == 0 { no_file_fits(search.place()) } else { String::new() },
            if search.place().is_file { String::new() } else { left_out::words(&found.left_out, cwd) }
        ));
    } else if shown == 0 {
        let are = match (total, mode == SearchMode::Content) {
            (1, true) => "is 1 match".to_owned(),
            (1, false) => "is 1 file".to_owned(),
            _ => format!("are {total} {what}"),
        };
        text.push_str(&format!("[there {are}, none after the first {}]\n", window.skip));
    }
    // Where only names are shown, the rest of a file says nothing more.
    if found.cut_count > 0 && mode != SearchMode::Files {
        let file = |(path, at): &(PathBuf, u64)| format!("{} (from byte {at} on)", paths::shown(path, cwd));
        let mut files: Vec<String> = found.cut.iter().map(file).collect();
        let more = found.cut_count - files.len() as u64;
        if more > 0 {
            files.push(format!("{more} more"));
        }
        text.push_str(&format!(
            "[binary, and searched only up to there: {}; to search all of one, name it in `path`]\n",
            files.join(", ")
        ));
    }
    if found.unsaved_files > 0 {
        text.push_str(&format!("[{} of the files were searched with unsaved changes]\n", found.unsaved_files));
    }
    if found.problem_count > 0 {
        text.push_str(&format!(
            "[{} could not be searched: {}]\n",
            counted(found.problem_count, "place"),
            found.problems.join("; ")
        ));
    }
    text.pop();
    Ok(ToolOutput::text(text)
        .with("matches", found.total_matches)
        .with("files", found.total_files)
        .with("shown", shown)
        .with("truncated", next < total)
        .with("problems", found.problem_count))
}

/// The binary files among those that were counted: none is searched to its end unless it is named.
fn binary(found: &SearchResults, cwd: &Path) -> String {
    let named: Vec<String> = found.binary_files.iter().map(|path| paths::shown(path, cwd)).collect();
    let more = found.binary - named.len() as u64;
    match (found.binary, more) {
        (0, _) => String::new(),
        (all, 0) => format!("; {all} of them binary: {}; to search one, name it in `path`", named.join(", ")),
        (all, more) => {
            format!("; {all} of them binary: {} and {more} more; to search one, name it in `path`", named.join(", "))
        }
    }
}

/// For a file that was named and holds others, be it one: what people see in these was not searched.
fn packed(place: &SearchRoot) -> String {
    let head = || {
        let mut head = Vec::new();
        files::open_entry(&place.root).ok()?.take(512).read_to_end(&mut head).ok()?;
        infer::get(&head).filter(|kind| kind.matcher_type() == infer::MatcherType::Archive)
    };
    let kind = place.is_file.then(head).flatten().map(|kind| kind.mime_type());
    kind.map(|kind| format!("; it is {kind}: its bytes were searched, and not what is packed in them"))
        .unwrap_or_default()
}

/// A hint for those who know the patterns of GNU grep.
fn gnu_syntax(query: &SearchQuery) -> &'static str {
    match !query.fixed && query.pattern.contains("\\|") {
        true => "; `\\|` stands for the character |: alternatives are written as `a|b`",
        false => "",
    }
}

/// Which of the arguments leave no file to search.
fn no_file_fits(place: &SearchRoot) -> String {
    let include = place.include.as_deref();
    let names = include.map(globs::hint_about_names).unwrap_or_default();
    match (include, &place.file_type) {
        (Some(_), Some(_)) => format!("; no file fits `include` and `type`{names}"),
        (Some(_), None) => format!("; no file fits `include`{names}"),
        (None, Some(_)) => "; no file is of this `type`".to_owned(),
        (None, None) => String::new(),
    }
}

/// The matches from `window.skip` on, each with its context.
fn content(found: &SearchResults, query: &SearchQuery, window: Window, cwd: &Path, page: &mut GrepPage) {
    let has_context = query.before + query.after > 0;
    let mut number = 0;
    let mut first = true;
    for file in &found.files {
        let path = paths::shown(&file.path, cwd);
        if number + file.count <= window.skip {
            number += file.count;
            continue;
        }
        if has_context && !first {
            page.push("--\n", 0);
        }
        first = false;
        // Context before a match belongs to that match, so it is held until the match is known to be shown.
        let mut held = String::new();
        let mut showing = false;
        for row in &file.rows {
            match row.kind {
                RowKind::Break => {
                    if showing {
                        page.push(&held, 0);
                    }
                    held = if showing { "--\n".to_owned() } else { String::new() };
                }
                RowKind::Context => held.push_str(&format!("{path}-{}-{}\n", row.line, row.text)),
                RowKind::Match => {
                    number += 1;
                    if number > window.skip.saturating_add(window.show) {
                        page.push(after_only(&held), 0);
                        return;
                    }
                    showing = number > window.skip;
                    let line = format!("{held}{path}:{}:{}\n", row.line, row.text);
                    held.clear();
                    if showing {
                        page.push(&line, 1);
                    }
                }
                RowKind::More if showing => page.push(&format!("{path}:{}:{}\n", row.line, row.text), 0),
                RowKind::More => {}
            }
        }
        if showing {
            page.push(&held, 0);
        }
        if file.hidden > 0 && number < window.skip.saturating_add(window.show) {
            let before = number.max(window.skip);
            number += file.hidden;
            page.push(&format!("{path}: binary file matches\n"), number - before);
        }
    }
}

/// The held text that follows the last shown match, without the next match's group.
fn after_only(held: &str) -> &str {
    held.split("--\n").next().unwrap_or_default()
}

/// A text with a size limit. The first text that does not fit ends the page, so that pages have no gaps.
struct GrepPage {
    text: String,
    max_bytes: usize,
    full: bool,
    shown: u64,
}

impl GrepPage {
    fn push(&mut self, text: &str, results: u64) {
        self.full |= self.text.len() + text.len() > self.max_bytes && !self.text.is_empty();
        if !self.full {
            self.text.push_str(text);
            self.shown += results;
        }
    }
}
