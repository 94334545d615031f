//! The allocator of the program: jemalloc, with [a reserve](memory_reserve) for the moment in which the system gives no more
//! memory. Without it, the first allocation of any script that fails would end the daemon.
#![allow(unsafe_code, reason = "an allocator is unsafe, and jemalloc looks its options up by the name of a symbol")]

use std::alloc::{GlobalAlloc, Layout};

use tikv_jemallocator::Jemalloc;
use toold_host::memory_reserve;

/// Returns memory to the system also when one thread allocated it, another freed it, and both are
/// idle, as with the memory of scripts.
#[global_allocator]
static ALLOCATOR: ReservingAllocator = ReservingAllocator;

/// The allocator's settings, read before its first allocation (jemalloc(3), "Tuning"). Two arenas:
/// with the usual four per processor, scripts that use their full limit cost twice as much. Threads
/// cache small blocks only: an idle thread returns nothing. Unused pages are returned within 2 s, by a thread of the
/// allocator: without it, only during allocation. They are returned with their addresses, or the reserve could not be taken
/// again where addresses are limited.
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_OPTIONS: &[u8; 82] =
    b"narenas:2,tcache_max:4096,dirty_decay_ms:2000,background_thread:true,retain:false\0";

struct ReservingAllocator;

// SAFETY: each function is jemalloc's own, which is called once more when it fails. A failed call changes nothing.
unsafe impl GlobalAlloc for ReservingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_again(|| unsafe { Jemalloc.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_again(|| unsafe { Jemalloc.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_again(|| unsafe { Jemalloc.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.dealloc(old, layout) }
    }
}

#[inline]
fn or_again(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let found = allocate();
    if !found.is_null() {
        return found;
    }
    memory_reserve::give_up();
    allocate()
}
