//! `list`: a folder as a tree, for orientation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::files::{self, FileType};
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::ReadAccess;
use toold_host::times::FileStats;
use toold_host::tree::{Tree, TreeWalk, WalkedTree};
use toold_proto::tool::Category;

use crate::blocking::{blocking, check};
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::journal::SpecialKind;
use crate::near_names::{self, MissingKind};
use crate::paths::{self, ReadableTree};
use crate::text::counted;
use crate::toolkit::Toolkit;

const DEFAULT_DEPTH: usize = 3;
const DEFAULT_RESULTS: usize = 300;
/// Larger trees are not counted to the end.
const MAX_SEEN: usize = 100_000;

/// Arguments of `list`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ListInput {
    /// The folder; the working folder by default.
    path: Option<String>,
    /// How many levels of folders to show; 3 by default.
    #[cfg_attr(test, schemars(range(min = 1, max = 100)))]
    depth: Option<usize>,
    /// How many entries to show, the upper levels first; 300 by default.
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000)))]
    max_results: Option<usize>,
}

pub(crate) struct ListTool;

impl Builtin for ListTool {
    type Input = ListInput;

    const NAME: &'static str = "list";
    const FACTS: ToolFacts = ToolFacts {
        label: "List a folder",
        description: "Shows a folder as a tree, with the sizes of files and how many files are in a folder. Folders \
                      that .gitignore names are not expanded.",
        parallelizable: true,
        permissions: &[Category::FileRead],
        timeout: None,
        annotations: READS,
    };

    fn new(_: Arc<Toolkit>) -> Self {
        Self
    }

    async fn needs(&self, input: &ListInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        ReadableTree::needs(input.path.as_deref(), cx)
    }

    async fn run(&self, input: ListInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let tree = ReadableTree::open(input.path.as_deref(), cx).await?;
        let other_kind = tree.other_kind();
        let ReadableTree { root, kind, dangling, access, cwd, is_quick, turn } = tree;
        if let Some(why) = dangling {
            anyhow::bail!(why);
        }
        let shown = paths::shown(&root, &cwd);
        let is_file = kind.is_some_and(|kind| kind.is_file());
        anyhow::ensure!(!is_file, "{shown} is a file, and not a folder: use `read`");
        if let Some(other) = other_kind {
            anyhow::bail!("{shown} is {other}, and not a folder");
        }
        if !kind.is_some_and(|kind| kind.is_dir()) {
            let shared = cx.shared();
            let hint = blocking(cx, move |_| Ok(near_names::hint(&root, MissingKind::Folder, &shared))).await?;
            anyhow::bail!("there is no folder {shown}{}", hint.unwrap_or_default());
        }
        let finish = move |folder: &FolderWalk, found: WalkedTree| {
            let depth = input.depth.unwrap_or(DEFAULT_DEPTH);
            output(&folder.listing(found), &folder.root, &shown, depth, input.max_results.unwrap_or(DEFAULT_RESULTS))
        };
        if is_quick {
            let folder = FolderWalk::new(root.clone(), access.clone());
            if let Some(found) = folder.walk.few(|_| true) {
                return Ok(finish(&folder, found));
            }
        }
        blocking(cx, move |cancel| {
            let _turn = turn;
            let folder = FolderWalk::new(root, access);
            let found = folder.walk.serial(MAX_SEEN, |_| !cancel.is_cancelled());
            check(cancel)?;
            Ok(finish(&folder, found))
        })
        .await
    }
}

/// A folder tree; paths are relative to its root.
#[derive(Default)]
struct FolderListing {
    entries: BTreeMap<PathBuf, ListEntry>,
    files: u64,
    folders: u64,
    /// Places that could not be read, and why.
    problems: Vec<String>,
    /// Files that ignore files name.
    ignored: u64,
    /// Not everything was visited.
    more: bool,
    /// The folder itself could not be read.
    is_unread: bool,
}

