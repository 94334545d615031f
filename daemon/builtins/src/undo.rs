//! Undoes what calls changed, and previews that. [`crate::journal`] has the records.
//!
//! The records that are undone together become [one plan](plan): for each path what must be there now, and what was there
//! before. Nothing is touched unless every path is as the last of these calls left it, or as it was before them. What an
//! undo does is stored before it begins, so that one that is interrupted goes on later.

mod plan;
mod restore;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::session::Session;
use toold_host::exclude::Exclusions;
use toold_host::files::OpenError;
use toold_host::replace::ReplaceError;

use crate::command_changes::CommandChanges;
use crate::journal::begun::BegunUndo;
use crate::journal::contents::KeptContents;
use crate::journal::{ChangeFilter, ChangeRecord, InodeId, JournalScope, PathState, Selection, UnrecordedChanges};
use crate::quoted_names::named;
use crate::stamps::FileDigest;
use crate::toolkit::Toolkit;
use plan::{OpenedFolders, Plan, PlanStep, Present, UndoAttempt, entry_at};
use restore::{SeenPaths, TouchedPaths, Wanted, bring_all};
pub use shown::{combined_diff, notes, patch};

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is no such change to undo")]
    Nothing,
    #[error("there is no change of {} to undo", named(.0))]
    NothingOf(PathBuf),
    /// The calls changed nothing that is recorded.
    #[error("there is nothing to undo: {by} changed {}, which undo leaves as it is", .changed.join("; "))]
    NotRecorded { by: String, changed: Vec<String> },
    #[error("{} has changed since{}; undoing would lose the later change", named(.path), shown_by(.by.as_deref()))]
    Changed {
        path: PathBuf,
        /// The recorded call that changed it, if one is known.
        by: Option<String>,
    },
    #[error("{} cannot be brought back: {why}", named(.path))]
    NotKept { path: PathBuf, why: &'static str },
    /// A folder, in the place of something else.
    #[error(
        "{} is a folder in which others have made something since, and was no folder before: move that elsewhere first",
        named(.0)
    )]
    InUse(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("can't read {}: {source}", named(.path))]
    Read { path: PathBuf, source: io::Error },
    #[error("can't note that it begins: {0}")]
    Begin(io::Error),
    /// The system refuses a step, and what was done before it was taken back.
    #[error("can't {step} {}: {source}{}; nothing was undone", named(.path), because_of_folder(.path, .source))]
    Refused { step: &'static str, path: PathBuf, source: io::Error },
    /// The same where taking back was refused, too.
    #[error(
        "{refused}, and going back was refused as well: {back}. The undo is half done, and goes on with the next one"
    )]
    HalfDone { refused: String, back: Box<UndoError> },
}

/// The reason that is most often behind a refusal.
fn because_of_folder(path: &Path, source: &io::Error) -> String {
    let folder = path.parent().filter(|folder| {
        let is_read_only = || folder.metadata().is_ok_and(|facts| facts.permissions().readonly());
        source.kind() == io::ErrorKind::PermissionDenied && is_read_only()
    });
    folder.map(|folder| format!(", since the folder {} is read-only", named(folder))).unwrap_or_default()
}

impl UndoError {
    /// As the error of a step that the system has refused; others stay.
    fn of_step(self, step: &'static str, path: &Path) -> Self {
        let refused = |source| Self::Refused { step, path: path.to_owned(), source };
        match self {
            Self::Open(OpenError::System { source, .. }) | Self::Replace(ReplaceError::System { source, .. }) => {
                refused(source)
            }
            Self::Replace(ReplaceError::ReadOnly(_)) => refused(io::ErrorKind::PermissionDenied.into()),
            other => other,
        }
    }
}

fn shown_by(by: Option<&str>) -> String {
    by.map(|by| format!(", by {by}")).unwrap_or_default()
}

