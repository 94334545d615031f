//! Undoes changes of files, and previews that. [`crate::journal`] stores the previous contents.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::session::Session;
use toold_host::files::{self, OpenError};
use toold_host::replace::{Expected, ReplaceError, remove, replace};

use crate::change::create;
use crate::diff;
use crate::document::MAX_BYTES;
use crate::journal::{JournalEntry, JournalScope, Selection};
use crate::stamps::FileDigest;
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

/// Undoes changes for `session`, all or none, and returns the files.
///
/// # Errors
/// See [`UndoError`]. Nothing is undone then, unless the file system also refuses to bring back what was undone before.
pub async fn undo(
    toolkit: &Arc<Toolkit>,
    session: &Arc<Session>,
    whose: JournalScope<'_>,
    selection: &Selection,
) -> Result<Vec<PathBuf>, UndoError> {
    let mut changes = toolkit.journal.selected(whose, selection);
    if changes.is_empty() {
        return Err(UndoError::Nothing);
    }
    // Files that the call made go last: until then, a failure loses nothing.
    changes.sort_by_key(|change| change.created);
    // In one order by all, so that no two wait for each other.
    let mut paths: Vec<PathBuf> = changes.iter().map(|change| change.path.clone()).collect();
    paths.sort();
    paths.dedup();
    let mut guards = Vec::with_capacity(paths.len());
    for path in &paths {
        guards.push(toolkit.stamps.writing(path).await);
    }
    let (toolkit, session) = (toolkit.clone(), session.clone());
    let work = tokio::task::spawn_blocking(move || {
        let _guards = guards;
        undo_all(&toolkit, &session, &changes)
    });
    match work.await {
        Ok(result) => result?,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
    Ok(paths)
}

fn undo_all(toolkit: &Toolkit, session: &Session, changes: &[JournalEntry]) -> Result<(), UndoError> {
    let mut seen: Vec<&Path> = Vec::new();
    for change in changes {
        // A call may have changed a file twice; the result of the earlier change is no longer on disk.
        if !seen.contains(&change.path.as_path()) {
            present(change)?;
            before(change)?;
            seen.push(&change.path);
        }
    }
    let mut undone: Vec<UndoneFile> = Vec::new();
    for change in changes {
        match undo_change(change) {
            Ok(file) => undone.push(file),
            Err(error) => {
                // The error that matters is returned.
                undone.iter().rev().for_each(UndoneFile::bring_back);
                return Err(error);
            }
        }
    }
    for (change, file) in changes.iter().zip(&undone) {
        match file.is {
            Some(digest) => toolkit.stamps.wrote(session, &change.path, digest),
            None => toolkit.stamps.forget(session, &change.path),
        }
        change.set_undone().map_err(|source| UndoError::Read { path: change.kept.clone(), source })?;
    }
    Ok(())
}

/// A file whose change is undone.
struct UndoneFile {
    path: PathBuf,
    /// Its content and permission bits before that.
    was: Option<(Vec<u8>, u32)>,
    is: Option<FileDigest>,
}

impl UndoneFile {
    fn bring_back(&self) {
        // If one fails, the others are brought back all the same.
        let _ = match (&self.was, files::open(&self.path)) {
            (Some((content, _)), Ok(file)) => replace(&self.path, content, Expected::Same(&file)),
            (Some((content, mode)), Err(_)) => create(&self.path, content, Some(*mode)),
            (None, Ok(file)) => remove(&self.path, &file),
            (None, Err(_)) => Ok(()),
        };
    }
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

fn undo_change(change: &JournalEntry) -> Result<UndoneFile, UndoError> {
    let path = &change.path;
    let (now, before) = (present(change)?, before(change)?);
    match (&now, &before) {
        (Some((_, file)), Some(before)) => replace(path, before, Expected::Same(file))?,
        (None, Some(before)) => create(path, before, change.mode)?,
        (Some((_, file)), None) => remove(path, file)?,
        (None, None) => {}
    }
    let mode = |file: &File| file.metadata().map_or(0o600, |facts| facts.permissions().mode() & 0o777);
    Ok(UndoneFile {
        path: path.clone(),
        was: now.map(|(content, file)| (content, mode(&file))),
        is: before.map(|before| blake3::hash(&before)),
    })
}

fn before(change: &JournalEntry) -> Result<Option<Vec<u8>>, UndoError> {
    change.before().map_err(|source| UndoError::Read { path: change.kept.clone(), source })
}
