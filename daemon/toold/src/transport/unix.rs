//! The Unix socket: its place, its modes, its clients. [`locks`] decides which daemon may bind it.

pub mod locks;
pub mod records;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::fs::Mode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};

use crate::config::paths::prepare_socket_folder;
use crate::lifecycle::restart::above;
use crate::lifecycle::restart::channel::SocketOffer;
use crate::peer::Peer;
use crate::rpc::byte_stream::{ByteStream, fd_hung_up};
use crate::transport::ClientServer;
use crate::transport::descriptor_reserve::room;
use crate::transport::unix::locks::{DatabaseInUse, Locks};

/// How often the daemon looks whether clients can still find its socket.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A socket that is listened at. Dropping it removes the socket, if the daemon bound it and it is still there.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// The daemon's state folder.
    state: PathBuf,
    /// Whether the records in the state folder and beside the socket are this daemon's.
    recorded: bool,
    /// Device and inode of what lies at the path.
    identity: (u64, u64),
    owner: Owner,
    locks: Locks,
    /// Another daemon's socket lies at the path, which is reported once.
    given_up: bool,
}

/// Who made the socket, and takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Daemon,
    /// A service manager, or another daemon: it listens on when this daemon has ended.
    Another,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("a daemon serves {0} already")]
    Running(PathBuf),
    #[error(transparent)]
    InUse(#[from] DatabaseInUse),
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl Socket {
    /// Takes the locks, clears away a socket that nobody serves, and binds. `state` is the daemon's state folder.
    /// Call it before anything else runs: the file mode mask is the process's.
    pub fn bind(path: &Path, state: &Path) -> Result<Self, BindError> {
        locks::check_database(path, state)?;
        prepare_socket_folder(path)?;
        let locks = Locks::take(path, state)?;
        clear_stale(path)?;
        records::write(path, state);
        // The socket must not be open to others for even a moment.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = bound.with_context(|| format!("can't bind {}", path.display()))?;
        let identity = identity(path)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            state: state.to_owned(),
            recorded: true,
            identity,
            owner: Owner::Daemon,
            locks,
            given_up: false,
        })
    }

    /// Serves a socket that a service manager made and listens at.
    ///
    /// # Errors
    /// When it does not listen, has no path, or others than its user can reach it.
    pub fn given(listener: std::os::unix::net::UnixListener, state: &Path) -> Result<Self, BindError> {
        let path = checked(&listener)?;
        if identity(&path).is_err() {
            tracing::warn!(path = %path.display(), "the file of the inherited socket is gone: binding it again");
            return Self::bind(&path, state);
        }
        let locks = Locks::take(&path, state)?;
        records::write(&path, state);
        listener.set_nonblocking(true).context("can't use the inherited socket")?;
        let listener = UnixListener::from_std(listener).context("can't use the inherited socket")?;
        let identity = identity(&path)?;
        let (state, owner) = (state.to_owned(), Owner::Another);
        Ok(Self { listener, path, state, recorded: true, identity, owner, locks, given_up: false })
    }

    /// Serves the socket of another daemon, which holds its locks and may still give up handing it over: until
    /// [`Self::own`] is called it is not this daemon's to take away.
    pub fn of_another(offer: SocketOffer, state: &Path) -> Result<Self, BindError> {
        let SocketOffer { socket: path, listener, lock_beside, lock_kept, .. } = offer;
        let mut locks = Locks { beside: lock_beside.into(), kept: lock_kept.map(Into::into) };
        // Its environment may name another state folder.
        locks.renew_kept(&path, state)?;
        let listener = std::os::unix::net::UnixListener::from(listener);
        listener.set_nonblocking(true).context("can't use the socket that was handed over")?;
        let listener = UnixListener::from_std(listener).context("can't use the socket that was handed over")?;
        // A socket that was deleted meanwhile is bound again at the next check.
        let identity = identity(&path).unwrap_or_default();
        let (state, owner) = (state.to_owned(), Owner::Another);
        Ok(Self { listener, path, state, recorded: false, identity, owner, locks, given_up: false })
    }

    /// From now on this daemon serves the socket of the one before. `owner` says which of them takes it away.
    pub fn own(&mut self, owner: Owner) {
        self.owner = owner;
        records::write(&self.path, &self.state);
        self.recorded = true;
    }

    /// From now on another daemon serves it.
    pub fn leave(&mut self) {
        self.owner = Owner::Another;
        self.recorded = false;
    }

    /// What the next daemon needs.
    pub fn offer(&self) -> anyhow::Result<SocketOffer> {
        let lock_kept = self.locks.kept.as_ref().map(|kept| kept.as_fd().try_clone_to_owned()).transpose()?;
        Ok(SocketOffer {
            tool_mark: toold_host::tool_mark::own(),
            socket: self.path.clone(),
            bound_by_daemon: self.owner == Owner::Daemon,
            listener: self.listener.as_fd().try_clone_to_owned()?,
            lock_beside: self.locks.beside.as_fd().try_clone_to_owned()?,
            lock_kept,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts clients until the daemon stops. Dropping the future loses none: who is not accepted waits.
    pub async fn accept(&self, clients: &ClientServer) {
        let stop = clients.services.lifecycle.stopping();
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
                Ok((stream, _)) => self.serve(clients, stream),
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

    /// Serves a client that was accepted, in a task of its own.
    pub fn serve(&self, clients: &ClientServer, stream: UnixStream) {
        match Peer::of_socket(&stream, &clients.services.engine.sessions, &clients.services.agent_processes) {
            Ok(peer) => {
                let old = clients.services.lifecycle.hand_over.predecessor();
                let below_old = old.is_some_and(|old| peer.pid.is_none_or(|pid| above::is_below(pid, old)));
                // The daemon before this one still runs tools, and may be of another program.
                let peer = if below_old { peer.of_a_tool() } else { peer };
                clients.serve(SocketStream(stream), peer);
            }
            Err(refused) => tracing::warn!("refused a client: {refused}"),
        }
    }

    /// Waits until clients do not find the socket any more: its file or its folder was deleted.
    pub async fn lost(&self) {
        if self.given_up {
            return std::future::pending().await;
        }
        let mut look = tokio::time::interval_at(tokio::time::Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            if !self.is_there() {
                return;
            }
        }
    }

    fn is_there(&self) -> bool {
        identity(&self.path).is_ok_and(|now| now == self.identity)
    }

    /// Binds the socket again, where clients find it; gives those that had come to the old one. The locks that are
    /// held keep others from doing the same.
    ///
    /// # Errors
    /// The place cannot be used. It may be tried again.
    pub fn bind_again(&mut self) -> anyhow::Result<Vec<UnixStream>> {
        prepare_socket_folder(&self.path)?;
        match self.locks.renew(&self.path, &self.state) {
            Ok(()) => {}
            Err(BindError::Running(_)) => {
                self.given_up = true;
                bail!("another daemon with a different state folder serves {} now", self.path.display());
            }
            Err(BindError::InUse(in_use)) => {
                self.given_up = true;
                return Err(in_use.into());
            }
            Err(BindError::Other(error)) => return Err(error),
        }
        clear_stale(&self.path)?;
        // Other users are not served, so the moment before the mode is set is of no use to them; and the mask of the
        // process is not to be touched while others make files.
        let listener = UnixListener::bind(&self.path).with_context(|| format!("can't bind {}", self.path.display()))?;
        std::fs::set_permissions(&self.path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| format!("can't make {} private", self.path.display()))?;
        let identity = identity(&self.path)?;
        records::write(&self.path, &self.state);
        let left = self.end_listening();
        self.listener = listener;
        self.identity = identity;
        self.owner = Owner::Daemon;
        Ok(left)
    }

    /// Takes the socket away, so that no client can come any more, and gives those that came meanwhile. When there
    /// are any, [`Self::bind_again`] and serve them; when there are none, nobody is lost: whoever comes from now on
    /// finds no socket and starts a daemon, or is served by the service manager's next one.
    pub fn close(&mut self) -> Vec<UnixStream> {
        if self.owner == Owner::Daemon {
            self.remove();
        }
        self.end_listening()
    }

    /// After this a client that found the socket is refused by the system. Not so at a service manager's, where it waits.
    fn end_listening(&self) -> Vec<UnixStream> {
        if self.owner == Owner::Daemon
            && let Err(error) = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Read)
        {
            tracing::debug!(%error, "the old socket cannot be shut");
        }
        let accept = || -> io::Result<UnixStream> {
            // Whose `accept` does not wait, as the one of the runtime does.
            let listener = std::os::unix::net::UnixListener::from(self.listener.as_fd().try_clone_to_owned()?);
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        };
        std::iter::from_fn(|| accept().ok()).collect()
    }

    fn remove(&self) {
        if self.is_there()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "can't remove the socket");
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.owner == Owner::Daemon {
            self.remove();
        }
        if self.recorded {
            records::remove(&self.path, &self.state);
        }
    }
}

/// Device and inode of a socket.
fn identity(path: &Path) -> anyhow::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).with_context(|| format!("can't look at {}", path.display()))?;
    ensure!(metadata.file_type().is_socket(), "{} is not a socket", path.display());
    Ok((metadata.dev(), metadata.ino()))
}

