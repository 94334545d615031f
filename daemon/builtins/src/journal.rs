//! What was changed in files, and how to take it back.
//!
//! A change is a file of its own, `UNDO/SESSION/WHEN.change`: a line of JSON that describes it, then the whole
//! content before. So a change can be taken back when its session, or the daemon, is long gone; whoever owns the
//! folder removes the oldest. One that was taken back is renamed to `.undone`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toold_engine::session::Session;
use toold_host::files::{self as host_files, OpenError};
use toold_host::replace::{Expected, ReplaceError, remove, replace};
use toold_proto::tool::{CallId, SessionId, ToolName};

use crate::change::MAX_BYTES;
use crate::diff::diff;
use crate::document::Document;
use crate::shared::Shared;
use crate::stamps::Digest;

const OPEN: &str = "change";
const UNDONE: &str = "undone";
/// A longer description than this is none of ours.
const MAX_HEADER: u64 = 64 * 1024;

/// One change of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    pub session_id: SessionId,
    pub call_id: CallId,
    pub tool: ToolName,
    pub path: PathBuf,
    pub at: SystemTime,
    /// The change made the file.
    pub created: bool,
    /// It was taken back.
    #[serde(skip)]
    pub undone: bool,
    after: String,
    #[serde(skip)]
    kept: PathBuf,
}

/// Whose changes are meant.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    Session(&'a SessionId),
    Everybody,
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
    #[error("no such change is known that could be taken back")]
    Nothing,
    #[error("{} has changed since: taking back would lose that", .0.display())]
    Changed(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("can't read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// The changes of all sessions, in a folder.
pub(crate) struct Journal {
    /// `None` when there is no such place.
    folder: Option<PathBuf>,
    next: AtomicU64,
}

impl Journal {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, next: AtomicU64::new(1) }
    }

    /// Notes a change that was made. Blocks.
    ///
    /// # Errors
    /// When it cannot be kept; it can't be taken back then.
    pub(crate) fn note(
        &self,
        session: &Session,
        (call_id, tool): (&CallId, &ToolName),
        path: &Path,
        before: Option<&[u8]>,
        after: Digest,
    ) -> io::Result<()> {
        let folder = self.folder.as_ref().ok_or_else(|| io::Error::other("there is no folder for what was before"))?;
        let folder = folder.join(session.id.as_str());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let at = SystemTime::now();
        let nanos = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Ordered by time; another daemon may write into the same folder.
        let name = format!("{nanos:020}-{:08}-{number:08}.{OPEN}", std::process::id());
        let change = Change {
            session_id: session.id.clone(),
            call_id: call_id.clone(),
            tool: tool.clone(),
            path: path.to_owned(),
            at,
            created: before.is_none(),
            undone: false,
            after: after.to_hex().to_string(),
            kept: PathBuf::new(),
        };
        let mut content = serde_json::to_vec(&change)?;
        content.push(b'\n');
        content.extend_from_slice(before.unwrap_or_default());
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        file.write_all(&content)
    }

    fn read(&self, whose: Whose<'_>) -> Vec<Change> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let mut changes = match whose {
            Whose::Session(id) => of_folder(&folder.join(id.as_str())),
            Whose::Everybody => {
                let folders = fs::read_dir(folder).into_iter().flatten().flatten();
                folders.flat_map(|folder| of_folder(&folder.path())).collect()
            }
        };
        changes.sort_by(|a, b| a.kept.file_name().cmp(&b.kept.file_name()));
        changes
    }

    fn selected(&self, whose: Whose<'_>, selection: &Selection) -> Vec<Change> {
        let mut open: Vec<Change> = self.read(whose).into_iter().rev().filter(|change| !change.undone).collect();
        match selection {
            Selection::Call(id) => {
                open.retain(|change| change.call_id == *id);
                // Call ids are a session's own.
                let session = open.first().map(|change| change.session_id.clone());
                open.retain(|change| Some(&change.session_id) == session.as_ref());
            }
            Selection::Path(path) => {
                open.retain(|change| change.path == *path);
                open.truncate(1);
            }
        }
        open
    }
}

/// The changes that are still known, the oldest first. Blocks.
pub fn history(shared: &Shared, whose: Whose<'_>) -> Vec<Change> {
    shared.journal.read(whose)
}

