//! The delay before a failed source is retried: 1 s, then twice as long each time, up to 60 s.

use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// A run of at least this length resets the failures before it.
const GOOD_RUN: Duration = Duration::from_secs(60);

/// Failures in a row.
pub(crate) struct RestartBackoff {
    next: Duration,
    has_failed: bool,
}

impl RestartBackoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST_DELAY, has_failed: false }
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }

    /// The delay after a failure. `lasted` is the length of a run that was connected; `None` when it never was.
    pub(crate) fn after_failure(&mut self, lasted: Option<Duration>) -> Duration {
        if lasted.is_some_and(|lasted| lasted >= GOOD_RUN) {
            self.reset();
        }
        let delay = self.next;
        self.next = (delay * 2).min(LONGEST_DELAY);
        // A single crash may be an accident, so the first one costs no delay.
        let is_first = !std::mem::replace(&mut self.has_failed, true);
        if is_first && lasted.is_some() { Duration::ZERO } else { delay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(backoff: &mut RestartBackoff, lasted: Option<Duration>, times: usize) -> Vec<u64> {
        (0..times).map(|_| backoff.after_failure(lasted).as_secs()).collect()
    }

    #[test]
    fn each_failure_doubles_the_delay_up_to_a_minute() {
        let mut backoff = RestartBackoff::new();
        assert_eq!(delays(&mut backoff, None, 9), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        backoff.reset();
        assert_eq!(delays(&mut backoff, None, 2), [1, 2]);
    }

    #[test]
    fn the_first_crash_costs_no_delay_and_a_good_run_forgives_earlier_ones() {
        let mut backoff = RestartBackoff::new();
        assert_eq!(delays(&mut backoff, Some(Duration::from_secs(1)), 3), [0, 2, 4]);
        assert_eq!(delays(&mut backoff, Some(GOOD_RUN), 2), [0, 0]);
        assert_eq!(delays(&mut backoff, None, 2), [2, 4]);
    }
}
