//! Only one call at a time runs in a Lua state; the others wait without holding their thread.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Lets one poll at a time into a Lua state, without blocking the threads of the others.
#[derive(Default)]
pub(crate) struct Gate {
    busy: AtomicBool,
    waiting: Mutex<Vec<std::task::Waker>>,
}

/// Holds the gate; lets the next one in when dropped.
pub(crate) struct GateGuard<'a>(&'a Gate);

impl Gate {
    /// `None` while the gate is held; the waker is woken when it is released.
    pub(crate) fn enter(&self, waker: &std::task::Waker) -> Option<GateGuard<'_>> {
        if !self.busy.swap(true, Ordering::Acquire) {
            return Some(GateGuard(self));
        }
        let mut waiting = self.waiting.lock();
        // The gate may have been released between the two checks: then nobody would wake us.
        if !self.busy.swap(true, Ordering::Acquire) {
            return Some(GateGuard(self));
        }
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        None
    }
}

impl Drop for GateGuard<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut waiting = self.0.waiting.lock();
            self.0.busy.store(false, Ordering::Release);
            std::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(std::task::Waker::wake);
    }
}