/// What taking `selection` back would do, as unified diffs, the last change first. Blocks.
///
/// # Errors
/// When there is nothing to take back, or a file has changed since.
pub fn preview(shared: &Shared, whose: Whose<'_>, selection: &Selection) -> Result<Vec<(PathBuf, String)>, UndoError> {
    let changes = shared.journal.selected(whose, selection);
    if changes.is_empty() {
        return Err(UndoError::Nothing);
    }
    // A call may have changed one file twice: what the earlier change left is not on the disk.
    let mut shown: Vec<(PathBuf, String)> = Vec::new();
    for change in changes {
        let name = change.path.display().to_string();
        if shown.iter().any(|(path, _)| *path == change.path) {
            continue;
        }
        let (now, _) = present(&change)?;
        let before = change.before()?;
        let text = |bytes: &[u8]| Document::decode(bytes).map(|document| document.text).ok();
        let diff = match (text(&now), before.as_deref().map(text)) {
            (Some(now), None) => diff(Some(&now), "", &name).text,
            (Some(now), Some(Some(before))) => diff(Some(&now), &before, &name).text,
            (None, _) | (Some(_), Some(None)) => format!("Binary file {name} differs\n"),
        };
        shown.push((change.path, diff));
    }
    Ok(shown)
}

/// Takes changes back for `session`, the last first; gives the files. A file that has changed since is left alone,
/// and so are those of the selection that were changed before it.
///
/// # Errors
/// See [`UndoError`].
pub async fn undo(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    whose: Whose<'_>,
    selection: &Selection,
) -> Result<Vec<PathBuf>, UndoError> {
    let changes = shared.journal.selected(whose, selection);
    if changes.is_empty() {
        return Err(UndoError::Nothing);
    }
    let mut paths = Vec::new();
    for change in changes {
        let guard = shared.stamps.writing(&change.path).await;
        let path = change.path.clone();
        let (shared, session) = (shared.clone(), session.clone());
        let work = tokio::task::spawn_blocking(move || {
            let _guard = guard;
            take_back(&shared, &session, &change)
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

impl Change {
    /// The content before; `None` when there was no file.
    fn before(&self) -> Result<Option<Vec<u8>>, UndoError> {
        if self.created {
            return Ok(None);
        }
        let unreadable = |source| UndoError::Read { path: self.kept.clone(), source };
        let mut reader = BufReader::new(File::open(&self.kept).map_err(unreadable)?);
        reader.skip_until(b'\n').map_err(unreadable)?;
        let before = host_files::read_opened(&mut reader, &self.kept, MAX_BYTES);
        Ok(Some(before.map_err(|error| unreadable(error.into()))?))
    }
}

fn of_folder(folder: &Path) -> Vec<Change> {
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| described(&entry.path())).collect()
}

/// What a file of the journal says; `None` for one that is none, or that a crash has cut off.
fn described(kept: &Path) -> Option<Change> {
    let undone = match kept.extension()?.to_str()? {
        OPEN => false,
        UNDONE => true,
        _ => return None,
    };
    let mut line = Vec::new();
    BufReader::new(File::open(kept).ok()?).take(MAX_HEADER).read_until(b'\n', &mut line).ok()?;
    let change: Change = serde_json::from_slice(&line).ok()?;
    Some(Change { undone, kept: kept.to_owned(), ..change })
}

/// The file as the change has left it.
fn present(change: &Change) -> Result<(Vec<u8>, File), UndoError> {
    let path = &change.path;
    let mut file = match host_files::open(path) {
        Ok(file) => file,
        Err(OpenError::NotFound(_)) => return Err(UndoError::Changed(path.clone())),
        Err(error) => return Err(error.into()),
    };
    let now = match host_files::read_opened(&mut file, path, MAX_BYTES) {
        Ok(now) => now,
        // No change leaves so much.
        Err(OpenError::TooLarge { .. }) => return Err(UndoError::Changed(path.clone())),
        Err(error) => return Err(error.into()),
    };
    if blake3::hash(&now).to_hex().as_str() == change.after {
        Ok((now, file))
    } else {
        Err(UndoError::Changed(path.clone()))
    }
}

fn take_back(shared: &Shared, session: &Session, change: &Change) -> Result<(), UndoError> {
    let path = &change.path;
    let (_, file) = present(change)?;
    match change.before()? {
        Some(before) => {
            replace(path, &before, Expected::Same(&file))?;
            shared.stamps.wrote(session, path, blake3::hash(&before));
        }
        None => {
            remove(path, &file)?;
            shared.stamps.forget(session, path);
        }
    }
    // The file is as it was before; should this fail, a second try finds that it has changed since.
    fs::rename(&change.kept, change.kept.with_extension(UNDONE))
        .map_err(|source| UndoError::Read { path: change.kept.clone(), source })
}
