//! Who is at the other end of a connection, as far as the system tells.

use std::path::PathBuf;

use toold_engine::execute::Principal;

/// The other end of a stream.
#[derive(Clone, Debug)]
pub struct Peer {
    pub principal: Principal,
    pub pid: Option<u32>,
    /// The folder that its process works in now.
    pub cwd: Option<PathBuf>,
}

impl Peer {
    /// The parent, on stdio.
    pub fn parent() -> Self {
        Self { principal: Principal::Person, pid: None, cwd: std::env::current_dir().ok() }
    }

    /// A process that connected to the socket. `None` when it is of another user, which must not be served.
    pub fn of_socket(stream: &tokio::net::UnixStream) -> Option<Self> {
        let credentials = stream.peer_cred().ok()?;
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Some(Self {
            principal: principal_of(pid),
            pid,
            cwd: pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok()),
        })
    }
}

/// Whether this process was started by a tool of a daemon. One that serves there would take the tool for a person.
#[cfg(target_os = "linux")]
pub fn is_below_a_daemon() -> bool {
    let own = program_of("self");
    let mut pid = std::process::id();
    for _ in 0..MAX_DEPTH {
        match parent_of(pid) {
            Some(0 | 1) | None => return false,
            Some(parent) if is_daemon(parent, own) => return true,
            Some(parent) => pid = parent,
        }
    }
    false
}

/// Where there is no `/proc`, nobody can tell.
#[cfg(not(target_os = "linux"))]
pub fn is_below_a_daemon() -> bool {
    false
}

/// Deeper than any real tree; a loop can only come from process ids that were reused meanwhile.
#[cfg(target_os = "linux")]
const MAX_DEPTH: usize = 256;

/// Device and inode of a process's program. Told also of one that was replaced since.
#[cfg(target_os = "linux")]
fn program_of(pid: &str) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Whether the process runs this program, which has no children but tools.
#[cfg(target_os = "linux")]
fn is_daemon(pid: u32, own: Option<(u64, u64)>) -> bool {
    own.is_some() && program_of(&pid.to_string()) == own
}

/// Whatever runs below one of our tools, or of another daemon's, is a tool, not a person; so is what cannot be told.
///
/// The daemon is a subreaper, so a child whose parents died is below the daemon still.
#[cfg(target_os = "linux")]
fn principal_of(pid: Option<u32>) -> Principal {
    let own = std::process::id();
    let Some(mut pid) = pid else { return Principal::ToolDescendant };
    if pid == own {
        return Principal::Person;
    }
    let program = program_of("self");
    for _ in 0..MAX_DEPTH {
        match parent_of(pid) {
            Some(parent) if parent == own => return Principal::ToolDescendant,
            Some(0 | 1) => return Principal::Person,
            Some(parent) if is_daemon(parent, program) => return Principal::ToolDescendant,
            Some(parent) => pid = parent,
            None => return Principal::ToolDescendant,
        }
    }
    Principal::ToolDescendant
}

/// Where there is no `/proc`, descendants are not told from people; the security document says so.
#[cfg(not(target_os = "linux"))]
fn principal_of(_pid: Option<u32>) -> Principal {
    Principal::Person
}

/// Field 4 of `/proc/PID/stat`. The name in field 2 may hold blanks and brackets, so it is cut off first.
#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
