//! Finds the process that listens on a socket, for error messages.

use std::fs;
use std::path::Path;

/// A process that listens at a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Its name, as `ps` shows it.
    pub name: String,
    /// Its state, such as `sleeping`.
    pub state: &'static str,
    /// When it was started, in clock ticks after boot.
    started: u64,
}

/// The state of a process that a signal or a debugger stopped.
const STOPPED: &str = "stopped";

impl Holder {
    /// Whether it is suspended until it receives SIGCONT.
    pub fn is_stopped(&self) -> bool {
        self.state == STOPPED
    }
}

/// The process that listens on `socket`; `None` when it is not found, as on systems without `/proc`. SO_PEERCRED would
/// name the process that began to listen, which may have handed the socket over.
pub(crate) fn of(socket: &Path) -> Option<Box<Holder>> {
    let links = listening(socket);
    if links.is_empty() {
        return None;
    }
    let holders = fs::read_dir("/proc").ok()?.flatten().filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let mut descriptors = fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let holds =
            descriptors.any(|one| fs::read_link(one.path()).is_ok_and(|to| links.iter().any(|link| to == *link)));
        if holds { described(pid) } else { None }
    });
    // A service manager that listens for the daemon holds the socket too; the daemon was started after it. Children of
    // another program may hold it for a moment. Process ids wrap around, so they do not show which came first.
    let rank = |holder: &Holder| match holder.name == "toold" {
        true => (true, i128::from(holder.started)),
        false => (false, -i128::from(holder.started)),
    };
    holders.max_by_key(rank).map(Box::new)
}

/// The listening sockets of this path, as links in `/proc` name them.
fn listening(socket: &Path) -> Vec<String> {
    /// `__SO_ACCEPTCON`.
    const LISTENS: &str = "00010000";
    let Ok(table) = fs::read_to_string("/proc/net/unix") else { return Vec::new() };
    let path = socket.to_string_lossy();
    let inode = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let (flags, _kind, _state, inode) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        (flags == LISTENS && line.ends_with(&*path)).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(inode).collect()
}

fn described(pid: u32) -> Option<Holder> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    // proc_pid_stat(5): the state is the third field, and the start the 22nd.
    let mut fields = after.split_ascii_whitespace();
    let (state, started) = (fields.next()?, fields.nth(18)?.parse().ok()?);
    let state = match state.chars().next()? {
        'T' | 't' => STOPPED,
        'D' => "waiting for a disk or a network file system",
        'R' => "running",
        'S' | 'I' => "sleeping",
        'Z' | 'X' => "exiting",
        _ => "in an unknown state",
    };
    Some(Holder { pid, name: name.to_owned(), state, started })
}