struct ListEntry {
    kind: EntryKind,
    /// Files anywhere below the folder.
    files: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
    Link,
    Special(SpecialKind),
    /// Named by an ignore file, or Git's own folder: not expanded.
    Ignored,
    /// A file that an ignore file names.
    IgnoredFile,
    /// Its name is not UTF-8, so that nothing but the name can be shown.
    Unjudged,
}

/// A walk below a folder, and what decides about its entries.
struct FolderWalk {
    root: PathBuf,
    access: Arc<ReadAccess>,
    exclusions: Arc<Mutex<Exclusions>>,
    ignore_files: Arc<IgnoreFiles>,
    walk: TreeWalk,
}

impl FolderWalk {
    /// Reads the ignore files above the folder.
    fn new(root: PathBuf, access: Arc<ReadAccess>) -> Self {
        let ignore_files = Arc::new(IgnoreFiles::new(&root, &root, access.clone()));
        let exclusions = Arc::new(Mutex::new(access.exclusions()));
        let mut tree = Tree::new(Some(ignore_files.clone()));
        tree.skips_hidden = false;
        let (judging, excluding) = (access.clone(), exclusions.clone());
        let walk = tree.walk(&root, move |entry| {
            // Files that may not be read are neither shown, counted nor entered: they must not affect the result.
            entry.name != ".git" && judging.may_read(entry.path, entry.is_folder, &mut excluding.lock())
        });
        Self { root, access, exclusions, ignore_files, walk }
    }

    fn listing(&self, found: WalkedTree) -> FolderListing {
        let mut listing = FolderListing { more: found.more, ..FolderListing::default() };
        for (path, kind) in &found.entries {
            listing.see(&self.root, path, *kind);
        }
        let mut exclusions = self.exclusions.lock();
        listing.problems.extend(found.problems.iter().filter_map(|error| self.access.problem(error, &mut exclusions)));
        listing.is_unread = found.entries.is_empty() && !listing.problems.is_empty();
        listing.problems.extend(self.ignore_files.problems());
        for (path, _) in found.left_out.iter().filter(|(path, _)| path.to_str().is_none()) {
            if self.access.may_name(path, &mut exclusions)
                && let Ok(path) = path.strip_prefix(&self.root)
            {
                listing.add(path.to_owned(), EntryKind::Unjudged);
            }
        }
        if !listing.more {
            let may_read = |path: &Path, kind: FileType| self.access.may_read(path, kind.is_dir(), &mut exclusions);
            listing.add_ignored(&self.root, found.left_out, may_read);
        }
        listing
    }
}

impl FolderListing {
    fn see(&mut self, root: &Path, path: &Path, kind: FileType) {
        let Ok(path) = path.strip_prefix(root) else { return };
        let kind = match kind {
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link,
            kind if kind.is_file() => EntryKind::File,
            kind => EntryKind::Special(SpecialKind::of(kind)),
        };
        self.add(path.to_owned(), kind);
    }

    fn add(&mut self, path: PathBuf, kind: EntryKind) {
        match kind {
            EntryKind::Folder => self.folders += 1,
            EntryKind::File | EntryKind::Link | EntryKind::Special(_) | EntryKind::Unjudged => {
                self.files += 1;
                for above in path.ancestors().skip(1) {
                    if let Some(folder) = self.entries.get_mut(above) {
                        folder.files += 1;
                    }
                }
            }
            EntryKind::Ignored | EntryKind::IgnoredFile => {}
        }
        self.entries.insert(path, ListEntry { kind, files: 0 });
    }

