//! What the system tells of the daemon's own process. `None` where it does not tell.

use rustix::process::{Resource, getrlimit};

/// The second field of `/proc/self/statm`, in pages.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Descriptors that are open, but for the one that this takes.
pub fn open_files() -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd")).ok()?.count() as u64;
    Some(open.saturating_sub(1))
}

/// How many there may be.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