/// The recorded changes, oldest first. Blocks.
pub fn history(toolkit: &Toolkit, whose: JournalScope<'_>) -> Vec<ChangeRecord> {
    toolkit.journal.read(whose)
}

/// Previews the undo of `selection` as unified diffs, by path. Names in them are relative to `folder` where they can be.
/// Blocks.
///
/// # Errors
/// When there is nothing to undo, or a file has changed since.
pub fn preview(
    toolkit: &Toolkit,
    whose: JournalScope<'_>,
    selection: &Selection,
    folder: Option<&Path>,
) -> Result<Vec<(PathBuf, String)>, UndoError> {
    toolkit.command_changes.wait_until_recorded();
    let records = with_changes(toolkit, whose, selection)?;
    let plan = Plan::of(&records)?;
    let contents = toolkit.journal.contents().map_err(|_| UndoError::Nothing)?;
    let mut exclusions = Exclusions::default();
    let (mut shown, mut used, mut opened) = (Vec::new(), 0, OpenedFolders::default());
    for (path, step) in &plan.steps {
        let now = Present::at(path)?;
        plan.check((path, step), &now, UndoAttempt::First, &toolkit.journal)?;
        opened.open(path, &now)?;
        let is_undone = step.is_undone(&now);
        let is_other_file = is_undone && step.was.is_some() && !now.is(step.was);
        let has_other_names = now.has_other_names;
        let now = now.state.map(|state| (state, now.content));
        let before = match &step.before {
            Some(_) if is_undone => now.clone(),
            Some(state) => {
                Some((state.clone(), state.content().map(|digest| kept(contents, digest, path)).transpose()?))
            }
            None => None,
        };
        let diff = match used > shown::MAX_PREVIEW {
            true => String::new(),
            false => match &step.other {
                Some(other) if is_other_file => shown::names_of_one_file(path, other, folder, "again"),
                None if is_other_file && has_other_names => shown::own_file(path, folder),
                _ => shown::preview_of(path, (folder, used), now, before, &mut exclusions),
            },
        };
        used += diff.len();
        shown.push((path.clone(), diff));
    }
    let left_out = shown.iter().rev().take_while(|(_, diff)| used > shown::MAX_PREVIEW && diff.is_empty()).count();
    if let Some((_, last)) = shown.last_mut().filter(|_| left_out > 0) {
        *last = shown::left_out(left_out);
    }
    Ok(shown)
}

/// Undoes changes for `session`, all or none, and returns the paths. First, undos that were interrupted go on.
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
    let mut records = with_changes(toolkit, whose, selection)?;
    let mut plan = Plan::of(&records)?;
    if go_on(toolkit).await.ended > 0 {
        let selected = records;
        match with_changes(toolkit, whose, selection) {
            Ok(left) => records = left,
            Err(_) => return Ok(Plan::of(&selected)?.steps.into_keys().collect()),
        }
        plan = Plan::of(&records)?;
    }
    let mut paths: Vec<PathBuf> = plan.steps.keys().cloned().collect();
    let made: BTreeSet<PathBuf> =
        plan.steps.iter().filter(|(_, step)| step.before.is_none()).map(|(path, _)| path.clone()).collect();
    let (locked, session) = (toolkit.clone(), session.clone());
    with_paths_locked(toolkit, plan, move |plan| undo_all(&locked, &session, plan, &records)).await?;
    // A folder in which others have made something since stays.
    paths.retain(|path| !made.contains(path) || !path.is_dir());
    Ok(paths)
}

/// Undos that were interrupted.
#[derive(Debug, Default)]
pub struct InterruptedUndos {
    pub ended: usize,
    /// Why others cannot go on. They stay begun, and go on once their paths are as they were.
    pub stuck: Vec<UndoError>,
}

