//! The cost of many clients at once to a real daemon: memory of those that are idle, calls of those that are not, events to
//! those that listen.
//!
//! `cargo bench -p toold-tests --bench load` prints lines of a table; `-- --quick` takes few of each, to see that it
//! runs. Nothing here can fail for being slow.

mod active;
mod idle;
mod listeners;
mod loaded_daemon;

use loaded_daemon::LoadedDaemon;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick" || argument == "--test");
    raise_open_files();
    println!("| what | figure | unit |\n|---|---|---|");
    let daemon = LoadedDaemon::start();
    idle::run(&daemon, if quick { 500 } else { 10_000 });
    drop(daemon);
    let daemon = LoadedDaemon::start();
    let (clients, seconds) = if quick { (50, 1) } else { (1_000, 10) };
    active::run(&daemon, clients, seconds);
    let (subscribers, calls) = if quick { (20, 50) } else { (200, 1_000) };
    listeners::run(&daemon, subscribers, calls);
}

fn row(what: &str, figure: f64, unit: &str) {
    let digits = if figure < 100.0 { 2 } else { 0 };
    println!("| {what} | {figure:.digits$} | {unit} |");
}

/// One line for the table of goals.
fn goal(number: u8, what: &str, value: f64, unit: &str, most: f64) {
    let held = if value <= most { "held" } else { "missed" };
    println!("goal G{number} | {what} | {value:.2} | {unit} | at most {most} | {held}");
}

/// Both ends of ten thousand connections: the daemon raises its own limit.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        println!("the limit of open files is not raised: {error}");
    }
}
