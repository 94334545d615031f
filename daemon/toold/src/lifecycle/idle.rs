//! Stops a daemon that nobody uses.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::active_config::ActiveConfig;
use crate::lifecycle::Lifecycle;

/// The interval at which use is checked, at most and at least.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Waits until nobody has used the daemon for the configured time. Follows changes of the
/// configuration.
pub async fn idle(lifecycle: &Lifecycle, config: &ActiveConfig) {
    let mut loaded = config.loaded_changes();
    let mut last = (lifecycle.connections_so_far(), Instant::now());
    loop {
        let allowed = Duration::from_millis(loaded.borrow_and_update().config.daemon.idle_exit_ms);
        if allowed.is_zero() {
            if loaded.changed().await.is_err() {
                return std::future::pending().await;
            }
            last.1 = Instant::now();
            continue;
        }
        // A client that came and went between two checks also counts as use.
        let came = lifecycle.connections_so_far();
        // One instant for the whole check: a daemon that is in use must not become idle while its thread waits for a
        // processor.
        let now = Instant::now();
        if came != last.0 || lifecycle.is_used() {
            last = (came, now);
        }
        let left = allowed.saturating_sub(now.duration_since(last.1));
        if left.is_zero() {
            return;
        }
        let wait = (allowed / 10).clamp(LOOK_EVERY.0, LOOK_EVERY.1).min(left);
        tokio::select! {
            _ = loaded.changed() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}
