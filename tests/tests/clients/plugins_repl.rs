//! `toolctl plugins repl` and `plugins.evaluate`: Lua that a person types, in a plugin's Lua state.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

const COUNTER: &str = "count = 0\nfunction bump(by) count = count + (by or 1) return count end\n\
    function note() print('noted', count) hygge.log('warn', 'careful', {at = count}) end\n\
    hygge.register_tool{name = 'counted', description = 'd', permission = false, execute = function() return count end}\n";

fn counter() -> TestDaemon {
    Setup::new().plugin("counter.lua", COUNTER).start()
}

fn repl(daemon: &TestDaemon, arguments: &[&str]) -> Command {
    let mut command = daemon.setup.command(toolctl());
    command.args(["plugins", "repl"]).args(arguments);
    command
}

/// The output of the prompt for these lines.
fn piped(daemon: &TestDaemon, arguments: &[&str], lines: &str) -> Output {
    answered(&mut repl(daemon, arguments), lines)
}

fn answered(command: &mut Command, lines: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn lines_run_in_the_plugins_own_state() {
    let daemon = counter();
    let lines =
        "bump()\nbump(41)\nfor i = 1, 2 do\n  print(i)\nend\n{1, a = \"b\", f = bump}\nnote()\n\nctx.tool, nil\n";
    let output = piped(&daemon, &["counter"], lines);
    assert_eq!(
        text(&output.stdout),
        "1\n42\n1\n2\n{1, a = \"b\", f = <function bump at counter.lua:2>}\n\
         noted\t42\nwarn: careful {\"at\":42}\n\"evaluate_counter\"\nnil\n"
    );
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    // The plugin's tools see what the prompt changed.
    assert_eq!(daemon.connect().tool("counted", json!({}))["content"][0]["text"], "42");
}

#[test]
fn errors_name_their_place_and_the_next_line_runs() {
    let daemon = counter();
    let output = piped(&daemon, &["counter"], "error('no')\nbump('x')\nx = = 1\n1 + 1\nfunction f(\n");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "2\n".to_owned()));
    let err = text(&output.stderr);
    for part in ["prompt:1: no", "counter.lua:2: ", "prompt:1: ", "the input ends early"] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let output = piped(&daemon, &["none"], "1\n");
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("there is no plugin none"), "{}", text(&output.stderr));
}

#[test]
fn an_evaluation_is_a_call_of_the_plugin() {
    let daemon = counter();
    let mut wire = daemon.connect();
    let evaluate = |source: &str| json!({"name": "counter", "source": source});
    let answer = wire.result("plugins.evaluate", evaluate("function f()"));
    assert_eq!(answer, json!({"incomplete": true}));

    // It may do what the plugin may do, and no more.
    let answer = wire.result("plugins.evaluate", evaluate("hygge.fs.write('made', 'x')"));
    assert_eq!(answer["result"]["is_error"], true);
    let words = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("file.write"), "{words}");
    assert!(!daemon.work().join("made").exists());
    let grant = json!({"category": "file.write", "pattern": "**", "scope": "always", "chain": ["counter"]});
    wire.result("permissions.grant", grant);
    let answer = wire.result("plugins.evaluate", evaluate("hygge.fs.write('made', 'x')"));
    assert_eq!(answer["result"]["is_error"], false, "{answer}");

    // It is stopped like any call, and its output is bounded.
    let params = json!({"name": "counter", "source": "while true do end", "timeout_ms": 50});
    let answer = wire.result("plugins.evaluate", params);
    assert_eq!(answer["result"]["metadata"]["timed_out"], true, "{answer}");
    let answer = wire.result("plugins.evaluate", evaluate("string.rep('x', 1e7)"));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().len() < 20_000);

    let rows = wire.result("audit.query", json!({"tool": "evaluate_counter"}));
    let rows = rows["entries"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "a beginning is no call");
    assert!(rows.iter().any(|row| row["outcome"] == "timed_out" && row["source"] == "plugin:counter"), "{rows:?}");
}

