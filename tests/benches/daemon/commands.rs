//! A command: by itself, through the launcher, and as a call.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toold_tests::{Setup, TestDaemon};

use crate::stats::{Demand, goal, median, ratio, row};

const RULE: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";
const SHELL: &str = "/bin/bash";
const ARGUMENTS: [&str; 4] = ["--noprofile", "--norc", "-c", "true"];

pub(crate) fn run(quick: bool) {
    let daemon = Setup::new().config(RULE).start();
    let mut wire = daemon.connect();
    let mut call = || {
        let start = Instant::now();
        let ran = wire.tool("bash", json!({"command": "true"}));
        assert_eq!(ran["is_error"], false, "{ran}");
        start.elapsed()
    };
    // The first one prepares the launcher and starts the reaper.
    call();
    let launcher = launcher(&daemon);
    let (mut plain, mut launched, mut called) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if quick { 5 } else { 300 } {
        plain.push(timed(Command::new(SHELL).args(ARGUMENTS)));
        launched.extend(launcher.as_ref().map(|launcher| {
            // The mark of no daemon.
            timed(Command::new(launcher).args(["launch", "819200", SHELL]).args(ARGUMENTS))
        }));
        called.push(call());
    }
    let (plain, called) = (median(plain), median(called));
    println!("{:<44} {:>13}   {:>8}", "command, to its end", "", "of plain");
    row("`bash -c true`", plain, plain);
    if launched.is_empty() {
        println!("this daemon has no launcher of its own");
    } else {
        let launched = median(launched);
        row("the same through the launcher", launched, plain);
        goal(17, "a shell through the launcher, of a shell", ratio(launched, plain), "x", Demand::AtMost(1.5));
    }
    row("a call of `bash` with `true`", called, plain);
    let more = called.saturating_sub(plain).as_secs_f64() * 1e3;
    goal(17, "a call of `bash`, more than a shell", more, "ms", Demand::AtMost(3.0));
    println!();
    daemon.stop();
}

/// The launcher that the daemon has in memory.
fn launcher(daemon: &TestDaemon) -> Option<PathBuf> {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().flatten();
    let is_launcher =
        |path: &PathBuf| std::fs::read_link(path).is_ok_and(|to| to.starts_with("/memfd:toold-launcher (deleted)"));
    descriptors.map(|entry| entry.path()).find(is_launcher)
}

fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.env_clear().stdin(Stdio::null()).status().unwrap();
    assert!(status.success());
    start.elapsed()
}
