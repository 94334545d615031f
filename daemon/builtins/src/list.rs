//! `list`: a tree of files, to find one's way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::WalkBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::files;
use toold_proto::tool::Category;

use crate::blocking::{blocking, check};
use crate::builtin::{Builtin, Facts, READS};
use crate::judge::Judge;
use crate::paths;
use crate::shared::Shared;

const DEFAULT_DEPTH: usize = 3;
const DEFAULT_RESULTS: usize = 300;
/// A larger tree is counted no further.
const MAX_SEEN: usize = 100_000;

/// What `list` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The folder; the working folder when absent.
    path: Option<String>,
    /// How many levels of folders to show; 3 when absent.
    #[schemars(range(min = 1, max = 100))]
    depth: Option<usize>,
    /// How many entries to show, the upper levels first; 300 when absent.
    #[schemars(range(min = 1, max = 10_000))]
    max_results: Option<usize>,
}

pub(crate) struct List;

impl Builtin for List {
    type Input = Input;

    const NAME: &'static str = "list";
    const FACTS: Facts = Facts {
        label: "List a folder",
        description: "Shows a folder as a tree, with the sizes of files and how many files are in a folder. What \
                      .gitignore names is shown closed.",
        parallelizable: true,
        permissions: &[Category::FileRead],
        timeout: None,
        annotations: READS,
    };

    fn new(_: Arc<Shared>) -> Self {
        Self
    }

    async fn needs(&self, input: &Input, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let root = paths::resolve(input.path.as_deref().unwrap_or("."), cx)?;
        Ok(vec![files::read_need(&root, &mut Exclusions::default())])
    }

    async fn run(&self, input: Input, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let root = paths::resolve(input.path.as_deref().unwrap_or("."), cx)?;
        // Judged again: a link on the way may lead elsewhere by now.
        cx.require(files::read_need(&root, &mut Exclusions::default())).await?;
        let judge = Judge::new(cx, root.clone());
        let cwd = cx.cwd.clone();
        blocking(cx, move |cancel| {
            let shown = paths::shown(&root, &cwd);
            anyhow::ensure!(root.is_dir(), "{shown} is no folder");
            let tree = look(&root, &judge, cancel)?;
            let depth = input.depth.unwrap_or(DEFAULT_DEPTH);
            Ok(output(&tree, &root, &shown, depth, input.max_results.unwrap_or(DEFAULT_RESULTS)))
        })
        .await
    }
}

/// A folder tree; paths are relative to its root.
#[derive(Default)]
struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
    files: u64,
    folders: u64,
    hidden: u64,
    problems: u64,
    /// There is more than was looked at.
    more: bool,
}

struct Entry {
    kind: Kind,
    /// Files anywhere below a folder.
    files: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Link,
    /// Named by an ignore file, or Git's own: not looked into.
    Ignored,
}

fn look(root: &Path, judge: &Judge, cancel: &CancellationToken) -> anyhow::Result<Tree> {
    let mut tree = Tree::default();
    let mut exclusions = Exclusions::default();
    let mut refused = BTreeSet::new();
    let mut walk = WalkBuilder::new(root);
    walk.current_dir(root).hidden(false).filter_entry(|entry| entry.file_name() != ".git");
    for entry in walk.build() {
        check(cancel)?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(_) => {
                tree.problems += 1;
                continue;
            }
        };
        let Ok(path) = entry.path().strip_prefix(root).map(Path::to_owned) else { continue };
        let Some(file_type) = entry.file_type() else { continue };
        if path.as_os_str().is_empty() {
            continue;
        }
        if tree.entries.len() >= MAX_SEEN {
            tree.more = true;
            break;
        }
        if path.ancestors().any(|above| refused.contains(above)) {
            continue;
        }
        if !judge.may_read(entry.path(), file_type.is_dir(), &mut exclusions) {
            tree.hidden += 1;
            refused.insert(path);
            continue;
        }
        let kind = match file_type {
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::File,
        };
        tree.add(path, kind);
    }
    add_ignored(root, &mut tree, &refused, judge, &mut exclusions, cancel)?;
    Ok(tree)
}

