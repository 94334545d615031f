//! Which daemon serves a socket and writes a database: whoever holds their locks. [`records`](super::records) tell
//! clients which one that is.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use toold_proto::socket::{DaemonRecord, database_lock_path, database_path, lock_path, record_path, state_record_path};

use super::BindError;
use super::records::system;
use crate::config::paths::private_dir;

/// How long a lock may be held by what is not a daemon.
const PASSING: Duration = Duration::from_secs(5);

/// Held as long as the daemon lives; the files stay.
pub struct Locks {
    /// Beside the socket, where all daemons of this socket look, whatever state folder they have.
    pub(super) beside: File,
    /// In the state folder, where all daemons with this database look, whatever socket they have. `None` when there is
    /// no state folder.
    pub(super) kept: Option<File>,
}

/// Another daemon has the database.
#[derive(Debug, thiserror::Error)]
pub struct DatabaseInUse {
    database: PathBuf,
    /// `None` while it has not recorded its place yet.
    holder: Option<DaemonRecord>,
}

impl std::fmt::Display for DatabaseInUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let database = self.database.display();
        match &self.holder {
            Some(DaemonRecord { pid, socket, .. }) => {
                let socket = socket.display();
                write!(
                    f,
                    "a daemon with the database {database} runs already: process {pid} serves {socket}. Use that one, \
                     stop it with `toolctl --socket {socket} stop`, or set XDG_STATE_HOME to another folder for this one"
                )
            }
            None => write!(
                f,
                "a daemon with the database {database} runs already: stop it, or set XDG_STATE_HOME to another folder \
                 for this one"
            ),
        }
    }
}

impl Locks {
    /// Takes both, or none. The one beside the socket is first: daemons of one socket that start at once meet there.
    pub(super) fn take(socket: &Path, state: &Path) -> Result<Self, BindError> {
        let mut locks = Self { beside: lock_beside(socket)?, kept: None };
        locks.renew_kept(socket, state)?;
        Ok(locks)
    }

    /// Takes those again whose files are not the ones that are held.
    pub(super) fn renew(&mut self, socket: &Path, state: &Path) -> Result<(), BindError> {
        if !is_at(&self.beside, &lock_path(socket))? {
            self.beside = lock_beside(socket)?;
        }
        self.renew_kept(socket, state)
    }

    /// Takes the one in the state folder, unless it is held.
    pub(super) fn renew_kept(&mut self, socket: &Path, state: &Path) -> Result<(), BindError> {
        let path = database_lock_path(state);
        if let Some(kept) = &self.kept
            && is_at(kept, &path)?
        {
            return Ok(());
        }
        let file = match private_dir(state).map_err(anyhow::Error::from).and_then(|()| open(&path)) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!("no lock in the state folder: {error:#}");
                return Ok(());
            }
        };
        if !lock_soon(&file, &state_record_path(state)).with_context(|| format!("can't lock {}", path.display()))? {
            let holder = system().running(&state_record_path(state));
            return Err(match holder {
                // The socket's folder was deleted and made again.
                Some(holder) if holder.socket == socket => BindError::Running(holder.socket),
                holder => DatabaseInUse { database: database_path(state), holder }.into(),
            });
        }
        self.kept = Some(file);
        Ok(())
    }
}

/// Fails if a daemon with another socket has the database, before anything is made beside this one.
pub(super) fn check_database(socket: &Path, state: &Path) -> Result<(), BindError> {
    match system().running(&state_record_path(state)).filter(|holder| holder.socket != socket) {
        Some(holder) => Err(DatabaseInUse { database: database_path(state), holder: Some(holder) }.into()),
        None => Ok(()),
    }
}

fn lock_beside(socket: &Path) -> Result<File, BindError> {
    let path = lock_path(socket);
    let file = open(&path)?;
    match lock_soon(&file, &record_path(socket)).with_context(|| format!("can't lock {}", path.display()))? {
        true => Ok(file),
        false => Err(BindError::Running(socket.to_owned())),
    }
}

fn is_at(held: &File, path: &Path) -> anyhow::Result<bool> {
    let held = held.metadata().context("can't look at the lock")?;
    Ok(std::fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino())))
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

/// As [`lock`]. Waits for a moment while no daemon that runs is recorded: one that was killed holds its locks until all of
/// it has ended, and so does a process that it was about to start, until that has become another program.
fn lock_soon(file: &File, record: &Path) -> rustix::io::Result<bool> {
    let end = Instant::now() + PASSING;
    loop {
        if lock(file)? {
            return Ok(true);
        }
        let is_served = system().running(record).is_some_and(|holder| !system().is_ending(&holder));
        if is_served || Instant::now() >= end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// False when another process holds it.
fn lock(file: &File) -> rustix::io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}
