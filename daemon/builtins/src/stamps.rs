//! The version of each file that a session has seen, so that no change is based on a stale read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use toold_engine::session::Session;
use toold_proto::tool::SessionId;

/// Above this number of files, the record of writers is cleared.
const MAX_WRITERS: usize = 10_000;

/// A hash of a file's whole content.
pub(crate) type FileDigest = blake3::Hash;

/// The files that sessions have read and written.
pub(crate) struct Stamps {
    /// Since when they are recorded: what was read before is not known.
    since: SystemTime,
    /// The session that last wrote a file, for the error that other writers get.
    writers: Mutex<HashMap<PathBuf, (SessionId, FileDigest)>>,
    /// One writer at a time per file, across sessions.
    locks: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// The files that one session has seen. The session stores it.
#[derive(Default)]
struct SeenFiles(Mutex<HashMap<PathBuf, FileDigest>>);

/// Why a session may not change a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stale {
    #[error("{0} has not been read in this session: read it first")]
    Unread(String),
    #[error("{0} has not been read since the daemon was restarted: read it again")]
    UnreadSinceRestart(String),
    #[error("{0} was changed by another session ({1}) since it was read: read it again")]
    ByOther(String, SessionId),
    #[error("{0} has changed on disk since it was read: read it again")]
    OnDisk(String),
}

impl Default for Stamps {
    fn default() -> Self {
        Self { since: SystemTime::now(), writers: Mutex::default(), locks: Mutex::default() }
    }
}

impl Stamps {
    /// Records that the session has seen the file with this content.
    pub(crate) fn saw(&self, session: &Session, path: &Path, digest: FileDigest) {
        session.slot::<SeenFiles>().0.lock().insert(path.to_owned(), digest);
    }

    /// Whether the session has seen the file with this content.
    pub(crate) fn has_seen(&self, session: &Session, path: &Path, digest: FileDigest) -> bool {
        session.slot::<SeenFiles>().0.lock().get(path) == Some(&digest)
    }

    /// Records that the session has written this content to the file.
    pub(crate) fn wrote(&self, session: &Session, path: &Path, digest: FileDigest) {
        self.saw(session, path, digest);
        let mut writers = self.writers.lock();
        if writers.len() >= MAX_WRITERS {
            writers.clear();
        }
        writers.insert(path.to_owned(), (session.id.clone(), digest));
    }

    /// Records that the file was removed.
    pub(crate) fn forget(&self, session: &Session, path: &Path) {
        session.slot::<SeenFiles>().0.lock().remove(path);
        self.writers.lock().remove(path);
    }

    /// Fails unless the session has seen the current version of the file. `shown` is the file's name in the error.
    pub(crate) fn check(&self, session: &Session, path: &Path, shown: &str, now: FileDigest) -> Result<(), Stale> {
        match session.slot::<SeenFiles>().0.lock().get(path) {
            None if session.opened_at < self.since => return Err(Stale::UnreadSinceRestart(shown.to_owned())),
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

    /// Waits until the file's current writers are done. First come, first served.
    pub(crate) async fn writing(&self, path: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let mutex = {
            let mut locks = self.locks.lock();
            // A lock that only this map refers to is neither held nor waited for.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(path.to_owned()).or_default().clone()
        };
        mutex.lock_owned().await
    }
}
