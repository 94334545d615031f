//! Undoes changes of files, and previews that. [`crate::journal`] stores the previous contents.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use toold_engine::session::Session;
use toold_host::files::{self, OpenError};
use toold_host::replace::{Expected, ReplaceError, remove, replace};

use crate::change::create;
use crate::diff;
use crate::document::MAX_BYTES;
use crate::journal::{JournalEntry, JournalScope, Selection};
use crate::toolkit::Toolkit;

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is no such change to undo")]
    Nothing,
    #[error("{} has changed since; undoing would lose the later change", .0.display())]
    Changed(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("can't read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// The recorded changes, oldest first. Blocks.
pub fn history(toolkit: &Toolkit, whose: JournalScope<'_>) -> Vec<JournalEntry> {
    toolkit.journal.read(whose)
}

/// Previews the undo of `selection` as unified diffs, last change first. Blocks.
///
/// # Errors
/// When there is nothing to undo, or a file has changed since.
pub fn preview(
    toolkit: &Toolkit,
    whose: JournalScope<'_>,
    selection: &Selection,
) -> Result<Vec<(PathBuf, String)>, UndoError> {
    let changes = toolkit.journal.selected(whose, selection);
    if changes.is_empty() {
        return Err(UndoError::Nothing);
    }
    // A call may have changed a file twice; the result of the earlier change is no longer on disk.
    let mut shown: Vec<(PathBuf, String)> = Vec::new();
    for change in changes {
        let name = change.path.display().to_string();
        if shown.iter().any(|(path, _)| *path == change.path) {
            continue;
        }
        let now = present(&change)?.map(|(now, _)| now);
        let before = before(&change)?;
        let diff = diff::of_contents(now.as_deref(), before.as_deref(), &name).text;
        shown.push((change.path, diff));
    }
    Ok(shown)
}

/// Undoes changes for `session`, last change first, and returns the files. Stops with an error at the first
/// file that has changed since: that change and the earlier ones stay, the later ones are undone.
///
/// # Errors
/// See [`UndoError`].
pub async fn undo(
    toolkit: &Arc<Toolkit>,
    session: &Arc<Session>,
    whose: JournalScope<'_>,
    selection: &Selection,
) -> Result<Vec<PathBuf>, UndoError> {
    let changes = toolkit.journal.selected(whose, selection);
    if changes.is_empty() {
        return Err(UndoError::Nothing);
    }
    let mut paths = Vec::new();
    for change in changes {
        let guard = toolkit.stamps.writing(&change.path).await;
        let path = change.path.clone();
        let (toolkit, session) = (toolkit.clone(), session.clone());
        let work = tokio::task::spawn_blocking(move || {
            let _guard = guard;
            undo_change(&toolkit, &session, &change)
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

/// The file as the change left it; `None` if the change removed it.
fn present(change: &JournalEntry) -> Result<Option<(Vec<u8>, File)>, UndoError> {
    let path = &change.path;
    let mut file = match files::open(path) {
        Err(OpenError::NotFound(_)) if change.removed => return Ok(None),
        Ok(_) if change.removed => return Err(UndoError::Changed(path.clone())),
        Ok(file) => file,
        Err(OpenError::NotFound(_)) => return Err(UndoError::Changed(path.clone())),
        Err(error) => return Err(error.into()),
    };
    let now = match files::read_opened(&mut file, path, MAX_BYTES) {
        Ok(now) => now,
        // No change produces a file of this size.
        Err(OpenError::TooLarge { .. }) => return Err(UndoError::Changed(path.clone())),
        Err(error) => return Err(error.into()),
    };
    if blake3::hash(&now).to_hex().as_str() == change.after {
        Ok(Some((now, file)))
    } else {
        Err(UndoError::Changed(path.clone()))
    }
}

fn undo_change(toolkit: &Toolkit, session: &Session, change: &JournalEntry) -> Result<(), UndoError> {
    let path = &change.path;
    match (present(change)?, before(change)?) {
        (Some((_, file)), Some(before)) => {
            replace(path, &before, Expected::Same(&file))?;
            toolkit.stamps.wrote(session, path, blake3::hash(&before));
        }
        (None, Some(before)) => {
            create(path, &before, change.mode)?;
            toolkit.stamps.wrote(session, path, blake3::hash(&before));
        }
        (Some((_, file)), None) => {
            remove(path, &file)?;
            toolkit.stamps.forget(session, path);
        }
        (None, None) => {}
    }
    change.set_undone().map_err(|source| UndoError::Read { path: change.kept.clone(), source })
}

fn before(change: &JournalEntry) -> Result<Option<Vec<u8>>, UndoError> {
    change.before().map_err(|source| UndoError::Read { path: change.kept.clone(), source })
}