    /// Adds the folders that the walk did not enter. They are shown closed.
    fn add_ignored(
        &mut self,
        root: &Path,
        left_out: Vec<(PathBuf, FileType)>,
        mut may_read: impl FnMut(&Path, FileType) -> bool,
    ) {
        // A caller that names a folder of which everything is ignored wants to see it all the same.
        let is_all_ignored = self.entries.is_empty();
        for (path, kind) in left_out.into_iter().filter(|(path, kind)| may_read(path, *kind)) {
            let Ok(path) = path.strip_prefix(root).map(Path::to_owned) else { continue };
            if kind.is_dir() {
                self.add(path, EntryKind::Ignored);
            } else if is_all_ignored {
                self.add(path, EntryKind::IgnoredFile);
            }
            self.ignored += u64::from(!kind.is_dir());
        }
    }
}

fn output(tree: &FolderListing, root: &Path, name: &str, depth: usize, max: usize) -> ToolOutput {
    if tree.is_unread {
        return ToolOutput::error(format!("nothing was listed: {}", tree.problems.join("; ")));
    }
    let level = |path: &Path| path.components().count();
    let mut chosen: Vec<&PathBuf> = tree.entries.keys().filter(|path| level(path) <= depth).collect();
    let within = chosen.len();
    chosen.sort_by_key(|path| level(path));
    chosen.truncate(max);
    let chosen: BTreeSet<&PathBuf> = chosen.into_iter().collect();

    let mut text = format!("{}/\n", name.trim_end_matches('/'));
    let mut stats = FileStats::default();
    for path in &chosen {
        let ListEntry { kind, files } = &tree.entries[*path];
        let indent = "  ".repeat(level(path));
        let name = paths::quoted(path.file_name().unwrap_or_default());
        let _ = match kind {
            EntryKind::Folder => {
                let closed = if tree.entries.keys().any(|other| other.parent() == Some(path) && !chosen.contains(other))
                {
                    ", not all shown"
                } else {
                    ""
                };
                writeln!(text, "{indent}{name}/  ({}{closed})", counted(*files, "file"))
            }
            EntryKind::Unjudged => writeln!(text, "{indent}{name}  (its name is not UTF-8: no tool can read it)"),
            EntryKind::Ignored => writeln!(text, "{indent}{name}/  (ignored)"),
            EntryKind::IgnoredFile => writeln!(text, "{indent}{name}  (ignored)"),
            EntryKind::Link => {
                let target = files::link_target(&root.join(path)).unwrap_or_default();
                writeln!(text, "{indent}{name} -> {}", paths::quoted(target.as_os_str()))
            }
            EntryKind::Special(what) => writeln!(text, "{indent}{name}  ({})", what.words()),
            EntryKind::File => match stats.size(&root.join(path)) {
                Some(bytes) => writeln!(text, "{indent}{name}  {}", size(bytes)),
                None => writeln!(text, "{indent}{name}"),
            },
        };
    }
    let more = if tree.more { "more than " } else { "" };
    let (files, folders) = (counted(tree.files, "file"), counted(tree.folders, "folder"));
    let _ = write!(text, "[{more}{files} in {folders}");
    if tree.ignored > 0 {
        let _ = write!(text, "; {}", counted(tree.ignored, "ignored file"));
    }
    let left_out = tree.entries.len() - chosen.len();
    if left_out > 0 {
        let how = if within > chosen.len() { "raise max_results or list a folder of it" } else { "raise depth" };
        let entries = if left_out == 1 { "entry" } else { "entries" };
        let _ = write!(text, "; {left_out} {entries} not shown: {how}");
    }
    if !tree.problems.is_empty() {
        let first: Vec<&str> = tree.problems.iter().take(5).map(String::as_str).collect();
        let places = counted(tree.problems.len() as u64, "place");
        let _ = write!(text, "; {places} could not be read: {}", first.join("; "));
    }
    text.push(']');
    ToolOutput::text(text)
        .with("files", tree.files)
        .with("folders", tree.folders)
        .with("shown", chosen.len())
        .with("truncated", left_out > 0 || tree.more)
        .with("problems", tree.problems.len())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GB", bytes as f64 / 1_073_741_824.0),
    }
}
