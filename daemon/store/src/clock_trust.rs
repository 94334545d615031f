//! How far the clock is believed when something is to be removed because of its age.
//!
//! A clock may be wrong for some seconds after a start, or for as long as nobody sets it: what it makes old is gone for ever.

use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// A clock that is this far ahead of the newest row is not believed.
pub(crate) const AHEAD: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often a share begins, and its size.
const EVERY: Duration = Duration::from_secs(3600);
const SHARE_PERCENT: u64 = 5;

/// What may be removed because of its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeAllowance {
    /// Nothing: the daemon has not run for long enough.
    None,
    /// At most 5 % in an hour: the clock is far ahead of everything that was recorded.
    Share,
    All,
}

#[derive(Debug)]
pub(crate) struct ClockTrust {
    opened: Instant,
    settle: Duration,
    /// When the newest row was written that was there before the daemon wrote any.
    newest: Mutex<Option<SystemTime>>,
}

impl ClockTrust {
    pub(crate) fn new(newest: Option<SystemTime>, settle: Duration) -> Self {
        Self { opened: Instant::now(), settle, newest: Mutex::new(newest) }
    }

    /// For a database that could not be read at the start.
    pub(crate) fn set_newest(&self, newest: Option<SystemTime>) {
        *self.newest.lock() = newest;
    }

    pub(crate) fn allowance(&self) -> AgeAllowance {
        self.allowance_at(self.opened.elapsed(), SystemTime::now())
    }

    fn allowance_at(&self, open_for: Duration, now: SystemTime) -> AgeAllowance {
        if open_for < self.settle {
            return AgeAllowance::None;
        }
        // What was written in this run has the time of the same clock.
        let before = now.checked_sub(open_for).unwrap_or(now);
        let ahead = self.newest.lock().and_then(|newest| before.duration_since(newest).ok());
        if ahead.is_some_and(|ahead| ahead > AHEAD) { AgeAllowance::Share } else { AgeAllowance::All }
    }
}

/// A share of what there is, for each hour.
#[derive(Debug, Default)]
pub struct AgeShare {
    began: Option<Instant>,
    left: u64,
}

impl AgeShare {
    /// Whether the next one begins.
    pub fn is_over(&self) -> bool {
        self.began.is_none_or(|began| began.elapsed() >= EVERY)
    }

    /// Begins the share of this many things; one at least.
    pub fn begin(&mut self, all: u64) {
        *self = Self { began: Some(Instant::now()), left: (all * SHARE_PERCENT / 100).max(1) };
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    pub fn take(&mut self, removed: u64) {
        self.left = self.left.saturating_sub(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_not_believed_at_once_and_never_far_ahead() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let now = SystemTime::UNIX_EPOCH + minutes(30_000_000);
        let check = |newest: Option<u64>, open_for: u64, expected| {
            let newest = newest.map(|minutes_ago| now - minutes(minutes_ago));
            let trust = ClockTrust::new(newest, minutes(10));
            assert_eq!(trust.allowance_at(minutes(open_for), now), expected, "{newest:?} {open_for}");
        };
        let day = 24 * 60;
        check(Some(1), 0, AgeAllowance::None);
        check(Some(1), 9, AgeAllowance::None);
        check(Some(11), 10, AgeAllowance::All);
        check(None, 10, AgeAllowance::All);
        check(Some(365 * day), 9, AgeAllowance::None);
        check(Some(365 * day), 10, AgeAllowance::Share);
        check(Some(6 * day), 10, AgeAllowance::All);
        // It was right at the start, and the daemon has been idle for long.
        check(Some(30 * day), 29 * day, AgeAllowance::All);
        let mut share = AgeShare::default();
        assert!(share.is_over());
        share.begin(1_000);
        assert_eq!((share.left(), share.is_over()), (50, false));
        share.take(60);
        assert_eq!(share.left(), 0);
        share.begin(3);
        assert_eq!(share.left(), 1);
    }
}
