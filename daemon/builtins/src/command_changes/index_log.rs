//! What an index knows, on disk: if the daemon is killed while a command runs, the next one finds out what that changed.
//!
//! A file `UNDO/@index/*.log` has a line for each path when the folder was read first, and one for each thing that
//! happened since. It is locked while its daemon lives, and removed with the index. Its time says until when the daemon
//! has certainly lived.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::index::KnownEntry;
use crate::journal::{ChangingCall, RawPath};

const EXTENSION: &str = "log";
/// A log with so many lines more than four for each path is written again.
const MAX_SPARE_LINES: usize = 50_000;

#[derive(Serialize, Deserialize)]
pub(super) enum LogLine {
    Folder {
        root: RawPath,
        own_folder: Option<RawPath>,
        device: u64,
    },
    /// What is at a path from now on.
    Path(RawPath, Option<KnownEntry>),
    /// An entry that was there before, and was left out.
    Adopted(RawPath, KnownEntry),
    /// A call begins to run.
    Open {
        id: u64,
        call: ChangingCall,
        may_write: bool,
        /// When, by the clock of files; 0 if an earlier version wrote the log.
        #[serde(default)]
        opened: u64,
    },
    /// The daemon's own tools change these paths, and record it.
    Others(Vec<RawPath>),
    /// What a call changed is recorded.
    Close {
        id: u64,
    },
}

/// The log of an index. What is added is on disk after [`Self::flush`].
pub(super) struct IndexLog {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    lines: usize,
}

impl IndexLog {
    /// # Errors
    /// The file cannot be made.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut number = 0;
        let (path, file) = loop {
            let path = folder.join(format!("{nanos}-{}-{number}.{EXTENSION}", std::process::id()));
            match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => break (path, opened?),
            }
        };
        file.try_lock().map_err(io::Error::from)?;
        Ok(Self { path, file, buffer: Vec::new(), lines: 0 })
    }

    pub(super) fn add(&mut self, line: &LogLine) {
        // Writing to memory does not fail, and all lines have a form in JSON.
        let _ = serde_json::to_writer(&mut self.buffer, line);
        self.buffer.push(b'\n');
        self.lines += 1;
    }

    /// # Errors
    /// The lines cannot be written: from then on, the log is of no use.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.buffer)?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// The daemon lives.
    pub(super) fn touch(&self) {
        // Then less is certain later.
        let _ = self.file.set_modified(SystemTime::now());
    }

    pub(super) fn is_long(&self, paths: usize) -> bool {
        self.lines > paths * 4 + MAX_SPARE_LINES
    }
}

impl Drop for IndexLog {
    fn drop(&mut self) {
        // Otherwise the next daemon does it.
        let _ = fs::remove_file(&self.path);
    }
}

/// A log that a daemon has left behind. Dropping it removes it.
pub(super) struct LeftLog {
    path: PathBuf,
    /// Has the lock.
    file: File,
}

impl LeftLog {
    /// Those that no daemon uses. Blocks.
    pub(super) fn all(folder: &Path) -> Vec<Self> {
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        let unused = logs.filter_map(|path| {
            let file = File::open(&path).ok()?;
            file.try_lock().ok()?;
            Some(Self { path, file })
        });
        unused.collect()
    }

    /// Until when its daemon has lived for certain.
    pub(super) fn alive_until(&self) -> SystemTime {
        self.file.metadata().and_then(|facts| facts.modified()).unwrap_or(UNIX_EPOCH)
    }

    /// Its lines, as far as they are whole.
    pub(super) fn lines(&self) -> impl Iterator<Item = LogLine> + '_ {
        let lines = BufReader::with_capacity(1 << 20, &self.file).split(b'\n');
        lines.map_while(|line| serde_json::from_slice(&line.ok()?).ok())
    }
}

impl Drop for LeftLog {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
