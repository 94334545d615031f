//! Changes as diffs.

mod patch;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use toold_engine::policy::is_secret;
use toold_engine::redact::one_line;
use toold_host::exclude::Exclusions;
use toold_host::files;

use crate::diff;
use crate::journal::state::MAX_KEPT_FILE;
use crate::journal::{ChangeRecord, PathChange, PathState, RawPath, UnrecordedChanges};
use crate::paths;
use crate::quoted_names::named;
use crate::stamps::FileDigest;
use crate::toolkit::Toolkit;

/// Bytes of a diff of several files.
const MAX_DIFF: usize = 1 << 20;
/// Bytes of a patch.
const MAX_PATCH: usize = 4 << 20;
/// Bytes of the names of files whose changes are left out of either.
const MAX_NAMES: usize = 256 << 10;

/// Bytes of a preview after which further files are only counted.
pub(super) const MAX_PREVIEW: usize = MAX_DIFF + MAX_NAMES;

/// What several calls did to one path together.
struct NetChange<'a> {
    before: &'a Option<PathState>,
    after: &'a Option<PathState>,
    /// Where the file was moved from.
    from: Option<&'a Path>,
    /// Another path of the file that was there.
    other: Option<&'a Path>,
    by: Vec<&'a ChangeRecord>,
}

/// How files that a call moved are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MovedFiles {
    /// As one file with what was changed in it.
    Together,
    /// As a file that was removed and one that was made.
    Apart,
}

/// What these calls changed together, as one diff from what was before the first to what was after the last of them. Names
/// are relative to `folder` where they can be. Contents that are not kept any more are not shown. Blocks.
pub fn combined_diff(toolkit: &Toolkit, records: &[ChangeRecord], folder: Option<&Path>) -> String {
    let mut exclusions = Exclusions::default();
    combined(toolkit, records, folder, (MAX_DIFF, MovedFiles::Together), |path, from, old, new| {
        let new_name = name(path, folder);
        let Some(from) = from else { return diff_of(path, &new_name, old, new, &mut exclusions) };
        let old_name = name(from, folder);
        let moved = format!("# {old_name} moved to {new_name}\n");
        match is_hidden(from, &mut exclusions) {
            true => moved,
            false => {
                let diff = diff_of(path, &new_name, old, new, &mut exclusions);
                moved + &diff.replacen(&format!("--- a/{new_name}\n"), &format!("--- a/{old_name}\n"), 1)
            }
        }
    })
}

/// The same as a patch that `git apply` takes in this folder. What it cannot hold is named in lines that begin with `#`.
/// Blocks.
pub fn patch(toolkit: &Toolkit, records: &[ChangeRecord], folder: &Path) -> String {
    let mut exclusions = Exclusions::default();
    combined(toolkit, records, Some(folder), (MAX_PATCH, MovedFiles::Apart), |path, _, old, new| {
        patch::of_path(path, folder, &old, &new, &mut exclusions).unwrap_or_else(|why| {
            let name = name(path, Some(folder));
            format!("# {name}: {why}\n")
        })
    })
}

