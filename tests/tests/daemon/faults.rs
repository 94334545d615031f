//! Faults around the daemon: each one happens to a real daemon, which keeps serving.

mod budgets;
mod cleaning;
mod clients;
mod clocks;
mod database;
mod folders;
mod foreign_files;
mod hung;
mod kept;
mod killed;
mod limits;
mod lua;
mod refusals;
mod store_load;

/// A shell line that ends with an `exec` of the daemon.
const SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// Whether the tests run as root, who may mount and change limits.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The most memory that the process has had (proc_pid_status(5)), in bytes.
fn peak(daemon: &toold_tests::TestDaemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn threads(daemon: &toold_tests::TestDaemon) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap().count()
}

/// Runs the daemon with its own mounts, which vanish when it ends. The line runs first, as root in that namespace.
fn with_mounts(setup: toold_tests::Setup, line: &str) -> Option<toold_tests::Setup> {
    let kind = if is_root() { "--mount" } else { "-Umr" };
    let probe = std::process::Command::new("unshare").args([kind, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    let Ok(probe) = probe else {
        toold_tests::skip_uninstalled("unshare");
        return None;
    };
    if !probe.status.success() {
        toold_tests::skip("this user may not mount anything, even in a namespace");
        return None;
    }
    let line = format!("{line} && exec \"$@\"");
    Some(setup.through(&["/usr/bin/unshare", kind, SHELL[0], SHELL[1], &line, "sh"]))
}
