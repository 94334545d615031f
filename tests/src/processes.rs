//! Processes that are not a test's own children.

/// Whether the process has ended. One whose parent has not asked for its status counts as ended.
pub fn has_ended(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |stat| stat.contains(") Z"))
}
