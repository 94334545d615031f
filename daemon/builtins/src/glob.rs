//! `glob`: finds files by name, newest first.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use ignore::overrides::Override;
use ignore::{DirEntry, Match, ParallelVisitor, ParallelVisitorBuilder, WalkState};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::files::{self, ResolvedPath};
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::ReadAccess;
use toold_host::times::{FileStats, ModifiedTime};
use toold_host::tree::{LeftOutReason, SkippedPlaces, Tree, TreeWalk, WalkedTree};
use toold_proto::tool::Category;

use crate::blocking::{blocking, check};
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::globs;
use crate::near_names::{self, MissingKind};
use crate::paths::{self, ReadableTree};
use crate::search::{left_out, threads};
use crate::text::counted;
use crate::toolkit::Toolkit;

const DEFAULT_RESULTS: usize = 500;
/// Longer patterns take long to prepare.
const MAX_IN_PLACE: usize = 256;

/// Arguments of `glob`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobInput {
    /// A glob such as `*.rs`, `src/**/*.{ts,tsx}` or `/only/at/the/top`; commas separate several. Without a slash it matches in every folder.
    pattern: String,
    /// The folder to look in; the working folder by default.
    path: Option<String>,
    /// How many files to show; 500 by default.
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000)))]
    max_results: Option<usize>,
    /// Also find hidden files, and files that .gitignore names.
    #[serde(default)]
    include_ignored: bool,
}

pub(crate) struct GlobTool;

impl Builtin for GlobTool {
    type Input = GlobInput;

    const NAME: &'static str = "glob";
    const FACTS: ToolFacts = ToolFacts {
        label: "Find files",
        description: "Finds files by a glob on their paths, the last modified first. Honours .gitignore, .ignore and \
                      .rgignore, and skips hidden files, unless asked not to or where Git tracks their folder. Linked \
                      folders and `.git` are searched only if `path` names them.",
        parallelizable: true,
        permissions: &[Category::FileRead],
        timeout: None,
        annotations: READS,
    };

    fn new(_: Arc<Toolkit>) -> Self {
        Self
    }

    async fn needs(&self, input: &GlobInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        ReadableTree::needs(input.path.as_deref(), cx)
    }

    async fn run(&self, input: GlobInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let tree = ReadableTree::open(input.path.as_deref(), cx).await?;
        let other_kind = tree.other_kind();
        let ReadableTree { root, kind, dangling, access, cwd, is_quick, turn } = tree;
        if let Some(why) = dangling {
            anyhow::bail!(why);
        }
        let shown = paths::shown(&root, &cwd);
        anyhow::ensure!(
            !kind.is_some_and(|kind| kind.is_file()),
            "{shown} is a file, and not a folder to look in: use `read`"
        );
        if let Some(other) = other_kind {
            anyhow::bail!("{shown} is {other}, and not a folder to look in");
        }
        if kind.is_none() {
            let shared = cx.shared();
            let hint = blocking(cx, move |_| Ok(near_names::hint(&root, MissingKind::Folder, &shared))).await?;
            anyhow::bail!("there is no folder {shown}{}", hint.unwrap_or_default());
        }
        let max = input.max_results.unwrap_or(DEFAULT_RESULTS);
        if is_quick && input.pattern.len() <= MAX_IN_PLACE {
            let walk = GlobWalk::new(&input, root.clone(), access.clone())?;
            if let Some(few) = walk.few() {
                return Ok(output(walk.find(Some(few), max, &cx.cancel)?, &input.pattern, max, &cwd));
            }
        }
        blocking(cx, move |cancel| {
            let _turn = turn;
            Ok(output(GlobWalk::new(&input, root, access)?.find(None, max, cancel)?, &input.pattern, max, &cwd))
        })
        .await
    }
}

/// When a file was last modified; the newest sorts first.
type Newest = Reverse<ModifiedTime>;

#[derive(Default)]
struct GlobResults {
    files: Vec<(Newest, PathBuf)>,
    total: u64,
    /// How many files were compared with the globs.
    seen: u64,
    /// The pattern as a glob of the folder that it names, if it is one and nothing was found.
    named_folder: Option<String>,
    /// Places that were not searched; empty unless nothing was found.
    left_out: Vec<(PathBuf, bool, LeftOutReason)>,
    problems: Vec<String>,
}

/// A walk for one pattern.
struct GlobWalk {
    pattern: String,
    globs: Override,
    root: PathBuf,
    access: Arc<ReadAccess>,
    ignore_files: Option<Arc<IgnoreFiles>>,
    left_out: Arc<SkippedPlaces>,
    walk: TreeWalk,
}