/// Takes up what a daemon that was killed has left: records what the commands that ran had changed, and goes on with undos.
/// Undos wait for all of it from the call of this function on.
pub fn take_up(toolkit: &Arc<Toolkit>) -> impl Future<Output = InterruptedUndos> + Send + 'static {
    let (recording, toolkit) = (CommandChanges::recording(&toolkit.command_changes), toolkit.clone());
    async move {
        let _recording = recording;
        let changes = toolkit.command_changes.clone();
        // Fails only when the runtime stops.
        let _ = tokio::task::spawn_blocking(move || changes.record_interrupted()).await;
        go_on(&toolkit).await
    }
}

/// Goes on with undos that were interrupted.
pub async fn go_on(toolkit: &Arc<Toolkit>) -> InterruptedUndos {
    let looking = toolkit.clone();
    let interrupted = tokio::task::spawn_blocking(move || looking.journal.interrupted_undos()).await;
    let mut found = InterruptedUndos::default();
    for (begun, records) in interrupted.unwrap_or_default() {
        let Ok(plan) = Plan::of(&records) else { continue };
        let locked = toolkit.clone();
        let work = move |plan: &Plan| bring_back(&locked, plan, &records, Some(begun));
        match with_paths_locked(toolkit, plan, work).await {
            Ok(()) => found.ended += 1,
            Err(error) => found.stuck.push(error),
        }
    }
    found
}

async fn with_paths_locked(
    toolkit: &Toolkit,
    plan: Plan,
    work: impl FnOnce(&Plan) -> Result<(), UndoError> + Send + 'static,
) -> Result<(), UndoError> {
    // In one order by all, so that no two wait for each other.
    let mut guards = Vec::with_capacity(plan.steps.len());
    for path in plan.steps.keys() {
        guards.push(toolkit.stamps.writing(path).await);
    }
    let work = tokio::task::spawn_blocking(move || {
        let _guards = guards;
        work(&plan)
    });
    work.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn kept(contents: &KeptContents, digest: FileDigest, path: &Path) -> Result<Vec<u8>, UndoError> {
    let why = "its content is kept no longer: it was forgotten, or is older than 7 days";
    contents.get(digest).map_err(|_| UndoError::NotKept { path: path.to_owned(), why })
}

fn undo_all(toolkit: &Toolkit, session: &Session, plan: &Plan, records: &[ChangeRecord]) -> Result<(), UndoError> {
    bring_back(toolkit, plan, records, None)?;
    for (path, step) in &plan.steps {
        match step.before.as_ref().and_then(PathState::content) {
            Some(digest) => toolkit.stamps.wrote(session, path, digest),
            None => toolkit.stamps.forget(session, path),
        }
    }
    Ok(())
}

/// Undoes the records, or goes on with the undo of them that was `interrupted`.
fn bring_back(
    toolkit: &Toolkit,
    plan: &Plan,
    records: &[ChangeRecord],
    interrupted: Option<BegunUndo>,
) -> Result<(), UndoError> {
    let contents = toolkit.journal.contents().map_err(|_| UndoError::Nothing)?;
    let attempt = if interrupted.is_some() { UndoAttempt::Again } else { UndoAttempt::First };
    let (present, seen, opened) = checked(toolkit, plan, contents, attempt)?;
    let begun = match interrupted {
        Some(begun) => begun,
        None => toolkit.journal.begin_undo(records).map_err(UndoError::Begin)?,
    };
    toolkit.command_changes.expect_others(plan.steps.keys());
    opened.keep_open();
    let states = plan.steps.iter().map(|(path, step)| {
        let now = present.get(path.as_path()).and_then(|(now, _)| now.clone());
        (path.as_path(), step, step.wanted(&now))
    });
    let states: Vec<(&Path, &PlanStep, Option<PathState>)> = states.collect();
    let wanted = states.iter().map(|(path, step, state)| {
        (*path, Wanted { state, was: step.was, other: step.other.as_deref(), left: step.left() })
    });
    let mut touched = TouchedPaths::new(Some(seen));
    if let Err(error) = bring_all(&wanted.collect(), contents, &mut touched) {
        let before =
            present.iter().map(|(path, (state, was))| (*path, Wanted { state, was: *was, other: None, left: None }));
        // What was not touched may have been changed by others since.
        let before = before.filter(|(path, _)| touched.has(path)).collect();
        let back = bring_all(&before, contents, &mut TouchedPaths::new(None));
        // If it cannot go back either, it stays begun.
        return Err(match back {
            Ok(()) if attempt == UndoAttempt::First => {
                let _ = begun.end();
                error
            }
            Ok(()) => error,
            Err(back) => {
                let refused = error.to_string().trim_end_matches("; nothing was undone").to_owned();
                UndoError::HalfDone { refused, back: Box::new(back) }
            }
        });
    }
    for record in records.iter().filter(|record| !record.undone) {
        record.set_undone().map_err(|source| UndoError::Read { path: record.kept.clone(), source })?;
    }
    // At worst, the next undo finds that nothing is left to do.
    let _ = begun.end();
    Ok(())
}

/// What is at paths, and which file.
type PresentPaths<'p> = BTreeMap<&'p Path, (Option<PathState>, Option<InodeId>)>;

/// What is at the paths. Everything is known to be possible before anything is done, and what is replaced is kept.
fn checked<'p>(
    toolkit: &Toolkit,
    plan: &'p Plan,
    contents: &KeptContents,
    attempt: UndoAttempt,
) -> Result<(PresentPaths<'p>, SeenPaths<'p>, OpenedFolders), UndoError> {
    let (mut present, mut seen, mut opened) = (PresentPaths::new(), SeenPaths::new(), OpenedFolders::default());
    for (path, step) in &plan.steps {
        seen.insert(path, entry_at(path)?);
        let now = Present::at(path)?;
        plan.check((path, step), &now, attempt, &toolkit.journal)?;
        opened.open(path, &now)?;
        if !step.is_undone(&now)
            && let Some(digest) = step.before.as_ref().and_then(PathState::content)
        {
            drop(kept(contents, digest, path)?);
        }
        if let Some(content) = &now.content {
            contents.keep(content).map_err(|source| UndoError::Read { path: path.clone(), source })?;
        }
        present.insert(path.as_path(), (now.state, now.version.map(|version| version.file)));
    }
    Ok((present, seen, opened))
}