/// The path of a socket that was given; nobody but its user may reach it.
fn checked(listener: &std::os::unix::net::UnixListener) -> anyhow::Result<PathBuf> {
    let listens = rustix::net::sockopt::socket_acceptconn(listener).context("can't inspect the inherited socket")?;
    ensure!(listens, "the inherited socket does not listen: it must be a SOCK_STREAM socket with Accept=no");
    let address = listener.local_addr().context("can't read the address of the inherited socket")?;
    let path = address.as_pathname().context("the inherited socket has no path in the file system")?.to_owned();
    ensure!(path.is_absolute(), "the inherited socket's path {} is not absolute", path.display());
    let uid = rustix::process::geteuid().as_raw();
    let dir = path.parent().context("the socket's path has no folder")?;
    for (path, setting) in [(dir, "DirectoryMode=0700"), (path.as_path(), "SocketMode=0600")] {
        let metadata = match std::fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("can't look at {}", path.display())),
        };
        ensure!(metadata.uid() == uid, "{} belongs to user {}, not to {uid}", path.display(), metadata.uid());
        ensure!(metadata.mode() & 0o077 == 0, "{} is open to others: it needs {setting}", path.display());
    }
    Ok(path)
}

/// With the locks held, a socket at this place is no daemon's; another program may listen there.
fn clear_stale(path: &Path) -> anyhow::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("can't look at {}", path.display())),
        Ok(metadata) if metadata.file_type().is_socket() => {
            ensure!(
                !is_still_listened_at(path),
                "another program listens at {}: stop it, or set TOOLD_SOCKET to another path",
                path.display()
            );
            std::fs::remove_file(path).with_context(|| format!("can't remove the old {}", path.display()))
        }
        Ok(_) => bail!("{} exists and is not a socket: move it away, or set TOOLD_SOCKET", path.display()),
    }
}

/// As [`is_listened_at`], after a moment: a daemon that is killed closes its locks before its socket.
fn is_still_listened_at(path: &Path) -> bool {
    let end = Instant::now() + Duration::from_secs(1);
    while is_listened_at(path) {
        if Instant::now() >= end {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Whether a connection would be accepted or has to wait for its turn.
fn is_listened_at(path: &Path) -> bool {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let try_it = || -> rustix::io::Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)
    };
    matches!(try_it(), Ok(()) | Err(rustix::io::Errno::AGAIN))
}

/// A client on the socket.
pub struct SocketStream(pub UnixStream);

impl ByteStream for SocketStream {
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
