//! What toolctl shows on terminals of any width, and without one.

use std::process::Command;

use regex::Regex;
use serde_json::json;
use toold_tests::{Setup, Terminal, TestDaemon, toolctl, until};

const COMMANDS: &[&[&str]] = &[
    &["list"],
    &["schema", "bash"],
    &["status"],
    &["events", "--since", "0"],
    &["plugins"],
    &["sessions"],
    &["shells"],
    &["permissions", "list"],
    &["permissions", "review", "--yes"],
    &["permissions", "check", "--explain", "git log --oneline | head -n 3"],
    &["workspaces"],
    &["audit"],
    &["audit", "--decisions"],
    &["tools", "search", "read a file"],
    &["tools", "cost"],
    &["undo", "--list"],
    &["skills"],
    &["memories"],
    &["config", "show", "--origin"],
    &["doctor"],
    &["logs", "--lines", "20"],
    &["mcp", "servers"],
    &["mcp", "status"],
    &["remotes"],
    &["agents"],
];

const WIDTHS: [u16; 6] = [30, 40, 60, 80, 120, 300];

const CONFIG: &str = r#"
[[permission.rules]]
category = "shell"
pattern = "echo *"
action = "allow"
[mcp.servers.absent]
command = "/nonexistent/server"
args = ["with", "some", "arguments"]
"#;

/// A daemon with something to show in each table.
fn busy() -> TestDaemon {
    let daemon = Setup::new().config(CONFIG).plugin("broken.lua", "local x =\n").start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    for number in 0..3 {
        wire.tool("write", json!({"path": format!("a_file_with_a_long_name_{number}.txt"), "content": "x"}));
        wire.tool("bash", json!({"command": format!("echo {number} and several other words in a long command")}));
    }
    for pattern in ["make *", "cargo build --release", "git log *"] {
        assert!(daemon.toolctl(&["permissions", "grant", "shell", pattern]).status.success());
    }
    wire.tool("bash", json!({"command": "echo waits", "background": true}));
    until("the calls are recorded", || {
        let audit = daemon.toolctl(&["audit", "--json"]);
        String::from_utf8(audit.stdout).unwrap().contains("several other words").then_some(())
    });
    daemon
}

fn on_terminal(daemon: &TestDaemon, arguments: &[&str], width: u16) -> String {
    let mut command: Command = daemon.setup.command(toolctl());
    command.args(arguments).env("COLORTERM", "truecolor").env_remove("NO_COLOR");
    Terminal::run_in(&mut command, width).end().1
}

fn without_styles(text: &str) -> String {
    Regex::new(r"\x1b\[[0-9;?]*[A-Za-z]").unwrap().replace_all(text, "").replace('\r', "")
}

/// No more than this many lines in a row may have a single letter where others have words: a column of one letter a line
/// has many.
const LONE_LETTERS: usize = 2;

#[test]
fn every_table_fits_the_terminal_and_tears_no_word() {
    let daemon = busy();
    for arguments in COMMANDS {
        for width in WIDTHS {
            let text = without_styles(&on_terminal(&daemon, arguments, width));
            let mut lone = 0;
            for line in text.lines() {
                assert!(line.chars().count() <= width.into(), "{arguments:?} at {width}: {line:?}\n{text}");
                let is_lone = line.trim().chars().count() == 1 && line.trim().chars().all(char::is_alphanumeric);
                lone = if is_lone { lone + 1 } else { 0 };
                assert!(lone <= LONE_LETTERS, "{arguments:?} at {width}:\n{text}");
            }
        }
    }
}

#[test]
fn nothing_is_lost_on_a_narrow_terminal() {
    let daemon = busy();
    for (arguments, words) in [
        (&["permissions", "list"] as &[&str], ["cargo build --release", "always", "terminal"]),
        (&["sessions"], ["test", "accept_edits", "folder: "]),
        (&["audit"], ["bash", "ok", "shell echo"]),
    ] {
        let text = without_styles(&on_terminal(&daemon, arguments, 30)).replace("\n    ", " ");
        for word in words {
            assert!(text.contains(word), "{arguments:?} lacks {word:?}:\n{text}");
        }
    }
}

#[test]
fn a_pattern_of_a_rule_or_grant_is_one_line_on_eighty_columns() {
    let daemon = busy();
    let pattern = "cargo test --workspace --locked";
    assert!(daemon.toolctl(&["permissions", "grant", "--scope", "project", "shell", pattern]).status.success());
    let text = without_styles(&on_terminal(&daemon, &["permissions", "list"], 80));
    let is_grant = |line: &&str| line.contains("grant_") && line.contains("allow");
    assert!(text.lines().any(|line| line.contains(pattern)), "{text}");
    assert_eq!(text.lines().filter(is_grant).count(), 4, "{text}");
    let sessions = without_styles(&on_terminal(&daemon, &["sessions"], 80));
    assert!(sessions.contains("FOLDER") && sessions.lines().count() <= 3, "{sessions}");
}

#[test]
fn a_question_is_broken_between_words() {
    let daemon = TestDaemon::start();
    let mut command: Command = daemon.setup.command(toolctl());
    let line = "cargo build --release --locked --features everything --target-dir /tmp/somewhere";
    command.args(["call", "bash", &format!("command={line}")]);
    let mut terminal = Terminal::run_in(&mut command, 40);
    terminal.wait_for("deny, with a reason");
    let text = without_styles(&terminal.written());
    // Behind the last picture of what is still running.
    let text = text.split_once('?').unwrap().1;
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    let shown: Vec<&str> = text.split_whitespace().collect();
    assert!(line.split(' ').all(|word| shown.contains(&word)), "{text}");
    terminal.press_until("n", "not allowed");
    terminal.end();
}

#[test]
fn a_call_of_the_audit_log_takes_two_lines_on_forty_columns() {
    let daemon = busy();
    let text = without_styles(&on_terminal(&daemon, &["audit"], 40));
    let calls = text.lines().filter(|line| !line.starts_with(' ')).count();
    assert!(calls >= 6 && text.lines().count() <= 2 * calls, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
}

#[test]
fn plain_output_has_a_fact_on_each_line_and_no_styles() {
    let daemon = busy();
    for arguments in COMMANDS {
        let text = on_terminal(&daemon, &[arguments as &[&str], &["--plain"]].concat(), 120);
        assert!(!text.contains('\x1b'), "{arguments:?}: {text:?}");
        assert!(!text.contains(['│', '─', '┌', '╭', '█', '⠋']), "{arguments:?}: {text}");
    }
    let sessions = on_terminal(&daemon, &["sessions", "--plain"], 120);
    assert!(sessions.lines().any(|line| line.trim_end() == "  mode: accept_edits"), "{sessions}");
    let call = on_terminal(&daemon, &["call", "bash", "command=echo hello", "--plain"], 120);
    assert_eq!(call.replace('\r', ""), "hello\n");
}

#[test]
fn no_color_removes_colours() {
    let daemon = busy();
    let mut command: Command = daemon.setup.command(toolctl());
    let text = Terminal::run(command.args(["permissions", "list"]).env("NO_COLOR", "1")).end().1;
    assert!(!text.contains('\x1b'), "{text:?}");
    let coloured = on_terminal(&daemon, &["permissions", "list"], 100);
    assert!(coloured.contains("\x1b["), "{coloured:?}");
}
