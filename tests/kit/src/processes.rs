//! Processes that are not a test's own children.

use crate::wait::PATIENCE;

/// Whether the process has ended. One whose parent has not asked for its status counts as ended.
pub fn has_ended(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |stat| stat.contains(") Z"))
}

/// Waits until the process has ended: the kernel ends a killed process soon, not at once.
pub async fn wait_until_ended(process: u32) {
    let ended = async {
        while !has_ended(process) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("the process lives on");
}
