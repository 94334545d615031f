//! toolctl as people and scripts run it, against the real daemon.

use std::io::{BufRead, Read, Write};
use std::panic::AssertUnwindSafe;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use toold_tests::{PRESS_EVERY, Setup, Terminal, TestDaemon, toolctl, until};

/// Stops the daemon that toolctl started in this setup.
struct DaemonOfToolctl(Setup);

impl DaemonOfToolctl {
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

impl Drop for DaemonOfToolctl {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A second failure must not hide the first one.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| self.run(&["stop"])));
            return;
        }
        let status = self.run(&["--no-start", "status", "--json"]);
        let pid = serde_json::from_slice::<Value>(&status.stdout).ok().and_then(|status| status["pid"].as_u64());
        let stopped = self.run(&["stop"]);
        if let Some(pid) = pid {
            let process = format!("/proc/{pid}");
            until("the daemon ends", || (!std::path::Path::new(&process).exists()).then_some(()));
        }
        assert!(stopped.status.success(), "{}", err(&stopped));
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

/// A tool that reports each step, gives `n` lines of output, and fails on demand.
const COUNT: &str = r#"
hygge.register_tool({
  name = "count",
  description = "Counts. Really.",
  input_schema = {
    type = "object",
    properties = { n = { type = "integer" }, fail = { type = "boolean" }, words = { type = "array", items = { type = "string" } } },
    required = { "n" },
  },
  execute = function(ctx, input)
    for i = 1, input.n do
      ctx.progress({ message = "step " .. i, progress = i, total = input.n })
      ctx.output("line " .. i .. "\n")
    end
    if input.fail then error("as requested") end
    return hygge.json.encode({ n = input.n, words = input.words, cwd = ctx.cwd })
  end,
})
hygge.register_tool({
  name = "open",
  description = "Takes any arguments.",
  input_schema = { type = "object", properties = { to = { type = "integer" } }, additionalProperties = true },
  execute = function(ctx, input) return hygge.json.encode(input) end,
})
hygge.register_tool({
  name = "repeat",
  description = "Repeats what it reports.",
  execute = function(ctx)
    for i = 1, 10 do ctx.progress("waiting") end
    ctx.progress("nearly done")
    ctx.progress("waiting")
    return "done"
  end,
})
hygge.register_tool({
  name = "wait",
  description = "Waits until it is cancelled.",
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("60s") return "woke up" end,
})
"#;

fn with_plugin() -> TestDaemon {
    let daemon = Setup::new().plugin("count.lua", COUNT).start();
    until("the plugin is loaded", || out(&daemon.toolctl(&["list"])).contains("count").then_some(()));
    daemon
}

#[test]
fn a_result_is_all_there_is_on_stdout() {
    let daemon = with_plugin();
    let output = daemon.toolctl(&["call", "count", "n=2", "words=a,b"]);
    let expected = json!({"n": 2, "words": ["a", "b"], "cwd": daemon.work()});
    assert_eq!((code(&output), json(&output)), (0, expected));
    // The output is no part of this result, so it is not lost.
    assert_eq!(err(&output), "step 1\nstep 2\nline 1\nline 2\n");
    let quiet = daemon.toolctl(&["call", "--quiet", "count", "n=2"]);
    assert_eq!((code(&quiet), err(&quiet)), (0, String::new()));
}

#[test]
fn output_and_result_in_one_file_are_not_printed_twice() {
    let daemon = with_plugin();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = daemon.setup.command(toolctl());
    command.args(["call", "count", "n=1"]).stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let result = json!({"cwd": daemon.work(), "n": 1}).to_string();
    assert_eq!(text, format!("step 1\nline 1\n{result}\n"));
}

