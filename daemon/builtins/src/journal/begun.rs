//! Undos that have begun: one that a killed daemon left in the middle goes on with the next.
//!
//! The file `UNDO/SESSION/WHEN.undoing` names the records that are undone together. It is locked while the undo runs, and
//! removed when it has ended.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{ChangeRecord, Journal, OPEN, UNDONE, described};

const BEGUN: &str = "undoing";
/// Bytes of such a file: a name of a record for each.
const MAX_BEGUN: u64 = 64 << 20;

/// An undo that has begun. Dropped without an end, it stays begun.
pub(crate) struct BegunUndo {
    path: PathBuf,
    /// Has the lock.
    _file: File,
}

impl BegunUndo {
    /// Nothing of the undo is left to do.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(crate) fn end(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

impl Journal {
    /// Stores that these records are being undone, newest first. Blocks.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(crate) fn begin_undo(&self, records: &[ChangeRecord]) -> io::Result<BegunUndo> {
        let newest = records.first().ok_or(io::ErrorKind::InvalidInput)?;
        let path = newest.kept.with_extension(BEGUN);
        let folder = self.place()?.folder.as_path();
        let names = records.iter().map(|record| record.kept.strip_prefix(folder).unwrap_or(&record.kept));
        let names: Vec<&Path> = names.collect();
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        // Not every file system has locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(&names)?)?;
        Ok(BegunUndo { path, _file: file })
    }

    /// The undos that nobody goes on with, each with its records, newest first. Blocks.
    pub(crate) fn interrupted_undos(&self) -> Vec<(BegunUndo, Vec<ChangeRecord>)> {
        let folders = self.folder().map(fs::read_dir).into_iter().flatten().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let begun = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == BEGUN));
        let mut begun: Vec<PathBuf> = begun.collect();
        // File names sort by time.
        begun.sort_by(|one, other| other.file_name().cmp(&one.file_name()));
        let folder = self.folder().unwrap_or(Path::new("/"));
        begun.into_iter().filter_map(|path| taken_up(folder, path)).collect()
    }
}

/// `None` if a daemon is still at it, or if it never got so far as to change anything.
fn taken_up(folder: &Path, path: PathBuf) -> Option<(BegunUndo, Vec<ChangeRecord>)> {
    let file = File::open(&path).ok()?;
    file.try_lock().ok()?;
    let begun = BegunUndo { path, _file: file };
    let text = toold_host::files::read_named(&begun.path, MAX_BEGUN).ok()?;
    let names: Vec<PathBuf> = serde_json::from_slice(&text).unwrap_or_default();
    let record = |name: PathBuf| described(&name).or_else(|| described(&name.with_extension(UNDONE)));
    let is_record = |name: &PathBuf| name.extension().is_some_and(|kind| kind == OPEN);
    let records: Vec<ChangeRecord> =
        names.iter().map(|name| folder.join(name)).filter(is_record).filter_map(record).collect();
    if records.iter().all(|record| record.undone) {
        // Its end was not noted, or its records are forgotten.
        let _ = begun.end();
        return None;
    }
    Some((begun, records))
}
