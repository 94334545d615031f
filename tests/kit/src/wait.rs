//! Waiting for something that another process does.

use std::time::{Duration, Instant};

/// The longest wait in any test; after this time, the awaited thing will not happen.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Polls until there is an answer. Only for conditions without an event; everything else waits for its event.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
