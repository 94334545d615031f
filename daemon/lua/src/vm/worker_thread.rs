//! For code that cannot yield its thread at the end of a slice: library functions, such as a search for a pattern that
//! backtracks, and Lua code that such a function calls, such as a comparison.
//!
//! The runtime gets another worker thread instead, so that connections and other calls go on. The code ends as any
//! other does: by itself, at its time limit, or when it is cancelled.

use std::time::Duration;

use toold_engine::blocking::run_blocking;

/// How long such code may keep its thread, beyond its slice.
pub(crate) const PATIENCE: Duration = Duration::from_millis(5);
/// How often a replacement is tried in one poll: nothing reports whether another thread has started.
pub(crate) const TRIES: u8 = 3;
/// How long the runtime has to start another thread. The system starts one in a tenth of that.
const HAND_OVER: Duration = Duration::from_millis(1);
/// The library needs milliseconds for a text of this many bytes.
const LONG: usize = 256 * 1024;

/// Lets the runtime continue with another worker thread. Until the current poll ends, this thread may be blocked. On
/// threads that do not run tasks it only waits for a moment.
pub(crate) fn replace_thread() {
    // The runtime hands over this worker's queue while the closure runs, and takes it back afterwards only if no other
    // thread has taken it.
    run_blocking(|| std::thread::sleep(HAND_OVER));
}

/// The same before work on a text of this many bytes, if that takes long.
pub(crate) fn replace_thread_for(bytes: usize) {
    if bytes > LONG {
        replace_thread();
    }
}
