//! The ancestors of a process. Without `/proc`, none are known.

use toold_host::descendants::program_of;

/// Deeper than any real tree; a loop can only come from process ids that were reused meanwhile.
const MAX_DEPTH: usize = 256;

/// Whether a process is a descendant of another. A process that is gone already counts as one: its
/// origin is unknown.
pub fn is_below(pid: u32, ancestor: u32) -> bool {
    if !std::path::Path::new("/proc/self").exists() {
        return false;
    }
    let above = above(pid);
    above.is_empty() || above.contains(&ancestor)
}

/// Whether a daemon has a daemon as an ancestor: then a tool started it.
pub(super) fn is_below_a_daemon(daemon: u32) -> bool {
    let programs = [program_of("self"), program_of(&daemon.to_string())];
    above(daemon).iter().any(|pid| {
        let found = program_of(&pid.to_string());
        found.is_some() && programs.contains(&found)
    })
}

/// From the parent upwards.
fn above(pid: u32) -> Vec<u32> {
    std::iter::successors(parent(pid), |pid| parent(*pid)).take(MAX_DEPTH).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    (parent > 0).then_some(parent)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn parents_are_above_their_children() {
        let own = std::process::id();
        let parent = std::os::unix::process::parent_id();
        assert!(is_below(own, parent));
        assert!(!is_below(parent, own));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(is_below(child.id(), own), "it is gone");
    }
}
