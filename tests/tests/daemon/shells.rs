//! Commands in the background: seen, typed into, attached to and ended from other connections.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

fn free() -> TestDaemon {
    Setup::new().config(ALLOW).start()
}

#[track_caller]
fn start(wire: &mut Wire, mut arguments: Value) -> String {
    arguments["background"] = json!(true);
    let result = wire.tool("bash", arguments);
    assert_eq!(result["is_error"], false, "{result}");
    result["metadata"]["shell_id"].as_str().unwrap().to_owned()
}

/// The output of a shell until this text is there.
#[track_caller]
fn output_until(wire: &mut Wire, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let item = wire.notification("shells.output")["result"].take();
        text.push_str(item["text"].as_str().unwrap_or_else(|| panic!("{item} after {text:?}")));
    }
    text
}

fn event(wire: &mut Wire) -> Value {
    wire.notification("events.event")["result"].take()
}

#[test]
fn a_shell_is_listed_written_to_and_followed_to_its_end() {
    let daemon = free();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["shell.started", "shell.exited"]}));
    let id = start(&mut wire, json!({"command": "echo ready; while read w; do echo got $w; done; exit 3"}));
    let started = event(&mut wire);
    assert_eq!((&started["kind"], &started["shell_id"]), (&json!("shell.started"), &json!(id)));
    wire.result("shells.attach", json!({"shell_id": id}));
    output_until(&mut wire, "ready\n");
    wire.result("shells.write", json!({"shell_id": id, "text": "one\n"}));
    assert_eq!(output_until(&mut wire, "one\n"), "got one\n");

    let shells = wire.result("shells.list", json!({}))["shells"].take();
    let shell = &shells[0];
    assert_eq!(
        (&shell["shell_id"], &shell["running"], &shell["status"]),
        (&json!(id), &json!(true), &json!("running"))
    );
    assert_eq!((&shell["output_bytes"], &shell["terminal"]), (&json!(14), &Value::Null));
    assert_eq!(shell["cwd"], json!(daemon.work()));

    wire.result("shells.write", json!({"shell_id": id, "text": "two\n", "eof": true}));
    assert_eq!(output_until(&mut wire, "two\n"), "got two\n");
    let ended = wire.notification("shells.output")["result"].take();
    assert_eq!(ended, json!({"status": "exit code 3", "exit_code": 3}));
    let exited = event(&mut wire);
    assert_eq!((&exited["kind"], &exited["exit_code"]), (&json!("shell.exited"), &json!(3)));
    let error = wire.error("shells.write", json!({"shell_id": id, "text": "x\n", "typed": true}));
    assert_eq!(error["data"]["kind"], "input_closed", "{error}");
    let shells = wire.result("shells.list", json!({}))["shells"].take();
    assert_eq!((&shells[0]["running"], &shells[0]["exit_code"]), (&json!(false), &json!(3)));
}

#[test]
fn late_attach_shows_earlier_output() {
    let daemon = free();
    let mut wire = daemon.connect();
    let id = start(&mut wire, json!({"command": "printf 'first\\nsecond\\n'; read w"}));
    // The shell may write its lines one by one.
    until("both lines are written", || {
        let shells = wire.result("shells.list", json!({}))["shells"].take();
        (shells[0]["output_bytes"] == 13).then_some(())
    });
    let mut other = daemon.connect();
    other.result("shells.attach", json!({"shell_id": id, "tail": 7}));
    assert_eq!(output_until(&mut other, "second\n"), "second\n");
    let subscription = other.result("shells.attach", json!({"shell_id": id}));
    output_until(&mut other, "second\n");
    assert_eq!(other.result("shells.detach", json!({"subscription": subscription})), true);
    assert_eq!(other.error("shells.attach", json!({"shell_id": "sh_99"}))["data"]["kind"], "unknown_shell");
}

