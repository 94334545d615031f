//! Undoing changes from a shell.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, toolctl};

fn command(daemon: &TestDaemon, arguments: &[&str]) -> Command {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments);
    command
}

#[track_caller]
fn run(daemon: &TestDaemon, arguments: &[&str]) -> Output {
    let output = command(daemon, arguments).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A daemon that lets tools write, and one file.
fn daemon() -> TestDaemon {
    let rule = "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n";
    Setup::new().config(rule).file("a.txt", "before\n").start()
}

fn content(daemon: &TestDaemon) -> String {
    fs::read_to_string(daemon.work().join("a.txt")).unwrap()
}

fn change(daemon: &TestDaemon, from: &str, to: &str) {
    let mut wire = daemon.connect();
    wire.tool("read", json!({"path": "a.txt"}));
    let changed = wire.tool("edit", json!({"path": "a.txt", "old": from, "new": to}));
    assert_eq!(changed["is_error"], false, "{changed}");
}

#[test]
fn the_last_change_is_shown_and_taken_back_when_its_session_and_the_daemon_are_gone() {
    let mut daemon = daemon();
    change(&daemon, "before", "between");
    change(&daemon, "between", "after");
    daemon.restart("KILL");
    let mut terminal = Terminal::run(&mut command(&daemon, &["undo"]));
    terminal.wait_for("-after");
    terminal.wait_for("+between");
    terminal.press_until("y", "undid the changes to a.txt");
    assert!(terminal.end().0.success());
    assert_eq!(content(&daemon), "between\n");
    run(&daemon, &["undo", "--yes", "a.txt"]);
    assert_eq!(content(&daemon), "before\n");
    let listed: Value = serde_json::from_slice(&run(&daemon, &["undo", "--list", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().iter().filter(|change| change["undone"] == true).count(), 2, "{listed}");
}

#[test]
fn nothing_is_taken_back_without_a_yes() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    let mut terminal = Terminal::run(&mut command(&daemon, &["undo"]));
    terminal.wait_for("[y/N]");
    terminal.press("n");
    let (_, written) = terminal.end();
    assert!(written.trim_end().ends_with("no"), "{written}");
    let nobody = command(&daemon, &["undo"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(nobody.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("--yes"));
    assert_eq!(content(&daemon), "after\n");
}

#[test]
fn a_file_that_changed_since_keeps_its_text() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    fs::write(daemon.work().join("a.txt"), "by hand\n").unwrap();
    let refused = command(&daemon, &["undo", "--yes"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has changed since"));
    assert_eq!(content(&daemon), "by hand\n");
}

#[test]
fn no_tool_sees_the_text_before_a_change() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    let undo = daemon.setup.path("state/toold/undo");
    let kept = fs::read_dir(undo.join("@contents")).unwrap().next().unwrap().unwrap().path();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let read = wire.tool("read", json!({"path": kept}));
    assert_eq!(read["is_error"], true, "{read}");
    let written = wire.tool("write", json!({"path": kept, "content": "x"}));
    assert_eq!(written["is_error"], true, "{written}");
}

#[test]
fn changes_are_shown_as_one_diff_and_forgotten() {
    let daemon = daemon();
    change(&daemon, "before", "between");
    change(&daemon, "between", "after");
    let shown = String::from_utf8(run(&daemon, &["changes", "--since", "1h"]).stdout).unwrap();
    assert!(shown.contains("-before") && shown.contains("+after"), "{shown}");
    assert_eq!(shown.matches("# by edit in call").count(), 2, "{shown}");
    assert!(!shown.contains("between"), "{shown}");
    let forgotten = run(&daemon, &["changes", "forget", "--all", "--yes"]).stdout;
    assert_eq!(String::from_utf8(forgotten).unwrap(), "forgot 2 changes\n");
    let none = command(&daemon, &["undo", "--yes", "a.txt"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(none.status.code(), Some(5));
    assert_eq!(content(&daemon), "after\n");
}

#[test]
fn all_changes_of_an_hour_are_undone_at_once() {
    let daemon = daemon();
    change(&daemon, "before", "between");
    change(&daemon, "between", "after");
    run(&daemon, &["undo", "--since", "1h", "--yes"]);
    assert_eq!(content(&daemon), "before\n");
}
