//! The two files by which clients find the daemon of their database, however poor their environment: one in the state
//! folder, and one beside the socket. See [`SocketFinder::find`].

use std::path::{Path, PathBuf};

use toold_host::{files, state_file};
use toold_proto::socket::{DaemonRecord, SocketFinder, database_path, record_path, state_record_path};

/// More than any record, in bytes.
const MAX_RECORD: u64 = 64 << 10;

/// The rule of clients for the place of the socket, applied to this process's environment and this system.
pub fn system() -> SocketFinder<'static> {
    SocketFinder {
        var: &|name| std::env::var(name).ok(),
        read: &|path| files::read_text(path, MAX_RECORD).ok(),
        is_folder: &|path| path.is_dir(),
        uid: rustix::process::geteuid().as_raw(),
    }
}

/// Writes the records of this daemon. Without them, clients find it by their environment; errors are logged.
pub(super) fn write(socket: &Path, state: &Path) {
    let record = system().own_record(std::process::id(), socket.to_owned(), database_path(state));
    for path in paths(socket, state) {
        if let Err(error) = state_file::save(&path, &record) {
            tracing::warn!(%error, path = %path.display(), "can't record where this daemon is");
        }
    }
}

/// Removes those that are of this process.
pub(super) fn remove(socket: &Path, state: &Path) {
    for path in paths(socket, state) {
        let record: Option<DaemonRecord> = state_file::load(&path, MAX_RECORD);
        if record.is_some_and(|record| record.pid == std::process::id())
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::debug!(%error, path = %path.display(), "can't remove the record of this daemon");
        }
    }
}

fn paths(socket: &Path, state: &Path) -> [PathBuf; 2] {
    [state_record_path(state), record_path(socket)]
}
