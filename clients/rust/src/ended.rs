//! Finds out whether a daemon serves a socket again after one has ended, without connecting: a connection would make a
//! service manager start a daemon that a person has stopped.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use toold_proto::socket::lock_path;

/// How often a client looks whether a daemon serves again.
pub const FOLLOWED_CHECK: Duration = Duration::from_millis(250);

/// A daemon that has ended.
#[derive(Debug)]
pub struct EndedDaemon {
    socket: PathBuf,
    /// That of the ended daemon, if it left it or had none of its own.
    left: Option<SocketIdentity>,
    /// The process that holds the lock, as long as the ended daemon does.
    holder: Option<u32>,
}

/// Device, inode, and the time of the last change in seconds and nanoseconds: numbers of inodes are used again.
type SocketIdentity = (u64, u64, i64, i64);

impl EndedDaemon {
    /// The one whose connection at this socket has just ended.
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), left: identity(socket), holder: lock_holder(&lock_path(socket)) }
    }

    /// Whether a daemon has followed it at the socket. Reads some small files.
    pub fn is_followed(&self) -> bool {
        let (now, holder) = (identity(&self.socket), lock_holder(&lock_path(&self.socket)));
        now.is_some() && now != self.left || holder.is_some() && holder != self.holder
    }

    /// Waits for that.
    pub async fn followed(&self) {
        while !self.is_followed() {
            sleep(FOLLOWED_CHECK).await;
        }
    }
}

fn identity(socket: &Path) -> Option<SocketIdentity> {
    let metadata = std::fs::symlink_metadata(socket).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}

/// The process that holds the lock of a daemon, as `/proc/locks` tells it; `None` where there is none. Lines are such as
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`, with the inode after the device. Trying the lock instead would keep
/// it from a daemon that is starting.
fn lock_holder(lock: &Path) -> Option<u32> {
    let inode = format!(":{}", std::fs::metadata(lock).ok()?.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_its = words.get(1) == Some(&"FLOCK") && words.get(5).is_some_and(|place| place.ends_with(&inode));
        if is_its { words.get(4)?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn another_socket_at_the_place_is_of_another_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let first = UnixListener::bind(&socket).unwrap();
        let ended = EndedDaemon::at(&socket);
        assert!(!ended.is_followed());
        std::fs::remove_file(&socket).unwrap();
        assert!(!ended.is_followed());
        drop(first);
        let _second = UnixListener::bind(&socket).unwrap();
        assert!(ended.is_followed());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_held_lock_is_one_of_a_daemon_at_a_socket_that_stays() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        let ended = EndedDaemon::at(&socket);
        let lock = std::fs::File::create(lock_path(&socket)).unwrap();
        assert!(!ended.is_followed());
        lock.lock().unwrap();
        assert!(ended.is_followed());
    }
}
