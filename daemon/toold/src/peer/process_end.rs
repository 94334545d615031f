//! The end of a process.

use std::time::Duration;

use crate::peer::agent_processes::ProcessId;

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Returns within a second after the process has ended and its parent knows. Cancel-safe.
pub(crate) async fn ended(id: ProcessId) {
    // A descriptor that reports the end would have to be held for each of the agent's open tools.
    while id.is_alive() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
