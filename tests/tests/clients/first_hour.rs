//! What a person meets in the first hour at a terminal: words before a question, forms, keys, who did what.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

const RELEASE: &str = r#"
hygge.register_tool{
  name = "release", description = "Asks for the data of a release", input_schema = {type = "object"},
  execute = function(ctx)
    local answer = ctx.elicit{message = "What is released?", schema = {type = "object", required = {"name"},
      properties = {name = {type = "string", description = "its name"}}}}
    return answer.action .. " " .. (answer.content and answer.content.name or "nothing")
  end,
}
"#;

fn command(daemon: &TestDaemon, arguments: &[&str]) -> Command {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments).current_dir(daemon.work());
    command
}

fn written(daemon: &TestDaemon, arguments: &[&str]) -> String {
    let output = command(daemon, arguments).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn a_passphrase_is_explained_before_it_is_asked_for_and_a_restart_says_that_it_is_needed_again() {
    let daemon = TestDaemon::start();
    let mut terminal = Terminal::run(&mut command(&daemon, &["secrets", "set", "KEY"]));
    terminal.wait_for("New passphrase for the secrets");
    let text = terminal.written();
    let why = text.find("This machine has no keyring").expect("the reason");
    assert!(why < text.find("New passphrase").unwrap(), "{text}");
    // One that is too short is asked for again.
    terminal.press("short\r");
    terminal.wait_for("expected 8 characters or more");
    terminal.press(&"\u{7f}".repeat(5));
    for (answer, next) in [
        ("a long passphrase", "The same passphrase again"),
        ("a long passphrase", "Value:"),
        ("a long value", "KEY is set"),
    ] {
        terminal.press(&format!("{answer}\r"));
        terminal.wait_for(next);
    }
    assert!(terminal.end().0.success());
    let told = written(&daemon, &["restart"]);
    assert!(told.contains("the secrets are locked again: toolctl secrets unlock"), "{told}");
    // The daemon that took over is no child of this test.
    written(&daemon, &["stop"]);
}

#[test]
fn a_form_of_a_tool_is_a_form_in_toolctl_call() {
    let daemon = Setup::new().plugin("release.lua", RELEASE).start();
    let mut terminal = Terminal::run(&mut command(&daemon, &["call", "release"]));
    terminal.wait_for("fill in the form");
    assert!(!terminal.written().contains("answer in your own words"));
    terminal.press_until("f", "name:");
    terminal.wait_for("its name");
    terminal.press("tea\r");
    terminal.wait_for("Send");
    terminal.press("\r");
    let (status, text) = terminal.end();
    // The key may have been pressed once more than was needed.
    let name = text.rsplit("accept ").next().unwrap().trim();
    assert!(status.success() && name.trim_start_matches('f') == "tea", "{text}");
}

#[test]
fn the_time_that_is_left_for_an_agent_counts_down_while_nothing_is_typed() {
    let daemon = Setup::new().config("[agents.codex]\nask = \"toold\"\n").start();
    drop(daemon.connect());
    let mut terminal = Terminal::run(&mut command(&daemon, &["approve"]));
    terminal.wait_for("waiting for prompts");
    let mut hook = Wire::connect(&daemon.socket());
    let input = json!({"command": "cargo publish"});
    let asked = json!({"agent": "codex", "tool": "Bash", "input": input, "cwd": daemon.work(), "session": "c"});
    let asked = hook.request("permissions.request", asked);
    let seconds = || {
        let written = terminal.written();
        let said = written.split("answer within ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse().ok());
        let said: Vec<u64> = said.collect();
        (said.len() > 1).then(|| (said[0], said[1]))
    };
    let (first, next) = until("another second", seconds);
    assert!(first <= 50 && next < first, "{first} {next}");
    assert!(!terminal.written().contains("reason: answer within"), "{}", terminal.written());
    terminal.press_until("n", "denied");
    assert_eq!(hook.answer(asked)["result"]["decision"], "deny");
}

#[test]
fn keys_between_two_prompts_are_not_shown() {
    let daemon = TestDaemon::asking();
    let mut terminal = Terminal::run(&mut command(&daemon, &["approve"]));
    terminal.wait_for("waiting for prompts");
    let mut agent = daemon.connect();
    for number in 0..3 {
        let arguments = json!({"command": format!("echo number {number}")});
        let call = agent.request("tools.execute", json!({"name": "bash", "arguments": arguments}));
        terminal.wait_for(&format!("echo number {number}"));
        until("an answer", || {
            terminal.press("y");
            (terminal.written().matches("allowed").count() > number).then_some(())
        });
        assert_eq!(agent.answer(call)["result"]["is_error"], false);
    }
    terminal.signal(Signal::TERM);
    let (_, text) = terminal.end();
    let echoed = text.lines().find(|line| !line.trim().is_empty() && line.trim().chars().all(|c| c == 'y'));
    assert_eq!(echoed, None, "{text:?}");
}

#[test]
fn the_audit_log_and_watch_say_who_did_what() {
    let daemon = Setup::new().file("notes.txt", "tea\n").start();
    let mut watch = Terminal::run_in(&mut command(&daemon, &["watch"]), 160);
    watch.wait_for("watching calls");
    let mut codex = daemon.connect();
    codex.result("session.open", json!({"cwd": daemon.work(), "client": {"name": "codex", "version": "1"}}));
    codex.tool("read", json!({"path": "notes.txt"}));
    daemon.connect().tool("list", json!({}));
    watch.wait_for("path=notes.txt by codex");
    watch.press("\u{3}");
    drop(watch);
    until("both calls are recorded", || written(&daemon, &["audit"]).contains("list").then_some(()));
    let of_codex = written(&daemon, &["audit", "--agent", "codex"]);
    assert!(of_codex.contains("notes.txt") && of_codex.contains("codex") && !of_codex.contains("list"), "{of_codex}");
    assert!(written(&daemon, &["audit", "--agent", "gemini-cli"]).contains("no matching calls"));
}

#[test]
fn a_grant_says_where_it_is_from_and_a_revoked_denial_that_it_was_one() {
    let daemon = TestDaemon::start();
    written(&daemon, &["permissions", "grant", "--deny", "shell", "git push *"]);
    written(&daemon, &["permissions", "grant", "shell", "make *"]);
    let listed = written(&daemon, &["permissions", "list"]);
    assert_eq!(listed.matches(" terminal ").count(), 2, "{listed}");
    let grants: serde_json::Value =
        serde_json::from_str(&written(&daemon, &["permissions", "list", "--json"])).unwrap();
    for grant in grants["grants"].as_array().unwrap() {
        let told = written(&daemon, &["permissions", "revoke", grant["id"].as_str().unwrap()]);
        let expected = match grant["action"].as_str() {
            Some("deny") => "this was a denial; no longer denied: shell git push *\n",
            _ => "no longer allowed: shell make *\n",
        };
        assert_eq!(told, expected);
    }
    assert!(written(&daemon, &["plugins"]).contains("toolctl plugins list --all"));
}

#[test]
fn the_log_says_what_is_wrong_with_the_setting_of_a_secret() {
    let daemon = Setup::new().config("[notify]\npost = \"https://ntfy.example/tea\"\ntoken = 5\n").start();
    until("the problem is in the log", || daemon.log().contains("notify.token: expected a text, got 5").then_some(()));
}

#[test]
fn without_plugins_those_that_ship_with_toold_are_named() {
    let daemon = TestDaemon::start();
    let listed = written(&daemon, &["plugins"]);
    assert!(listed.contains("no plugins of your own") && listed.contains("toolctl plugins list --all"), "{listed}");
    assert!(written(&daemon, &["plugins", "list", "--all"]).contains("json_query"));
}

/// As in `docker run -it`: process 1 adopts what agents leave behind, so that its own children prove nothing.
#[test]
fn a_shell_that_is_process_one_says_where_to_decide_and_a_shell_in_it_decides() {
    let setup = Setup::new();
    let container = ["setsid", "--ctty", "unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let works = Command::new("unshare").args(&container[3..]).arg("true").status().is_ok_and(|status| status.success());
    if !works {
        return toold_tests::skip("the system permits no namespaces here");
    }
    let mut command = setup.command("setsid".as_ref());
    command.args(&container[1..]).args(["--kill-child", "bash", "--norc", "--noprofile", "-i"]).env("PS1", "one> ");
    let program = toolctl().display().to_string();
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/", "permission_mode": "default",
        "tool_name": "Bash", "tool_input": {"command": "ls"}});
    let agent = setup.path("agent.sh");
    std::fs::write(&agent, format!("echo '{call}' | {program} hook claude-code >/dev/null; :\n")).unwrap();
    let mut terminal = Terminal::run_in(&mut command, 200);
    let line = |terminal: &mut Terminal, typed: &str, shown: &str| {
        terminal.press(&format!("{typed}\r"));
        terminal.wait_for(shown);
    };
    line(&mut terminal, &format!("{program} permissions grant shell 'before *'"), "allow shell before * always");
    line(&mut terminal, &format!("{program} doctor"), "its shell is process 1");
    line(&mut terminal, "PS1='two> ' bash --norc --noprofile -i", "two> ");
    // Starts are known by ticks of a hundredth of a second, and a shell that began in the tick of the agent's start is not older.
    line(
        &mut terminal,
        "began() { cut -d' ' -f22 /proc/$1/stat; }; until [ $(began self) -gt $(began $$) ]; do :; done; echo ol''der",
        "older",
    );
    line(&mut terminal, &format!("sh {}; echo agent has end''ed", agent.display()), "agent has ended");
    // It began before the agent.
    line(&mut terminal, &format!("{program} permissions grant shell 'second *'"), "allow shell second * always");
    line(&mut terminal, "PS1='three> ' bash --norc --noprofile -i", "three> ");
    line(&mut terminal, &format!("{program} permissions grant shell 'third *'"), "allow shell third * always");
    line(&mut terminal, "exit", "exit");
    line(&mut terminal, "exit", "exit");
    line(&mut terminal, "echo ba''ck", "back");
    // Until the daemon has noticed that the agent has ended.
    let refused = format!("{program} permissions grant shell 'first *' 2>&1 | grep 'of this terminal is process 1'");
    line(&mut terminal, &format!("until {refused}; do :; done"), "the shell of this terminal is process 1, which");
    terminal.wait_for("docker exec -it");
    line(
        &mut terminal,
        &format!("{program} agents confirm 0123456789"),
        "start another shell (`bash`), and give the code there",
    );
    // A later shell may have been started by what the agent left behind.
    line(&mut terminal, "PS1='later> ' bash --norc --noprofile -i", "later> ");
    line(
        &mut terminal,
        &format!("{program} permissions grant shell 'later *'"),
        "may have made this program's terminal",
    );
    line(&mut terminal, &format!("{program} permissions list; echo li''sted"), "listed");
    let written = terminal.written();
    let list = written.rsplit("PATTERN").next().unwrap();
    assert!(list.contains("second *") && !list.contains("first *") && !list.contains("later *"), "{written}");
    terminal.press("exit\rexit\r");
    terminal.end();
}

#[test]
fn toolctl_mcp_at_a_terminal_says_what_it_is_for() {
    let daemon = TestDaemon::start();
    let terminal = Terminal::run(&mut command(&daemon, &["mcp"]));
    terminal.wait_for("`toolctl mcp list` shows the MCP servers");
    terminal.signal(Signal::TERM);
    terminal.end();
}

#[test]
fn without_a_daemon_a_command_says_how_to_start_one_and_restart_starts_none() {
    let setup = Setup::new();
    for arguments in [&["--no-start", "status"][..], &["--no-start", "restart"], &["--no-start", "plugins"]] {
        let output = setup.command(toolctl()).args(arguments).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {told}");
        assert!(told.contains("no daemon is running") && told.contains("`toolctl start` starts it"), "{told}");
    }
}

#[test]
fn a_misspelt_field_of_a_tool_is_named() {
    let plugin = "hygge.register_tool{name = 'tea', description = 'x', execut = function() end}\n";
    let daemon = Setup::new().plugin("tea.lua", plugin).start();
    let listed = written(&daemon, &["list", "--source", "plugin"]);
    let expected =
        "tea.lua:1: register_tool: field 'execute': expected a function, got nothing; there is a field 'execut'";
    // The place is said once.
    assert!(listed.contains(expected) && listed.matches("tea.lua:1").count() == 1, "{listed}");
}