#[test]
fn the_whole_answer_is_there_as_json() {
    let daemon = with_plugin();
    let output = daemon.toolctl(&["call", "count", "--output", "json", "--json", r#"{"n": 0}"#]);
    let answer = json(&output);
    assert_eq!((code(&output), &answer["is_error"], &answer["content"][0]["type"]), (0, &json!(false), &json!("text")));
    let failed = daemon.toolctl(&["call", "nothing", "--output", "json"]);
    assert_eq!((code(&failed), &json(&failed)["error"]["data"]["kind"]), (5, &json!("unknown_tool")));
}

#[test]
fn arguments_can_come_on_stdin_with_pairs_laid_over() {
    let daemon = with_plugin();
    let mut command = daemon.setup.command(toolctl());
    command.args(["call", "--quiet", "count", "-", "n=1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"n": 7, "words": ["x"]}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer = json(&output);
    assert_eq!((&answer["n"], &answer["words"]), (&json!(1), &json!(["x"])));
}

#[test]
fn a_tools_error_is_status_1_and_wrong_arguments_2() {
    let daemon = with_plugin();
    let failed = daemon.toolctl(&["call", "count", "n=0", "fail=yes"]);
    assert_eq!(code(&failed), 1);
    assert!(out(&failed).contains("as requested"), "{}", out(&failed));
    let wrong = daemon.toolctl(&["call", "count", "n=many"]);
    assert_eq!((code(&wrong), out(&wrong)), (2, String::new()));
    assert!(err(&wrong).contains("many") && err(&wrong).contains("integer"), "{}", err(&wrong));
}

#[test]
fn an_interrupt_cancels_the_call() {
    let daemon = with_plugin();
    let mut command = daemon.setup.command(toolctl());
    command.args(["call", "wait"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut progress = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    progress.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting\n");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let status = json(&daemon.toolctl(&["status", "--json"]));
    assert_eq!((&status["calls"]["in_flight"], &status["calls"]["outcomes"]["cancelled"]), (&json!(0), &json!(1)));
}

#[test]
fn a_calls_session_ends_with_it() {
    let daemon = with_plugin();
    assert_eq!(code(&daemon.toolctl(&["call", "count", "n=0"])), 0);
    assert_eq!(code(&daemon.toolctl(&["call", "count", "n=0", "--session", "mine", "--cwd", "."])), 0);
    let mut wire = toold_tests::Wire::connect(&daemon.socket());
    let sessions = wire.result("session.list", json!({}));
    let kept: Vec<&Value> = sessions["sessions"].as_array().unwrap().iter().map(|s| &s["session_id"]).collect();
    assert!(kept.contains(&&json!("mine")), "{kept:?}");
    let own = sessions["sessions"].as_array().unwrap().iter().filter(|s| s["client"]["name"] == "toolctl").count();
    assert_eq!(own, 1, "{sessions}");
}

#[test]
fn a_broken_plugin_is_reported_with_its_place() {
    let daemon = Setup::new().plugin("bad.lua", "local x =\n").start();
    let output = until("the plugin has failed", || {
        let output = daemon.toolctl(&["plugins", "reload", "bad"]);
        out(&output).contains("bad.lua").then_some(output)
    });
    assert_eq!(code(&output), 3);
    assert!(out(&output).contains("failed") && out(&output).contains("-->"), "{}", out(&output));
}

#[test]
fn events_come_as_lines_of_json() {
    let daemon = with_plugin();
    let mut command = daemon.setup.command(toolctl());
    command.args(["events", "--json", "--kinds", "call.finished", "--since", "0", "--follow"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(code(&daemon.toolctl(&["call", "count", "n=0"])), 0);
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&event["kind"], &event["tool"], &event["outcome"]),
        (&json!("call.finished"), &json!("count"), &json!("ok"))
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn events_since_a_number_end_with_the_stored_ones() {
    let daemon = with_plugin();
    assert_eq!(code(&daemon.toolctl(&["call", "count", "n=0"])), 0);
    let kinds = |arguments: &[&str]| {
        let output = daemon.toolctl(&[&["events", "--json"], arguments].concat());
        assert_eq!(code(&output), 0, "{}", err(&output));
        let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned();
        out(&output).lines().map(of).collect::<Vec<_>>()
    };
    let all = kinds(&["--since", "0"]);
    assert!(all.contains(&"plugin.loaded".to_owned()) && all.contains(&"call.finished".to_owned()), "{all:?}");
    assert_eq!(kinds(&["--since", "0", "--kinds", "plugin.loaded"]), ["plugin.loaded"]);
    assert_eq!(kinds(&["--no-follow", "--kinds", "call.finished"]), ["call.finished"]);
    assert_eq!(kinds(&["--since", "0", "--kinds", "config.changed"]), [""; 0]);
}

#[test]
fn a_misspelt_argument_is_refused_however_it_is_passed() {
    let daemon = with_plugin();
    let by_stdin = || {
        let mut command = daemon.setup.command(toolctl());
        command.args(["call", "count", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(br#"{"n": 1, "word": []}"#).unwrap();
        child.wait_with_output().unwrap()
    };
    let by_pair = daemon.toolctl(&["call", "count", "n=1", "word=a"]);
    let by_json = daemon.toolctl(&["call", "count", "--json", r#"{"n": 1, "word": []}"#]);
    for refused in [by_pair, by_json, by_stdin()] {
        assert_eq!((code(&refused), out(&refused)), (2, String::new()));
        assert!(err(&refused).contains("unknown argument \"word\": did you mean \"words\"?"), "{}", err(&refused));
    }
    for (tool, hint) in [("open", ": did you mean \"to\"?"), ("wait", "")] {
        let mut arguments = vec!["call", tool, "too=1"];
        arguments.extend((tool == "wait").then_some("--timeout=0.1"));
        let passed = daemon.toolctl(&arguments);
        let warning = format!(
            "warning: the tool's schema does not name the argument \"too\", which is passed on as it is{hint}\n"
        );
        assert!(err(&passed).starts_with(&warning), "{}", err(&passed));
    }
    let passed = daemon.toolctl(&["call", "open", "too=1", "--quiet"]);
    assert_eq!((code(&passed), out(&passed), err(&passed)), (0, "{\"too\":1}\n".to_owned(), String::new()));
}

/// Where stdout and stderr go.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Terminal,
    Pipe,
    File,
}

/// Each line of a command's output is written once, and the result goes to stdout.
#[test]
fn no_output_is_written_to_both_streams() {
    let daemon = Setup::new().config(ALLOW_SHELL).start();
    let script = "printf 'one\\ntwo\\n'; echo three >&2";
    let coloured = "printf '\\033[31mone\\033[0m\\n1%%\\r100%%\\r\\ntwo\\n'";
    let long = "head -c 200000 /dev/zero | tr '\\0' x; echo; echo end";
    for (streams, lines) in [
        (script, &["one", "two", "three"] as &[&str]),
        (coloured, &["one", "100%", "two"]),
        (long, &["end"]),
        ("true", &[]),
    ] {
        for stdout in [Target::Terminal, Target::Pipe, Target::File] {
            for stderr in [Target::Terminal, Target::Pipe, Target::File] {
                let (to_stdout, to_stderr) = call_with(&daemon, streams, stdout, stderr);
                for line in lines {
                    let count = |text: &str| {
                        let lines = text.lines().map(|written| written.trim_end().trim_end_matches("\u{1b}[0m"));
                        // Colours and erased lines, such as that of a call that took a while, come before it.
                        lines.filter(|written| written.rsplit(['m', 'K', '\r']).next() == Some(line)).count()
                    };
                    let counts = (count(&to_stdout), count(&to_stderr));
                    let both = format!("{stdout:?} {stderr:?} {line}: {to_stdout:?} {to_stderr:?}");
                    assert_eq!(counts.0 + counts.1, 1, "{both}");
                    if stdout != Target::Terminal {
                        assert_eq!(counts, (1, 0), "{both}");
                    }
                }
            }
        }
    }
}

const ALLOW_SHELL: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

/// The two streams of `call bash`; of a terminal, what it shows, in the place of stdout.
fn call_with(daemon: &TestDaemon, script: &str, stdout: Target, stderr: Target) -> (String, String) {
    let file = |name: &str| std::fs::File::create(daemon.setup.path(name)).unwrap();
    let redirect = |target: Target, name: &str| match target {
        Target::Terminal => String::new(),
        Target::File => format!("{name} '{}'", daemon.setup.path(&name.replace('>', "to")).display()),
        Target::Pipe => format!("{name} >(cat > '{}')", daemon.setup.path(&name.replace('>', "to")).display()),
    };
    file("1to");
    file("2to");
    let call = format!(
        "'{}' call bash \"$1\" {} {}; status=$?; wait; exit $status",
        toolctl().display(),
        redirect(stdout, "1>"),
        redirect(stderr, "2>")
    );
    let mut command = daemon.setup.command(std::path::Path::new("bash"));
    command.args(["-c", &call, "bash", &format!("command={script}")]);
    let (status, shown) = Terminal::run(&mut command).end();
    assert!(status.success(), "{shown}");
    let read = |target: Target, name: &str| match target {
        Target::Terminal => shown.clone(),
        Target::Pipe | Target::File => std::fs::read_to_string(daemon.setup.path(name)).unwrap(),
    };
    match (stdout, stderr) {
        (Target::Terminal, Target::Terminal) => (shown, String::new()),
        _ => (read(stdout, "1to"), read(stderr, "2to")),
    }
}

/// The answer as JSON has the output, as a result has it.
#[test]
fn output_that_the_json_has_is_not_on_stderr() {
    let daemon = Setup::new().config(ALLOW_SHELL).start();
    for script in ["printf '\\033[31mred\\033[0m\\nplain\\n'", "head -c 200000 /dev/zero | tr '\\0' x; echo; echo end"]
    {
        for format in [&[] as &[&str], &["-o", "json"]] {
            let command = format!("command={script}");
            let output = daemon.toolctl(&[&["call", "bash", &command], format].concat());
            assert_eq!((code(&output), err(&output)), (0, String::new()), "{script} {format:?}");
            assert!(out(&output).contains("plain") || out(&output).contains("end"), "{}", out(&output));
        }
    }
}

#[test]
fn repeated_progress_is_one_line() {
    let daemon = with_plugin();
    let output = daemon.toolctl(&["call", "repeat"]);
    assert_eq!((code(&output), err(&output)), (0, "waiting\nnearly done\nwaiting\n".to_owned()));
}

#[test]
fn times_are_local_and_json_is_utc() {
    let daemon = with_plugin();
    assert_eq!(code(&daemon.toolctl(&["call", "count", "n=0"])), 0);
    let run = |zone: &str, arguments: &[&str]| {
        let mut command = daemon.setup.command(toolctl());
        out(&command.args(arguments).env("TZ", zone).stdin(Stdio::null()).output().unwrap())
    };
    let entries: Value = serde_json::from_str(&run("XYZ-9", &["audit", "--json"])).unwrap();
    let events = ["events", "--since", "0", "--kinds", "call.started"];
    let event: Value = serde_json::from_str(run("XYZ-9", &[&events[..], &["--json"]].concat()).trim()).unwrap();
    // The log and the event have their own times, which may be in different seconds.
    for (arguments, at) in [(&["audit"] as &[&str], &entries["entries"][0]["at"]), (&events, &event["at"])] {
        let at = at.as_str().unwrap();
        assert!(at.ends_with('Z'), "{at}");
        let (hour, rest) = (at[11..13].parse::<u32>().unwrap(), &at[13..19]);
        let local = format!("{:02}{rest}", (hour + 9) % 24);
        let text = run("XYZ-9", arguments);
        assert!(text.contains(&local) && !text.contains(&format!("{rest}Z")), "{local}: {text}");
        // Events are shown without a date.
        let utc = format!("{}Z", at[if arguments == ["audit"] { 0 } else { 11 }..19].replace('T', " "));
        assert!(run("XYZ-9", &[arguments, &["--utc"]].concat()).contains(&utc), "{utc}");
        assert!(run("UTC", arguments).contains(&utc), "{utc}");
    }
}

#[test]
fn a_tool_is_picked_by_its_name_and_called_with_a_form() {
    let daemon = with_plugin();
    let mut command = daemon.setup.command(toolctl());
    let mut terminal = Terminal::run(command.args(["call", "n=2"]));
    terminal.wait_for("type to search");
    terminal.press("cnt");
    terminal.wait_for("1 of ");
    terminal.press("\r");
    terminal.wait_for("Set optional arguments?");
    terminal.press("\r");
    terminal.wait_for("Call count");
    terminal.press("\r");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written}");
    assert!(written.contains("line 2"), "{written}");
}

#[test]
fn a_search_that_is_cancelled_calls_nothing() {
    let daemon = TestDaemon::start();
    let mut command = daemon.setup.command(toolctl());
    let mut terminal = Terminal::run(command.args(["call"]));
    terminal.wait_for("type to search");
    terminal.press("\x03");
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(130), "{written}");
    assert!(written.contains("nothing was called"), "{written}");
    let without_terminal = daemon.toolctl(&["call"]);
    assert_eq!(code(&without_terminal), 2);
    assert!(err(&without_terminal).contains("toolctl list"), "{}", err(&without_terminal));
}

#[test]
fn an_answer_prints_what_it_stored() {
    let daemon = TestDaemon::asking();
    let mut asking = daemon.connect();
    let mut deciding = daemon.connect();
    deciding.result("permissions.subscribe", json!({}));
    let ask = |asking: &mut toold_tests::Wire, command: &str| {
        asking.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
        until("the prompt is there", || {
            let pending = json(&daemon.toolctl(&["permissions", "pending", "--json"]));
            pending["asks"][0]["request_id"].as_str().map(str::to_owned)
        })
    };
    let id = ask(&mut asking, "echo once");
    assert_eq!(out(&daemon.toolctl(&["permissions", "allow", &id])), "allowed once: shell echo once\n");
    let id = ask(&mut asking, "echo always");
    let stored = out(&daemon.toolctl(&["permissions", "allow", &id, "--scope", "always"]));
    assert!(stored.starts_with("allow shell echo always always ("), "{stored}");
    let id = ask(&mut asking, "echo never");
    assert_eq!(out(&daemon.toolctl(&["permissions", "deny", &id])), "denied once: shell echo never\n");
}

#[test]
fn tools_are_given_as_a_models_api_takes_them() {
    let daemon = with_plugin();
    let tools = json(&daemon.toolctl(&["tools", "--format", "openai", "count"]));
    assert_eq!((tools.as_array().unwrap().len(), &tools[0]["function"]["name"]), (1, &json!("count")));
    let prompt = daemon.toolctl(&["prompt", "--detail", "types", "count"]);
    assert!(out(&prompt).contains("count(") && out(&prompt).contains("n: integer"), "{}", out(&prompt));
}

#[test]
fn calls_are_found_in_a_models_answer() {
    let daemon = TestDaemon::start();
    let parse = |text: &str| {
        let mut command = daemon.setup.command(toolctl());
        command.args(["parse", "--json"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let good = parse(r#"<tool_call>{"name": "count", "args": {"n": 1}}</tool_call>"#);
    assert_eq!((code(&good), &json(&good)["calls"]), (0, &json!([{"name": "count", "arguments": {"n": 1}}])));
    let bad = parse(r#"<tool_call>{"name": "count", "args": {"n":"#);
    assert_eq!((code(&bad), &json(&bad)["calls"]), (1, &json!([])));
}

#[test]
fn a_session_can_be_closed() {
    let daemon = with_plugin();
    assert_eq!(code(&daemon.toolctl(&["call", "count", "n=0", "--session", "mine", "--cwd", "."])), 0);
    assert!(out(&daemon.toolctl(&["sessions"])).contains("mine"));
    assert_eq!(code(&daemon.toolctl(&["sessions", "close", "mine"])), 0);
    assert!(!out(&daemon.toolctl(&["sessions"])).contains("mine"));
    assert_eq!(code(&daemon.toolctl(&["sessions", "close", "mine"])), 5);
}

#[test]
fn on_a_terminal_output_comes_as_it_is_made_and_once() {
    let daemon = with_plugin();
    let mut command = daemon.setup.command(toolctl());
    let terminal = Terminal::run(command.args(["call", "count", "n=3"]));
    let (status, written) = terminal.end();
    assert!(status.success());
    let lines: Vec<&str> = written.lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 3"], "{written}");
    let result = json!({"cwd": daemon.work(), "n": 3}).to_string();
    assert_eq!(written.matches(&result).count(), 1, "{written}");
}

#[test]
fn without_a_terminal_the_screen_is_wrong_usage() {
    let daemon = TestDaemon::start();
    let output = daemon.toolctl(&[]);
    assert_eq!((code(&output), out(&output)), (2, String::new()));
}

#[test]
fn an_ask_is_answered_by_a_key() {
    let daemon = TestDaemon::asking();
    let mut command = daemon.setup.command(toolctl());
    let mut terminal = Terminal::run(command.args(["call", "bash", "command=echo it is done"]));
    terminal.wait_for("allow once");
    terminal.press_until("y", "allowed");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written}");
    // The key may have been pressed once more, and appear before the text.
    let done = |line: &str| line.trim_end().ends_with("it is done") && !line.contains("echo");
    assert!(written.lines().any(done), "{written}");
}

#[test]
fn an_answer_from_elsewhere_ends_the_prompt() {
    let daemon = TestDaemon::asking();
    let mut command = daemon.setup.command(toolctl());
    let terminal = Terminal::run(command.args(["call", "bash", "command=echo it is done"]));
    terminal.wait_for("allow once");
    let pending = json(&daemon.toolctl(&["permissions", "pending", "--json"]));
    let id = pending["asks"][0]["request_id"].as_str().unwrap();
    assert_eq!(code(&daemon.toolctl(&["permissions", "deny", id, "--message", "not today"])), 0);
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(6), "{written}");
    assert!(written.contains("denied") && written.contains("not today"), "{written}");
    assert_eq!(code(&daemon.toolctl(&["permissions", "deny", id])), 5);
}

#[test]
fn closing_a_prompt_cancels_the_call() {
    let daemon = TestDaemon::asking();
    let mut command = daemon.setup.command(toolctl());
    let mut terminal = Terminal::run(command.args(["call", "bash", "command=echo it is done"]));
    terminal.wait_for("allow once");
    // Escape alone may be the start of a longer key; Ctrl-C is not.
    terminal.press("\x03");
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(130), "{written}");
}

#[test]
fn a_grant_is_checked_used_and_revoked() {
    let daemon = TestDaemon::asking();
    let check = || daemon.toolctl(&["permissions", "check", "shell", "echo hi"]);
    assert_eq!(code(&check()), 1);
    let grant = json(&daemon.toolctl(&["permissions", "grant", "shell", "echo *", "--scope", "project", "--json"]));
    assert_eq!((&grant["scope"], &grant["by"]), (&json!("project"), &json!("toolctl")));
    let id = grant["id"].as_str().unwrap();
    assert_eq!(code(&check()), 0);
    assert!(out(&daemon.toolctl(&["permissions", "list"])).contains(id));
    let call = daemon.toolctl(&["call", "--quiet", "bash", "command=echo hi"]);
    assert_eq!((code(&call), out(&call)), (0, "hi\n".to_owned()));
    assert_eq!(code(&daemon.toolctl(&["permissions", "revoke", id])), 0);
    assert_eq!(code(&check()), 1);
}

#[test]
fn the_screen_answers_asks_of_others() {
    let daemon = TestDaemon::asking();
    let mut command = daemon.setup.command(toolctl());
    let mut screen = Terminal::run(&mut command);
    screen.wait_for("Calls");
    let mut command = daemon.setup.command(toolctl());
    command.args(["call", "--quiet", "bash", "command=echo hi"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut call = command.spawn().unwrap();
    screen.wait_for("permission");
    let mut pressed: Option<Instant> = None;
    until("the call ends", || {
        if pressed.is_none_or(|at| at.elapsed() >= PRESS_EVERY) {
            screen.press("y");
            pressed = Some(Instant::now());
        }
        call.try_wait().unwrap()
    });
    let output = call.wait_with_output().unwrap();
    assert_eq!((code(&output), out(&output)), (0, "hi\n".to_owned()));
    screen.press("q");
    assert!(screen.end().0.success());
}

#[test]
fn many_at_once_start_one_daemon() {
    let started = DaemonOfToolctl::new();
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
    let started = DaemonOfToolctl::new();
    let pid = json(&started.run(&["status", "--json"]))["pid"].clone();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // proc(5): behind the name in brackets come state, parent, group, session.
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, pid.to_string());
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), std::path::Path::new("/"));
}

#[test]
fn a_stopped_daemon_is_gone_and_the_next_command_starts_another() {
    let started = DaemonOfToolctl::new();
    let first = json(&started.run(&["status", "--json"]))["pid"].clone();
    let stopped = started.run(&["stop"]);
    assert_eq!((code(&stopped), err(&stopped)), (0, String::new()));
    let gone = started.run(&["--no-start", "status"]);
    assert_eq!((code(&gone), out(&gone)), (4, String::new()));
    assert!(err(&gone).contains("no daemon is running"), "{}", err(&gone));
    let second = json(&started.run(&["status", "--json"]))["pid"].clone();
    assert_ne!(first, second);
}

#[test]
fn a_failed_start_shows_the_daemons_own_words() {
    // A folder stands where the lock should be.
    let started = DaemonOfToolctl(Setup::new().file("place/toold.sock.lock/file", ""));
    let output = started.run(&["--socket", "place/toold.sock", "status"]);
    assert_eq!((code(&output), out(&output)), (4, String::new()), "{}", err(&output));
    assert!(err(&output).contains("did not start"), "{}", err(&output));
    assert!(err(&output).contains("toold: "), "{}", err(&output));
}

#[test]
fn wrong_usage_is_status_2_and_an_unknown_tool_5() {
    let daemon = TestDaemon::start();
    assert_eq!(code(&daemon.toolctl(&["call"])), 2);
    assert_eq!(code(&daemon.toolctl(&["call", "read", "path"])), 2);
    assert_eq!(code(&daemon.toolctl(&["call", "read", "--json", "[]"])), 2);
    let unknown = daemon.toolctl(&["call", "no_such_tool", "--json", "{}"]);
    assert_eq!((code(&unknown), out(&unknown)), (5, String::new()));
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
    let started = DaemonOfToolctl::new();
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
    // The harness creates the socket's folder, with the mode that the umask allows.
    assert!(bad.iter().all(|finding| finding["about"] == "socket"), "{bad:?}");
}

#[test]
fn doctor_names_every_mistake_of_the_configuration_and_what_stands_at_the_socket() {
    let setup = Setup::new().config("[limits]\ncals = 1\ncalls = \"x\"\n[spool]\nmax_mib = -1\n");
    std::fs::write(setup.path("run/toold.sock"), "").unwrap();
    let output = setup.command(toolctl()).args(["doctor", "--json"]).output().unwrap();
    let findings = json(&output);
    let bad = |about: &str| {
        let all = findings.as_array().unwrap().iter();
        let bad = all.filter(|finding| finding["about"] == about && finding["health"] == "bad");
        bad.map(|finding| finding["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(code(&output), 3);
    let config = bad("config");
    assert_eq!(config.len(), 3, "{config:?}");
    for (problem, place) in config.iter().zip([":2:1: ", ":3:9: ", ":5:11: "]) {
        assert!(problem.contains(place), "{problem}");
    }
    assert!(bad("socket")[0].contains("is a plain file, not a socket"), "{findings}");
    let check = setup.command(toolctl()).args(["config", "check", "--json"]).output().unwrap();
    assert_eq!(code(&check), 1);
    let problems = json(&check)["problems"].clone();
    assert_eq!(
        (problems.as_array().unwrap().len(), &problems[2]["line"], &problems[2]["column"]),
        (3, &json!(5), &json!(11))
    );
}

#[test]
fn commands_find_the_toolchain_that_toolctl_finds() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"env\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(rule).start();
    let mut command = daemon.setup.command(toolctl());
    command.env("VIRTUAL_ENV", "/a/venv").env("RUSTUP_TOOLCHAIN", "nightly").env("SOMETHING", "else");
    let output = command.args(["call", "bash", "command=env"]).stdin(Stdio::null()).output().unwrap();
    let said = out(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.contains(&"VIRTUAL_ENV=/a/venv") && lines.contains(&"RUSTUP_TOOLCHAIN=nightly"), "{said}");
    assert!(!said.contains("SOMETHING="), "{said}");
}

/// With `-o json`, a script always gets a document.
#[test]
fn every_error_of_a_call_is_a_json_document() {
    let daemon = with_plugin();
    for (arguments, status, words) in [
        (&["nope"] as &[&str], 5, "nope"),
        (&["count", "m=3"], 2, "unknown argument \"m\""),
        (&["count", "n=x"], 2, "n"),
        (&["count", "n"], 2, "expected key=value"),
        (&["count", "--json", "{"], 2, "not valid JSON"),
        (&["count", "--json", "@/nonexistent"], 2, "/nonexistent"),
    ] {
        let output = daemon.toolctl(&[&["call", "-o", "json"], arguments].concat());
        let document = json(&output);
        let message = document["error"]["message"].as_str().unwrap_or_else(|| panic!("{document}"));
        assert_eq!(code(&output), status, "{arguments:?}: {message}");
        assert!(document["error"]["code"].is_i64(), "{document}");
        assert!(message.contains(words) && !err(&output).is_empty(), "{arguments:?}: {message}");
    }
    let mut nowhere = daemon.setup.command(toolctl());
    let socket = daemon.setup.path("nowhere/toold.sock");
    nowhere.args(["--no-start", "--socket"]).arg(socket).args(["call", "-o", "json", "count"]);
    let output = nowhere.stdin(Stdio::null()).output().unwrap();
    assert_eq!(code(&output), 4);
    assert!(json(&output)["error"]["message"].is_string());
}

#[test]
fn options_say_what_they_expect() {
    let daemon = TestDaemon::start();
    for (arguments, status, words) in [
        (&["audit", "--limit", "0"] as &[&str], 2, "expected a whole number from 1"),
        (&["audit", "--outcome", "good"], 2, "expected one of ok, error, denied"),
        (&["events", "--since", "x"], 2, "expected a whole number"),
        (&["logs", "--lines", "many"], 2, "expected a whole number"),
        (&["stop", "--drain-ms", "soon"], 2, "expected a whole number"),
        (&["restart", "--timeout", "soon"], 2, "expected a duration"),
        (&["mcp", "login", "a", "--port", "70000"], 2, "from 0 to 65535"),
        (&["mcp", "restart", "nope"], 5, "there is no MCP server nope"),
    ] {
        let output = daemon.toolctl(arguments);
        assert_eq!((code(&output), out(&output)), (status, String::new()), "{arguments:?}: {}", err(&output));
        assert!(err(&output).contains(words), "{arguments:?}: {}", err(&output));
    }
}
