//! The journal: records changes of files so that [`crate::undo`] can undo them.
//!
//! Each change is a file of its own, `UNDO/SESSION/WHEN.change`: a line of JSON that describes it, then the complete
//! content before the change. So a change can be undone long after its session or its daemon has ended. The owner of
//! the folder removes the oldest files. Undoing a change renames its file to `.undone`.

pub(crate) mod draft;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toold_engine::session::Session;
use toold_host::files;
use toold_proto::tool::{CallId, SessionId, ToolName};

use crate::document::MAX_BYTES;
use crate::stamps::FileDigest;

const OPEN: &str = "change";
const UNDONE: &str = "undone";
/// The limit of a description in bytes; the daemon never writes a longer one.
const MAX_HEADER: u64 = 64 * 1024;

/// One change of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalEntry {
    pub session_id: SessionId,
    pub call_id: CallId,
    pub tool: ToolName,
    pub path: PathBuf,
    pub at: SystemTime,
    /// The change created the file.
    pub created: bool,
    /// The change removed the file.
    #[serde(default)]
    pub removed: bool,
    #[serde(skip)]
    pub undone: bool,
    /// BLAKE3 of the content after the change, in hexadecimal; empty for a removed file.
    pub(crate) after: String,
    /// The permission bits of a removed file.
    #[serde(default)]
    pub(crate) mode: Option<u32>,
    /// The journal's file with the content before the change.
    #[serde(skip)]
    pub(crate) kept: PathBuf,
}

/// The sessions to look at.
#[derive(Clone, Copy, Debug)]
pub enum JournalScope<'a> {
    Session(&'a SessionId),
    Everybody,
}

/// Changes to undo.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All changes of a call.
    Call(CallId),
    /// All changes of the call that made the last change of a file that is not yet undone: a call is undone as a whole.
    /// The path is absolute and resolved.
    Path(PathBuf),
}

/// The journal of all sessions, in one folder.
pub(crate) struct Journal {
    /// `None` if the daemon has no folder for it.
    folder: Option<PathBuf>,
    next: AtomicU64,
}

impl Journal {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, next: AtomicU64::new(1) }
    }

    /// Records a change that was made: `before` is the content and the permission bits, `None` for a new file; `after` is
    /// `None` for a removed one. Blocks.
    ///
    /// # Errors
    /// The change cannot be recorded, and so cannot be undone later.
    pub(crate) fn record(
        &self,
        session: &Session,
        (call_id, tool): (&CallId, &ToolName),
        path: &Path,
        before: Option<(&[u8], u32)>,
        after: Option<FileDigest>,
    ) -> io::Result<()> {
        let folder = self.folder.as_ref().ok_or_else(Self::no_folder)?;
        let folder = folder.join(session.id.as_str());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let at = SystemTime::now();
        let nanos = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // File names sort by time; another daemon may write to the same folder.
        let name = format!("{nanos:020}-{:08}-{number:08}.{OPEN}", std::process::id());
        let change = JournalEntry {
            session_id: session.id.clone(),
            call_id: call_id.clone(),
            tool: tool.clone(),
            path: path.to_owned(),
            at,
            created: before.is_none(),
            removed: after.is_none(),
            undone: false,
            after: after.map(|after| after.to_hex().to_string()).unwrap_or_default(),
            mode: before.filter(|_| after.is_none()).map(|(_, mode)| mode),
            kept: PathBuf::new(),
        };
        let mut content = serde_json::to_vec(&change)?;
        content.push(b'\n');
        content.extend_from_slice(before.map_or(&[], |(before, _)| before));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        file.write_all(&content)
    }

    fn no_folder() -> io::Error {
        io::Error::other("the daemon has no folder to keep the old content in")
    }

    pub(crate) fn read(&self, whose: JournalScope<'_>) -> Vec<JournalEntry> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let mut changes = match whose {
            JournalScope::Session(id) => of_folder(&folder.join(id.as_str())),
            JournalScope::Everybody => {
                let folders = fs::read_dir(folder).into_iter().flatten().flatten();
                folders.flat_map(|folder| of_folder(&folder.path())).collect()
            }
        };
        changes.sort_by(|a, b| a.kept.file_name().cmp(&b.kept.file_name()));
        changes
    }

    pub(crate) fn selected(&self, whose: JournalScope<'_>, selection: &Selection) -> Vec<JournalEntry> {
        let mut open: Vec<JournalEntry> = self.read(whose).into_iter().rev().filter(|change| !change.undone).collect();
        // Call ids are unique only within a session.
        let of_call = match selection {
            Selection::Call(id) => open.iter().find(|change| change.call_id == *id),
            Selection::Path(path) => open.iter().find(|change| change.path == *path),
        };
        let Some((call, session)) = of_call.map(|change| (change.call_id.clone(), change.session_id.clone())) else {
            return Vec::new();
        };
        open.retain(|change| change.call_id == call && change.session_id == session);
        open
    }
}

impl JournalEntry {
    /// The content before the change; `None` if there was no file.
    pub(crate) fn before(&self) -> io::Result<Option<Vec<u8>>> {
        if self.created {
            return Ok(None);
        }
        let mut reader = BufReader::new(File::open(&self.kept)?);
        reader.skip_until(b'\n')?;
        Ok(Some(files::read_opened(&mut reader, &self.kept, MAX_BYTES)?))
    }

    /// Marks the change as undone. If this fails, a second attempt to undo it reports that the file has changed since.
    pub(crate) fn set_undone(&self) -> io::Result<()> {
        fs::rename(&self.kept, self.kept.with_extension(UNDONE))
    }
}

fn of_folder(folder: &Path) -> Vec<JournalEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| described(&entry.path())).collect()
}

/// Reads the description in a file of the journal; `None` for other files, and for one that a crash left incomplete.
fn described(kept: &Path) -> Option<JournalEntry> {
    let undone = match kept.extension()?.to_str()? {
        OPEN => false,
        UNDONE => true,
        _ => return None,
    };
    let mut line = Vec::new();
    BufReader::new(File::open(kept).ok()?).take(MAX_HEADER).read_until(b'\n', &mut line).ok()?;
    let change: JournalEntry = serde_json::from_slice(&line).ok()?;
    Some(JournalEntry { undone, kept: kept.to_owned(), ..change })
}
