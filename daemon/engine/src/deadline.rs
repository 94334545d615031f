//! A time limit that stands still while a person is asked, and while the machine sleeps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// When a call's time is over. Starts when it is made.
pub struct Deadline {
    state: Mutex<DeadlineState>,
    changed: Notify,
}

struct DeadlineState {
    end: Instant,
    /// Since when, and by how many, it is held still.
    paused: Option<(Instant, usize)>,
    /// How much of [`stood_still`] the end has been moved by.
    stood_still: Duration,
}

/// Holds a deadline still until it is dropped.
pub struct Pause<'a>(&'a Deadline);

impl Deadline {
    pub fn after(time: Duration) -> Self {
        let state = DeadlineState { end: Instant::now() + time, paused: None, stood_still: stood_still() };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// How much time is left; zero when it is over.
    pub fn remaining(&self) -> Duration {
        let state = self.lock();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        state.end.saturating_duration_since(now)
    }

    /// Restarts with this much time, whatever was left. A pause continues.
    pub fn restart(&self, time: Duration) {
        let mut state = self.lock();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        state.end = now + time;
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

    /// The state, with what the process stood still meanwhile added to the time.
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

/// How often a waiting deadline looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// When nobody has looked for longer than this, although deadlines waited, the process did not run: the machine slept,
/// or somebody stopped the process. That time is nobody's fault, and all calls in flight would end at once.
const GAP: Duration = Duration::from_secs(2);
/// A look sooner than this after the last one is skipped.
const FRESH: Duration = Duration::from_millis(100);

/// How long the process has stood still, in all, as far as it was looked at. Process-wide: it is the process that does.
/// Time that passed while no deadline waited is in it too, so only differences between two looks mean anything.
fn stood_still() -> Duration {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    /// In milliseconds, since the start.
    static LOOKED: AtomicU64 = AtomicU64::new(0);
    static SUM: AtomicU64 = AtomicU64::new(0);
    static LOOKING: Mutex<()> = Mutex::new(());
    let now = millis(START.get_or_init(std::time::Instant::now).elapsed());
    if now.saturating_sub(LOOKED.load(Ordering::Acquire)) > millis(FRESH) {
        // One adds the gap, before the others can take it for time that was there.
        let _looking = LOOKING.lock();
        let gap = now.saturating_sub(LOOKED.load(Ordering::Acquire));
        if gap > millis(GAP) {
            SUM.fetch_add(gap - millis(LOOK_EVERY), Ordering::Relaxed);
        }
        LOOKED.fetch_max(now, Ordering::Release);
    }
    Duration::from_millis(SUM.load(Ordering::Relaxed))
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
