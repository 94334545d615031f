//! toolctl as people and scripts run it, against the real daemon.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, toolctl, until};

/// Whatever daemon toolctl started in this setup is stopped at the end.
struct Started(Setup);

impl Started {
    fn new() -> Self {
        Self(Setup::new())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(toolctl());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let status = self.run(&["--no-start", "status", "--json"]);
        let pid = serde_json::from_slice::<Value>(&status.stdout).ok().and_then(|status| status["pid"].as_u64());
        let stopped = self.run(&["stop"]);
        if let Some(pid) = pid {
            let process = format!("/proc/{pid}");
            until("the daemon ends", || (!std::path::Path::new(&process).exists()).then_some(()));
        }
        if !std::thread::panicking() {
            assert!(stopped.status.success(), "{}", err(&stopped));
        }
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", out(output), err(output)))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", err(output)))
}

#[test]
fn many_at_once_start_one_daemon() {
    let started = Started::new();
    let children: Vec<_> = (0..16)
        .map(|_| {
            let mut command = started.command(&["status", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut pids: Vec<Value> =
        children.into_iter().map(|child| json(&child.wait_with_output().unwrap())["pid"].clone()).collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn a_started_daemon_leads_a_session_of_its_own() {
    let started = Started::new();
    let pid = json(&started.run(&["status", "--json"]))["pid"].clone();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // proc(5): behind the name in brackets come state, parent, group, session.
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, pid.to_string());
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), std::path::Path::new("/"));
}

#[test]
fn a_stopped_daemon_is_gone_and_the_next_command_starts_another() {
    let started = Started::new();
    let first = json(&started.run(&["status", "--json"]))["pid"].clone();
    assert_eq!(code(&started.run(&["stop"])), 0);
    let gone = started.run(&["--no-start", "status"]);
    assert_eq!((code(&gone), out(&gone)), (4, String::new()));
    assert!(err(&gone).contains("no daemon is running"), "{}", err(&gone));
    let second = json(&started.run(&["status", "--json"]))["pid"].clone();
    assert_ne!(first, second);
}

#[test]
fn a_failed_start_shows_the_daemons_own_words() {
    // A folder stands where the lock should be.
    let started = Started(Setup::new().file("place/toold.sock.lock/file", ""));
    let output = started.run(&["--socket", "place/toold.sock", "status"]);
    assert_eq!((code(&output), out(&output)), (4, String::new()), "{}", err(&output));
    assert!(err(&output).contains("did not start"), "{}", err(&output));
    assert!(err(&output).contains("toold: "), "{}", err(&output));
}

#[test]
fn wrong_usage_is_status_2_and_an_unknown_tool_3() {
    let daemon = TestDaemon::start();
    assert_eq!(code(&daemon.toolctl(&["call"])), 2);
    assert_eq!(code(&daemon.toolctl(&["call", "read", "path"])), 2);
    assert_eq!(code(&daemon.toolctl(&["call", "read", "--json", "[]"])), 2);
    let unknown = daemon.toolctl(&["call", "no_such_tool", "--json", "{}"]);
    assert_eq!((code(&unknown), out(&unknown)), (3, String::new()));
    assert!(err(&unknown).contains("no_such_tool"), "{}", err(&unknown));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let daemon = TestDaemon::start();
    for arguments in [&["--help"] as &[&str], &["list", "--json"], &["status"], &["completions", "bash"]] {
        let mut command = daemon.setup.command(toolctl());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((code(&output), err(&output)), (0, String::new()), "{arguments:?}");
    }
}

#[test]
fn the_bridge_passes_bytes_and_starts_the_daemon() {
    let started = Started::new();
    let mut command = started.command(&["connect"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "daemon.ping"});
    // The end of stdin must not cost the answer.
    child.stdin.take().unwrap().write_all(format!("{ping}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(json(&output), json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    assert_eq!(code(&output), 0);
}

#[test]
fn completions_name_the_program() {
    let setup = Setup::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = setup.command(toolctl()).args(["completions", shell]).output().unwrap();
        assert!(out(&output).contains("COMPLETE"), "{shell}: {}", out(&output));
    }
}

#[test]
fn doctor_finds_nothing_wrong_with_a_fresh_daemon() {
    let daemon = TestDaemon::start();
    let output = daemon.toolctl(&["doctor", "--json"]);
    let findings = json(&output);
    let bad: Vec<&Value> = findings.as_array().unwrap().iter().filter(|finding| finding["health"] == "bad").collect();
    // The harness makes the socket's folder, and with the mode that the umask leaves.
    assert!(bad.iter().all(|finding| finding["about"] == "socket"), "{bad:?}");
}
