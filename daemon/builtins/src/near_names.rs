//! The names that a caller may have meant by a file that does not exist: files beside it that are spelled alike, and
//! files of the same name elsewhere in the project. Only those that the call may read without an ask.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_host::exclude::Exclusions;
use toold_host::files;
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::ReadAccess;
use toold_host::tree::Tree;
use toold_proto::nearest::likeness;

use crate::look_alikes;
use crate::paths;

/// How many names of each kind are given.
const MAX_NAMES: usize = 3;
/// The limits of the look at the folder and at the project.
const MAX_ENTRIES: usize = 2_000;
const MAX_VISITED: usize = 20_000;
const MAX_TIME: Duration = Duration::from_millis(300);
/// How alike two names must be, by [`likeness`].
const MIN_ALIKE: f64 = 0.85;
/// More than any likeness: the names cannot be told apart by looking at them.
const SAME_LOOK: f64 = 2.0;

/// The kind of the missing thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingKind {
    File,
    Folder,
    Either,
}

impl MissingKind {
    fn is_of(self, is_folder: bool) -> bool {
        match self {
            Self::File => !is_folder,
            Self::Folder => is_folder,
            Self::Either => true,
        }
    }
}

/// `: did you mean X or Y?`, the best first; `None` if no name is near. Blocks for a moment at most.
pub(crate) fn hint(missing: &Path, kind: MissingKind, cx: &Cx) -> Option<String> {
    // The call may read the missing file at most, so an answer to an ask covers nothing else.
    let access = Arc::new(ReadAccess::new(cx, cx.outer_chain.clone(), missing.to_owned()));
    let mut names = near(missing, kind, &access, cx)?;
    if names.is_empty() {
        names = near(&respelled(missing)?, kind, &access, cx)?;
    }
    let (last, more) = names.split_last()?;
    let names = if more.is_empty() { last.clone() } else { format!("{} or {last}", more.join(", ")) };
    Some(format!(": did you mean {names}?"))
}

fn near(missing: &Path, kind: MissingKind, access: &Arc<ReadAccess>, cx: &Cx) -> Option<Vec<String>> {
    let (folder, name) = (missing.parent()?, missing.file_name()?.to_str()?);
    let mut names = beside(folder, name, kind, access, cx);
    for found in elsewhere(name, kind, missing, access, cx) {
        if !names.contains(&found) {
            names.push(found);
        }
    }
    Some(names)
}

/// The path without what belongs to a text about it: quotes, and the lines behind `#L`; with slashes in place of backslashes.
fn respelled(missing: &Path) -> Option<PathBuf> {
    let text = missing.to_str()?;
    let bare = text.split_once("#L").map_or(text, |(path, _)| path);
    let spelled = bare.replace(['`', '\'', '"'], "").replace('\\', "/");
    (spelled != text).then(|| PathBuf::from(spelled))
}

fn beside(folder: &Path, name: &str, kind: MissingKind, access: &ReadAccess, cx: &Cx) -> Vec<String> {
    let mut exclusions = Exclusions::default();
    if !access.may_read(folder, true, &mut exclusions) {
        return Vec::new();
    }
    let look = look_alikes::seen(name);
    let mut scored: Vec<(f64, String)> = Vec::new();
    for (other, of_kind) in files::list(folder, MAX_ENTRIES).unwrap_or_default() {
        let Some(other) = other.to_str() else { continue };
        let alike = if look_alikes::seen(other) == look { SAME_LOOK } else { likeness(name, other) };
        let path = folder.join(other);
        let is_folder = of_kind.is_dir();
        let fits = (is_folder || of_kind.is_file()) && kind.is_of(is_folder);
        if alike >= MIN_ALIKE && fits && access.may_read(&path, is_folder, &mut exclusions) {
            let unlike = look_alikes::difference(name, other).map(|what| format!(" (its name has {what})"));
            scored.push((alike, paths::shown(&path, &cx.cwd) + &unlike.unwrap_or_default()));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // Nothing else is meant, then.
    if scored.first().is_some_and(|(alike, _)| *alike == SAME_LOOK) {
        scored.retain(|(alike, _)| *alike == SAME_LOOK);
    }
    scored.into_iter().take(MAX_NAMES).map(|(_, name)| name).collect()
}

fn elsewhere(name: &str, kind: MissingKind, missing: &Path, access: &Arc<ReadAccess>, cx: &Cx) -> Vec<String> {
    let project = cx.session.project();
    let root = if project.parent().is_some() { project } else { &cx.cwd };
    if !access.may_read(root, true, &mut Exclusions::default()) {
        return Vec::new();
    }
    let ignore_files = Arc::new(IgnoreFiles::new(root, root, access.clone()));
    let (folders, exclusions) = (access.clone(), Mutex::new(Exclusions::of_walk()));
    let walk = Tree::new(Some(ignore_files)).walk(root, move |entry| {
        !entry.is_folder || (entry.name != ".git" && folders.may_read(entry.path, true, &mut exclusions.lock()))
    });
    let mut exclusions = Exclusions::of_walk();
    let start = Instant::now();
    let mut found = Vec::new();
    for entry in walk.parallel().build().take(MAX_VISITED).flatten() {
        if start.elapsed() > MAX_TIME {
            break;
        }
        let is_folder = entry.file_type().is_some_and(|of_kind| of_kind.is_dir());
        let fits = (is_folder || entry.file_type().is_some_and(|of_kind| of_kind.is_file())) && kind.is_of(is_folder);
        let is_same = entry.file_name().to_str().is_some_and(|other| other.eq_ignore_ascii_case(name));
        if fits && is_same && access.may_read(entry.path(), is_folder, &mut exclusions) {
            let parts = |path: &Path| path.iter().rev().map(ToOwned::to_owned).collect::<Vec<_>>();
            let in_common = parts(entry.path()).iter().zip(parts(missing)).take_while(|(a, b)| **a == *b).count();
            found.push((Reverse(in_common), entry.path().as_os_str().len(), paths::shown(entry.path(), &cx.cwd)));
        }
    }
    found.sort();
    found.into_iter().take(MAX_NAMES).map(|(_, _, name)| name).collect()
}
