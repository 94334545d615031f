//! Undoes what calls changed, and previews that. [`crate::journal`] has the records.
//!
//! The records that are undone together become one plan: for each path what must be there now, and what was there before.
//! Nothing is touched unless every path is as the last of these calls left it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::policy::is_secret;
use toold_engine::session::Session;
use toold_host::exclude::Exclusions;
use toold_host::files::{self, FileType, OpenError};
use toold_host::replace::{Expected, ReplaceError, remove, replace};

use crate::diff;
use crate::journal::contents::KeptContents;
use crate::journal::{ChangeFilter, ChangeRecord, JournalScope, PathChange, PathState, RawPath, Selection};
use crate::stamps::FileDigest;
use crate::toolkit::Toolkit;

/// Bytes of a file that is compared with what a change left.
const MAX_COMPARED: u64 = 64 << 20;
/// Bytes of a diff of several files.
const MAX_DIFF: usize = 1 << 20;

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is no such change to undo")]
    Nothing,
    #[error("{} has changed since{}; undoing would lose the later change", .path.display(), shown_by(.by.as_deref()))]
    Changed {
        path: PathBuf,
        /// The recorded call that changed it, if one is known.
        by: Option<String>,
    },
    #[error("the former content of {} is not kept (files over 64 MiB are not, nor is any content for more than 7 days)", .0.display())]
    NotKept(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("can't read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
}

fn shown_by(by: Option<&str>) -> String {
    by.map(|by| format!(", by {by}")).unwrap_or_default()
}

/// The recorded changes, oldest first. Blocks.
pub fn history(toolkit: &Toolkit, whose: JournalScope<'_>) -> Vec<ChangeRecord> {
    toolkit.journal.read(whose)
}

/// Previews the undo of `selection` as unified diffs, by path. Blocks.
///
/// # Errors
/// When there is nothing to undo, or a file has changed since.
pub fn preview(
    toolkit: &Toolkit,
    whose: JournalScope<'_>,
    selection: &Selection,
) -> Result<Vec<(PathBuf, String)>, UndoError> {
    toolkit.command_changes.wait_until_recorded();
    let records = toolkit.journal.selected(whose, selection);
    let plan = Plan::of(&records)?;
    let contents = toolkit.journal.contents().map_err(|_| UndoError::Nothing)?;
    let mut exclusions = Exclusions::default();
    let mut shown = Vec::new();
    for (path, step) in &plan.steps {
        let now = Present::at(path)?;
        now.check(path, step, &plan, toolkit)?;
        let Present { state, content, .. } = now;
        let now = state.map(|state| (state, content));
        let before = match &step.before {
            Some(state) => {
                Some((state.clone(), state.content().map(|digest| kept(contents, digest, path)).transpose()?))
            }
            None => None,
        };
        shown.push((path.clone(), diff_of(path, now, before, &mut exclusions)));
    }
    Ok(shown)
}

/// What several calls did to one path together.
struct NetChange<'a> {
    before: &'a Option<PathState>,
    after: &'a Option<PathState>,
    by: Vec<&'a ChangeRecord>,
}

/// What these calls changed together, as one diff from what was before the first to what was after the last of them.
/// Contents that are not kept any more are not shown. Blocks.
pub fn combined_diff(toolkit: &Toolkit, records: &[ChangeRecord]) -> String {
    let Ok(contents) = toolkit.journal.contents() else { return String::new() };
    let mut nets: BTreeMap<&Path, NetChange<'_>> = BTreeMap::new();
    for record in records {
        for change in &record.changes {
            let PathChange { path, before, after } = change;
            let net = nets.entry(path.path()).or_insert(NetChange { before, after, by: Vec::new() });
            net.after = after;
            net.by.push(record);
        }
    }
    let mut exclusions = Exclusions::default();
    let mut text = String::new();
    for (path, NetChange { before, after, by }) in nets {
        if text.len() > MAX_DIFF {
            text.push_str("# The rest is left out: the diff is too long.\n");
            break;
        }
        for record in by {
            let command = record.command.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
            let shared = match record.shared_with.is_empty() {
                true => String::new(),
                false => format!(" (or by {})", record.shared_with.join(", ")),
            };
            // Writing to a string does not fail.
            let _ = writeln!(text, "# by {}{command}{shared}", record.name());
        }
        let content_of = |state: &Option<PathState>| {
            let state = state.clone()?;
            let digest = state.content();
            let kept = digest.and_then(|digest| contents.get(digest).ok().or_else(|| on_disk(path, digest)));
            Some((state, kept))
        };
        text.push_str(&diff_of(path, content_of(before), content_of(after), &mut exclusions));
    }
    text
}

