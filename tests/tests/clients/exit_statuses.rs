//! The exit statuses of toolctl: one for each kind of error, whichever command meets it.

use std::process::{Command, Output, Stdio};

use toold_tests::{Setup, TestDaemon, toolctl};

const USAGE: i32 = 2;
const NO_DAEMON: i32 = 4;
const NOT_FOUND: i32 = 5;
const DENIED: i32 = 6;

#[track_caller]
fn check(output: &Output, expected: i32, arguments: &[&str]) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(expected), "toolctl {}: {out}{err}", arguments.join(" "));
    assert!(!err.is_empty() || expected == 0, "toolctl {} says nothing", arguments.join(" "));
}

/// Commands with the name of something that does not exist.
const MISSING: &[&[&str]] = &[
    &["call", "nothing"],
    &["call", "nothing", "a=1"],
    &["call", "nothing", "--json", "{}"],
    &["call", "nothing", "--output", "json"],
    &["schema", "nothing"],
    &["tools", "nothing"],
    &["prompt", "nothing"],
    &["list", "--source", "nothing"],
    &["plugins", "show", "nothing"],
    &["plugins", "reload", "nothing"],
    &["plugins", "profile", "nothing"],
    &["plugins", "grant", "nothing"],
    &["plugins", "remove", "nothing", "--yes"],
    &["plugins", "update", "nothing"],
    &["plugins", "check", "/nonexistent"],
    &["plugins", "test", "/nonexistent"],
    &["plugins", "trust", "/nonexistent"],
    &["plugins", "logs", "nothing"],
    &["sessions", "close", "nothing"],
    &["sessions", "share", "nothing"],
    &["shells", "attach", "nothing"],
    &["shells", "kill", "nothing"],
    &["permissions", "revoke", "nothing"],
    &["permissions", "allow", "nothing"],
    &["permissions", "deny", "nothing"],
    &["permissions", "mode", "plan", "--session", "nothing"],
    &["skills", "show", "nothing"],
    &["memories", "show", "nothing"],
    &["undo", "nothing"],
    &["undo", "--yes"],
    &["mcp", "restart", "nothing"],
    &["mcp", "login", "nothing"],
    &["mcp", "logout", "nothing"],
    &["remotes", "reconnect", "nothing"],
    &["config", "show", "nothing"],
    &["config", "check", "/nonexistent"],
];

#[test]
fn a_thing_that_does_not_exist_is_5() {
    let daemon = TestDaemon::start();
    for arguments in MISSING {
        check(&daemon.toolctl(arguments), NOT_FOUND, arguments);
    }
}

/// Commands that are wrong in themselves, or in a value that only the daemon or the tool can judge.
const WRONG: &[&[&str]] = &[
    &["nothing"],
    &["list", "--nothing"],
    &["call"],
    &["call", "read", "path"],
    &["call", "read", "pth=x"],
    &["call", "read", "--json", "[]"],
    &["call", "read", "--json", r#"{"pth": "x"}"#],
    &["call", "read", "path=@/nonexistent"],
    &["call", "list", "depth=many"],
    &["events", "--kinds", "nothing"],
    &["audit", "--outcome", "nothing"],
    &["audit", "--since", "whenever"],
    &["logs", "--since", "whenever"],
    &["permissions", "check", "nothing", "x"],
    &["permissions", "check", "--explain", "file.read", "x"],
    &["permissions", "grant", "nothing", "x"],
    &["approve"],
    &[],
];

#[test]
fn wrong_usage_is_2() {
    let daemon = TestDaemon::start();
    for arguments in WRONG {
        check(&daemon.toolctl(arguments), USAGE, arguments);
    }
}

/// One of each command that talks to a daemon.
const COMMANDS: &[&[&str]] = &[
    &["list"],
    &["schema", "read"],
    &["call", "read", "path=x"],
    &["status"],
    &["events", "--since", "0"],
    &["watch"],
    &["plugins"],
    &["plugins", "logs"],
    &["sessions"],
    &["shells"],
    &["permissions", "list"],
    &["permissions", "pending"],
    &["workspaces"],
    &["audit"],
    &["audit", "verify"],
    &["tools"],
    &["tools", "search", "read"],
    &["undo", "--list"],
    &["skills"],
    &["memories"],
    &["prompt"],
    &["config", "show"],
    &["config", "reload"],
    &["mcp", "servers"],
    &["mcp", "status"],
    &["remotes"],
    &["secrets"],
];

#[test]
fn without_a_daemon_every_command_is_4() {
    let setup = Setup::new();
    for arguments in COMMANDS {
        let mut command: Command = setup.command(toolctl());
        let output = command.arg("--no-start").args(*arguments).stdin(Stdio::null()).output().unwrap();
        check(&output, NO_DAEMON, arguments);
    }
}

/// A daemon that ends each connection after the first request.
#[test]
fn a_lost_connection_is_4_for_every_command() {
    use std::io::{BufRead, BufReader};
    let setup = Setup::new();
    let listener = std::os::unix::net::UnixListener::bind(setup.path("run/toold.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut request = String::new();
            let _ = BufReader::new(stream).read_line(&mut request);
        }
    });
    for arguments in [&["list"] as &[&str], &["call", "read", "path=x"], &["audit"], &["permissions", "list"]] {
        let mut command: Command = setup.command(toolctl());
        let output = command.arg("--no-start").args(arguments).stdin(Stdio::null()).output().unwrap();
        check(&output, NO_DAEMON, arguments);
    }
}

#[test]
fn a_denied_call_is_6_and_a_failed_one_1() {
    let daemon = TestDaemon::start();
    let denied: &[&str] = &["call", "bash", "command=make", "--no-ask"];
    let output = daemon.toolctl(denied);
    assert_eq!(output.status.code(), Some(DENIED), "{}", String::from_utf8_lossy(&output.stdout));
    let failed = daemon.toolctl(&["call", "read", "path=nothing"]);
    assert_eq!(failed.status.code(), Some(1));
    let checked = daemon.toolctl(&["permissions", "check", "make"]);
    assert_eq!(checked.status.code(), Some(1));
}

#[test]
fn an_output_that_cannot_be_written_says_why_and_what_to_do() {
    let daemon = TestDaemon::start();
    for arguments in [
        &["list"] as &[&str],
        &["status", "--json"],
        &["call", "list"],
        &["--help"],
        &["events", "--since", "0"],
        &["logs"],
        &["prompt"],
        &["config", "check"],
        &["config", "path"],
        &["config", "schema"],
        &["completions", "bash"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = daemon.setup.command(toolctl());
        let output = command.args(arguments).stdin(Stdio::null()).stdout(full).output().unwrap();
        check(&output, 3, arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains("can't write the output to /dev/full: its file system is full"), "{arguments:?}: {err}");
        assert!(err.contains("free some space"), "{err}");
    }
}

#[test]
fn the_help_and_the_manual_list_the_statuses() {
    let setup = Setup::new();
    let help = setup.command(toolctl()).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for line in ["  1    the tool ran", "  5    the named", "  6    a permission", "  130  interrupted"] {
        assert!(help.contains(line), "{help}");
    }
}