fn combined(
    toolkit: &Toolkit,
    records: &[ChangeRecord],
    folder: Option<&Path>,
    (most, moved): (usize, MovedFiles),
    mut of_path: impl FnMut(&Path, Option<&Path>, Shown, Shown) -> String,
) -> String {
    let Ok(contents) = toolkit.journal.contents() else { return String::new() };
    let mut nets: BTreeMap<&Path, NetChange<'_>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.undone) {
        for change in &record.changes {
            let PathChange { path, before, after, .. } = change;
            let [from, other] = [&change.from, &change.other].map(|path| path.as_ref().map(RawPath::path));
            let net = nets.entry(path.path()).or_insert(NetChange { before, after, from, other, by: Vec::new() });
            net.after = after;
            net.by.push(record);
        }
    }
    if moved == MovedFiles::Together {
        join_moved(&mut nets);
    }
    let mut text = String::new();
    let count = nets.len();
    for (number, (path, NetChange { before, after, from, other, by })) in nets.into_iter().enumerate() {
        if text.len() > most + MAX_NAMES {
            text.push_str(&left_out(count - number));
            break;
        }
        for record in by {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# {}", made_by(record));
        }
        let content_of = |state: &Option<PathState>| {
            let state = state.clone()?;
            let digest = state.content();
            let kept = digest.and_then(|digest| contents.get(digest).ok().or_else(|| on_disk(path, digest)));
            Some((state, kept))
        };
        let mut part = of_path(path, from, content_of(before), content_of(after));
        if part.is_empty() {
            part = match other {
                Some(other) => names_of_one_file(path, other, folder, "no longer"),
                None => format!("# {}: with the same content as before\n", name(path, folder)),
            };
        }
        text.push_str(&fitting(part, most.saturating_sub(text.len()), path, folder));
    }
    for record in records.iter().filter(|record| !record.undone && !record.beyond.is_empty()) {
        let _ = writeln!(text, "# not recorded, {}:", made_by(record));
        record.beyond.words().for_each(|words| text.push_str(&format!("#   {}\n", one_line(&words, usize::MAX))));
    }
    text
}

/// A line about a path that has a file of its own again.
pub(super) fn own_file(path: &Path, folder: Option<&Path>) -> String {
    format!("# {}: again a file of its own\n", name(path, folder))
}

/// A line about two paths that name the same file again, or no longer.
pub(super) fn names_of_one_file(path: &Path, other: &Path, folder: Option<&Path>, when: &str) -> String {
    format!("# {}: {when} the same file as {}\n", name(path, folder), name(other, folder))
}

/// A line about files whose changes are not shown.
pub(super) fn left_out(count: usize) -> String {
    format!("# {count} more files are left out: the diff is too long\n")
}

/// Sentences for a person about changes that undo leaves as they are. Names are relative to `folder` where they can be.
pub fn notes(unrecorded: &UnrecordedChanges, folder: Option<&Path>) -> Vec<String> {
    unrecorded.notes(|path| {
        let below = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        one_line(&named(below), usize::MAX)
    })
}

/// `by bash in call c1: rm -r x (or by s1/c2)`.
fn made_by(record: &ChangeRecord) -> String {
    let command = record.command.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
    let shared = match record.shared_with.is_empty() {
        true => String::new(),
        false => format!(" (or by {})", record.shared_with.join(", ")),
    };
    format!("by {}{command}{shared}", record.name())
}

/// The diff of one path, or a line that it is left out: one that is too long is no reason to leave out the others.
fn fitting(part: String, room: usize, path: &Path, folder: Option<&Path>) -> String {
    match length_in_answer(&part) <= room {
        true => part,
        false => format!("# {}: left out, {} bytes are too many for this diff\n", name(path, folder), part.len()),
    }
}

/// About as long as the text is in JSON, where control characters are long.
fn length_in_answer(text: &str) -> usize {
    text.len() + 5 * text.bytes().filter(|byte| byte.is_ascii_control() && !b"\n\t".contains(byte)).count()
}

/// Joins each file that is gone from where it was with the one that was made of it.
fn join_moved(nets: &mut BTreeMap<&Path, NetChange<'_>>) {
    let is_gone = |net: &NetChange<'_>| net.after.is_none() && matches!(net.before, Some(PathState::File { .. }));
    let moved: Vec<(&Path, &Path)> = nets
        .iter()
        .filter(|(_, net)| net.before.is_none() && matches!(net.after, Some(PathState::File { .. })))
        .filter_map(|(path, net)| Some((*path, net.from.filter(|from| nets.get(from).is_some_and(is_gone))?)))
        .collect();
    for (_, net) in nets.iter_mut() {
        net.from = None;
    }
    for (path, from) in moved {
        // Only one file can be made of it.
        if let Some(gone) = nets.remove(from)
            && let Some(net) = nets.get_mut(path)
        {
            net.by.retain(|record| gone.by.iter().all(|known| known.kept != record.kept));
            (net.before, net.from) = (gone.before, Some(from));
            net.by.splice(0..0, gone.by);
        }
    }
}

