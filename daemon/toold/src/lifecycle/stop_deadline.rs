//! Kills the process if it does not end by itself, because something in it waits for an
//! unresponsive file system or device. This does not depend on the runtime, whose threads may be
//! the ones that wait.

use std::io;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long a stopping daemon may take to end after its work.
const AFTER_WORK: Duration = Duration::from_millis(2_500);
/// How long to wait for the last line of the log.
const LAST_LINE: Duration = Duration::from_millis(100);

/// Ends the process some time after each SIGTERM and SIGINT, if it has not ended before: after
/// `work`, the time for calls in flight, and another 2.5 s.
///
/// # Errors
/// The system provides no thread, or no pipe.
pub fn after_signals(work: Duration) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let watch = move || signals.forever().for_each(|_| end_within(work));
    thread::Builder::new().name("signals".to_owned()).stack_size(64 * 1024).spawn(watch).map(drop)
}

/// Ends the process after `work` and 2.5 s, if it has not ended before.
pub fn end_within(work: Duration) {
    let end = move || {
        thread::sleep(work + AFTER_WORK);
        // The log may be what blocks.
        let _ = thread::Builder::new().spawn(|| {
            tracing::error!(
                "the daemon did not stop in time: something waits for the operating system, and the process exits without it"
            );
        });
        thread::sleep(LAST_LINE);
        std::process::exit(1);
    };
    if let Err(error) = thread::Builder::new().name("deadline".to_owned()).stack_size(64 * 1024).spawn(end) {
        tracing::warn!(%error, "can't enforce the stop deadline");
    }
}
