//! The allocator of the program: jemalloc, with [a reserve](memory_reserve) for the moment in which the system gives no more
//! memory. Without it, the first allocation of any script that fails would end the daemon. At rest, the memory of
//! [the program's code](return_code) is given back, too.
//!
//! The compiler of scripts and the database have the allocator of the C library. What fails there is tried again in the same
//! way.
#![allow(unsafe_code, reason = "an allocator is unsafe, and jemalloc looks its options up by the name of a symbol")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use tikv_jemallocator::Jemalloc;
use toold_host::memory_reserve;

/// Returns memory to the system also when one thread allocated it, another freed it, and both are
/// idle, as with the memory of scripts.
#[global_allocator]
static ALLOCATOR: ReservingAllocator = ReservingAllocator;

/// The allocator's settings, read before its first allocation (jemalloc(3), "Tuning"). Two arenas:
/// with the usual four per processor, scripts that use their full limit cost twice as much. Threads
/// cache small blocks only: an idle thread returns nothing. Unused pages are returned within 2 s, by [a thread of the
/// allocator](return_pages_when_idle). They are returned with their addresses, or the reserve could not be taken again where
/// addresses are limited.
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_OPTIONS: &[u8; 59] = b"narenas:2,tcache_max:8192,dirty_decay_ms:2000,retain:false\0";

/// How long an allocation that fails waits for memory that other threads return: scripts end at their next safepoint.
const PATIENCE: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(1);

/// Prepares the process for the moment in which the system gives no more memory. Called once, before there are threads.
pub(crate) fn begin() {
    memory_reserve::begin(return_unused);
    // SAFETY: both functions only set what the allocators of the C and of the C++ library do from now on, and
    // `before_bad_alloc` returns without an exception.
    unsafe {
        // With one arena for each thread, each takes 64 MiB of addresses, and most of them use little of it.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        libc::mallopt(libc::M_ARENA_MAX, 2);
        set_new_handler(Some(before_bad_alloc));
    }
    return_pages_when_idle();
}

/// Starts the thread of the allocator that returns unused pages; without it, they are returned only during allocation. Not by
/// an option: a process that becomes a confined program must have one thread to get a namespace of its own.
fn return_pages_when_idle() {
    let name = c"background_thread";
    let mut on = true;
    // SAFETY: the name ends with a zero, and this entry of jemalloc takes a value of this type and size (jemalloc(3)).
    unsafe {
        let on = ptr::from_mut(&mut on).cast();
        tikv_jemalloc_sys::mallctl(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), on, size_of::<bool>());
    }
}

unsafe extern "C" {
    /// `std::set_new_handler`.
    #[link_name = "_ZSt15set_new_handlerPFvvE"]
    fn set_new_handler(handler: Option<extern "C" fn()>) -> Option<extern "C" fn()>;
}

thread_local! {
    /// When an allocation of C++ began to fail in this thread, and when it last did.
    static FAILING: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

/// Called when an allocation of C++ has failed, which is then tried again. The exception that it throws without this function
/// would end the daemon.
extern "C" fn before_bad_alloc() {
    let now = Instant::now();
    let (first, last) = FAILING.get().unwrap_or((now, now));
    let is_same = now - last < 10 * AGAIN;
    let first = if is_same { first } else { now };
    FAILING.set(Some((first, now)));
    make_room();
    match now - first < PATIENCE {
        true => thread::sleep(AGAIN),
        // SAFETY: it only sets what happens from now on: the exception is thrown.
        false => drop(unsafe { set_new_handler(None) }),
    }
}

/// Returns what jemalloc has kept of memory that was freed.
fn return_unused() {
    let all_arenas = c"arena.4096.purge";
    // SAFETY: the name ends with a zero, and this entry of jemalloc takes and gives no value.
    unsafe { tikv_jemalloc_sys::mallctl(all_arenas.as_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0) };
}

/// Unmaps the pages of the program's code, of which a daemon at rest runs few. A page that runs again is mapped again from the
/// program's file, without reading it while the system caches it.
pub(crate) fn return_code() {
    #[cfg(target_os = "linux")]
    {
        let (first, end) = (&raw const __executable_start, &raw const etext);
        let whole = (end.addr() - first.addr()) & !(rustix::param::page_size() - 1);
        // SAFETY: nothing writes to these pages, so that the file has what they held (madvise(2), MADV_DONTNEED). The first is
        // the start of the file, which is that of a page.
        unsafe { libc::madvise(first.cast_mut().cast(), whole, libc::MADV_DONTNEED) };
    }
}

// Symbols that linkers define: the start of the program's file in memory, and the end of its code.
#[cfg(target_os = "linux")]
unsafe extern "C" {
    static __executable_start: u8;
    static etext: u8;
}

fn make_room() {
    memory_reserve::give_up();
    return_unused();
}

struct ReservingAllocator;

// SAFETY: each function is jemalloc's own, which is called again when it fails. A failed call changes nothing.
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
    if found.is_null() { again(&allocate) } else { found }
}

#[cold]
fn again(allocate: &dyn Fn() -> *mut u8) -> *mut u8 {
    let until = Instant::now() + PATIENCE;
    loop {
        make_room();
        let found = allocate();
        if !found.is_null() || Instant::now() > until {
            return found;
        }
        thread::sleep(AGAIN);
    }
}
