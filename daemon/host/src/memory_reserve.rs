//! Memory that the process holds for the moment in which the system gives it no more.
//!
//! The daemon's allocator gives the reserve up when an allocation fails, and tries again. From then on [`is_short`] is true,
//! and what can do without memory ends or does not begin: the scripts of plugins. Once the system has memory again, [`regain`]
//! takes the reserve back. There is one reserve for each process, as there is one allocator.
#![allow(unsafe_code, reason = "the reserve is no memory of the allocator, so it is mapped")]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libc::c_void;

/// The size of the reserve. It is never written to, so it takes addresses, and no pages.
const BYTES: usize = 64 << 20;

/// Returns what the allocator holds and nobody uses.
static RETURN_UNUSED: OnceLock<fn()> = OnceLock::new();
static RESERVE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// Takes the reserve for the first time. `return_unused` returns what the allocator holds and nobody uses, before the reserve
/// is taken again. Without a reserve, a process ends when there is no more memory, as others do.
pub fn begin(return_unused: fn()) {
    let _ = RETURN_UNUSED.set(return_unused);
    regain();
}

/// Gives the reserve back to the system, after an allocation has failed. Allocates nothing, and may be called by any thread at
/// any time.
pub fn give_up() {
    let reserve = RESERVE.swap(ptr::null_mut(), Ordering::AcqRel);
    IS_SHORT.store(true, Ordering::Relaxed);
    if !reserve.is_null() {
        // SAFETY: `regain` has mapped exactly these bytes, nobody has seen their address, and the exchange made this the only
        // call that unmaps them.
        unsafe { libc::munmap(reserve, BYTES) };
    }
}

/// Whether an allocation has failed, and the system has not given the reserve again. One relaxed load.
pub fn is_short() -> bool {
    IS_SHORT.load(Ordering::Relaxed)
}

/// Takes the reserve again if it was given up: usually one relaxed load. False while there is too little memory for what need
/// not begin now.
pub fn ensure() -> bool {
    !is_short() || regain()
}

/// Takes the reserve, unless the process has it. False when the system has too little memory.
fn regain() -> bool {
    if RESERVE.load(Ordering::Relaxed).is_null() {
        if is_short()
            && let Some(return_unused) = RETURN_UNUSED.get()
        {
            return_unused();
        }
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place that the system chooses replaces no other.
        let reserve = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, kind, -1, 0) };
        if reserve == libc::MAP_FAILED {
            return false;
        }
        let kept = RESERVE.compare_exchange(ptr::null_mut(), reserve, Ordering::AcqRel, Ordering::Relaxed);
        if kept.is_err() {
            // SAFETY: mapped above, and never stored.
            unsafe { libc::munmap(reserve, BYTES) };
        }
    }
    IS_SHORT.store(false, Ordering::Relaxed);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_given_up_once_and_taken_again() {
        assert!(regain() && regain() && !is_short());
        give_up();
        give_up();
        assert!(is_short());
        assert!(regain() && !is_short());
    }
}