/// A path in a diff, after `a/` or `b/`: relative to the folder if it is below it, otherwise to the root of the file system.
fn name(path: &Path, folder: Option<&Path>) -> String {
    let below = folder.and_then(|folder| path.strip_prefix(folder).ok());
    match below.or_else(|| path.strip_prefix("/").ok()).unwrap_or(path).as_os_str() {
        own if own.is_empty() => ".".to_owned(),
        other => paths::quoted(other),
    }
}

/// The content of a file, if it has this digest.
fn on_disk(path: &Path, digest: FileDigest) -> Option<Vec<u8>> {
    files::read_whole(path, MAX_KEPT_FILE).ok().filter(|content| blake3::hash(content) == digest)
}

/// A state, and its content if it is known.
type Shown = Option<(PathState, Option<Vec<u8>>)>;

/// Whether no diff shows the content of a file.
fn is_hidden(path: &Path, exclusions: &mut Exclusions) -> bool {
    is_secret(path) || exclusions.reason(path, false).is_some()
}

/// The diff from what is at a path to what was there. `used` is the length of those before it.
pub(super) fn preview_of(
    path: &Path,
    (folder, used): (Option<&Path>, usize),
    now: Shown,
    before: Shown,
    exclusions: &mut Exclusions,
) -> String {
    let diff = diff_of(path, &name(path, folder), now, before, exclusions);
    fitting(diff, MAX_DIFF.saturating_sub(used), path, folder)
}

/// The diff between two states of a path. The contents of secret and excluded files are not shown.
fn diff_of(path: &Path, name: &str, old: Shown, new: Shown, exclusions: &mut Exclusions) -> String {
    let (old_state, new_state) = (old.as_ref().map(|old| &old.0), new.as_ref().map(|new| &new.0));
    let mut text = String::new();
    if let (Some(old), Some(new)) = (old_state.and_then(PathState::mode), new_state.and_then(PathState::mode))
        && old != new
    {
        // Writing to a string does not fail.
        let _ = write!(text, "diff --git a/{name} b/{name}\nold mode {old:o}\nnew mode {new:o}\n");
    }
    if let (Some(old), Some(new)) =
        (old_state.and_then(PathState::attributes), new_state.and_then(PathState::attributes))
        && old != new
    {
        let _ = writeln!(text, "# {name}: its extended attributes");
    }
    let is_text = |state: Option<&PathState>| state.is_none_or(|state| matches!(state, PathState::File { .. }));
    if !is_text(old_state) || !is_text(new_state) {
        let words = |state: Option<&PathState>| match state {
            None => "nothing".to_owned(),
            Some(PathState::File { .. }) => "a file".to_owned(),
            Some(PathState::Folder { .. }) => "a folder".to_owned(),
            Some(PathState::Link { target }) => format!("a link to {}", named(target.path())),
            Some(PathState::Special { what, .. }) => what.words().to_owned(),
        };
        let (old, new) = (words(old_state), words(new_state));
        if old != new {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# {name}: {old} -> {new}");
        }
        return text;
    }
    if old_state.and_then(PathState::content) == new_state.and_then(PathState::content)
        && old.is_some() == new.is_some()
    {
        return text;
    }
    if is_hidden(path, exclusions) {
        return text + &format!("# {name}: its content is not shown, it is secret or excluded\n");
    }
    let bytes = |shown: &Shown| match shown {
        None => Some(None),
        Some((_, content)) => content.clone().map(Some),
    };
    match (bytes(&old), bytes(&new)) {
        (Some(old), Some(new)) => text + &diff::of_contents(old.as_deref(), new.as_deref(), name).text,
        _ => text + &format!("# {name}: a content is not kept, so the change is not shown\n"),
    }
}
