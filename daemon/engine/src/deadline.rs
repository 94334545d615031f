//! A time limit that is paused while a person is asked, and while the machine sleeps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The moment at which a call's time is over. Starts when it is created.
pub struct Deadline {
    state: Mutex<DeadlineState>,
    changed: Notify,
}

struct DeadlineState {
    end: Instant,
    /// The time that it had when it was started, and when that was.
    time: Duration,
    began: Instant,
    /// When the pause began, and how many guards hold it.
    paused: Option<(Instant, usize)>,
    /// The part of [`stood_still`] by which the end has already been moved.
    stood_still: Duration,
}

/// Pauses a deadline until dropped.
pub struct Pause<'a>(&'a Deadline);

impl Deadline {
    pub fn after(time: Duration) -> Self {
        let began = Instant::now();
        let state = DeadlineState { end: began + time, time, began, paused: None, stood_still: stood_still() };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// The remaining time; zero when it is over.
    pub fn remaining(&self) -> Duration {
        let state = self.lock();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        state.end.saturating_duration_since(now)
    }

    /// Restarts with this much time, whatever remained. A pause continues.
    pub fn restart(&self, time: Duration) {
        let mut state = self.lock();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        (state.end, state.time, state.began) = (now + time, time, now);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Begins the time again, since there is progress: up to an hour in all, or ten times the time if that is longer.
    pub fn renew(&self) {
        let mut state = self.lock();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        let last = state.began + LONGEST.max(state.time.saturating_mul(10));
        state.end = (now + state.time).min(last).max(state.end);
        drop(state);
        self.changed.notify_waiters();
    }

    pub fn is_paused(&self) -> bool {
        self.lock().paused.is_some()
    }

    pub fn pause(&self) -> Pause<'_> {
        let mut state = self.lock();
        state.paused = Some(state.paused.map_or_else(|| (Instant::now(), 1), |(since, n)| (since, n + 1)));
        drop(state);
        self.changed.notify_waiters();
        Pause(self)
    }

    /// Waits until the time is over. Cancel-safe.
    pub async fn over(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (end, paused) = {
                let state = self.lock();
                (state.end, state.paused.is_some())
            };
            if paused {
                changed.await;
            } else if Instant::now() >= end {
                return;
            } else {
                tokio::select! {
                    () = tokio::time::sleep_until(end.min(Instant::now() + LOOK_EVERY)) => {}
                    () = changed => {}
                }
            }
        }
    }

    /// The state, after adding the time for which the process was suspended meanwhile.
    fn lock(&self) -> parking_lot::MutexGuard<'_, DeadlineState> {
        let mut state = self.state.lock();
        let stood_still = stood_still();
        if state.paused.is_none() {
            let more = stood_still.saturating_sub(state.stood_still);
            state.end += more;
        }
        state.stood_still = stood_still;
        state
    }
}

/// How long a call may last that reports progress.
const LONGEST: Duration = Duration::from_secs(3600);
/// How often a waiting deadline reads the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// When the clock was not read for longer than this although deadlines waited, the process did not
/// run: the machine slept, or somebody stopped the process. That time does not count, or all calls
/// in flight would end at once.
const GAP: Duration = Duration::from_secs(2);
/// A reading sooner than this after the last one is skipped.
const FRESH: Duration = Duration::from_millis(100);

/// How long the process has been suspended in total, as far as the clock was read. Process-wide,
/// because suspension is. Time that passed while no deadline waited is included, so only
/// differences between two readings mean anything.
fn stood_still() -> Duration {
    /// In milliseconds, since the start.
    static LOOKED: AtomicU64 = AtomicU64::new(0);
    static LOOKING: Mutex<()> = Mutex::new(());
    let now = since_start();
    if now.saturating_sub(LOOKED.load(Ordering::Acquire)) > millis(FRESH) {
        // One thread adds the gap, before the others can count it as running time.
        let _looking = LOOKING.lock();
        let gap = now.saturating_sub(LOOKED.load(Ordering::Acquire));
        if gap > millis(GAP) {
            SUM.fetch_add(gap - millis(LOOK_EVERY), Ordering::Relaxed);
        }
        LOOKED.fetch_max(now, Ordering::Release);
    }
    let held = match HELD.load(Ordering::Acquire) {
        0 => 0,
        since => now.saturating_sub(since - 1),
    };
    Duration::from_millis(SUM.load(Ordering::Relaxed) + held)
}

static SUM: AtomicU64 = AtomicU64::new(0);
/// Since when all time stands still, in milliseconds since the start and one more; 0 while it runs.
static HELD: AtomicU64 = AtomicU64::new(0);

/// In milliseconds.
fn since_start() -> u64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    millis(START.get_or_init(std::time::Instant::now).elapsed())
}

/// Stops the time of all deadlines, while a person has paused everything. Process-wide, as for a suspended process.
pub fn hold_time() {
    let since = since_start() + 1;
    // A second pause changes nothing.
    let _ = HELD.compare_exchange(0, since, Ordering::AcqRel, Ordering::Acquire);
}

/// The time of all deadlines goes on.
pub fn release_time() {
    let since = HELD.swap(0, Ordering::AcqRel);
    if since > 0 {
        SUM.fetch_add(since_start().saturating_sub(since - 1), Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let Some((since, n)) = state.paused else { return };
        if n > 1 {
            state.paused = Some((since, n - 1));
            return;
        }
        state.paused = None;
        state.end += since.elapsed();
        drop(state);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_renews_the_time_up_to_a_maximum() {
        let deadline = Deadline::after(Duration::from_secs(60));
        for _ in 0..100 {
            tokio::time::advance(Duration::from_secs(50)).await;
            deadline.renew();
        }
        assert_eq!(deadline.remaining(), Duration::ZERO);
        deadline.restart(Duration::from_secs(60));
        for _ in 0..50 {
            tokio::time::advance(Duration::from_secs(50)).await;
            deadline.renew();
            assert_eq!(deadline.remaining(), Duration::from_secs(60));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_in_a_pause() {
        let deadline = Deadline::after(Duration::from_secs(10));
        let start = Instant::now();
        let pauses = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            let outer = deadline.pause();
            let inner = deadline.pause();
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(inner);
            assert_eq!(deadline.remaining(), Duration::from_secs(6));
            drop(outer);
        };
        tokio::join!(deadline.over(), pauses);
        assert_eq!(start.elapsed(), Duration::from_secs(110));
    }
}
