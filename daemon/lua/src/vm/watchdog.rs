//! The thread that interrupts scripts at their time limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::vm::interrupt::ScriptInterrupt;

/// One thread that sets the interrupts of all scripts of a host at their limits. A script looks at the
/// clock by itself now and then; the thread is for those whose safepoints are far apart.
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
    /// Until when the thread sleeps; `None` when it must be woken.
    asleep_until: Option<Instant>,
    stop: bool,
}

/// Watches a interrupt until it is dropped.
pub(crate) struct WatchdogGuard<'a> {
    watchdog: &'a Watchdog,
    key: (Instant, u64),
}

/// Limits further away than this are looked at again then: a [`Deadline`] that nobody looks at takes that for a machine
/// that slept, and scripts check by themselves only at their safepoints.
const FAR: Duration = Duration::from_secs(1);

/// A limit that stands still, or has moved, is looked at again after this at the earliest.
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
        // The thread sleeps on when it wakes early enough: most calls end long before their limit,
        // and waking it for each would cost more than the call.
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
                // Under the same id, so that whoever watches can still find it.
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
            // Its limit moved while it was watched.
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
