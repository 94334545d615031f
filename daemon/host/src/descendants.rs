//! Finds the processes that a command started, wherever they moved. [`end_leftovers`] ends those that a killed daemon
//! left behind.
//!
//! A process group contains those that stayed in it. Those that created a session or group of their own are found by
//! their parents and by a variable that every child of a command inherits.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::process::Pid;

use crate::kept_programs::KeptPrograms;
use crate::launcher::life::{ConfinedLife, ProgramMounts};
use crate::tool_mark;

/// Processor time of a process and of those below it since each began, in ticks of the system; `None` where the system does
/// not report it. Takes some milliseconds.
pub fn processor_ticks(leader: u32) -> Option<u64> {
    let leader = Pid::from_raw(leader.try_into().ok()?)?;
    // Fields 14 and 15 of `/proc/PID/stat`. The name in field 2 may contain blanks and parentheses.
    let ticks = |pid: &Pid| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(field(14)? + field(15)?)
    };
    let ticks: Vec<u64> = CommandProcesses::led_by(leader).find().iter().filter_map(ticks).collect();
    (!ticks.is_empty()).then(|| ticks.iter().sum())
}

/// The variable that marks all processes of one command.
pub(crate) const MARK: &str = "TOOLD_RUN";

/// A value of [`MARK`] that no other command has.
pub(crate) fn new_mark() -> String {
    let mut bytes = [0u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(read) => filled += read,
            Err(rustix::io::Errno::INTR) => {}
            // Early at boot or in an unusual sandbox: a process id and a counter are unique too.
            Err(_) => {
                static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
                let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                return format!("{}-{next}", std::process::id());
            }
        }
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The processes of one command or more, by what they are known by wherever they have moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandProcesses {
    pub(crate) leaders: Vec<Pid>,
    /// Values of [`MARK`].
    pub(crate) marks: Vec<String>,
    /// The commands that are confined and followed.
    pub(crate) lives: Vec<ConfinedLife>,
}

impl CommandProcesses {
    fn led_by(leader: Pid) -> Self {
        Self { leaders: vec![leader], ..Self::default() }
    }

    fn mounts(&self) -> Vec<Arc<ProgramMounts>> {
        self.lives.iter().filter_map(ConfinedLife::mounts).collect()
    }

    /// The living processes that carry a mark or are confined with the mounts of a command, those below them, the leaders and those
    /// below these. Empty where there is no `/proc`. Takes some milliseconds: it reads two small files per process.
    pub(crate) fn find(&self) -> Vec<Pid> {
        let name = format!("{MARK}=");
        let mounts = self.mounts();
        let mut parents = HashMap::new();
        let mut found: HashSet<i32> = self.leaders.iter().map(|leader| leader.as_raw_nonzero().get()).collect();
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let Some((state, parent)) =
                std::fs::read_to_string(entry.path().join("stat")).ok().and_then(|stat| state_and_parent(&stat))
            else {
                continue;
            };
            if state == 'Z' || state == 'X' {
                continue;
            }
            parents.insert(pid, parent);
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let mut marked = environment.split(|byte| *byte == 0).filter_map(|text| text.strip_prefix(name.as_bytes()));
            if marked.any(|mark| self.marks.iter().any(|known| known.as_bytes() == mark)) || is_confined(pid, &mounts) {
                found.insert(pid);
            }
        }
        loop {
            let below: Vec<i32> = parents
                .iter()
                .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid))
                .map(|(pid, _)| *pid)
                .collect();
            if below.is_empty() {
                break;
            }
            found.extend(below);
        }
        let own = std::process::id() as i32;
        found.into_iter().filter(|pid| *pid != own && parents.contains_key(pid)).filter_map(Pid::from_raw).collect()
    }

    /// As [`find`](Self::find), without the kept programs and the processes below those.
    pub(crate) fn find_but_kept(&self, kept: Option<&KeptPrograms>) -> Vec<Pid> {
        match kept {
            Some(kept) => without(self.find(), kept),
            None => self.find(),
        }
    }

    /// The processes that commands left behind when their leaders ended, which are not yet waited for; not the kept programs.
    /// Searches all processes only if this process has adopted one of theirs.
    pub(crate) fn left_behind(&self, kept: &KeptPrograms) -> Vec<Pid> {
        match self.has_adopted() {
            Some(false) => Vec::new(),
            Some(true) | None => {
                self.find_but_kept(Some(kept)).into_iter().filter(|pid| !self.leaders.contains(pid)).collect()
            }
        }
    }

    /// Whether a child of this process other than the leaders carries a mark or is confined with the mounts of a command; `None` if
    /// this process does not adopt orphans, or the system does not list children. A daemon adopts the orphans of a command before
    /// the command's end can be noticed.
    fn has_adopted(&self) -> Option<bool> {
        #[cfg(target_os = "linux")]
        rustix::process::child_subreaper().ok()??;
        let variables: Vec<String> = self.marks.iter().map(|mark| format!("{MARK}={mark}")).collect();
        let mounts = self.mounts();
        for thread in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
            let children = match read_children(&thread.path()) {
                Ok(children) => children,
                // The thread has ended.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !thread.path().exists() => continue,
                Err(_) => return None,
            };
            let is_leader = |pid: i32| self.leaders.iter().any(|leader| leader.as_raw_nonzero().get() == pid);
            let pids = children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            for pid in pids.filter(|pid| !is_leader(*pid)) {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let mut marked = environment.split(|byte| *byte == 0);
                if marked.any(|text| variables.iter().any(|known| known.as_bytes() == text))
                    || is_confined(pid, &mounts)
                {
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

/// Whether a process is confined in one of these namespaces of mounts. The one that covers files again is in it too, and not
/// confined.
fn is_confined(pid: i32, mounts: &[Arc<ProgramMounts>]) -> bool {
    let namespace = || std::fs::metadata(format!("/proc/{pid}/ns/mnt")).map(|found| found.ino());
    let is_filtered = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
    };
    let is_one = |number| mounts.iter().any(|mounts| mounts.number == number);
    !mounts.is_empty() && namespace().is_ok_and(is_one) && is_filtered()
}

/// A daemon has many threads, and few of them have children: the size, which the system does not know, is not asked for.
fn read_children(thread: &Path) -> io::Result<String> {
    let mut children = String::new();
    File::open(thread.join("children"))?.take(u64::MAX).read_to_string(&mut children)?;
    Ok(children)
}

/// The processes but for the kept programs and those below them.
fn without(found: Vec<Pid>, kept: &KeptPrograms) -> Vec<Pid> {
    let mut stays: HashSet<Pid> = found.iter().copied().filter(|pid| is_kept(*pid, kept)).collect();
    if stays.is_empty() {
        return found;
    }
    let parent_of = |pid: &Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Pid::from_raw(state_and_parent(&stat)?.1)
    };
    let parents: HashMap<Pid, Pid> = found.iter().filter_map(|pid| Some((*pid, parent_of(pid)?))).collect();
    loop {
        let below =
            |pid: &&Pid| !stays.contains(*pid) && parents.get(*pid).is_some_and(|parent| stays.contains(parent));
        let below: Vec<Pid> = found.iter().filter(below).copied().collect();
        if below.is_empty() {
            break;
        }
        stays.extend(below);
    }
    found.into_iter().filter(|pid| !stays.contains(pid)).collect()
}

fn is_kept(pid: Pid, kept: &KeptPrograms) -> bool {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let program = std::fs::read_link(format!("{folder}/exe")).ok();
    let line = std::fs::read(format!("{folder}/cmdline")).unwrap_or_default();
    let arguments: Vec<String> = line
        .strip_suffix(b"\0")
        .unwrap_or(&line)
        .split(|byte| *byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect();
    kept.contain(program.as_deref().and_then(|program| program.to_str()), &arguments)
}

/// The processes with the [mark](tool_mark) of a daemon that has ended. Marks are random, so processes below another
/// daemon with the same mark are skipped. Takes some milliseconds.
pub(crate) fn orphans_with(mark: u64) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let alive = pids.filter(|pid| started(*pid).is_some());
    alive.filter(|pid| tool_mark::is_of(*pid, mark) && !has_a_daemon(*pid)).filter_map(Pid::from_raw).collect()
}

/// Whether the first unmarked process above a marked one is a daemon, that is, runs the same program as this one.
fn has_a_daemon(pid: i32) -> bool {
    let mut above = pid;
    // Deeper than any real tree. A cycle can only come from process ids that were reused meanwhile.
    for _ in 0..256 {
        let stat = std::fs::read_to_string(format!("/proc/{above}/stat")).ok();
        let Some((_, parent)) = stat.and_then(|stat| state_and_parent(&stat)) else { return false };
        if parent <= 1 {
            return false;
        }
        if !matches!(tool_mark::is_marked(parent.unsigned_abs()), Ok(true)) {
            return program_of(&parent.to_string()).is_some_and(|program| Some(program) == program_of("self"));
        }
        above = parent;
    }
    false
}

/// Device and inode of a process's program, even if the file was replaced since the process started.
pub fn program_of(pid: &str) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// A process and those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTree {
    pub processes: u64,
    /// Pages that they share count for each.
    pub resident_bytes: u64,
}