#[test]
fn no_client_of_a_model_evaluates_anything() {
    let daemon = counter();
    daemon.connect();
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    assert_eq!(agent.error("plugins.evaluate", json!({"name": "counter", "source": "bump()"}))["code"], -32002);
    // Neither is it a tool.
    assert_eq!(
        agent.error("tools.execute", json!({"name": "evaluate_counter", "arguments": {"source": "bump()"}}))["code"],
        -32001
    );

    let mut mcp = Wire::connect(&daemon.socket());
    mcp.result(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"},
               "_meta": {"toold/default-cwd": daemon.work()}}),
    );
    mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let tools = mcp.result("tools/list", json!({}));
    assert!(tools.to_string().contains("counted") && !tools.to_string().contains("evaluate"), "{tools}");
    assert!(mcp.call("plugins.evaluate", json!({"name": "counter", "source": "bump()"}))["error"].is_object());
    assert_eq!(daemon.connect().tool("counted", json!({}))["content"][0]["text"], "0");
}

#[test]
fn an_interrupt_cancels_the_line_and_not_the_prompt() {
    let daemon = counter();
    for arguments in [&["counter"][..], &["--fake", daemon.plugins().join("counter.lua").to_str().unwrap()]] {
        let mut command = repl(&daemon, arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"ctx.output('begun\\n') while true do end\n").unwrap();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "begun\n");
        // As a terminal does, to all processes of the prompt.
        for pid in std::iter::once(child.id()).chain(children(child.id())) {
            assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
        }
        stdin.write_all(b"1 + 1\n").unwrap();
        drop(stdin);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!((rest.as_str(), ended.status.code()), ("2\n", Some(1)), "{}", text(&ended.stderr));
        assert!(text(&ended.stderr).contains("cancel"), "{}", text(&ended.stderr));
    }
}

fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn with_fakes_nothing_outside_is_touched() {
    let branch = "hygge.register_tool{name = 'branch', description = 'd', execute = function()\n\
                  return hygge.exec('git', {'branch'}).stdout end}\nlocal hidden = 1\n";
    let daemon = Setup::new().plugin("branch.lua", branch).start();
    let path = daemon.plugins().join("branch.lua");
    let lines = "call('branch').content\nfake.exec(function(name, args)\n  return {stdout = name .. ' ' .. args[1]}\nend)\n\
                 call('branch').content\nhidden\n";
    // The plugin works in a folder of its own, of which nothing is left.
    let temporary = daemon.setup.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = repl(&daemon, &["--fake", path.to_str().unwrap()]);
    let output = answered(command.env("TMPDIR", &temporary), lines);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    let out = text(&output.stdout);
    let shown: Vec<&str> = out.lines().collect();
    assert!(shown[0].contains("hygge.exec is not faked in this test"), "{out}");
    assert_eq!(shown[1..], ["\"git branch\"", "nil"], "{out}");
    std::fs::write(&path, "x(").unwrap();
    let output = piped(&daemon, &["--fake", path.to_str().unwrap()], "1\n");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("branch.lua:1"), "{}", text(&output.stderr));
}

#[test]
fn at_a_terminal_lines_are_edited_completed_and_asked_about() {
    let daemon = Setup::new().plugin("counter.lua", COUNTER).asking().start();
    let mut terminal = Terminal::run(&mut repl(&daemon, &["counter"]));
    wait_for_prompt(&terminal, 1);
    terminal.press("bump(\r");
    wait_for_prompt(&terminal, 2);
    terminal.wait_for("... ");
    terminal.press("41)\r");
    wait_for_prompt(&terminal, 3);
    terminal.wait_for("41\r\n");
    // Tab completes names of the API and names that were typed.
    terminal.press("hygge.fs.wri\t('made', count)\r");
    terminal.wait_for("allow once");
    terminal.press_until("y", "allowed");
    wait_for_prompt(&terminal, 4);
    assert!(daemon.work().join("made").exists());
    // The key may have been pressed once more: Ctrl-C abandons it.
    terminal.press("\x03");
    wait_for_prompt(&terminal, 5);
    terminal.press("'bump is ' .. type(bu\t)\r");
    wait_for_prompt(&terminal, 6);
    terminal.wait_for("\"bump is function\"");
    terminal.press("\x04");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written}");
    let history = std::fs::read_to_string(daemon.state().join("repl-history")).unwrap();
    assert!(history.contains("hygge.fs.write('made', count)"), "{history}");
}

/// Waits until so many prompts have been shown. Keys that come before a prompt may get lost.
fn wait_for_prompt(terminal: &Terminal, number: usize) {
    // A prompt makes the terminal mark text that is pasted.
    until(&format!("prompt {number}"), || (terminal.written().matches("\x1b[?2004h").count() >= number).then_some(()));
}
