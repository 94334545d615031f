//! Makes a network namespace and listeners in it, by a process that hands them over.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::launcher;
use crate::launcher::order::NO_SANDBOX;

/// It exists while one of these is open, or a process is in it.
pub(super) struct Namespace {
    /// The user namespace that owns it; `None` if that is the daemon's.
    user: Option<OwnedFd>,
    network: OwnedFd,
}

pub(super) struct MadeNamespace {
    pub(super) namespace: Namespace,
    pub(super) guard: TcpListener,
}

/// The most descriptors that arrive at once.
const MAX_DESCRIPTORS: usize = 64;
/// The process has nothing to wait for.
const PATIENCE: Duration = Duration::from_secs(10);

impl Namespace {
    /// What a program opens to enter it. The paths are the daemon's own descriptors.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let path = |descriptor: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd()).into();
        self.user.iter().chain([&self.network]).map(path).collect()
    }
}

/// Makes a namespace with a listener at an address of its own loopback. Blocks for some milliseconds.
///
/// # Errors
/// Why the system does not allow it, in words for people.
pub(super) fn make() -> Result<MadeNamespace, String> {
    let (mut user, mut network, mut guard) = (None, None, None);
    for (letter, descriptor) in run(&[], &[])? {
        match letter {
            b'u' => user = Some(descriptor),
            b'n' => network = Some(descriptor),
            b'g' => guard = Some(TcpListener::from(descriptor)),
            _ => {}
        }
    }
    match (network, guard) {
        (Some(network), Some(guard)) => Ok(MadeNamespace { namespace: Namespace { user, network }, guard }),
        _ => Err("the process that makes the network namespace handed over none".to_owned()),
    }
}

/// Makes listeners at these ports of the loopback addresses of a namespace, as far as they are free. Blocks for some
/// milliseconds.
///
/// # Errors
/// As [`make`].
pub(super) fn listen(join: &[PathBuf], ports: &[u16]) -> Result<Vec<TcpListener>, String> {
    let sent = run(join, ports)?;
    Ok(sent.into_iter().filter(|(letter, _)| *letter == b'p').map(|(_, sent)| TcpListener::from(sent)).collect())
}

/// Each descriptor with its letter; see `launcher/network.rs`.
fn run(join: &[PathBuf], ports: &[u16]) -> Result<Vec<(u8, OwnedFd)>, String> {
    let failed = |error: std::io::Error| format!("can't make the network namespace: {error}");
    let (own, other) = UnixStream::pair().map_err(failed)?;
    own.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut command = launcher::network_command(join, ports);
    command.env_clear().current_dir("/").stdin(OwnedFd::from(other)).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().map_err(failed)?;
    // Its end of the socket is closed here: otherwise, nobody would see that it ends without a word.
    drop(command);
    let received = receive(&own);
    let output = child.wait_with_output().map_err(failed)?;
    let words = String::from_utf8_lossy(&output.stderr);
    match words.lines().next_back() {
        Some(line) if !output.status.success() => Err(line.trim_start_matches(NO_SANDBOX).to_owned()),
        _ => received.map_err(failed),
    }
}

/// The descriptors of one message, each with its letter.
///
/// # Errors
/// The error of the system.
pub(in crate::sandbox) fn receive(socket: &UnixStream) -> std::io::Result<Vec<(u8, OwnedFd)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut letters = [0; MAX_DESCRIPTORS];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut letters)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    for descriptor in &descriptors {
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok(letters[..received.bytes].iter().copied().zip(descriptors).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_is_made_and_entered_again() {
        let made = match make() {
            Ok(made) => made,
            Err(why) => {
                assert!(!why.is_empty());
                return;
            }
        };
        let address = made.guard.local_addr().unwrap();
        assert!(address.ip().is_loopback() && address.port() > 0);
        // It listens elsewhere: nobody is at that port here, or somebody else.
        let outside = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listeners = listen(&made.namespace.paths(), &[outside]).unwrap();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!(!ports.is_empty() && ports.iter().all(|port| *port == outside), "{ports:?}");
        assert!(std::net::TcpStream::connect(("127.0.0.1", outside)).is_err());
        // The guard takes no port of localhost.
        assert!(!listen(&made.namespace.paths(), &[address.port()]).unwrap().is_empty());
        // Taken ports are left to those who took them.
        assert_eq!(listen(&made.namespace.paths(), &[outside]).unwrap().len(), 0);
    }
}