impl Tree {
    fn add(&mut self, path: PathBuf, kind: Kind) {
        match kind {
            Kind::Folder => self.folders += 1,
            Kind::File | Kind::Link => {
                self.files += 1;
                for above in path.ancestors().skip(1) {
                    if let Some(folder) = self.entries.get_mut(above) {
                        folder.files += 1;
                    }
                }
            }
            Kind::Ignored => {}
        }
        self.entries.insert(path, Entry { kind, files: 0 });
    }
}

/// What is there and the walk did not go to: the folders of it are shown closed.
fn add_ignored(
    root: &Path,
    tree: &mut Tree,
    refused: &BTreeSet<PathBuf>,
    judge: &Judge,
    exclusions: &mut Exclusions,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    if tree.more {
        return Ok(());
    }
    let folders: Vec<PathBuf> = std::iter::once(PathBuf::new())
        .chain(tree.entries.iter().filter(|(_, entry)| entry.kind == Kind::Folder).map(|(path, _)| path.clone()))
        .collect();
    for folder in folders {
        check(cancel)?;
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || tree.entries.contains_key(&path) || refused.contains(&path) {
                continue;
            }
            if judge.may_read(&entry.path(), true, exclusions) {
                tree.add(path, Kind::Ignored);
            } else {
                tree.hidden += 1;
            }
        }
    }
    Ok(())
}

fn output(tree: &Tree, root: &Path, name: &str, depth: usize, max: usize) -> ToolOutput {
    let level = |path: &Path| path.components().count();
    let mut chosen: Vec<&PathBuf> = tree.entries.keys().filter(|path| level(path) <= depth).collect();
    let within = chosen.len();
    chosen.sort_by_key(|path| level(path));
    chosen.truncate(max);
    let chosen: BTreeSet<&PathBuf> = chosen.into_iter().collect();

    let mut text = format!("{}/\n", name.trim_end_matches('/'));
    for path in &chosen {
        let Entry { kind, files } = &tree.entries[*path];
        let indent = "  ".repeat(level(path));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let _ = match kind {
            Kind::Folder => {
                let closed = if tree.entries.keys().any(|other| other.parent() == Some(path) && !chosen.contains(other))
                {
                    ", not all shown"
                } else {
                    ""
                };
                writeln!(text, "{indent}{name}/  ({files} {}{closed})", if *files == 1 { "file" } else { "files" })
            }
            Kind::Ignored => writeln!(text, "{indent}{name}/  (ignored)"),
            Kind::Link => {
                let target = std::fs::read_link(root.join(path)).unwrap_or_default();
                writeln!(text, "{indent}{name} -> {}", target.display())
            }
            Kind::File => match std::fs::symlink_metadata(root.join(path)) {
                Ok(metadata) => writeln!(text, "{indent}{name}  {}", size(metadata.len())),
                Err(_) => writeln!(text, "{indent}{name}"),
            },
        };
    }
    let more = if tree.more { "more than " } else { "" };
    let _ = write!(text, "[{more}{} files in {} folders", tree.files, tree.folders);
    let left_out = tree.entries.len() - chosen.len();
    if left_out > 0 {
        let how = if within > chosen.len() { "raise max_results or list a folder of it" } else { "raise depth" };
        let _ = write!(text, "; {left_out} entries not shown: {how}");
    }
    if tree.hidden > 0 {
        let _ = write!(text, "; {} that may not be read", tree.hidden);
    }
    if tree.problems > 0 {
        let _ = write!(text, "; {} places could not be looked into", tree.problems);
    }
    text.push(']');
    ToolOutput::text(text)
        .with("files", tree.files)
        .with("folders", tree.folders)
        .with("shown", chosen.len())
        .with("truncated", left_out > 0 || tree.more)
        .with("hidden_files", tree.hidden)
        .with("problems", tree.problems)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GB", bytes as f64 / 1_073_741_824.0),
    }
}