/// The tree of a process; `None` where the system does not report it. Takes some milliseconds.
pub fn tree_of(leader: u32) -> Option<ProcessTree> {
    let leader = Pid::from_raw(leader.try_into().ok()?)?;
    let pages = |pid: &Pid| -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok()?;
        statm.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let pages: Vec<u64> = CommandProcesses::led_by(leader).find().iter().filter_map(pages).collect();
    (!pages.is_empty()).then(|| ProcessTree {
        processes: pages.len() as u64,
        resident_bytes: pages.iter().sum::<u64>() * rustix::param::page_size() as u64,
    })
}

/// The variable that marks all processes that must not outlive this daemon.
pub const OWNER: &str = "TOOLD_OWNER";

/// This daemon, as the value of [`OWNER`]: its process id, its start time because ids are reused, and the namespace of
/// process ids in which both are valid (pid_namespaces(7)).
pub fn owner() -> String {
    let pid = std::process::id();
    format!("{pid}.{}.{}", started(pid as i32).unwrap_or_default(), pid_namespace())
}

/// Kills the processes that carry the [`OWNER`] of a daemon that has ended; returns how many. Processes of a living
/// daemon, or of one in another namespace such as a container, are skipped. Takes some milliseconds.
pub fn end_leftovers() -> usize {
    let name = format!("{OWNER}=");
    let namespace = pid_namespace();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let mut ended = 0;
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // Processes of other users cannot be read and are not ours.
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let owner = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(name.as_bytes()));
        let Some(owner) = owner.and_then(|owner| std::str::from_utf8(owner).ok()) else { continue };
        if is_gone(owner, namespace) {
            ended += usize::from(rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok());
        }
    }
    ended
}

