//! The end of a daemon that nobody uses.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use crate::daemon::State;

/// `[daemon]`: the process itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// The daemon ends when it was not used for so long: no client connected, no call and no command in the background
    /// running. The next client starts it again. 0, as by default: never; nor while MCP is served on HTTP, whose
    /// clients could not start it.
    pub idle_exit_ms: u64,
    /// A session leaves memory when it was not used for so long: no connection, no call, no command in the background.
    /// Whoever opens it by its id finds it as after a restart of the daemon, without what was granted for the session.
    /// A day by default; 0: never.
    pub session_idle_ms: u64,
    /// Sessions that nobody is connected to and that do nothing, at most. Beyond, those leave memory that were not used for
    /// the longest time, as after `session_idle_ms`. 1000 by default.
    pub max_unused_sessions: usize,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self { idle_exit_ms: 0, session_idle_ms: 24 * 3600 * 1000, max_unused_sessions: 1_000 }
    }
}

/// How often is looked whether the daemon is in use, at most and at least.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Waits until nobody has used the daemon for as long as the configuration says. Follows its changes.
pub async fn idle(state: &State) {
    let mut loaded = state.loaded_changes();
    let mut last = (state.connections_so_far(), Instant::now());
    loop {
        let allowed = Duration::from_millis(loaded.borrow_and_update().config.daemon.idle_exit_ms);
        if allowed.is_zero() {
            if loaded.changed().await.is_err() {
                return std::future::pending().await;
            }
            last.1 = Instant::now();
            continue;
        }
        // Who came and went between two looks used it, too.
        let came = state.connections_so_far();
        if came != last.0 || is_used(state) {
            last = (came, Instant::now());
        }
        let unused = last.1.elapsed();
        if unused >= allowed {
            return;
        }
        let wait = (allowed / 10).clamp(LOOK_EVERY.0, LOOK_EVERY.1).min(allowed - unused);
        tokio::select! {
            _ = loaded.changed() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Whether ending now would take something away from somebody.
fn is_used(state: &State) -> bool {
    state.connections() > 0 || state.is_busy() || state.http.get().is_some_and(Result::is_ok)
}

impl State {
    /// Whether a call or a command in the background runs.
    pub fn is_busy(&self) -> bool {
        self.engine.counts.read().in_flight > 0 || self.running_shells() > 0
    }

    /// Commands in the background that run.
    pub fn running_shells(&self) -> usize {
        self.builtins.shells.list(None).iter().filter(|shell| shell.ended.is_none()).count()
    }
}