/// The content of a file, if it has this digest.
fn on_disk(path: &Path, digest: FileDigest) -> Option<Vec<u8>> {
    files::read_whole(path, MAX_COMPARED).ok().filter(|content| blake3::hash(content) == digest)
}

/// A state, and its content if it is known.
type Shown = Option<(PathState, Option<Vec<u8>>)>;

/// The diff between two states of a path. The contents of secret and excluded files are not shown.
fn diff_of(path: &Path, old: Shown, new: Shown, exclusions: &mut Exclusions) -> String {
    let name = path.display().to_string();
    let (old_state, new_state) = (old.as_ref().map(|old| &old.0), new.as_ref().map(|new| &new.0));
    let mut text = String::new();
    if let (Some(old), Some(new)) = (old_state.and_then(PathState::mode), new_state.and_then(PathState::mode))
        && old != new
    {
        // Writing to a string does not fail.
        let _ = write!(text, "diff --git a/{name} b/{name}\nold mode {old:o}\nnew mode {new:o}\n");
    }
    let is_text = |state: Option<&PathState>| state.is_none_or(|state| matches!(state, PathState::File { .. }));
    if !is_text(old_state) || !is_text(new_state) {
        let words = |state: Option<&PathState>| match state {
            None => "nothing".to_owned(),
            Some(PathState::File { .. }) => "a file".to_owned(),
            Some(PathState::Folder { .. }) => "a folder".to_owned(),
            Some(PathState::Link { target }) => format!("a link to {}", target.path().display()),
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
    if is_secret(path) || exclusions.reason(path, false).is_some() {
        return text + &format!("# {name}: its content is not shown, it is secret or excluded\n");
    }
    let bytes = |shown: &Shown| match shown {
        None => Some(None),
        Some((_, content)) => content.clone().map(Some),
    };
    match (bytes(&old), bytes(&new)) {
        (Some(old), Some(new)) => text + &diff::of_contents(old.as_deref(), new.as_deref(), &name).text,
        _ => text + &format!("# {name}: a content is not kept, so the change is not shown\n"),
    }
}

/// Undoes changes for `session`, all or none, and returns the paths.
///
/// # Errors
/// See [`UndoError`]. Nothing is undone then, unless the file system also refuses to bring back what was undone before.
pub async fn undo(
    toolkit: &Arc<Toolkit>,
    session: &Arc<Session>,
    whose: JournalScope<'_>,
    selection: &Selection,
) -> Result<Vec<PathBuf>, UndoError> {
    let waiting = toolkit.clone();
    // Fails only when the runtime stops.
    let _ = tokio::task::spawn_blocking(move || waiting.command_changes.wait_until_recorded()).await;
    let records = toolkit.journal.selected(whose, selection);
    let plan = Plan::of(&records)?;
    // In one order by all, so that no two wait for each other.
    let mut guards = Vec::with_capacity(plan.steps.len());
    for path in plan.steps.keys() {
        guards.push(toolkit.stamps.writing(path).await);
    }
    let paths = plan.steps.keys().cloned().collect();
    let (toolkit, session) = (toolkit.clone(), session.clone());
    let work = tokio::task::spawn_blocking(move || {
        let _guards = guards;
        undo_all(&toolkit, &session, &plan, &records)
    });
    match work.await {
        Ok(result) => result?,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
    Ok(paths)
}

/// What must be there, and what was there before, for each path.
struct Plan {
    steps: BTreeMap<PathBuf, PlanStep>,
    newest: std::time::SystemTime,
}

struct PlanStep {
    before: Option<PathState>,
    after: Option<PathState>,
}

impl Plan {
    /// The records are given newest first.
    fn of(records: &[ChangeRecord]) -> Result<Self, UndoError> {
        let newest = records.first().ok_or(UndoError::Nothing)?.at;
        let mut steps: BTreeMap<PathBuf, PlanStep> = BTreeMap::new();
        for record in records {
            for change in &record.changes {
                match steps.get_mut(change.path.path()) {
                    None => {
                        let step = PlanStep { before: change.before.clone(), after: change.after.clone() };
                        steps.insert(change.path.0.clone(), step);
                    }
                    // Somebody else changed it between the two.
                    Some(step) if !is_same(&step.before, &change.after) => {
                        return Err(UndoError::Changed { path: change.path.0.clone(), by: None });
                    }
                    Some(step) => step.before = change.before.clone(),
                }
            }
        }
        Ok(Self { steps, newest })
    }
}

/// Whether two states are the same, as far as both are known.
fn is_same(one: &Option<PathState>, other: &Option<PathState>) -> bool {
    match (one, other) {
        (
            Some(PathState::File { content, mode, size }),
            Some(PathState::File { content: other_content, mode: other_mode, size: other_size }),
        ) => {
            content == other_content
                && size == other_size
                && mode.zip(*other_mode).is_none_or(|(mode, other_mode)| mode == other_mode)
        }
        (Some(PathState::Folder { mode }), Some(PathState::Folder { mode: other_mode })) => {
            mode.zip(*other_mode).is_none_or(|(mode, other_mode)| mode == other_mode)
        }
        (one, other) => one == other,
    }
}

/// What is at a path now.
struct Present {
    state: Option<PathState>,
    file: Option<File>,
    content: Option<Vec<u8>>,
}

impl Present {
    fn at(path: &Path) -> Result<Self, UndoError> {
        let nothing = Self { state: None, file: None, content: None };
        let Some(stat) = files::stat_entry(path)? else { return Ok(nothing) };
        Ok(match stat.kind {
            FileType::Directory => Self { state: Some(PathState::Folder { mode: Some(stat.mode) }), ..nothing },
            FileType::Symlink => {
                let target = RawPath(files::link_target(path)?);
                Self { state: Some(PathState::Link { target }), ..nothing }
            }
            _ => {
                let mut file = match files::open(path) {
                    Ok(file) => file,
                    Err(OpenError::Special { .. }) => {
                        return Err(UndoError::Changed { path: path.to_owned(), by: None });
                    }
                    Err(error) => return Err(error.into()),
                };
                let content = match files::read_opened(&mut file, path, MAX_COMPARED) {
                    Ok(content) => Some(content),
                    Err(OpenError::TooLarge { .. }) => None,
                    Err(error) => return Err(error.into()),
                };
                let digest = content.as_ref().map(|content| blake3::hash(content));
                let state = PathState::File { content: digest, mode: Some(stat.mode), size: stat.size };
                Self { state: Some(state), file: Some(file), content }
            }
        })
    }

    /// Fails unless it is what the change left. The permission bits count if the change set them.
    fn check(&self, path: &Path, step: &PlanStep, plan: &Plan, toolkit: &Toolkit) -> Result<(), UndoError> {
        let mode = |state: &Option<PathState>| state.as_ref().and_then(PathState::mode);
        let sets_mode = mode(&step.before) != mode(&step.after);
        let without_mode = |state: &Option<PathState>| match state {
            Some(PathState::File { content, size, .. }) if !sets_mode => {
                Some(PathState::File { content: *content, mode: None, size: *size })
            }
            Some(PathState::Folder { .. }) if !sets_mode => Some(PathState::Folder { mode: None }),
            state => state.clone(),
        };
        if is_same(&without_mode(&self.state), &without_mode(&step.after)) {
            return Ok(());
        }
        // A folder that the call made and that has gone, or has got another mode, loses nothing.
        let is_made_folder = step.before.is_none() && step.after.as_ref().is_some_and(PathState::is_folder);
        if is_made_folder && self.state.as_ref().is_none_or(PathState::is_folder) {
            return Ok(());
        }
        let later = toolkit.journal.read(JournalScope::Everybody).into_iter().rev();
        let by = later
            .take_while(|record| record.at > plan.newest)
            .find(|record| record.changes.iter().any(|change| change.path.path() == path))
            .map(|record| record.name());
        Err(UndoError::Changed { path: path.to_owned(), by })
    }
}

fn kept(contents: &KeptContents, digest: FileDigest, path: &Path) -> Result<Vec<u8>, UndoError> {
    contents.get(digest).map_err(|_| UndoError::NotKept(path.to_owned()))
}

fn undo_all(toolkit: &Toolkit, session: &Session, plan: &Plan, records: &[ChangeRecord]) -> Result<(), UndoError> {
    let contents = toolkit.journal.contents().map_err(|_| UndoError::Nothing)?;
    // Everything is known to be possible before anything is done, and what is replaced is kept.
    let mut present: BTreeMap<&Path, Option<PathState>> = BTreeMap::new();
    for (path, step) in &plan.steps {
        let now = Present::at(path)?;
        now.check(path, step, plan, toolkit)?;
        match &step.before {
            Some(PathState::File { content: Some(digest), .. }) => drop(kept(contents, *digest, path)?),
            Some(PathState::File { content: None, .. }) => return Err(UndoError::NotKept(path.clone())),
            Some(PathState::Folder { .. } | PathState::Link { .. }) | None => {}
        }
        if let Some(content) = &now.content {
            contents.keep(content).map_err(|source| UndoError::Read { path: path.clone(), source })?;
        } else if now.file.is_some() {
            return Err(UndoError::NotKept(path.clone()));
        }
        present.insert(path, now.state);
    }
    toolkit.command_changes.expect_others(plan.steps.keys());
    let wanted: BTreeMap<&Path, &Option<PathState>> =
        plan.steps.iter().map(|(path, step)| (path.as_path(), &step.before)).collect();
    if let Err(error) = bring_all(&wanted, contents) {
        // The error that matters is returned.
        let _ = bring_all(&present.iter().map(|(path, state)| (*path, state)).collect(), contents);
        return Err(error);
    }
    for (path, step) in &plan.steps {
        match step.before.as_ref().and_then(PathState::content) {
            Some(digest) => toolkit.stamps.wrote(session, path, digest),
            None => toolkit.stamps.forget(session, path),
        }
    }
    for record in records {
        record.set_undone().map_err(|source| UndoError::Read { path: record.kept.clone(), source })?;
    }
    Ok(())
}

/// Makes all paths what they should be.
fn bring_all(wanted: &BTreeMap<&Path, &Option<PathState>>, contents: &KeptContents) -> Result<(), UndoError> {
    // Entries of folders before the folders, and so are those that stand where something else should be.
    for (path, state) in wanted.iter().rev() {
        let now = Present::at(path)?;
        let Some(there) = &now.state else { continue };
        if state.as_ref().is_some_and(|state| std::mem::discriminant(state) == std::mem::discriminant(there)) {
            continue;
        }
        match (there, &now.file) {
            (PathState::File { .. }, Some(file)) => remove(path, file)?,
            (PathState::Link { .. }, _) => files::remove_link(path)?,
            // A folder that others use by now stays, unless something else should be there.
            (PathState::Folder { .. } | PathState::File { .. }, _) => match files::remove(path) {
                Err(error) if state.is_some() => return Err(error.into()),
                _ => {}
            },
        }
    }
    for (path, state) in wanted {
        if let Some(state) = state {
            bring(path, state, contents)?;
        }
    }
    // Last, since nothing can be made in a folder that is read-only.
    for (path, state) in wanted.iter().rev() {
        if let Some(PathState::Folder { mode: Some(mode) }) = state {
            files::set_mode(path, *mode)?;
        }
    }
    Ok(())
}

fn bring(path: &Path, state: &PathState, contents: &KeptContents) -> Result<(), UndoError> {
    let now = Present::at(path)?;
    if now.state.as_ref() == Some(state) {
        return Ok(());
    }
    match state {
        PathState::Folder { mode } => {
            files::make_folders(path)?;
            if let Some(mode) = mode {
                files::set_mode(path, mode | 0o700)?;
            }
        }
        PathState::Link { target } => {
            if now.state.is_some() {
                files::remove_link(path)?;
            }
            make_parents(path)?;
            files::make_link(path, target.path())?;
        }
        PathState::File { content, mode, .. } => {
            let digest = content.ok_or_else(|| UndoError::NotKept(path.to_owned()))?;
            let content = kept(contents, digest, path)?;
            let own_mode = now.state.as_ref().and_then(PathState::mode);
            match &now.file {
                Some(_) if now.content.as_ref() == Some(&content) => {}
                Some(file) => {
                    if let Some(own) = own_mode.filter(|own| own & 0o200 == 0) {
                        files::set_mode(path, own | 0o200)?;
                    }
                    replace(path, &content, Expected::Same(file))?;
                    if let (Some(own), None) = (own_mode, mode) {
                        files::set_mode(path, own)?;
                    }
                }
                None => {
                    make_parents(path)?;
                    // Not synced to disk one by one: a call may have removed ten thousand files.
                    files::write(path, &content)?;
                }
            }
            if let Some(mode) = mode.filter(|mode| Some(*mode) != own_mode || now.file.is_none()) {
                files::set_mode(path, mode)?;
            }
        }
    }
    Ok(())
}

fn make_parents(path: &Path) -> Result<(), UndoError> {
    if let Some(folder) = path.parent() {
        files::make_folders(folder)?;
    }
    Ok(())
}

/// The records of calls that `filter` has, oldest first. Blocks.
pub fn changes_of(toolkit: &Toolkit, whose: JournalScope<'_>, filter: &ChangeFilter) -> Vec<ChangeRecord> {
    toolkit.command_changes.wait_until_recorded();
    let mut records = toolkit.journal.read(whose);
    records.retain(|record| filter.has(record));
    records
}