fn is_gone(owner: &str, namespace: u64) -> bool {
    let mut numbers = owner.split('.').map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(start)), Some(Ok(of)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return false;
    };
    // An id of another namespace belongs to a different process here.
    of == namespace && i32::try_from(pid).is_ok_and(|pid| started(pid) != Some(start))
}

/// Identifies this process's namespace of process ids; 0 if there is only one.
fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// When a living process started, in ticks since boot.
pub(crate) fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    // Field 22 of the file; the state is field 3.
    let start = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(start)
}

/// A living process among the others.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessLink {
    pid: u32,
    /// In ticks since boot. With the id, it identifies the process.
    started: u64,
    /// `None` for one without a parent in this namespace.
    pub(crate) parent: Option<u32>,
}

/// `None` if no process of this id lives.
#[cfg(target_os = "linux")]
pub(crate) fn link(pid: u32) -> Option<ProcessLink> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (state, parent) = state_and_parent(&stat)?;
    // Field 22 of the file; the first behind the name is field 3.
    let started = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(19)?.parse().ok()?;
    let parent = u32::try_from(parent).ok().filter(|parent| *parent > 0);
    (state != 'Z' && state != 'X').then_some(ProcessLink { pid, started, parent })
}

/// The fields of `/proc/PID/stat` after the program's name, which is in parentheses and may contain anything.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_lives_is_not_gone() {
        let (pid, here) = (std::process::id(), pid_namespace());
        assert!(!is_gone(&owner(), here));
        assert!(is_gone(&format!("{pid}.1.{here}"), here));
        for unknown in ["nonsense", "1.1", "1.1.x", &format!("{pid}.1.{here}.1")] {
            assert!(!is_gone(unknown, here), "{unknown}");
        }
    }

    #[test]
    fn names_with_brackets_do_not_confuse() {
        assert_eq!(state_and_parent("12 (a) S 3) R 7 12 12 0"), Some(('R', 7)));
        assert_eq!(state_and_parent("12 (a"), None);
    }
}
