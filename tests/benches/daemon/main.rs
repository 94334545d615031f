//! The cost of the daemon, as ratios to a baseline that is measured in the same run.
//!
//! `cargo bench -p toold-tests` prints the table; `-- --quick` takes few rounds, to see that it runs, and `-- files` measures
//! only the file tools.
//! The statistics are our own: rounds of all candidates are interleaved, since absolute times of two runs
//! on a shared machine do not compare, and all but starts are pinned to one CPU. Nothing here can fail for
//! being slow.

mod commands;
mod files;
mod floods;
mod journal;
mod pipelined;
mod progress;
mod round_trips;
mod served;
mod starts;
mod stats;

use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // The servers under test are this program too, in processes of their own.
        ["serve-echo", socket] => served::echo(&PathBuf::from(socket)),
        ["serve-echo-reading", socket, file] => served::echo_reading(&PathBuf::from(socket), &PathBuf::from(file)),
        ["serve-echo-tokio", socket] => served::echo_on_tokio(&PathBuf::from(socket)),
        ["serve-by-hand", socket] => served::by_hand(&PathBuf::from(socket)),
        ["serve-rmcp", socket] => served::rmcp(&PathBuf::from(socket)),
        ["serve-daemon", dir] => served::daemon(&PathBuf::from(dir)),
        words => {
            let quick = words.contains(&"--quick") || words.contains(&"--test");
            println!("rounds are interleaved, all but starts on one CPU; medians; quick: {quick}\n");
            // Build them now if needed; otherwise the builds would be timed and pinned too.
            toold_tests::toold();
            if words.contains(&"files") {
                pin();
                return files::run(quick);
            }
            if !quick {
                toold_tests::jsonrpsee_server();
            }
            // Before the rest is pinned: a daemon that starts has all CPUs.
            starts::run(quick);
            pin();
            round_trips::run(quick);
            pipelined::run(quick);
            progress::run(quick);
            floods::run(quick);
            journal::run(quick);
            files::run(quick);
            commands::run(quick);
        }
    }
}

/// Unpinned, latencies have two modes, by whether the peer's core slept.
fn pin() {
    let mut one = rustix::thread::CpuSet::new();
    one.set(0);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &one) {
        println!("not pinned to one CPU: {error}");
    }
}