#[test]
fn shell_input_of_an_agent_is_judged_as_commands() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"cat\"\naction = \"allow\"\n\
                [[permission.rules]]\ncategory = \"shell\"\npattern = \"echo *\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(rule).start();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    let id = start(&mut agent, json!({"command": "cat"}));

    // No pattern matches words that an unknown program reads.
    let writing = agent.request("shells.write", json!({"shell_id": id, "text": "echo hi; rm -rf x\n"}));
    let asked = person.notification("permissions.event")["result"]["request"].take();
    assert_eq!((&asked["category"], &asked["target"]), (&json!("shell"), &json!("echo hi; rm -rf x")));
    assert_eq!(asked["reason"], json!(format!("typed into {id}: cat")));
    person.result("permissions.reply", json!({"request_id": asked["request_id"], "action": "deny", "message": "no"}));
    let answer = agent.answer(writing);
    assert_eq!(answer["error"]["code"], -32002, "{answer}");

    let writing = agent.request("shells.write", json!({"shell_id": id, "text": "echo hi\n", "eof": true}));
    person.notification("permissions.event");
    let asked = person.notification("permissions.event")["result"]["request"].take();
    person.result("permissions.reply", json!({"request_id": asked["request_id"], "action": "allow"}));
    assert_eq!(agent.answer(writing)["result"], json!({}));
    let text = agent.tool("bash_output", json!({"shell_id": id, "wait_ms": 10_000}))["content"][0]["text"].take();
    assert!(text.as_str().unwrap().starts_with("echo hi\n"), "{text}");

    // It also may not claim that a person typed, end shells without permission, or see those of others.
    for (method, params) in [
        ("shells.write", json!({"shell_id": id, "text": "x\n", "typed": true})),
        ("shells.kill", json!({"shell_id": id})),
        ("shells.list", json!({"all": true})),
    ] {
        assert_eq!(agent.error(method, params)["code"], -32002, "{method}");
    }
    person.result("permissions.grant", json!({"category": "shell", "pattern": "**", "scope": "session"}));
    let other = start(&mut person, json!({"command": "sleep 1000"}));
    for (method, params) in [
        ("shells.write", json!({"shell_id": other, "text": "x\n"})),
        ("shells.attach", json!({"shell_id": other})),
        ("shells.resize", json!({"shell_id": other, "cols": 80, "rows": 24})),
    ] {
        assert_eq!(agent.error(method, params)["data"]["kind"], "unknown_shell", "{method}");
    }
    assert_eq!(agent.result("shells.list", json!({}))["shells"].as_array().unwrap().len(), 1);
    assert_eq!(person.result("shells.list", json!({"all": true}))["shells"].as_array().unwrap().len(), 2);
    assert_eq!(person.result("shells.kill", json!({"shell_id": other})), json!({"status": "killed"}));
}

#[test]
fn a_shell_outlives_its_frontend_and_ends_with_its_session() {
    let daemon = free();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "session_id": "mine"}));
    let id = start(&mut wire, json!({"command": "read w; echo got $w; sleep 1000"}));
    drop(wire);
    let mut later = Wire::connect(&daemon.socket());
    later.result("session.open", json!({"session_id": "mine"}));
    later.result("shells.write", json!({"shell_id": id, "text": "it\n"}));
    let text = later.tool("bash_output", json!({"shell_id": id, "wait_ms": 10_000}))["content"][0]["text"].take();
    assert_eq!(text, "got it\n[running]");
    let mut person = daemon.connect();
    person.result("shells.attach", json!({"shell_id": id}));
    output_until(&mut person, "got it\n");
    later.result("session.close", json!({"session_id": "mine"}));
    let ended = person.notification("shells.output")["result"].take();
    assert_eq!(ended, json!({"status": "killed"}));
    until("its processes are gone", || daemon.processes().is_empty().then_some(()));
}

#[test]
fn next_daemon_ends_shells_of_a_killed_daemon() {
    let mut daemon = free();
    let mut wire = daemon.connect();
    // In the group, in a session of its own, and as an orphan.
    let command =
        "trap '' TERM HUP; setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); echo up; sleep 1000";
    let id = start(&mut wire, json!({"command": command}));
    wire.tool("bash_output", json!({"shell_id": id, "wait_ms": 10_000}));
    until("all have started", || (daemon.processes().len() >= 5).then_some(()));
    // The reaper kills them at once. If it is killed too, they are left to the next daemon: this one, or one of another
    // test that starts before it.
    let reaper = daemon.reaper();
    assert!(Command::new("kill").args(["-9", &reaper.to_string()]).status().unwrap().success());
    daemon.restart("KILL");
    until("they are found and ended", || daemon.processes().is_empty().then_some(()));
}

