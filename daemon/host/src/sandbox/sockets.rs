//! Unix sockets on the floors of builds. A program may make sockets. It may connect to sockets that it or its children made, and
//! to sockets that the configuration names.
//!
//! Paths lead to the sockets of all other programs too, and neither mounts nor Landlock nor a filter of system calls tells them
//! apart. So the kernel leaves each `connect` of the program to the daemon, which looks at the address and connects the
//! program's socket itself. So it connects to exactly what it has checked, whatever the program changes meanwhile.

mod notifications;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, connect, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};

use self::notifications::{ConnectCall, MAX_ADDRESS, raw_address};
use super::ProgramStarter;
use super::network::namespace::receive;
use crate::launcher::order::Confinement;
use crate::random::random;

/// How long a program may take to start.
const START: Duration = Duration::from_secs(60);
/// The folder of the private file system in memory, as the launcher mounts it.
const TEMP: &str = "/dev/shm";
/// The place of a path in `struct sockaddr_un`.
const PATH_AT: usize = 2;

/// The connections of one program and all that it starts.
struct HandedOver {
    connections: OwnedFd,
    /// The device of the private file system in memory, if the program has one.
    own: Option<u64>,
    /// Sockets of others that it may connect to.
    named: Vec<PathBuf>,
}

/// Lets a program that wants sockets make them; without that, it makes none. Its connections are served until it and all that
/// it has started have ended.
pub(super) fn open_for(confinement: &mut Confinement, starter: ProgramStarter) {
    if !confinement.own_sockets || !may_look_into_programs(starter) {
        return;
    }
    let named = std::mem::take(&mut confinement.named_sockets);
    match listen() {
        Ok((listener, name)) => {
            // It blocks in calls of the kernel that cannot be awaited, and ends with the program.
            let serving = std::thread::Builder::new().name("sockets".to_owned()).stack_size(256 << 10);
            let started = serving.spawn(move || {
                if let Ok((connections, own)) = take_over(&listener) {
                    drop(listener);
                    HandedOver { connections, own, named }.serve();
                }
            });
            confinement.handover = started.is_ok().then_some(name);
        }
        Err(error) => tracing::warn!("confined programs make no Unix sockets: {error}"),
    }
}

/// Whether the system lets this process read the memory of programs, where the addresses are. The module Yama restricts that to
/// programs that this process has started, or to those with a capability.
fn may_look_into_programs(starter: ProgramStarter) -> bool {
    let restriction = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let most = match starter {
        _ if geteuid().is_root() => 2,
        ProgramStarter::Daemon => 1,
        ProgramStarter::Agent => 0,
    };
    restriction.trim().parse::<u32>().unwrap_or(0) <= most
}

/// A listener at a name that nobody guesses.
fn listen() -> io::Result<(UnixListener, String)> {
    let random = random::<16>().map_err(io::Error::other)?;
    let name = format!("toold-{}", random.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    Ok((listener, name))
}

/// The descriptor that the launcher hands over just before it becomes the program, and the device of the program's own file
/// system: the program itself could show another root.
fn take_over(listener: &UnixListener) -> io::Result<(OwnedFd, Option<u64>)> {
    if !is_ready(listener.as_fd(), Some(START))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(START))?;
    let launcher = sockopt::socket_peercred(&stream)?.pid.as_raw_nonzero();
    let (_, connections) = receive(&stream)?.into_iter().next().ok_or(io::ErrorKind::UnexpectedEof)?;
    let seen = stat(format!("/proc/{launcher}/root{TEMP}")).map(|seen| seen.st_dev).ok();
    // Without one of its own, it sees what all see.
    let own = seen.filter(|seen| stat(TEMP).is_ok_and(|outside| outside.st_dev != *seen));
    // It waits for this.
    drop(stream);
    Ok((connections, own))
}

/// Waits until there is something to read. False when the time is over, or when nothing can come any more.
fn is_ready(descriptor: BorrowedFd<'_>, time: Option<Duration>) -> io::Result<bool> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    loop {
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut polled, time.as_ref()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(polled[0].revents().contains(PollFlags::IN)),
        }
    }
}

impl HandedOver {
    /// One after the other: the program waits for each.
    fn serve(&self) {
        while let Ok(true) = is_ready(self.connections.as_fd(), None) {
            // The thread that called may have been killed.
            let Ok(call) = ConnectCall::take(&self.connections) else { continue };
            let done = self.connect(&call);
            call.answer(&self.connections, done);
        }
    }

    fn connect(&self, call: &ConnectCall) -> Result<(), Errno> {
        let length = usize::try_from(call.length).ok().filter(|length| (2..=MAX_ADDRESS).contains(length));
        let mut address = vec![0; length.ok_or(Errno::INVAL)?];
        let process = format!("/proc/{}", call.thread);
        let memory = File::open(format!("{process}/mem")).map_err(|_| Errno::PERM)?;
        memory.read_exact_at(&mut address, call.address).map_err(|_| Errno::FAULT)?;
        let socket = call.socket(&process)?;
        // Only now it is certain that this was the thread that called, and no other of the same number.
        if !call.is_waiting(&self.connections) {
            return Err(Errno::INTR);
        }
        if sockopt::socket_domain(&socket)? != AddressFamily::UNIX {
            return connect(&socket, &raw_address(&address));
        }
        if u16::from_ne_bytes([address[0], address[1]]) != AddressFamily::UNIX.as_raw() {
            return Err(Errno::INVAL);
        }
        match address.get(PATH_AT) {
            None => Err(Errno::INVAL),
            // It is looked up in the network that the socket was made in, which is the program's own.
            Some(0) => connect(&socket, &raw_address(&address)),
            Some(_) => {
                let path = address[PATH_AT..].split(|byte| *byte == 0).next().unwrap_or_default();
                let found = self.found(&process, OsString::from_vec(path.to_vec()).into())?;
                let found = format!("/proc/self/fd/{}", found.as_raw_fd());
                connect(&socket, &SocketAddrUnix::new(found)?)
            }
        }
    }

    /// The socket at a path, as the program sees it, if it may connect to it.
    fn found(&self, process: &str, path: PathBuf) -> Result<OwnedFd, Errno> {
        let place = OFlags::PATH | OFlags::CLOEXEC;
        let root = open(format!("{process}/root"), place | OFlags::DIRECTORY, Mode::empty())?;
        let at = |path: &Path| {
            let path = path.strip_prefix("/").unwrap_or(path);
            openat2(&root, path, place, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
        };
        let path = match path.is_absolute() {
            true => path,
            false => std::fs::read_link(format!("{process}/cwd")).map_err(|_| Errno::NOENT)?.join(path),
        };
        let found = at(&path)?;
        let facts = fstat(&found)?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        let is_named = || {
            let named = self.named.iter().filter_map(|path| stat(path).ok());
            named.into_iter().any(|named| (named.st_dev, named.st_ino) == (facts.st_dev, facts.st_ino))
        };
        if self.own == Some(facts.st_dev) || is_named() { Ok(found) } else { Err(Errno::ACCESS) }
    }
}

impl ConnectCall {
    /// The program's socket, shared with it.
    fn socket(&self, process: &str) -> Result<OwnedFd, Errno> {
        let status = std::fs::read_to_string(format!("{process}/status")).map_err(|_| Errno::SRCH)?;
        let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        let leader = leader.and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let process = pidfd_open(leader, PidfdFlags::empty())?;
        pidfd_getfd(process, self.descriptor, PidfdGetfdFlags::empty())
    }
}