impl GlobWalk {
    /// Reads the ignore files above the root.
    fn new(input: &GlobInput, root: PathBuf, access: Arc<ReadAccess>) -> anyhow::Result<Self> {
        let globs = globs::build(&input.pattern, &root)?;
        let ignore_files = (!input.include_ignored).then(|| Arc::new(IgnoreFiles::new(&root, &root, access.clone())));
        let mut tree = Tree::new(ignore_files.clone());
        tree.skips_hidden = !input.include_ignored && !names_hidden(&input.pattern);
        tree.enters_tracked = true;
        let left_out = Arc::new(SkippedPlaces::default());
        tree.left_out = Some(left_out.clone());
        // Not set as the globs of the tree: those would override .gitignore.
        let (unwanted, skipped) = (globs.clone(), left_out.clone());
        let walk = tree.walk(&root, move |entry| {
            let is_wanted = || entry.depth == 0 || !is_unwanted(&unwanted, entry.path);
            !entry.is_folder || (is_wanted() && !left_out::is_repository(entry, &skipped))
        });
        Ok(Self { pattern: input.pattern.clone(), globs, root, access, ignore_files, left_out, walk })
    }

    /// The tree, if it is small enough to be read in place.
    fn few(&self) -> Option<WalkedTree> {
        let mut exclusions = self.access.exclusions();
        self.walk.few(|folder| self.access.may_read(folder, true, &mut exclusions))
    }

    fn find(&self, few: Option<WalkedTree>, max: usize, cancel: &CancellationToken) -> anyhow::Result<GlobResults> {
        let Self { globs, access, .. } = self;
        let found = Mutex::new(GlobResults::default());
        let mut workers = GlobWorkers { globs, max, access, cancel, found: &found };
        let mut exclusions = access.exclusions();
        let may_enter = |folder: &Path| !cancel.is_cancelled() && access.may_read(folder, true, &mut exclusions);
        match few.or_else(|| self.walk.small(may_enter)) {
            Some(tree) => {
                let mut worker = workers.worker();
                for (path, kind) in &tree.entries {
                    match () {
                        () if kind.is_file() => worker.file(path),
                        () if kind.is_dir() => worker.unjudged(path),
                        () if kind.is_symlink() => worker.link(path),
                        () => {}
                    }
                }
                tree.problems.iter().for_each(|error| worker.problem(error));
            }
            None => self.walk.parallel().threads(threads()).build_parallel().visit(&mut workers),
        }
        check(cancel)?;
        let mut found = found.into_inner();
        found.problems.extend(self.ignore_files.iter().flat_map(|files| files.problems()));
        if let Some(named) = globs::named_path(&self.pattern, &self.root).filter(|_| found.total == 0)
            && leads_to_file(&named, access, &mut Exclusions::default())
        {
            // The caller knows its name, so that it is ignored is no reason to hide it.
            found.files.push((Newest::default(), named));
            found.total = 1;
        }
        if found.total == 0 {
            let named = self.pattern.trim_end_matches('/');
            let folder = self.root.join(named.strip_prefix("./").unwrap_or(named));
            let is_named = !named.is_empty()
                && folder.starts_with(&self.root)
                && access.may_read(&folder, true, &mut Exclusions::default());
            found.named_folder = (is_named && folder.is_dir()).then(|| format!("{named}/**"));
            let (mut left_out, mut exclusions) = (left_out::readable(&self.left_out, access), access.exclusions());
            // A link to a file has been compared with the globs.
            left_out.retain(|(path, _, reason)| {
                *reason != LeftOutReason::Link || !leads_to_file(path, access, &mut exclusions)
            });
            found.left_out = left_out;
        }
        found.files.sort();
        found.files.truncate(max);
        Ok(found)
    }
}

/// A pattern that names a hidden file or folder asks for hidden files.
fn names_hidden(pattern: &str) -> bool {
    pattern.trim_start_matches('!').split('/').any(|part| part.starts_with('.') && part.len() > 1 && part != "..")
}

/// Whether there is a file at a path, or a link leads from there to one, that the caller may read. Blocks.
fn leads_to_file(path: &Path, access: &ReadAccess, exclusions: &mut Exclusions) -> bool {
    let resolved = files::resolve_for(path, path, &mut |place| access.may_read(place, false, exclusions));
    let Ok(ResolvedPath { path: target, judged_as: None, .. }) = resolved else { return false };
    access.may_read(&target, false, exclusions)
        && files::facts(&target).is_ok_and(|facts| facts.is_some_and(|facts| facts.kind.is_file()))
}

/// Whether a glob with a leading `!` names the folder.
fn is_unwanted(globs: &Override, folder: &Path) -> bool {
    globs.num_whitelists() == 0 && globs.matched(folder, true).is_ignore()
}

