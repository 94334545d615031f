//! A time limit that stands still while a person is asked.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// When a call's time is over. Starts when it is made.
pub struct Deadline {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    end: Instant,
    /// Since when, and by how many, it is held still.
    paused: Option<(Instant, usize)>,
}

/// Holds a deadline still until it is dropped.
pub struct Pause<'a>(&'a Deadline);

impl Deadline {
    pub fn after(time: Duration) -> Self {
        Self { state: Mutex::new(State { end: Instant::now() + time, paused: None }), changed: Notify::new() }
    }

    /// How much time is left; zero when it is over.
    pub fn remaining(&self) -> Duration {
        let state = self.lock();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        state.end.saturating_duration_since(now)
    }

    /// Starts anew with this much time, whatever was left. A pause goes on.
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
                    () = tokio::time::sleep_until(end) => {}
                    () = changed => {}
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
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