#[test]
fn shells_end_with_the_daemon() {
    let daemon = free();
    let mut wire = daemon.connect();
    let command = "trap '' TERM HUP; setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 1000";
    start(&mut wire, json!({"command": command}));
    start(&mut wire, json!({"command": command, "tty": true}));
    until("all have started", || (daemon.processes().len() >= 10).then_some(()));
    // Looks for remaining processes.
    daemon.stop();
}

#[test]
fn commands_get_the_sessions_variables_and_few_of_the_daemons() {
    let daemon = free();
    let mut wire = Wire::connect(&daemon.socket());
    let env = json!({"FROM_SESSION": "yes", "LD_PRELOAD": "/x.so", "BASH_ENV": "/x"});
    wire.result("session.open", json!({"cwd": daemon.work(), "env": env}));
    let result = wire.tool("bash", json!({"command": "env"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    // The daemon itself has TOOLD_LOG, TOOLD_SOCKET and NO_COLOR; bash adds SHLVL and _.
    let expected = [
        "FROM_SESSION",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LC_ALL",
        "PAGER",
        "PATH",
        "PWD",
        "SHLVL",
        "TERM",
        "TOOLD_RUN",
        "TOOLD_SOCKET",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "_",
    ];
    assert_eq!(names, expected);
}

#[test]
fn process_in_a_shell_may_not_use_other_shells() {
    let script = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
for method, params in [
    ("shells.list", {"all": True}), ("shells.write", {"shell_id": sys.argv[2], "text": "x\n", "typed": True}),
    ("shells.write", {"shell_id": sys.argv[2], "text": "x\n"}), ("shells.kill", {"shell_id": sys.argv[2]}),
    ("shells.attach", {"shell_id": sys.argv[2]}), ("shells.resize", {"shell_id": sys.argv[2], "cols": 1, "rows": 1}),
]:
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"); f.flush()
    print(method, json.loads(f.readline())["error"]["data"]["kind"])
"#;
    let daemon = Setup::new().config(ALLOW).file("try.py", script).start();
    let mut wire = daemon.connect();
    let id = start(&mut wire, json!({"command": "cat", "tty": true}));
    let command = format!("(setsid python3 try.py {} {id} &); read w", daemon.socket().display());
    let other = start(&mut wire, json!({"command": command, "tty": true}));
    wire.result("shells.attach", json!({"shell_id": other}));
    let text = output_until(&mut wire, "shells.resize ");
    let text = if text.ends_with('\n') { text } else { text + &output_until(&mut wire, "\n") };
    let refused = "shells.list permission_denied\nshells.write unknown_shell\nshells.write unknown_shell\n\
                   shells.kill permission_denied\nshells.attach unknown_shell\nshells.resize unknown_shell\n";
    assert_eq!(text.replace('\r', ""), refused);
}

#[test]
fn toolctl_lists_writes_and_kills() {
    let daemon = free();
    let mut wire = daemon.connect();
    let id =
        start(&mut wire, json!({"command": "read w; echo got $w; sleep 1000", "tty": true, "cols": 90, "rows": 20}));
    let table = String::from_utf8(daemon.toolctl(&["shells"]).stdout).unwrap();
    let words: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..3], [&id, "running", "90x20"], "{table}");
    assert!(daemon.toolctl(&["shells", "write", &id, "these", "words"]).status.success());
    wire.result("shells.attach", json!({"shell_id": id}));
    output_until(&mut wire, "got these words\r\n");
    let killed = daemon.toolctl(&["shells", "kill", &id]);
    assert_eq!(String::from_utf8(killed.stdout).unwrap(), format!("{id}: killed\n"));
    assert_eq!(daemon.toolctl(&["shells", "kill", "sh_99"]).status.code(), Some(5));
    let json: Value = serde_json::from_slice(&daemon.toolctl(&["shells", "list", "--json"]).stdout).unwrap();
    assert_eq!(json["shells"][0]["status"], "killed");
}

#[test]
fn background_shell_of_toolctl_outlives_the_command() {
    let daemon = free();
    let sessions = || {
        let list: Value = serde_json::from_slice(&daemon.toolctl(&["sessions", "--json"]).stdout).unwrap();
        list["sessions"].as_array().unwrap().len()
    };
    assert!(daemon.toolctl(&["call", "bash", "command=true"]).status.success());
    assert_eq!(sessions(), 0);
    let output = daemon.toolctl(&["call", "bash", "command=read w; echo got $w", "background=true"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("sh_1 runs in the background"));
    assert_eq!(sessions(), 1);
    let mut command = daemon.setup.command(toolctl());
    let mut terminal = Terminal::run(command.args(["shells", "attach", "sh_1"]));
    terminal.wait_for("Ctrl-C detaches");
    terminal.press("this\n");
    let (status, text) = terminal.end();
    assert!(status.success() && text.contains("got this\r\n") && text.contains("sh_1: exit code 0"), "{text}");
}

#[test]
fn a_program_can_be_attached_to_through_pipes() {
    let daemon = free();
    let mut wire = daemon.connect();
    let id = start(&mut wire, json!({"command": "while read w; do echo got $w; done; exit 5"}));
    let mut command = daemon.setup.command(toolctl());
    command.args(["shells", "attach", &id]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "got one\ngot two\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{id}: exit code 5\n"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_terminal_is_attached_with_its_size_left_and_come_back_to() {
    let daemon = free();
    let mut wire = daemon.connect();
    let id = start(&mut wire, json!({"command": "bash --norc --noprofile", "tty": true}));
    let attach = || {
        let mut command: Command = daemon.setup.command(toolctl());
        Terminal::run(command.args(["shells", "attach", &id]))
    };
    let mut terminal = attach();
    terminal.wait_for("Ctrl-] detaches");
    // From the first key on, the person's terminal sets the size.
    terminal.press("stty size; echo $((6 * 7))\r");
    terminal.wait_for("30 100\r\n42");
    // Keys go to the program: here they end a command that would continue. It reports when it owns the terminal; before
    // that, bash would take the key.
    terminal.press("sh -c 'echo $((6 * 9)); exec sleep 1000'\r");
    terminal.wait_for("54\r\n");
    terminal.press_until("\x03", "^C");
    terminal.press("\x1d");
    let (status, text) = terminal.end();
    assert!(status.success() && text.contains(&format!("detached from {id}; it keeps running")), "{text}");

    let mut terminal = attach();
    terminal.wait_for("42");
    terminal.press("exit 7\r");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(1));
    assert!(text.contains(&format!("{id}: exit code 7")), "{text}");
}

/// A command that writes this many lines of 100 bytes and `the end`.
fn flood(megabytes: u64) -> String {
    format!("yes \"$(printf '%099d')\" | head -n {megabytes}0000; echo the end")
}

#[test]
fn a_flood_does_not_take_the_daemons_memory() {
    let daemon = free();
    let mut wire = daemon.connect();
    let mut floods = |megabytes: u64| {
        let command = flood(megabytes);
        let result = wire.tool("bash", json!({"command": command, "timeout_ms": 300_000}));
        assert!(result["content"][0]["text"].as_str().unwrap().ends_with("the end\n"), "{}", result["metadata"]);
        let spool = std::fs::metadata(result["metadata"]["spool"].as_str().unwrap()).unwrap().len();
        assert_eq!(spool, megabytes * 1_000_000 + 8);
        let id = start(&mut wire, json!({"command": format!("read go; {command}")}));
        wire.result("shells.attach", json!({"shell_id": id, "tail": 0}));
        wire.result("shells.write", json!({"shell_id": id, "text": "go\n"}));
        let mut last = String::new();
        let end = loop {
            let item = wire.notification("shells.output")["result"].take();
            match item["text"].as_str() {
                Some(text) => last = text.to_owned(),
                None => break item,
            }
        };
        assert_eq!((&end["exit_code"], last.ends_with("the end\n")), (&json!(0), true));
        wire.result("daemon.status", json!({}))["memory_bytes"].as_u64().unwrap()
    };
    // A fixed amount for any of these: its own code, buffers, the 1 MiB that a shell keeps.
    let before = floods(4);
    let grown = floods(100).saturating_sub(before);
    // The allocator returns memory at its own pace.
    assert!(grown < 64_000_000, "{grown} bytes more for twice 100 MB of output");
}
