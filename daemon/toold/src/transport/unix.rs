//! The Unix socket: its place, its lock, its modes, its clients.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, Mode, flock};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};

use toold_proto::socket::lock_path;

use crate::connection::{Stream, fd_hung_up};
use crate::daemon::Daemon;
use crate::peer::Peer;
use crate::places::private_dir_checked;
use crate::transport::room::room;

/// A socket that is bound. Dropping it removes the socket, if it is still the one that was bound.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    identity: (u64, u64),
    /// Held as long as the daemon lives; the file stays.
    _lock: File,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("a daemon serves {0} already")]
    Running(PathBuf),
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl Socket {
    /// Takes the lock, clears away a socket that nobody serves, and binds.
    /// Call it before anything else runs: the file mode mask is the process's.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let dir = path.parent().context("the socket's path has no folder")?;
        private_dir_checked(dir)?;
        let lock = take_lock(path)?;
        clear_stale(path)?;
        // The socket must not be open to others for even a moment.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = bound.with_context(|| format!("can't bind {}", path.display()))?;
        let metadata = std::fs::symlink_metadata(path).with_context(|| format!("can't look at {}", path.display()))?;
        Ok(Self { listener, path: path.to_owned(), identity: (metadata.dev(), metadata.ino()), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts clients until the daemon stops.
    pub async fn accept(&self, daemon: &Daemon) {
        let stop = daemon.stopping();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = async {
                    room(&self.listener).await;
                    self.listener.accept().await
                } => accepted,
            };
            match accepted {
                Ok((stream, _)) => match Peer::of_socket(&stream, &daemon.state.engine.sessions) {
                    Ok(peer) => daemon.serve(SocketStream(stream), peer),
                    Err(refused) => tracing::warn!("refused a client: {refused}"),
                },
                Err(error) => {
                    // Out of descriptors or memory: the next try may fare better, and must not spin.
                    tracing::warn!(%error, "can't accept a client");
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(Duration::from_millis(100)) => {}
                    }
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let same = std::fs::symlink_metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.identity);
        if same && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "can't remove the socket");
        }
    }
}

fn take_lock(socket: &Path) -> Result<File, BindError> {
    let path = lock_path(socket);
    let lock = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("can't open {}", path.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::Running(socket.to_owned())),
        Err(error) => Err(anyhow::Error::from(error).context(format!("can't lock {}", path.display())).into()),
    }
}

/// With the lock held, a socket at this place is nobody's.
fn clear_stale(path: &Path) -> anyhow::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("can't look at {}", path.display())),
        Ok(metadata) if metadata.file_type().is_socket() => {
            std::fs::remove_file(path).with_context(|| format!("can't remove the old {}", path.display()))
        }
        Ok(_) => bail!("{} is there and is no socket: move it away, or set TOOLD_SOCKET", path.display()),
    }
}

/// A client on the socket.
pub struct SocketStream(pub UnixStream);

impl Stream for SocketStream {
    fn hung_up(&self) -> bool {
        fd_hung_up(&self.0)
    }
}

impl AsyncRead for SocketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
