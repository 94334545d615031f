//! Stopping scripts: time limits and cancellation, as the interrupt of the Lua state checks them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::deadline::Deadline;
use toold_host::memory_reserve;

/// The condition that stops one call, one load or one hook. Once set it stays set: a script that catches the error gets
/// it again at its next safepoint.
pub(crate) struct ScriptInterrupt {
    reason: AtomicU8,
    limit: InterruptLimit,
}

enum InterruptLimit {
    Call(Arc<Cx>),
    Needs(Arc<Cx>, Deadline),
    Load(Deadline, CancellationToken),
    Hook(Deadline),
    Ending(Deadline),
    Timer(Deadline, CancellationToken),
}

const NEEDS_LIMIT: Duration = Duration::from_secs(2);

const RUNNING: u8 = 0;
const TIMED_OUT: u8 = 1;
const CANCELLED: u8 = 2;
const LOAD_TIMED_OUT: u8 = 3;
const HOOK_TIMED_OUT: u8 = 4;
const ENDING_TIMED_OUT: u8 = 5;
const TIMER_TIMED_OUT: u8 = 6;
const NO_MEMORY: u8 = 7;

/// Why a script ends, or does not begin, when the system has no more memory.
pub(crate) const OUT_OF_MEMORY: &str = "the system has no more memory";

impl ScriptInterrupt {
    pub(crate) fn of_call(cx: Arc<Cx>) -> Self {
        Self::new(InterruptLimit::Call(cx))
    }

    /// For the `permission` function of a tool: the time limit of the call itself has not begun.
    pub(crate) fn of_needs(cx: Arc<Cx>) -> Self {
        Self::new(InterruptLimit::Needs(cx, Deadline::after(NEEDS_LIMIT)))
    }

    pub(crate) fn of_load(limit: Duration, stop: CancellationToken) -> Self {
        Self::new(InterruptLimit::Load(Deadline::after(limit), stop))
    }

    pub(crate) fn of_hook(limit: Duration) -> Self {
        Self::new(InterruptLimit::Hook(Deadline::after(limit)))
    }

    /// For functions that run after the end of a call.
    pub(crate) fn of_ending(limit: Duration) -> Self {
        Self::new(InterruptLimit::Ending(Deadline::after(limit)))
    }

    pub(crate) fn of_timer(limit: Duration, stop: CancellationToken) -> Self {
        Self::new(InterruptLimit::Timer(Deadline::after(limit), stop))
    }

    fn new(limit: InterruptLimit) -> Self {
        Self { reason: AtomicU8::new(RUNNING), limit }
    }

    /// Two relaxed loads: this runs at every safepoint.
    pub(crate) fn is_set(&self) -> bool {
        if memory_reserve::is_short() {
            self.end_without_memory();
        }
        self.reason.load(Ordering::Relaxed) != RUNNING
    }

    /// Scripts end when the system has no more memory, so that the daemon need not.
    #[cold]
    fn end_without_memory(&self) {
        // Another reason was there before.
        let _ = self.reason.compare_exchange(RUNNING, NO_MEMORY, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether the script was ended because the system had no more memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.reason.load(Ordering::Relaxed) == NO_MEMORY
    }

    /// Checks the limits and sets the interrupt if one is reached. True if it is set.
    pub(crate) fn check(&self) -> bool {
        if self.is_set() {
            return true;
        }
        let reason = match &self.limit {
            InterruptLimit::Call(cx) | InterruptLimit::Needs(cx, _) if cx.is_cancelled() => {
                if cx.timed_out() {
                    TIMED_OUT
                } else {
                    CANCELLED
                }
            }
            InterruptLimit::Call(cx) if cx.deadline.remaining().is_zero() => TIMED_OUT,
            InterruptLimit::Needs(_, limit) if limit.remaining().is_zero() => TIMED_OUT,
            InterruptLimit::Load(_, stop) | InterruptLimit::Timer(_, stop) if stop.is_cancelled() => CANCELLED,
            InterruptLimit::Load(limit, _) if limit.remaining().is_zero() => LOAD_TIMED_OUT,
            InterruptLimit::Hook(limit) if limit.remaining().is_zero() => HOOK_TIMED_OUT,
            InterruptLimit::Ending(limit) if limit.remaining().is_zero() => ENDING_TIMED_OUT,
            InterruptLimit::Timer(limit, _) if limit.remaining().is_zero() => TIMER_TIMED_OUT,
            InterruptLimit::Call(_)
            | InterruptLimit::Needs(..)
            | InterruptLimit::Load(..)
            | InterruptLimit::Hook(_)
            | InterruptLimit::Ending(_)
            | InterruptLimit::Timer(..) => return false,
        };
        self.reason.store(reason, Ordering::Relaxed);
        true
    }

    /// The reason, as the script's error states it.
    pub(crate) fn reason(&self) -> &'static str {
        match self.reason.load(Ordering::Relaxed) {
            TIMED_OUT => "the call's time limit is exceeded",
            CANCELLED => "it was cancelled",
            LOAD_TIMED_OUT => "the time limit for loading a plugin is exceeded",
            HOOK_TIMED_OUT => "the hook's time limit is exceeded",
            ENDING_TIMED_OUT => "the time limit for functions of ctx.on_end is exceeded",
            NO_MEMORY => OUT_OF_MEMORY,
            TIMER_TIMED_OUT => "the timer's time limit is exceeded",
            _ => "stopped",
        }
    }

    /// How much time is left; the limit may move while the user is asked.
    pub(crate) fn remaining(&self) -> Duration {
        match &self.limit {
            InterruptLimit::Call(cx) => cx.deadline.remaining(),
            InterruptLimit::Needs(_, limit)
            | InterruptLimit::Load(limit, _)
            | InterruptLimit::Hook(limit)
            | InterruptLimit::Ending(limit)
            | InterruptLimit::Timer(limit, _) => limit.remaining(),
        }
    }

    /// Waits until the interrupt is set, for waits that no safepoint reaches. Cancel-safe.
    pub(crate) async fn stopped(&self) {
        match &self.limit {
            InterruptLimit::Call(cx) => {
                tokio::select! {
                    () = cx.cancel.cancelled() => {}
                    () = cx.deadline.over() => {}
                }
            }
            InterruptLimit::Needs(cx, limit) => {
                tokio::select! {
                    () = cx.cancel.cancelled() => {}
                    () = limit.over() => {}
                }
            }
            InterruptLimit::Load(limit, stop) | InterruptLimit::Timer(limit, stop) => {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = limit.over() => {}
                }
            }
            InterruptLimit::Hook(limit) | InterruptLimit::Ending(limit) => limit.over().await,
        }
        self.check();
    }
}
