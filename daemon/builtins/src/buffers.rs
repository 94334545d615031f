//! The unsaved texts of files that are open in editors. They replace the files' contents for reads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// The limit of one text, in bytes.
const MAX_BYTES: usize = 10 * 1024 * 1024;
/// Buffers that one connection may have open.
const MAX_BUFFERS: usize = 1000;

/// The unsaved text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Resolved: see [`toold_host::files::resolve`].
    pub path: PathBuf,
    /// Only sessions of this project see it.
    pub project: PathBuf,
    /// The connection that set it; the buffer is removed when the connection closes.
    pub connection: u64,
    /// The editor's display name.
    pub owner: String,
    /// Increases with each change of the text.
    pub version: i64,
    pub text: String,
}

/// Why a buffer was rejected.
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

/// All buffers. A file has at most one buffer per project.
#[derive(Default)]
pub struct Buffers(Mutex<HashMap<(PathBuf, PathBuf), Arc<Buffer>>>);

impl Buffers {
    /// Sets the unsaved text of a file, or replaces the one that this connection set before.
    ///
    /// # Errors
    /// See [`BufferError`]; the existing buffer stays.
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

    /// Removes the connection's buffer of a file; false if there was none.
    pub fn clear(&self, connection: u64, path: &Path) -> bool {
        let mut all = self.0.lock();
        let before = all.len();
        all.retain(|_, buffer| buffer.connection != connection || buffer.path != path);
        all.len() < before
    }

    /// Call this when a connection closes.
    pub fn clear_connection(&self, connection: u64) {
        self.0.lock().retain(|_, buffer| buffer.connection != connection);
    }

    /// The buffer of a file, for the sessions of a project.
    pub(crate) fn over(&self, project: &Path, path: &Path) -> Option<Arc<Buffer>> {
        let all = self.0.lock();
        // The usual case: no path is copied.
        if all.is_empty() {
            return None;
        }
        all.get(&(project.to_owned(), path.to_owned())).cloned()
    }

    /// All buffers of a project, by path.
    pub(crate) fn of_project(&self, project: &Path) -> HashMap<PathBuf, Arc<Buffer>> {
        let all = self.0.lock();
        let own = all.iter().filter(|((of, _), _)| of == project);
        own.map(|((_, path), buffer)| (path.clone(), buffer.clone())).collect()
    }
}
