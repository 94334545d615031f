//! The mark that every process of a tool carries and cannot remove.
//!
//! The mark is a hard resource limit that is lower than the system's. Children inherit it, only a process with
//! `CAP_SYS_RESOURCE` can raise it (setrlimit(2)), and `/proc/PID/limits` shows it to everyone. The limit of POSIX
//! message queues is suitable because hardly any program uses them, and it stays large enough for those that do. Unlike
//! the parent of a process or an environment variable, it survives a double fork, `env -i`, `setsid`, and the end of
//! the daemon.

use std::io;
use std::sync::OnceLock;

/// The lowest and the highest mark, in bytes. Linux starts with 819,200 (`MQ_BYTES_MAX`), which is higher.
const LOWEST: u64 = 0xB_0000;
pub const HIGHEST: u64 = 0xB_FFFF;

/// This daemon's own mark, which the [launcher](crate::launcher) sets. Global, as resource limits are: all daemons of a process share it.
static OWN: OnceLock<u64> = OnceLock::new();

/// Chooses the mark of the processes that this daemon starts from now on: the mark of the daemon that handed over, or a
/// random one. Only the first call has an effect.
pub(crate) fn choose(inherited: Option<u64>) {
    let mark = inherited.filter(|mark| (LOWEST..=HIGHEST).contains(mark)).unwrap_or_else(|| {
        let mut bytes = [0; 2];
        // Without random bytes, two daemons may share a mark: then the end of one also ends the leftovers of the other.
        let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
        LOWEST + u64::from(u16::from_ne_bytes(bytes))
    });
    // It is already chosen if two daemons run in one process.
    let _ = OWN.set(mark);
}

/// The mark of this daemon's tools; `None` if there is none: in programs that never called
/// [`reaper::allow`](crate::process::reaper::allow), and where resource limits cannot be read.
pub fn own() -> Option<u64> {
    OWN.get().copied().filter(|_| cfg!(target_os = "linux"))
}

/// Whether a process was started by a tool of any daemon. One that lowered its limit further still counts.
///
/// # Errors
/// The process has ended, or its limits cannot be read.
pub fn is_marked(pid: u32) -> io::Result<bool> {
    Ok(of_process(&pid.to_string())?.is_some_and(|limit| limit <= HIGHEST))
}

/// The hard limit of this process, if it is low enough to count as a mark.
pub fn of_this_process() -> Option<u64> {
    of_process("self").ok()?.filter(|limit| *limit <= HIGHEST)
}

/// Whether a process carries exactly this mark. A process that lowers its limit further no longer matches, but is still
/// [marked](is_marked). Ending every process with a low limit could hit containers, which have limits of their own.
pub(crate) fn is_of(pid: i32, mark: u64) -> bool {
    matches!(of_process(&pid.to_string()), Ok(Some(limit)) if limit == mark)
}

/// The hard limit of POSIX message queues in bytes; `None` if it is unlimited.
fn of_process(pid: &str) -> io::Result<Option<u64>> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    hard_limit(&limits).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The fields of `/proc/PID/limits` (proc_pid_limits(5)): name, soft limit, hard limit, unit.
fn hard_limit(limits: &str) -> Option<Option<u64>> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max msgqueue size"))?;
    match line.split_ascii_whitespace().nth(1)? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_the_second_number() {
        let of =
            |line: &str| hard_limit(&format!("Limit  Soft  Hard  Units\nMax locked memory  1  2  bytes\n{line}\n"));
        assert_eq!(
            of("Max msgqueue size         819200               720897               bytes     "),
            Some(Some(720_897))
        );
        assert_eq!(of("Max msgqueue size         819200               unlimited            bytes     "), Some(None));
        assert_eq!(of("Max nice priority         0                    0                    "), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_not_marked() {
        assert_eq!(of_this_process(), None);
        assert!(!is_marked(std::process::id()).unwrap());
        assert!(is_marked(u32::MAX).is_err());
    }
}
