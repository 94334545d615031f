//! What a session has changed, and how to take it back.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use toold_engine::session::Session;
use toold_host::files::{self, OpenError};
use toold_host::replace::{Expected, ReplaceError, remove, replace};
use toold_proto::tool::{CallId, ToolName};

use crate::shared::Shared;
use crate::stamps::Digest;

/// How much of old contents a session keeps, in bytes; the oldest go first.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_CHANGES: usize = 10_000;

/// One change of a file.
#[derive(Clone, Debug)]
pub struct Change {
    pub call_id: CallId,
    pub tool: ToolName,
    pub path: PathBuf,
    pub at: SystemTime,
    /// It was taken back.
    pub undone: bool,
    /// The content before; `None` when there was no file.
    before: Option<Arc<Vec<u8>>>,
    after: Digest,
}

impl Change {
    /// Whether the change made the file.
    pub fn created(&self) -> bool {
        self.before.is_none()
    }
}

/// What is to be taken back.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All that a call changed.
    Call(CallId),
    /// The last change of a file that is not taken back yet; an absolute, resolved path.
    Path(PathBuf),
}

/// Why nothing was taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("this session has no such change that could be taken back")]
    Nothing,
    #[error("{} has changed since: taking back would lose that", .0.display())]
    Changed(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("can't read {}: {source}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
}

/// The changes of a session, kept by the session.
#[derive(Default)]
struct Journal(Mutex<VecDeque<Change>>);

/// The changes of a session that are still known, the oldest first.
pub fn history(session: &Session) -> Vec<Change> {
    lock(&session.slot::<Journal>()).iter().cloned().collect()
}

/// The files that taking `selection` back would write, the last change first. Whoever calls [`undo`] asks
/// leave for them before.
///
/// # Errors
/// When there is nothing to take back.
pub fn undoable(session: &Session, selection: &Selection) -> Result<Vec<PathBuf>, UndoError> {
    let mut paths: Vec<PathBuf> = selected(session, selection).into_iter().map(|(_, change)| change.path).collect();
    paths.dedup();
    if paths.is_empty() { Err(UndoError::Nothing) } else { Ok(paths) }
}

/// Takes changes back, the last first; gives the files. A file that has changed since is left alone, and
/// so are those of the selection that were changed before it.
///
/// # Errors
/// See [`UndoError`].
pub async fn undo(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    selection: &Selection,
) -> Result<Vec<PathBuf>, UndoError> {
    let changes = selected(session, selection);
    if changes.is_empty() {
        return Err(UndoError::Nothing);
    }
    let mut paths = Vec::new();
    for (at, change) in changes {
        let guard = shared.stamps.writing(&change.path).await;
        let path = change.path.clone();
        let (shared, session) = (shared.clone(), session.clone());
        let work = tokio::task::spawn_blocking(move || {
            let _guard = guard;
            take_back(&shared, &session, &change)?;
            mark_undone(&session, at, &change);
            Ok::<(), UndoError>(())
        });
        match work.await {
            Ok(result) => result?,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
        paths.push(path);
    }
    paths.dedup();
    Ok(paths)
}

/// Notes a change that was made.
pub(crate) fn note(
    session: &Session,
    call_id: &CallId,
    tool: &ToolName,
    path: &Path,
    before: Option<Vec<u8>>,
    after: Digest,
) {
    let journal = session.slot::<Journal>();
    let mut changes = lock(&journal);
    changes.push_back(Change {
        call_id: call_id.clone(),
        tool: tool.clone(),
        path: path.to_owned(),
        at: SystemTime::now(),
        undone: false,
        before: before.map(Arc::new),
        after,
    });
    let size = |change: &Change| change.before.as_ref().map_or(0, |before| before.len());
    let mut total: usize = changes.iter().map(size).sum();
    while changes.len() > 1 && (total > MAX_BYTES || changes.len() > MAX_CHANGES) {
        total -= changes.pop_front().as_ref().map_or(0, size);
    }
}

fn selected(session: &Session, selection: &Selection) -> Vec<(SystemTime, Change)> {
    let journal = session.slot::<Journal>();
    let changes = lock(&journal);
    let open = changes.iter().rev().filter(|change| !change.undone);
    let dated = |change: &Change| (change.at, change.clone());
    match selection {
        Selection::Call(id) => open.filter(|change| change.call_id == *id).map(dated).collect(),
        Selection::Path(path) => open.filter(|change| change.path == *path).take(1).map(dated).collect(),
    }
}

fn take_back(shared: &Shared, session: &Session, change: &Change) -> Result<(), UndoError> {
    let path = &change.path;
    let mut file = match files::open(path) {
        Ok(file) => file,
        Err(OpenError::NotFound(_)) => return Err(UndoError::Changed(path.clone())),
        Err(error) => return Err(error.into()),
    };
    let mut now = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut now).map_err(|source| UndoError::Read { path: path.clone(), source })?;
    if blake3::hash(&now) != change.after {
        return Err(UndoError::Changed(path.clone()));
    }
    match &change.before {
        Some(before) => {
            replace(path, before, Expected::Same(&file))?;
            shared.stamps.wrote(session, path, blake3::hash(before));
        }
        None => {
            remove(path, &file)?;
            shared.stamps.forget(session, path);
        }
    }
    Ok(())
}

fn mark_undone(session: &Session, at: SystemTime, undone: &Change) {
    let journal = session.slot::<Journal>();
    let mut changes = lock(&journal);
    let same = |change: &&mut Change| change.at == at && change.call_id == undone.call_id && change.path == undone.path;
    if let Some(change) = changes.iter_mut().find(same) {
        change.undone = true;
    }
}

fn lock(journal: &Journal) -> MutexGuard<'_, VecDeque<Change>> {
    journal.0.lock().expect("no code panics while it holds this lock")
}
