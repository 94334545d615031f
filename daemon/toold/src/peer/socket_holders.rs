//! The processes that have a TCP socket of this machine.
//!
//! The other end of a Unix socket is known by its process. A TCP socket has only a user and an inode, so its processes
//! are found by their descriptors.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use toold_host::tool_mark;

use crate::peer::agent_processes::{AgentProcesses, ProcessId};
use crate::peer::ancestry::{lineage_of_a_persons, process_id};

/// The processes that have a socket of this user, if they are programs of people, and none is a tool's or an agent's.
/// `known` are processes that were found to be a person's before: one that an agent's start made a part of it later stays
/// that. Blocks for some tens of milliseconds.
pub(crate) fn people_with(
    inode: u64,
    user: u32,
    agents: &AgentProcesses,
    known: &[ProcessId],
) -> Option<Vec<ProcessId>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let socket = format!("socket:[{inode}]");
    let (mut holders, mut unreadable) = (Vec::new(), Vec::new());
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        match hold_of(pid, &socket, user) {
            SocketHold::Yes => holders.push(pid),
            SocketHold::Unreadable if !is_known_not_to_connect(pid) => unreadable.push(pid),
            SocketHold::Unreadable | SocketHold::No => {}
        }
    }
    // Where the holder is known, the unreadable ones have other sockets: each part of a browser that an agent tests is
    // unreadable, and must not keep the person out.
    let suspects = if holders.is_empty() { &unreadable } else { &holders };
    // A socket that is in no process is on its way from one to another, or in a ring of io_uring: no browser does that,
    // and a program that hides does. The processes of a proxy's user may be hidden from this one's.
    if suspects.is_empty() && user == rustix::process::geteuid().as_raw() {
        return None;
    }
    for pid in suspects {
        // One that has ended meanwhile, such as a child before it becomes another program, counts no more.
        if !is_a_persons(*pid, agents, known) && hold_of(*pid, &socket, user) != SocketHold::No {
            return None;
        }
    }
    Some(holders.into_iter().filter_map(process_id).collect())
}

/// Whether a process has a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketHold {
    Yes,
    No,
    /// A process of the socket's user whose descriptors cannot be read. Any process can become such a one.
    Unreadable,
}

fn hold_of(pid: u32, socket: &str, user: u32) -> SocketHold {
    let process = PathBuf::from(format!("/proc/{pid}"));
    match has(&process, socket) {
        Ok(true) => return SocketHold::Yes,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return if is_of(&process, user) { SocketHold::Unreadable } else { SocketHold::No };
        }
        Ok(false) | Err(_) => {}
    }
    // A thread may have descriptors of its own (unshare(2), CLONE_FILES), or outlive the first one. Browsers have many
    // threads, so this is asked of those only that have a reason to hide.
    if !tool_mark::is_marked(pid).unwrap_or(false) {
        return SocketHold::No;
    }
    let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    match threads.map(|thread| has(&thread.path(), socket)).any(|found| found.unwrap_or(false)) {
        true => SocketHold::Yes,
        false => SocketHold::No,
    }
}

/// Whether the descriptors below a folder of `/proc` include a socket.
fn has(process: &Path, socket: &str) -> io::Result<bool> {
    for entry in std::fs::read_dir(process.join("fd"))? {
        match std::fs::read_link(entry?.path()) {
            Ok(target) if target.as_os_str() == OsStr::new(socket) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(false)
}

/// Whether a process has or had this user's rights. Its folder may belong to root all the same.
fn is_of(process: &Path, user: u32) -> bool {
    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    users.split_ascii_whitespace().any(|word| word.parse() == Ok(user))
}

/// The process that systemd keeps beside each user's session is unreadable, and connects to nothing.
fn is_known_not_to_connect(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "(sd-pam)")
}

fn is_a_persons(pid: u32, agents: &AgentProcesses, known: &[ProcessId]) -> bool {
    // What connects from within the daemon does so for a call.
    pid != std::process::id()
        && lineage_of_a_persons(pid).is_some_and(|lineage| {
            lineage.own().is_some_and(|own| known.contains(&own)) || agents.above(&lineage).is_none()
        })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, AsRawFd};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_daemon_and_the_processes_below_it_are_not_people() {
        let folder = tempfile::tempdir().unwrap();
        let agents = AgentProcesses::load(folder.path().join("agents"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let descriptor = stream.as_raw_fd();
        let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
        let inode = link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap();
        let user = rustix::process::geteuid().as_raw();
        // This process stands for the daemon.
        assert_eq!(people_with(inode, user, &agents, &[]), None);
        let given = stream.as_fd().try_clone_to_owned().unwrap();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::from(given)).spawn().unwrap();
        drop(stream);
        assert_eq!(people_with(inode, user, &agents, &[]), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
