//! Unix sockets on the floors of builds. A program may make sockets. It may connect to sockets that it or its children made, and
//! to sockets that the configuration names.
//!
//! Paths lead to the sockets of all other programs too, and neither mounts nor Landlock nor a filter of system calls tells them
//! apart. So the kernel leaves each `connect` of the program to the daemon, which looks at the address and connects the
//! program's socket itself. So it connects to exactly what it has checked, whatever the program changes meanwhile.

mod notifications;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, connect, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};

use self::notifications::{ConnectCall, MAX_ADDRESS, raw_address};
use super::ProgramStarter;
use super::handover::is_ready;

/// The folder of the private file system in memory, as the launcher mounts it.
const TEMP: &str = "/dev/shm";
/// The place of a path in `struct sockaddr_un`.
const PATH_AT: usize = 2;
/// Whose memory a process may read, by the module Yama.
const RESTRICTION: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// The connections of one program and all that it starts.
pub(super) struct HandedConnections<'a> {
    pub(super) calls: &'a OwnedFd,
    /// The device of the private file system in memory, if the program has one.
    pub(super) own: Option<u64>,
    /// Sockets of others that it may connect to.
    pub(super) named: Vec<PathBuf>,
}

/// Why programs make no Unix sockets here, in words for people; `None` if they do. The daemon reads the addresses in their memory,
/// which the module Yama restricts to programs that this process has started, or to processes with a capability.
pub(super) fn refused(starter: ProgramStarter) -> Option<String> {
    let restriction = std::fs::read_to_string(RESTRICTION).ok()?;
    refused_by(restriction.trim().parse().unwrap_or(0), starter, geteuid().is_root())
}

fn refused_by(restriction: u32, starter: ProgramStarter, is_root: bool) -> Option<String> {
    let (most, who) = match starter {
        _ if is_root => (2, "builds"),
        ProgramStarter::Daemon => (1, "builds"),
        ProgramStarter::Agent => (0, "the own builds of agents"),
    };
    const FOREVER: u32 = 3;
    let way = match restriction {
        FOREVER.. => "which stays so until the system starts again".to_owned(),
        _ => format!("which sudo sysctl kernel.yama.ptrace_scope={most} changes"),
    };
    let words = || format!("{who} make no Unix sockets, since kernel.yama.ptrace_scope is {restriction}, {way}");
    (restriction > most).then(words)
}

/// The device of a program's own file system in memory. The program itself could show another root.
pub(super) fn own_device(launcher: i32) -> Option<u64> {
    let seen = stat(format!("/proc/{launcher}/root{TEMP}")).map(|seen| seen.st_dev).ok();
    // Without one of its own, it sees what all see.
    seen.filter(|seen| stat(TEMP).is_ok_and(|outside| outside.st_dev != *seen))
}

impl HandedConnections<'_> {
    /// Serves them until the program and all that it has started have ended. One after the other: the program waits for each.
    pub(super) fn serve(&self) {
        while let Ok(true) = is_ready(self.calls.as_fd(), None) {
            // The thread that called may have been killed.
            let Ok(call) = ConnectCall::take(self.calls) else { continue };
            let done = self.connect(&call);
            call.answer(self.calls, done);
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
        if !call.is_waiting(self.calls) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_where_the_kernel_lets_no_process_look_into_programs() {
        use ProgramStarter::{Agent, Daemon};
        let words = |restriction, starter, is_root| refused_by(restriction, starter, is_root).unwrap_or_default();
        for (starter, is_root, most) in [(Daemon, false, 1), (Agent, false, 0), (Daemon, true, 2), (Agent, true, 2)] {
            assert_eq!(words(most, starter, is_root), "");
            let said = words(most + 1, starter, is_root);
            let has = |text: &str| said.contains(text);
            assert!(has(" make no Unix sockets") && has(&format!("ptrace_scope is {}, which", most + 1)), "{said}");
            assert_eq!(has(&format!("sudo sysctl kernel.yama.ptrace_scope={most} ")), most < 2, "{said}");
        }
    }
}
