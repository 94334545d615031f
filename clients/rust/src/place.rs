//! Finds the daemon's socket in this process's environment and on this system.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toold_proto::socket::{DaemonRecord, NoSocketPlace, SocketFinder, record_path};

/// More than any file that tells where a daemon is, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// The socket of the user's daemon, whether or not it is running; see [`SocketFinder::find`]. Reads small files.
///
/// # Errors
/// No variable names a folder, or daemons with other databases run at all usual places.
pub fn find_socket() -> Result<PathBuf, NoSocketPlace> {
    system().find()
}

/// The state folder of the user's daemon; `None` without a home folder.
pub fn state_folder() -> Option<PathBuf> {
    system().state()
}

/// The daemon that runs and has recorded that it serves this socket, whether or not it can be reached there.
pub fn running_at(socket: &Path) -> Option<DaemonRecord> {
    system().running(&record_path(socket))
}

fn system() -> SocketFinder<'static> {
    SocketFinder {
        var: &|name| std::env::var(name).ok(),
        read: &read,
        is_folder: &|path| path.is_dir(),
        uid: rustix::process::geteuid().as_raw(),
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Whether a daemon that `server` runs is trusted by `own`, both user ids: one's own, or one of the system. To root, each.
pub fn may_serve(server: u32, own: u32) -> bool {
    server == own || server == 0 || own == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_another_user_is_not_trusted() {
        for (server, own, may) in [(1000, 1000, true), (0, 1000, true), (1001, 1000, false), (1000, 0, true)] {
            assert_eq!(may_serve(server, own), may, "{server} {own}");
        }
    }
}
