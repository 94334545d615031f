//! Keeps descriptors back for the clients that are there: their calls open files and start programs.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// Descriptors that no new client gets. Where there are few, a quarter; or half of those that the daemon does not need itself.
const KEPT_BACK: u64 = 64;
/// The daemon's own descriptors, without clients.
const OWN: u64 = 32;
/// How soon is looked again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Waits until there is room for one more client; those that come meanwhile wait in the listener's queue.
/// Cancel-safe.
pub(super) async fn room(listener: &impl AsFd) {
    if has_room(listener) {
        return;
    }
    tracing::warn!("few file descriptors are left: new clients wait until others disconnect");
    while !has_room(listener) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn has_room(any: &impl AsFd) -> bool {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return true };
    // The system gives the lowest number that is free.
    let Ok(probe) = rustix::io::fcntl_dupfd_cloexec(any, 0) else { return false };
    let number = u64::from(probe.as_raw_fd().unsigned_abs());
    number + kept_back(limit) < limit
}

fn kept_back(limit: u64) -> u64 {
    KEPT_BACK.min(limit / 4).min(limit.saturating_sub(OWN) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_leave_room_for_a_client() {
        for limit in OWN + 2..2_000 {
            assert!(OWN + kept_back(limit) < limit, "{limit}");
        }
        assert_eq!([40, 64, 80, 1_024].map(kept_back), [4, 16, 20, 64]);
    }
}
