//! What the daemon costs, as ratios to a floor that is measured in the same run.
//!
//! `cargo bench -p toold-tests` prints the table; `-- --quick` takes few rounds, to see that it runs.
//! The statistics are our own: rounds of all candidates are interleaved, and everything is pinned to one
//! CPU, since absolute times of two runs on a shared machine do not compare. Nothing here can fail for
//! being slow.

mod floods;
mod pipelined;
mod progress;
mod round_trips;
mod served;
mod starts;
mod stats;

use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // The servers under test are this program too, in processes of their own.
        ["serve-echo", socket] => served::echo(&PathBuf::from(socket)),
        ["serve-echo-tokio", socket] => served::echo_on_tokio(&PathBuf::from(socket)),
        ["serve-by-hand", socket] => served::by_hand(&PathBuf::from(socket)),
        ["serve-rmcp", socket] => served::rmcp(&PathBuf::from(socket)),
        ["serve-websocket", port_file] => served::websocket(&PathBuf::from(port_file)),
        ["serve-daemon", dir] => served::daemon(&PathBuf::from(dir)),
        words => {
            let quick = words.contains(&"--quick") || words.contains(&"--test");
            // Built now if it must be: what builds it would be pinned too.
            toold_tests::toold();
            let all = pin();
            println!("rounds are interleaved, all but starts on one CPU; medians; quick: {quick}\n");
            round_trips::run(quick);
            pipelined::run(quick);
            progress::run(quick);
            floods::run(quick);
            if let Some(all) = all {
                rustix::thread::sched_setaffinity(None, &all).expect("what was allowed before is allowed");
            }
            starts::run(quick);
        }
    }
}

/// Unpinned, latencies have two modes, by whether the peer's core slept. Gives the CPUs that there were before.
fn pin() -> Option<rustix::thread::CpuSet> {
    let mut one = rustix::thread::CpuSet::new();
    one.set(0);
    let before = rustix::thread::sched_getaffinity(None);
    match before.and_then(|before| rustix::thread::sched_setaffinity(None, &one).map(|()| before)) {
        Ok(before) => Some(before),
        Err(error) => {
            println!("not pinned to one CPU: {error}");
            None
        }
    }
}
