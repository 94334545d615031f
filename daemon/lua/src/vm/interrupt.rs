//! When a script must stop: limits and cancellation, told to the machine's interrupt.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::deadline::Deadline;

/// What stops one call, one load or one hook. Once set it stays set: a script that catches the
/// error gets it again at its next safepoint.
pub(crate) struct Brake {
    reason: AtomicU8,
    limit: Limit,
}

enum Limit {
    Call(Arc<Cx>),
    Needs(Arc<Cx>, Deadline),
    Load(Deadline, CancellationToken),
    Hook(Deadline),
}

const NEEDS_LIMIT: Duration = Duration::from_secs(2);

const RUNNING: u8 = 0;
const TIMED_OUT: u8 = 1;
const CANCELLED: u8 = 2;
const LOAD_TIMED_OUT: u8 = 3;
const HOOK_TIMED_OUT: u8 = 4;

impl Brake {
    pub(crate) fn of_call(cx: Arc<Cx>) -> Self {
        Self::new(Limit::Call(cx))
    }

    /// Of the function that says what a call will touch: the call's own time has not begun.
    pub(crate) fn of_needs(cx: Arc<Cx>) -> Self {
        Self::new(Limit::Needs(cx, Deadline::after(NEEDS_LIMIT)))
    }

    pub(crate) fn of_load(limit: Duration, stop: CancellationToken) -> Self {
        Self::new(Limit::Load(Deadline::after(limit), stop))
    }

    pub(crate) fn of_hook(limit: Duration) -> Self {
        Self::new(Limit::Hook(Deadline::after(limit)))
    }

    fn new(limit: Limit) -> Self {
        Self { reason: AtomicU8::new(RUNNING), limit }
    }

    /// One relaxed load: the interrupt asks at every safepoint.
    pub(crate) fn is_set(&self) -> bool {
        self.reason.load(Ordering::Relaxed) != RUNNING
    }

    /// Looks at the limits, and sets the brake when one is reached; true when it is set.
    pub(crate) fn look(&self) -> bool {
        if self.is_set() {
            return true;
        }
        let reason = match &self.limit {
            Limit::Call(cx) | Limit::Needs(cx, _) if cx.is_cancelled() => {
                if cx.timed_out() {
                    TIMED_OUT
                } else {
                    CANCELLED
                }
            }
            Limit::Call(cx) if cx.deadline.remaining().is_zero() => TIMED_OUT,
            Limit::Needs(_, limit) if limit.remaining().is_zero() => TIMED_OUT,
            Limit::Load(_, stop) if stop.is_cancelled() => CANCELLED,
            Limit::Load(limit, _) if limit.remaining().is_zero() => LOAD_TIMED_OUT,
            Limit::Hook(limit) if limit.remaining().is_zero() => HOOK_TIMED_OUT,
            Limit::Call(_) | Limit::Needs(..) | Limit::Load(..) | Limit::Hook(_) => return false,
        };
        self.reason.store(reason, Ordering::Relaxed);
        true
    }

    /// In words, as the script's error says it.
    pub(crate) fn reason(&self) -> &'static str {
        match self.reason.load(Ordering::Relaxed) {
            TIMED_OUT => "the call's time limit is exceeded",
            CANCELLED => "it was cancelled",
            LOAD_TIMED_OUT => "the time limit for loading a plugin is exceeded",
            HOOK_TIMED_OUT => "the hook's time limit is exceeded",
            _ => "stopped",
        }
    }

    /// How long the limit is still away; it may move while a person is asked.
    pub(crate) fn remaining(&self) -> Duration {
        match &self.limit {
            Limit::Call(cx) => cx.deadline.remaining(),
            Limit::Needs(_, limit) | Limit::Load(limit, _) | Limit::Hook(limit) => limit.remaining(),
        }
    }

    /// Waits until the brake must be set, for waits that no interrupt reaches. Cancel-safe.
    pub(crate) async fn stopped(&self) {
        match &self.limit {
            Limit::Call(cx) => {
                tokio::select! {
                    () = cx.cancel.cancelled() => {}
                    () = cx.deadline.over() => {}
                }
            }
            Limit::Needs(cx, limit) => {
                tokio::select! {
                    () = cx.cancel.cancelled() => {}
                    () = limit.over() => {}
                }
            }
            Limit::Load(limit, stop) => {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = limit.over() => {}
                }
            }
            Limit::Hook(limit) => limit.over().await,
        }
        self.look();
    }
}

