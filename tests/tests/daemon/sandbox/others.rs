//! Other processes, and what all processes of a user share.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use toold_tests::{Setup, TestDaemon};

use crate::sandbox::{confined, machine_scopes, run};

/// A process that no daemon started, with System V shared memory and a message queue.
struct Outside {
    process: Child,
    /// Its id, and the names of its resources.
    names: String,
}

impl Outside {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/sandbox/outside.py");
        let mut command = Command::new("python3");
        let mut process = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut names = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut names).unwrap();
        Self { process, names: names.trim().to_owned() }
    }

    /// Ends it; returns whether its resources still existed.
    fn end(mut self) -> bool {
        drop(self.process.stdin.take());
        self.process.wait().unwrap().success()
    }
}

/// Actions of a command on a process, by name.
fn reached(daemon: &TestDaemon, names: &str) -> Vec<(String, String)> {
    let script = include_str!("reach_others.py");
    std::fs::write(daemon.work().join("reach_others.py"), script).unwrap();
    let text = run(&mut daemon.connect(), &format!("python3 reach_others.py {names}"));
    let endings =
        ["done", "Operation not permitted", "Permission denied", "Invalid argument", "Function not implemented"];
    let endings = endings.iter().chain(&["No such file or directory", "Read-only file system"]);
    let split = |line: &str| {
        let ending = endings.clone().find(|ending| line.ends_with(**ending)).unwrap_or_else(|| panic!("{text}"));
        (line[..line.len() - ending.len()].trim().to_owned(), (*ending).to_owned())
    };
    text.lines().map(split).collect()
}

const NAMES: [&str; 17] = [
    "limits",
    "memory",
    "queue",
    "add_key",
    "request_key",
    "keyctl",
    "trace",
    "read its memory",
    "its files",
    "its environment",
    "its descriptor",
    "affinity",
    "priority",
    "priorities of the user",
    "ioprio",
    "badness",
    "signal",
];

/// Checks that all attempts except these fail, for an unrelated process and for the daemon. Whether these succeed
/// depends on the kernel, which requires other rights of root than of a user.
#[track_caller]
fn check(sandbox: &str, left: &[&str]) {
    let Some(daemon) = confined(sandbox, Setup::new()) else { return };
    let outside = Outside::start();
    let pid = daemon.connect().result("daemon.status", serde_json::json!({}))["pid"].to_string();
    let (_, of_outside) = outside.names.split_once(' ').unwrap();
    for names in [outside.names.clone(), format!("{pid} {of_outside}")] {
        let attempts = reached(&daemon, &names);
        let tried: Vec<&str> = attempts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(tried, NAMES);
        for (name, ending) in attempts {
            assert!(ending != "done" || left.contains(&name.as_str()), "{sandbox}: {name}");
            if name.contains("key") {
                assert_eq!(ending, "Function not implemented", "{name}");
            }
        }
    }
    assert!(outside.end());
}

#[test]
fn a_command_that_changes_nothing_reaches_no_other_process() {
    check("mode = \"read-only\"", if machine_scopes() { &[] } else { &["signal"] });
}

#[test]
fn a_command_that_writes_in_the_workspace_changes_at_most_how_others_are_scheduled() {
    let scheduling = ["affinity", "priority", "priorities of the user", "ioprio", "signal"];
    let scheduling = if machine_scopes() { &scheduling[..4] } else { &scheduling };
    check("mode = \"workspace-write\"", scheduling);
}

#[test]
fn a_guarded_command_neither_reads_nor_limits_other_processes() {
    check("mode = \"guard\"", &["affinity", "priority", "priorities of the user", "ioprio", "badness", "signal"]);
}

/// Servers that one command started are ended by another one.
#[test]
fn a_guarded_command_ends_other_processes() {
    let Some(daemon) = confined("mode = \"guard\"", Setup::new()) else { return };
    let mut sleeping = Command::new("sleep").arg("1000").spawn().unwrap();
    let said = run(&mut daemon.connect(), &format!("kill {} && echo sent", sleeping.id()));
    if said != "sent\n" {
        sleeping.kill().unwrap();
    }
    assert!(!sleeping.wait().unwrap().success());
    assert_eq!(said, "sent\n");
}
