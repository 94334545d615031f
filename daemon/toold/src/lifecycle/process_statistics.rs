//! The system's statistics of the daemon's own process. `None` where the system has none.

use rustix::process::{Resource, getrlimit};

pub fn resident_bytes() -> Option<u64> {
    bytes_of(1)
}

/// The resident pages of files, most of which are code. The third field of `/proc/self/statm`.
pub fn resident_file_bytes() -> Option<u64> {
    bytes_of(2)
}

/// A field of `/proc/self/statm`, which has pages (proc_pid_statm(5)).
fn bytes_of(field: usize) -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(field)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Open descriptors, without the one that this function uses.
pub fn open_files() -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd")).ok()?.count() as u64;
    Some(open.saturating_sub(1))
}

/// The limit of open descriptors.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Further statistics of the process, where `/proc` exists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    pub virtual_bytes: u64,
    pub threads: u64,
    /// User and system time, without ended children.
    pub cpu_seconds: f64,
    /// The start time since 1970.
    pub start_seconds: f64,
}

pub fn statistics() -> Option<Statistics> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let booted = std::fs::read_to_string("/proc/stat").ok()?;
    let booted: u64 = booted.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    read_statistics(&stat, booted, rustix::param::clock_ticks_per_second() as f64)
}

/// Reads `/proc/PID/stat` (proc_pid_stat(5)), whose fields are counted from 1.
fn read_statistics(stat: &str, booted: u64, ticks: f64) -> Option<Statistics> {
    // The second field is the name in parentheses, which may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    Some(Statistics {
        cpu_seconds: (field(14)? + field(15)?) as f64 / ticks,
        threads: field(20)?,
        start_seconds: booted as f64 + field(22)? as f64 / ticks,
        virtual_bytes: field(23)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_behind_any_name() {
        let stat =
            "7 (a) b 1) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 3000 4096000 250 18446744073709551615";
        let read = read_statistics(stat, 1_000, 100.0).unwrap();
        let expected = Statistics { virtual_bytes: 4_096_000, threads: 9, cpu_seconds: 3.0, start_seconds: 1_030.0 };
        assert_eq!(read, expected);
    }
}