fn output(found: GlobResults, pattern: &str, max: usize, cwd: &Path) -> ToolOutput {
    let mut text = String::new();
    for (_, path) in &found.files {
        text.push_str(&paths::shown(path, cwd));
        text.push('\n');
    }
    let total = found.total;
    if total == 0 {
        let top = match pattern.as_bytes() {
            [b'/', ..] => "; a leading / stands for the folder that is searched",
            [b'~', b'/', ..] => "; ~ stands for no folder here: name yours in `path`",
            _ => "",
        };
        text.push_str(&format!(
            "[no files match, of {}{top}{}{}{}]\n",
            counted(found.seen, "file"),
            hint_about_folders(&found, pattern),
            globs::hint_about_names(pattern),
            left_out::words(&found.left_out, cwd)
        ));
    } else if total > max as u64 {
        text.push_str(&format!("[the newest {max} of {total} files: narrow the pattern, or raise max_results]\n"));
    }
    if !found.problems.is_empty() {
        let first: Vec<&str> = found.problems.iter().take(5).map(String::as_str).collect();
        let places = counted(found.problems.len() as u64, "place");
        text.push_str(&format!("[{places} could not be read: {}]\n", first.join("; ")));
    }
    text.pop();
    ToolOutput::text(text)
        .with("files", total)
        .with("shown", found.files.len())
        .with("truncated", total > max as u64)
        .with("problems", found.problems.len())
}

/// For a pattern that names a folder, or fits only folders, since only files are found.
fn hint_about_folders(found: &GlobResults, pattern: &str) -> String {
    match &found.named_folder {
        Some(glob) => format!("; for the files in this folder give {glob}"),
        None if pattern.ends_with('/') => "; a glob that ends with / fits no file: `list` shows folders".to_owned(),
        None => String::new(),
    }
}

struct GlobWorkers<'a> {
    globs: &'a Override,
    max: usize,
    access: &'a ReadAccess,
    cancel: &'a CancellationToken,
    found: &'a Mutex<GlobResults>,
}

impl<'a> ParallelVisitorBuilder<'a> for GlobWorkers<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(self.worker())
    }
}

impl<'a> GlobWorkers<'a> {
    fn worker(&self) -> GlobWorker<'a> {
        let Self { globs, max, access, cancel, found } = *self;
        let exclusions = access.exclusions();
        let (own, times, oldest) = (GlobResults::default(), FileStats::default(), None);
        GlobWorker { globs, max, access, cancel, exclusions, times, own, oldest, found }
    }
}

/// One thread of the walk. Its results are merged when it ends.
struct GlobWorker<'a> {
    globs: &'a Override,
    max: usize,
    access: &'a ReadAccess,
    cancel: &'a CancellationToken,
    exclusions: Exclusions,
    times: FileStats,
    own: GlobResults,
    /// The oldest file that can still be shown: enough newer ones are known.
    oldest: Option<Newest>,
    found: &'a Mutex<GlobResults>,
}

impl ParallelVisitor for GlobWorker<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.cancel.is_cancelled() {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => self.file(entry.path()),
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_dir()) => {
                if !self.access.may_read(entry.path(), true, &mut self.exclusions) {
                    self.unjudged(entry.path());
                    return WalkState::Skip;
                }
            }
            Ok(entry) if entry.path_is_symlink() => self.link(entry.path()),
            Ok(_) => {}
            Err(error) => self.problem(&error),
        }
        WalkState::Continue
    }
}

impl GlobWorker<'_> {
    fn problem(&mut self, error: &ignore::Error) {
        self.own.problems.extend(self.access.problem(error, &mut self.exclusions));
    }

    /// A folder that is not looked into, if it is only for its name.
    fn unjudged(&mut self, folder: &Path) {
        self.own.problems.extend(self.access.unjudged(folder, &mut self.exclusions));
    }

    /// A link to a file has a name that is looked for like that of a file.
    fn link(&mut self, path: &Path) {
        if self.is_wanted(path) && leads_to_file(path, self.access, &mut self.exclusions) {
            self.file(path);
        }
    }

    fn file(&mut self, path: &Path) {
        let is_wanted = self.is_wanted(path);
        // Others count only in an answer that nothing was found.
        if !is_wanted && self.own.total > 0 {
            return;
        }
        // The name is all that is shown.
        if !self.access.may_read(path, false, &mut self.exclusions) && !self.access.may_name(path, &mut self.exclusions)
        {
            return;
        }
        self.own.seen += 1;
        if !is_wanted {
            return;
        }
        self.own.total += 1;
        let time = Reverse(self.times.modified(path).unwrap_or_default());
        if self.oldest.is_some_and(|oldest| time > oldest) {
            return;
        }
        self.own.files.push((time, path.to_owned()));
        // Memory is bounded by the number of files shown, not of files found.
        if self.own.files.len() > 4 * self.max + 1000 {
            self.own.files.sort();
            self.own.files.truncate(self.max);
            self.oldest = self.own.files.last().map(|(time, _)| *time);
        }
    }

    /// Whether a glob matches the file, or all globs only exclude and none of them does.
    fn is_wanted(&self, path: &Path) -> bool {
        match self.globs.matched(path, false) {
            Match::Whitelist(_) => true,
            Match::Ignore(_) => false,
            Match::None => self.globs.num_whitelists() == 0,
        }
    }
}

impl Drop for GlobWorker<'_> {
    fn drop(&mut self) {
        let mut found = self.found.lock();
        let own = std::mem::take(&mut self.own);
        found.files.extend(own.files);
        found.total += own.total;
        found.seen += own.seen;
        found.problems.extend(own.problems);
    }
}