/// The selected records that have changes. The others stay as they are, since nothing of them is undone.
fn with_changes(
    toolkit: &Toolkit,
    whose: JournalScope<'_>,
    selection: &Selection,
) -> Result<Vec<ChangeRecord>, UndoError> {
    let records = toolkit.journal.selected(whose, selection);
    let (records, others): (Vec<_>, Vec<_>) = records.into_iter().partition(|record| !record.changes.is_empty());
    match (others.first(), selection) {
        _ if !records.is_empty() => Ok(records),
        (Some(other), _) => Err(UndoError::NotRecorded { by: other.name(), changed: other.beyond.words().collect() }),
        (None, Selection::Path(path)) => Err(UndoError::NothingOf(path.clone())),
        (None, Selection::Call(_) | Selection::All(_)) => Err(UndoError::Nothing),
    }
}

/// Changes of the calls of `selection` that its undo leaves as they are. Blocks.
pub fn unrecorded(toolkit: &Toolkit, whose: JournalScope<'_>, selection: &Selection) -> UnrecordedChanges {
    toolkit.command_changes.wait_until_recorded();
    let mut all = UnrecordedChanges::default();
    toolkit.journal.selected(whose, selection).iter().for_each(|record| all.add(&record.beyond));
    all.not_kept.retain(|path| path.path().symlink_metadata().is_err());
    all
}

/// The records of calls that `filter` has, oldest first. Blocks.
pub fn changes_of(toolkit: &Toolkit, whose: JournalScope<'_>, filter: &ChangeFilter) -> Vec<ChangeRecord> {
    toolkit.command_changes.wait_until_recorded();
    let mut records = toolkit.journal.read(whose);
    records.retain(|record| filter.has(record));
    records
}
