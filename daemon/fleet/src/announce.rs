//! Announces this daemon and its tools in the buckets, and renews its record.

use std::sync::Arc;

use crate::member::Member;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(_member: &Arc<Member>) -> Result<(), String> {
    std::future::pending().await
}

/// Tells the fleet that this daemon leaves. It stays listed as away.
pub(crate) async fn leave(_member: &Arc<Member>) {}
