//! When a script must stop: limits and cancellation, told to the machine's interrupt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::deadline::Deadline;

/// What stops one call, one load or one hook. Once set it stays set: a script that catches the
/// error gets it again at its next safepoint.
pub(crate) struct ScriptInterrupt {
    reason: AtomicU8,
    limit: InterruptLimit,
}

enum InterruptLimit {
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

impl ScriptInterrupt {
    pub(crate) fn of_call(cx: Arc<Cx>) -> Self {
        Self::new(InterruptLimit::Call(cx))
    }

    /// Of the function that says what a call will touch: the call's own time has not begun.
    pub(crate) fn of_needs(cx: Arc<Cx>) -> Self {
        Self::new(InterruptLimit::Needs(cx, Deadline::after(NEEDS_LIMIT)))
    }

    pub(crate) fn of_load(limit: Duration, stop: CancellationToken) -> Self {
        Self::new(InterruptLimit::Load(Deadline::after(limit), stop))
    }

    pub(crate) fn of_hook(limit: Duration) -> Self {
        Self::new(InterruptLimit::Hook(Deadline::after(limit)))
    }

    fn new(limit: InterruptLimit) -> Self {
        Self { reason: AtomicU8::new(RUNNING), limit }
    }

    /// One relaxed load: the interrupt asks at every safepoint.
    pub(crate) fn is_set(&self) -> bool {
        self.reason.load(Ordering::Relaxed) != RUNNING
    }

    /// Looks at the limits, and sets the interrupt when one is reached; true when it is set.
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
            InterruptLimit::Load(_, stop) if stop.is_cancelled() => CANCELLED,
            InterruptLimit::Load(limit, _) if limit.remaining().is_zero() => LOAD_TIMED_OUT,
            InterruptLimit::Hook(limit) if limit.remaining().is_zero() => HOOK_TIMED_OUT,
            InterruptLimit::Call(_)
            | InterruptLimit::Needs(..)
            | InterruptLimit::Load(..)
            | InterruptLimit::Hook(_) => return false,
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

    /// ReloadMode long the limit is still away; it may move while a person is asked.
    pub(crate) fn remaining(&self) -> Duration {
        match &self.limit {
            InterruptLimit::Call(cx) => cx.deadline.remaining(),
            InterruptLimit::Needs(_, limit) | InterruptLimit::Load(limit, _) | InterruptLimit::Hook(limit) => {
                limit.remaining()
            }
        }
    }

    /// Waits until the interrupt must be set, for waits that no interrupt reaches. Cancel-safe.
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
            InterruptLimit::Load(limit, stop) => {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = limit.over() => {}
                }
            }
            InterruptLimit::Hook(limit) => limit.over().await,
        }
        self.check();
    }
}
