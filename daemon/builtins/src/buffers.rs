//! Texts that editors have open and not saved, laid over their files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// Longer texts are not taken; in bytes.
const MAX_BYTES: usize = 10 * 1024 * 1024;
/// So many may be open on one connection.
const MAX_BUFFERS: usize = 1000;

/// The unsaved text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Resolved: see [`toold_host::files::resolve`].
    pub path: PathBuf,
    /// It is seen by the sessions of this project only.
    pub project: PathBuf,
    /// The connection that laid it there; it goes when that does.
    pub connection: u64,
    /// The editor, as people know it.
    pub owner: String,
    /// Grows with each change of the text.
    pub version: i64,
    pub text: String,
}

/// Why a buffer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    #[error("the text has {0} bytes; at most {MAX_BYTES} are taken")]
    TooLong(usize),
    #[error("the connection has {MAX_BUFFERS} buffers already")]
    TooMany,
    #[error("{} already has version {have}, and version {got} is older", .path.display())]
    Old { path: PathBuf, have: i64, got: i64 },
    #[error("{} is laid over by {owner} already", .path.display())]
    Taken { path: PathBuf, owner: String },
}

/// All that is laid over files. A file has one buffer in a project.
#[derive(Default)]
pub struct Buffers(Mutex<HashMap<(PathBuf, PathBuf), Arc<Buffer>>>);

impl Buffers {
    /// Lays a text over a file, or replaces the one that this connection has there.
    ///
    /// # Errors
    /// See [`BufferError`]; what was there stays.
    pub fn set(&self, buffer: Buffer) -> Result<(), BufferError> {
        if buffer.text.len() > MAX_BYTES {
            return Err(BufferError::TooLong(buffer.text.len()));
        }
        let mut all = self.0.lock();
        let key = (buffer.project.clone(), buffer.path.clone());
        let path = || buffer.path.clone();
        match all.get(&key) {
            Some(there) if there.connection != buffer.connection => {
                return Err(BufferError::Taken { path: path(), owner: there.owner.clone() });
            }
            Some(there) if there.version > buffer.version => {
                return Err(BufferError::Old { path: path(), have: there.version, got: buffer.version });
            }
            Some(_) => {}
            None if all.values().filter(|other| other.connection == buffer.connection).count() >= MAX_BUFFERS => {
                return Err(BufferError::TooMany);
            }
            None => {}
        }
        all.insert(key, Arc::new(buffer));
        Ok(())
    }

    /// Takes away what the connection has laid over a file; false when there was nothing.
    pub fn clear(&self, connection: u64, path: &Path) -> bool {
        let mut all = self.0.lock();
        let before = all.len();
        all.retain(|_, buffer| buffer.connection != connection || buffer.path != path);
        all.len() < before
    }

    /// To be called when a connection ends.
    pub fn clear_connection(&self, connection: u64) {
        self.0.lock().retain(|_, buffer| buffer.connection != connection);
    }

    /// What is laid over a file, for the sessions of a project.
    pub(crate) fn over(&self, project: &Path, path: &Path) -> Option<Arc<Buffer>> {
        let all = self.0.lock();
        // The usual case, and no copies for it.
        if all.is_empty() {
            return None;
        }
        all.get(&(project.to_owned(), path.to_owned())).cloned()
    }

    /// All that is laid over files of a project, by path.
    pub(crate) fn of_project(&self, project: &Path) -> HashMap<PathBuf, Arc<Buffer>> {
        let all = self.0.lock();
        let own = all.iter().filter(|((of, _), _)| of == project);
        own.map(|((_, path), buffer)| (path.clone(), buffer.clone())).collect()
    }
}
