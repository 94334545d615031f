//! The thread that interrupts scripts at their time limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::vm::interrupt::ScriptInterrupt;

/// One thread that sets the interrupts of all scripts of a host when their time limits are reached. Scripts check the
/// clock themselves now and then; the thread is for scripts whose safepoints are far apart.
pub(crate) struct Watchdog {
    shared: Arc<WatchdogState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct WatchdogState {
    armed: Mutex<Armed>,
    wake: Condvar,
}

#[derive(Default)]
struct Armed {
    interrupts: BTreeMap<(Instant, u64), Arc<ScriptInterrupt>>,
    next: u64,
    /// When the thread wakes up by itself; `None` when it has to be woken.
    asleep_until: Option<Instant>,
    stop: bool,
}

/// Watches an interrupt until it is dropped.
pub(crate) struct WatchdogGuard<'a> {
    watchdog: &'a Watchdog,
    key: (Instant, u64),
}

/// Limits further away are checked again after this time: a [`Deadline`] that is not checked for longer assumes that
/// the computer slept, and scripts check only at their safepoints.
const FAR: Duration = Duration::from_secs(1);

/// The earliest time after which a limit that stands still or has moved is checked again.
const AGAIN: Duration = Duration::from_millis(20);

impl Watchdog {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::<WatchdogState>::default();
        let thread = {
            let shared = shared.clone();
            std::thread::Builder::new().name("lua watchdog".to_owned()).spawn(move || watch(&shared))?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(crate) fn watch(&self, interrupt: &Arc<ScriptInterrupt>) -> WatchdogGuard<'_> {
        let at = Instant::now() + interrupt.remaining().min(FAR);
        let mut armed = self.shared.armed.lock();
        let key = (at, armed.next);
        armed.next += 1;
        armed.interrupts.insert(key, interrupt.clone());
        // The thread is not woken if it wakes early enough anyway: most calls end long before their limit, and waking
        // it for each would cost more than the call.
        if armed.asleep_until.is_none_or(|until| at < until) {
            self.shared.wake.notify_one();
        }
        WatchdogGuard { watchdog: self, key }
    }
}

fn watch(shared: &WatchdogState) {
    let mut armed = shared.armed.lock();
    while !armed.stop {
        let now = Instant::now();
        while let Some(first) = armed.interrupts.first_entry()
            && first.key().0 <= now
        {
            let ((_, id), interrupt) = first.remove_entry();
            if !interrupt.check() {
                // Under the same id, so that its guard still finds it.
                armed.interrupts.insert((now + interrupt.remaining().clamp(AGAIN, FAR), id), interrupt);
            }
        }
        armed.asleep_until = armed.interrupts.first_key_value().map(|((at, _), _)| *at);
        match armed.asleep_until {
            Some(until) => _ = shared.wake.wait_until(&mut armed, until),
            None => shared.wake.wait(&mut armed),
        }
    }
}

impl Drop for WatchdogGuard<'_> {
    fn drop(&mut self) {
        let mut armed = self.watchdog.shared.armed.lock();
        if armed.interrupts.remove(&self.key).is_none() {
            // The limit moved while it was watched.
            let id = self.key.1;
            armed.interrupts.retain(|(_, other), _| *other != id);
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.armed.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // Fails when the thread panicked, and then it is gone.
            let _ = thread.join();
        }
    }
}