/// One thread that sets the brakes of all scripts of a host at their limits. A script looks at the
/// clock by itself now and then; the thread is for those whose safepoints are far apart.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    armed: Mutex<Armed>,
    wake: Condvar,
}

#[derive(Default)]
struct Armed {
    brakes: BTreeMap<(Instant, u64), Arc<Brake>>,
    next: u64,
    /// Until when the thread sleeps; `None` when it must be woken.
    asleep_until: Option<Instant>,
    stop: bool,
}

/// Watches a brake until it is dropped.
pub(crate) struct Watched<'a> {
    watchdog: &'a Watchdog,
    key: (Instant, u64),
}

/// Limits further away than this are looked at again then: a [`Deadline`] that nobody looks at takes that for a machine
/// that slept, and scripts look by themselves only at their safepoints.
const FAR: Duration = Duration::from_secs(1);
/// A limit that stands still, or has moved, is looked at again after this at the earliest.
const AGAIN: Duration = Duration::from_millis(20);

impl Watchdog {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let thread = {
            let shared = shared.clone();
            std::thread::Builder::new().name("lua watchdog".to_owned()).spawn(move || watch(&shared))?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(crate) fn watch(&self, brake: &Arc<Brake>) -> Watched<'_> {
        let at = Instant::now() + brake.remaining().min(FAR);
        let mut armed = self.shared.lock();
        let key = (at, armed.next);
        armed.next += 1;
        armed.brakes.insert(key, brake.clone());
        // The thread sleeps on when it wakes early enough: most calls end long before their limit,
        // and waking it for each would cost more than the call.
        if armed.asleep_until.is_none_or(|until| at < until) {
            self.shared.wake.notify_one();
        }
        Watched { watchdog: self, key }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().expect("no code panics while it holds this lock")
    }
}

fn watch(shared: &Shared) {
    let mut armed = shared.lock();
    while !armed.stop {
        let now = Instant::now();
        while let Some(first) = armed.brakes.first_entry()
            && first.key().0 <= now
        {
            let ((_, id), brake) = first.remove_entry();
            if !brake.look() {
                // Under the same id, so that whoever watches can still find it.
                armed.brakes.insert((now + brake.remaining().clamp(AGAIN, FAR), id), brake);
            }
        }
        armed.asleep_until = armed.brakes.first_key_value().map(|((at, _), _)| *at);
        armed = match armed.asleep_until {
            Some(until) => {
                let (guard, _) = shared.wake.wait_timeout(armed, until.saturating_duration_since(now)).expect(POISON);
                guard
            }
            None => shared.wake.wait(armed).expect(POISON),
        };
    }
}

const POISON: &str = "no code panics while it holds this lock";

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let mut armed = self.watchdog.shared.lock();
        if armed.brakes.remove(&self.key).is_none() {
            // Its limit moved while it was watched.
            let id = self.key.1;
            armed.brakes.retain(|(_, other), _| *other != id);
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread panics only where this lock is poisoned, and then it is gone.
            let _ = thread.join();
        }
    }
}

/// Lets one poll at a time into a machine, without blocking the threads of the others.
#[derive(Default)]
pub(crate) struct Gate {
    busy: AtomicBool,
    waiting: Mutex<Vec<std::task::Waker>>,
}

/// The way out of a gate; lets the next in when dropped.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// `None` while somebody is inside; the waker is woken when they leave.
    pub(crate) fn enter(&self, waker: &std::task::Waker) -> Option<Inside<'_>> {
        if !self.busy.swap(true, Ordering::Acquire) {
            return Some(Inside(self));
        }
        let mut waiting = self.waiting.lock().expect(POISON);
        // Whoever was inside may have left between the two: then nobody would wake us.
        if !self.busy.swap(true, Ordering::Acquire) {
            return Some(Inside(self));
        }
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        None
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut waiting = self.0.waiting.lock().expect(POISON);
            self.0.busy.store(false, Ordering::Release);
            std::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(std::task::Waker::wake);
    }
}
