//! The version of each file that a session has seen, so that no change is based on a stale read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use toold_engine::session::Session;
use toold_proto::tool::SessionId;

/// More files than these nobody asks about again; then all are forgotten.
const MAX_WRITERS: usize = 10_000;

/// Of a file's whole content.
pub(crate) type FileDigest = blake3::Hash;

/// The files that sessions have read and written.
#[derive(Default)]
pub(crate) struct Stamps {
    /// Who wrote a file last, to say so to those who meant to.
    writers: Mutex<HashMap<PathBuf, (SessionId, FileDigest)>>,
    /// One writer at a time for each file, whatever its session.
    locks: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// What one session has seen. Kept by the session.
#[derive(Default)]
struct SeenFiles(Mutex<HashMap<PathBuf, FileDigest>>);

/// Why a file may not be changed from what the session knows of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stale {
    #[error("{0} has not been read in this session: read it first")]
    Unread(String),
    #[error("{0} was changed by another session ({1}) since it was read: read it again")]
    ByOther(String, SessionId),
    #[error("{0} has changed on disk since it was read: read it again")]
    OnDisk(String),
}

impl Stamps {
    /// The session has been shown the file with this content.
    pub(crate) fn saw(&self, session: &Session, path: &Path, digest: FileDigest) {
        session.slot::<SeenFiles>().0.lock().insert(path.to_owned(), digest);
    }

    /// Whether the session has been shown the file with this content.
    pub(crate) fn has_seen(&self, session: &Session, path: &Path, digest: FileDigest) -> bool {
        session.slot::<SeenFiles>().0.lock().get(path) == Some(&digest)
    }

    /// The session has made this the content of the file.
    pub(crate) fn wrote(&self, session: &Session, path: &Path, digest: FileDigest) {
        self.saw(session, path, digest);
        let mut writers = self.writers.lock();
        if writers.len() >= MAX_WRITERS {
            writers.clear();
        }
        writers.insert(path.to_owned(), (session.id.clone(), digest));
    }

    /// The file is gone.
    pub(crate) fn forget(&self, session: &Session, path: &Path) {
        session.slot::<SeenFiles>().0.lock().remove(path);
        self.writers.lock().remove(path);
    }

    /// An error unless the session has seen the file as it is now. `shown` is its name in the error.
    pub(crate) fn check(&self, session: &Session, path: &Path, shown: &str, now: FileDigest) -> Result<(), Stale> {
        match session.slot::<SeenFiles>().0.lock().get(path) {
            None => return Err(Stale::Unread(shown.to_owned())),
            Some(seen) if *seen == now => return Ok(()),
            Some(_) => {}
        }
        match self.writers.lock().get(path) {
            Some((writer, digest)) if *digest == now && *writer != session.id => {
                Err(Stale::ByOther(shown.to_owned(), writer.clone()))
            }
            Some(_) | None => Err(Stale::OnDisk(shown.to_owned())),
        }
    }

    /// Waits for those who write the file now. In the order of asking.
    pub(crate) async fn writing(&self, path: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let mutex = {
            let mut locks = self.locks.lock();
            // Nobody holds or awaits a lock that only this map knows.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(path.to_owned()).or_default().clone()
        };
        mutex.lock_owned().await
    }
}
