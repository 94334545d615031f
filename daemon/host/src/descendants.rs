//! Finds the processes that a command started, wherever they went.
//!
//! A process group holds those that stayed in it. Those that made a session or a group of their own are
//! found by their parents and by a variable that every child of a command inherits.

use std::collections::{HashMap, HashSet};

use rustix::process::Pid;

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
            // Early at boot or in an odd sandbox: a process id and a counter are unique too.
            Err(_) => {
                static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
                let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                return format!("{}-{next}", std::process::id());
            }
        }
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The living processes that carry `mark`, and those below them and below `leader`.
/// Empty where there is no `/proc`. Takes some milliseconds: it reads two small files per process.
pub(crate) fn find(leader: Pid, mark: &str) -> Vec<Pid> {
    let marked = format!("{MARK}={mark}");
    let mut parents = HashMap::new();
    let mut found = HashSet::from([leader.as_raw_nonzero().get()]);
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
        if environment.split(|byte| *byte == 0).any(|variable| variable == marked.as_bytes()) {
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

/// From `/proc/PID/stat`: the program's name, in brackets, may hold anything.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_confuse() {
        assert_eq!(state_and_parent("12 (a) S 3) R 7 12 12 0"), Some(('R', 7)));
        assert_eq!(state_and_parent("12 (a"), None);
    }
}
