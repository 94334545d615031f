//! Which daemon serves a socket: whoever holds its locks.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use toold_proto::socket::lock_path;

use super::BindError;
use crate::config::paths::private_dir;

/// Held as long as the daemon lives; the files stay.
pub struct Locks {
    /// Beside the socket, where all daemons of this socket look, whatever state folder they have.
    pub(super) beside: File,
    /// In the state folder: it is still there when the socket's folder was deleted, so that a process that makes that
    /// folder again does not become a second daemon. `None` when there is no state folder.
    pub(super) kept: Option<File>,
}

impl Locks {
    /// Takes both, or none.
    pub(super) fn take(socket: &Path, state: &Path) -> Result<Self, BindError> {
        let kept = match open_kept(socket, state) {
            Ok(file) => Some(lock(file, socket)?),
            Err(error) => {
                tracing::warn!("no lock in the state folder: {error:#}");
                None
            }
        };
        Ok(Self { beside: lock(open(&lock_path(socket))?, socket)?, kept })
    }

    /// Takes the one beside the socket again, if its file is not the one that is held.
    pub(super) fn renew(&mut self, socket: &Path) -> Result<(), BindError> {
        let path = lock_path(socket);
        let held = self.beside.metadata().context("can't look at the lock")?;
        let same = std::fs::symlink_metadata(&path).is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino()));
        if !same {
            self.beside = lock(open(&path)?, socket)?;
        }
        Ok(())
    }
}

fn open_kept(socket: &Path, state: &Path) -> anyhow::Result<File> {
    let dir = state.join("sockets");
    private_dir(&dir).with_context(|| format!("can't make {}", dir.display()))?;
    open(&dir.join(kept_name(socket)))
}

/// The same for all ways to write the path of one socket.
fn kept_name(socket: &Path) -> PathBuf {
    let real = socket.parent().and_then(|dir| dir.canonicalize().ok());
    let socket = match (real, socket.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => socket.to_owned(),
    };
    let hash = blake3::hash(socket.as_os_str().as_encoded_bytes()).to_hex();
    PathBuf::from(format!("{}.lock", &hash[..16]))
}

fn open(path: &Path) -> anyhow::Result<File> {
    std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("can't open {}", path.display()))
}

fn lock(file: File, socket: &Path) -> Result<File, BindError> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::Running(socket.to_owned())),
        Err(error) => Err(anyhow::Error::from(error).context(format!("can't lock {}", socket.display())).into()),
    }
}
