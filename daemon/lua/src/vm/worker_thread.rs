//! Stretches of a script that cannot give their thread away at the end of a slice: functions of the library, such as a search
//! for a pattern that backtracks, and Lua code that such a function calls, such as a comparison.
//!
//! Instead, the runtime gets another thread in place of the one that the stretch keeps, so that connections and other calls go
//! on. The stretch ends as any other code does: by itself, at its time limit, or when it is cancelled.

use std::time::Duration;

use toold_engine::blocking::run_blocking;

/// ReloadMode long a stretch may keep its thread from others, beyond its slice.
pub(crate) const PATIENCE: Duration = Duration::from_millis(5);
/// ReloadMode often that is tried in one poll: nothing tells whether another thread has come.
pub(crate) const TRIES: u8 = 3;
/// ReloadMode long the runtime has to put another thread in place. A thread of the system starts in a tenth of that.
const HAND_OVER: Duration = Duration::from_millis(1);
/// A text of so many bytes takes the library milliseconds.
const LONG: usize = 256 * 1024;

/// Lets the runtime go on with another thread. From then on, until the current poll ends, this one may be kept. Outside of
/// the threads that run tasks it only waits for a moment.
pub(crate) fn replace_thread() {
    // The runtime takes the place of this thread away while the closure runs, and gives it back afterwards only if no other
    // thread has taken it.
    run_blocking(|| std::thread::sleep(HAND_OVER));
}

/// The same before something is done with a text of so many bytes, when that takes long.
pub(crate) fn replace_thread_for(bytes: usize) {
    if bytes > LONG {
        replace_thread();
    }
}
