//! `toolctl hook` as the program that agents run, without a daemon and with answers of a scripted one; and
//! `toolctl agents`, which installs it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

fn hook(setup: &Setup, arguments: &[&str], input: &str) -> Output {
    run_hook(setup, arguments, input, false)
}

fn run_hook(setup: &Setup, arguments: &[&str], input: &str, closes: bool) -> Output {
    let mut command = setup.command(toolctl());
    command.arg("hook").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The hook may end before it has read all.
    let _ = stdin.write_all(input.as_bytes());
    // Agents may keep the pipe open until the hook has ended.
    let kept = (!closes).then_some(stdin);
    let output = child.wait_with_output().unwrap();
    drop(kept);
    output
}

fn bash(event: &str, command: &str) -> Value {
    json!({
        "session_id": "s-1", "turn_id": "t-1", "cwd": "/", "hook_event_name": event, "permission_mode": "default",
        "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "toolu_1",
    })
}

/// The JSON on stdout; null for silence. Hooks end well, and say nothing else.
#[track_caller]
fn said(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
}

/// Answers each request with `answer`; the requests are kept.
fn scripted(setup: &Setup, answer: Value) -> Arc<Mutex<Vec<Value>>> {
    scripted_by(setup, move |_, _| {
        vec![json!({"jsonrpc": "2.0", "method": "tools.changed", "params": {}}), answer.clone()]
    })
}

/// Answers the request of each number, from 0, with the messages of `script`; those without a method become responses. After
/// none, the connection ends.
fn scripted_by(setup: &Setup, script: impl Fn(usize, &Value) -> Vec<Value> + Send + 'static) -> Arc<Mutex<Vec<Value>>> {
    let listener = UnixListener::bind(setup.path("run/toold.sock")).unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut output = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).unwrap();
                let number = kept.lock().unwrap().len();
                let messages = script(number, &request);
                let id = request["id"].clone();
                kept.lock().unwrap().push(request);
                let is_end = messages.is_empty();
                for mut message in messages {
                    if message.get("method").is_none() {
                        message
                            .as_object_mut()
                            .unwrap()
                            .extend([("jsonrpc".to_owned(), json!("2.0")), ("id".to_owned(), id.clone())]);
                    }
                    // The hook may be gone.
                    let _ = writeln!(output, "{message}");
                }
                if is_end {
                    break;
                }
            }
        }
    });
    requests
}

/// The notification that a person is asked, until a moment that is over.
fn waiting() -> Value {
    let params = json!({"request": "claude-code/s-1/toolu_1", "until": "2026-01-01T00:00:00.000Z"});
    json!({"jsonrpc": "2.0", "method": "permissions.waiting", "params": params})
}

/// A hook whose agent has no terminal, wherever the tests run.
fn hook_without_terminal(setup: &Setup, agent: &str, input: &Value) -> Output {
    let mut command = setup.command(Path::new("setsid"));
    // Three processes without one: the hook, a shell as agents start it with, and the agent.
    command
        .args(["--wait", "sh", "-c", "sh -c '\"$0\" hook \"$1\"; exit $?' \"$0\" \"$1\"; exit $?"])
        .arg(toolctl())
        .arg(agent);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The hook may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.to_string().as_bytes());
    child.wait_with_output().unwrap()
}

fn judged(decision: &str, by: &str) -> Value {
    let reason = format!("{decision} because of {by}");
    json!({"result": {"decision": decision, "by": by, "reason": reason, "request_id": "r", "call_id": "c"}})
}

#[test]
fn without_a_daemon_a_hook_tells_the_user_once_a_session_and_decides_nothing() {
    let setup = Setup::new();
    for agent in ["claude-code", "codex"] {
        for session in ["s-1", "s-2"] {
            let mut input = bash("PreToolUse", "ls");
            input["session_id"] = json!(session);
            let output = hook(&setup, &[agent], &input.to_string());
            let answer = said(&output);
            let told = answer["systemMessage"].as_str().unwrap();
            assert!(told.contains("toold is not running") && answer.get("hookSpecificOutput").is_none(), "{answer}");
            assert!(output.stderr.is_empty(), "{output:?}");
            assert_eq!(said(&hook(&setup, &[agent], &input.to_string())), Value::Null);
        }
    }
    assert!(!setup.path("run/toold.sock").exists() && !setup.path("state/toold/toold.db").exists());
}

fn session_start() -> String {
    json!({"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": "/", "source": "startup"}).to_string()
}

#[test]
fn the_start_of_a_session_starts_a_daemon_apart_from_the_agent_and_its_environment() {
    let setup = Setup::new();
    let mut command = setup.command(toolctl());
    command.args(["hook", "claude-code"]).env("AGENT_SECRET", "sk-1").stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(session_start().as_bytes()).unwrap();
    assert_eq!(said(&child.wait_with_output().unwrap()), Value::Null);
    let status = setup.command(toolctl()).args(["--no-start", "status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let process = format!("/proc/{}", status["pid"]);
    let environment = String::from_utf8(fs::read(format!("{process}/environ")).unwrap()).unwrap();
    let stat = fs::read_to_string(format!("{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let cwd = fs::read_link(format!("{process}/cwd")).unwrap();
    let stopped = setup.command(toolctl()).args(["--no-start", "stop"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(environment.contains("HOME=") && !environment.contains("AGENT_SECRET"), "{environment}");
    assert_eq!(
        (fields[2], fields[3], cwd.as_path()),
        (&*status["pid"].to_string(), &*status["pid"].to_string(), Path::new("/"))
    );
}

#[test]
fn a_session_whose_daemon_cannot_be_started_is_told_so_once() {
    let setup = Setup::new();
    let told = said(&hook(&setup, &["--no-start", "claude-code"], &session_start()));
    assert!(told["systemMessage"].as_str().is_some_and(|told| told.contains("do not hold in this session")), "{told}");
    assert_eq!(said(&hook(&setup, &["claude-code"], &bash("PreToolUse", "ls").to_string())), Value::Null);
    let closed = Setup::new();
    let told = said(&hook(&closed, &["--no-start", "claude-code", "--fail", "closed"], &session_start()));
    assert!(told["systemMessage"].as_str().is_some_and(|told| told.contains("tools do not run")), "{told}");
}

#[test]
fn a_new_installation_is_closed_where_the_agent_can_deny_and_a_later_one_keeps_the_choice() {
    let command = |setup: &Setup, file: &str| {
        let settings: Value = serde_json::from_str(&fs::read_to_string(setup.home(file)).unwrap()).unwrap();
        settings["hooks"]["PreToolUse"][0]["hooks"][0].clone()
    };
    for (agent, file, first, other) in
        [("claude-code", ".claude/settings.json", "closed", "open"), ("codex", ".codex/hooks.json", "open", "closed")]
    {
        let setup = Setup::new();
        let fails = |expected: &str| {
            let hook = command(&setup, file);
            assert!(hook["command"].as_str().unwrap().contains(&format!(" --fail {expected} ")), "{hook}");
            // The agent denies also when the program is gone.
            let blocks = agent == "claude-code" && expected == "closed";
            assert_eq!(hook.get("onFailure").is_some(), blocks, "{hook}");
        };
        done(&setup, &["install", agent, "--hooks", "--yes"]);
        fails(first);
        done(&setup, &["install", agent, "--hooks", "--yes", "--fail", other]);
        fails(other);
        assert!(done(&setup, &["install", agent, "--hooks", "--yes"]).contains("already has the hooks"));
        fails(other);
        done(&setup, &["install", agent, "--hooks", "--undo", "--yes"]);
        assert!(!setup.home(file).exists());
    }
}

/// All of them alike, so that nothing in the file tells.
#[test]
fn hooks_that_were_opened_since_their_installation_are_noticed_and_closed_again() {
    for (agent, file) in [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("copilot", ".copilot/hooks/toold.json"),
        ("opencode", ".config/opencode/plugins/toold.js"),
    ] {
        let setup = Setup::new();
        let install = |fail: &[&str]| done(&setup, &[&["install", agent, "--hooks", "--yes"], fail].concat());
        install(&["--fail", "open"]);
        let open = fs::read_to_string(setup.home(file)).unwrap();
        install(&["--fail", "closed"]);
        let closed = fs::read_to_string(setup.home(file)).unwrap();
        let listed = || {
            let list: Value = serde_json::from_str(&done(&setup, &["list", "--json"])).unwrap();
            let found =
                list["agents"].as_array().unwrap().iter().find(|found| found["agent"] == agent).unwrap().clone();
            (found["hooks_changed"].clone(), found["fail"].clone())
        };
        assert_eq!(listed(), (json!(false), json!("closed")), "{agent}");
        fs::write(setup.home(file), open).unwrap();
        assert_eq!(listed(), (json!(true), json!("open")), "{agent}");
        let doctor = agents(&setup, &["doctor"]);
        let doctor = String::from_utf8_lossy(&doctor.stdout);
        assert!(doctor.contains(&format!("bad   {agent}: the hooks in")), "{doctor}");
        install(&[]);
        assert_eq!(fs::read_to_string(setup.home(file)).unwrap(), closed, "{agent}");
    }
}

#[test]
fn the_list_names_the_version_that_was_tried_where_another_one_is_installed() {
    let setup = Setup::new();
    let program = |name: &str, says: &str| {
        let path = setup.path("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("claude", "99.1.2 (Claude Code)");
    program("codex", "codex-cli 0.171.0");
    program("cursor-agent", "3.0.0");
    let path = format!("{}:{}", setup.path("bin").display(), std::env::var("PATH").unwrap());
    let listed = |arguments: &[&str]| {
        let mut command = setup.command(toolctl());
        let output = command.arg("agents").args(arguments).env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = listed(&[]);
    let row = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("claude-code").contains("99.1.2 (tried: "), "{shown}");
    assert!(row("codex").contains("0.171.0") && !row("codex").contains("tried"), "{shown}");
    assert!(row("cursor").contains("3.0.0 (not tried)"), "{shown}");
    let list: Value = serde_json::from_str(&listed(&["--json"])).unwrap();
    let found = |name: &str| list["agents"].as_array().unwrap().iter().find(|found| found["agent"] == name).unwrap();
    assert_eq!((&found("codex")["version"], &found("codex")["version_tried"]), (&json!("0.171.0"), &json!("0.171.0")));
    assert_eq!(found("cursor")["version_tried"], Value::Null);
}

#[test]
fn a_daemon_that_accepts_no_connection_is_not_waited_for() {
    let setup = Setup::new();
    let socket = setup.path("run/toold.sock");
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
    // As many as may wait for their turn.
    listen(&listener, 0).unwrap();
    let waiting = UnixStream::connect(&socket).unwrap();
    let output = hook(&setup, &["codex"], &bash("PreToolUse", "ls").to_string());
    assert_eq!(said(&output)["hookSpecificOutput"]["permissionDecision"], "deny", "it may have rules that deny it");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no answer from toold"), "{output:?}");
    drop(waiting);
}

#[test]
fn without_a_daemon_a_hook_that_fails_closed_denies() {
    let setup = Setup::new();
    let answer = said(&hook(&setup, &["codex", "--fail", "closed"], &bash("PreToolUse", "ls").to_string()));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("toold is not running"), "{reason}");
    let before_tool = json!({"session_id": "s", "cwd": "/", "hook_event_name": "BeforeTool", "tool_name": "glob", "tool_input": {"pattern": "*"}});
    let answer = said(&hook(&setup, &["gemini", "--fail", "closed"], &before_tool.to_string()));
    assert_eq!(answer["decision"], "deny", "{answer}");
}

#[test]
fn an_input_that_is_no_hook_s_is_never_an_allow() {
    let setup = Setup::new();
    scripted(&setup, judged("allow", "rule"));
    for input in ["", "{", "null", "[]", "{}", "{\"hook_event_name\": \"PreToolUse\"}", "\u{0}", &"[".repeat(5000)] {
        let output = run_hook(&setup, &["claude-code"], input, true);
        match input.contains("PreToolUse") {
            true => assert_eq!(said(&output)["hookSpecificOutput"]["permissionDecision"], "ask", "{input:.20}"),
            false => assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{input:.20}"),
        }
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("toolctl hook claude-code: "), "{output:?}");
        let output = run_hook(&setup, &["claude-code", "--fail", "closed"], input, true);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

/// The texts are the model's own words, which may look like members of the input.
#[test]
fn an_input_that_is_too_large_is_denied() {
    let setup = Setup::new();
    scripted(&setup, judged("allow", "rule"));
    let large = format!("\"hook_event_name\": \"PostToolUse\", {}", "x".repeat(15 << 20));
    let mut input = bash("PreToolUse", "git push");
    input["tool_input"]["description"] = json!(large);
    let decision = |agent: &str, input: &Value| {
        let answer = said(&hook(&setup, &[agent], &input.to_string()));
        answer["hookSpecificOutput"]["permissionDecision"].clone()
    };
    assert_eq!(decision("claude-code", &input), "deny");
    assert_eq!(decision("codex", &input), "deny");
    input["permission_mode"] = json!("bypassPermissions");
    assert_eq!(decision("claude-code", &input), "deny");
}

/// For agents, a denial at the end of a turn is the wish that they go on.
#[test]
fn an_event_after_which_nothing_runs_is_never_denied() {
    let setup = Setup::new();
    let requests = scripted(&setup, json!({"result": {}}));
    let unreadable =
        |event: &str| format!("{{\"session_id\": \"s-1\", \"hook_event_name\": \"{event}\", \"x\": 1e999}}");
    for (agent, events) in [
        ("claude-code", &["Stop", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd"][..]),
        ("gemini", &["AfterTool", "AfterAgent"]),
        ("cursor", &["stop", "afterShellExecution"]),
    ] {
        for event in events {
            let output = run_hook(&setup, &[agent, "--fail", "closed"], &unreadable(event), true);
            assert_eq!(said(&output), Value::Null, "{agent} {event}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("toolctl hook"), "{output:?}");
        }
    }
    // Some agents name the conversation twice.
    let text = "y".repeat(15 << 20);
    let large = json!({"session_id": "s-1", "conversation_id": "s-1", "hook_event_name": "Stop", "x": text});
    assert_eq!(said(&run_hook(&setup, &["claude-code"], &large.to_string(), true)), Value::Null);
    // The tools of the turn have ended all the same.
    let ended: Vec<Value> = requests.lock().unwrap().iter().map(|request| request["params"]["scope"].clone()).collect();
    assert_eq!(ended, ["turn", "conversation", "turn", "turn", "turn"]);
    // A prompt may be one that a plugin refuses.
    let output = run_hook(&setup, &["claude-code"], &unreadable("UserPromptSubmit"), true);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// JavaScript cuts texts within an emoji.
#[test]
fn half_a_character_is_read_as_the_agent_writes_it() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("deny", "rule"));
    let input = bash("PreToolUse", "rm HERE").to_string().replace("HERE", "\\ud83d \\ud83d\\ude00");
    let answer = said(&hook(&setup, &["claude-code"], &input));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    assert_eq!(requests.lock().unwrap()[0]["params"]["input"]["command"], "rm \u{fffd} \u{1f600}");
}

#[test]
fn ids_that_are_too_long_for_the_daemon_are_the_same_in_all_events_of_a_call() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("allow", "rule"));
    let long = |start: &str| json!(format!("{start}{}", "x".repeat(300)));
    let mut input = bash("PreToolUse", "ls");
    for (member, value) in [
        ("session_id", long("s")),
        ("tool_use_id", long("t")),
        ("agent_id", long("a")),
        ("agent_type", long("k")),
        ("permission_mode", long("m")),
    ] {
        input[member] = value;
    }
    assert_eq!(
        said(&hook(&setup, &["claude-code"], &input.to_string()))["hookSpecificOutput"]["permissionDecision"],
        "allow"
    );
    input["hook_event_name"] = json!("PostToolUse");
    assert_eq!(said(&hook(&setup, &["claude-code"], &input.to_string())), Value::Null);
    let requests = requests.lock().unwrap();
    let params = &requests[0]["params"];
    let of_start = |member: &str| params[member].as_str().unwrap().to_owned();
    for member in ["session", "call_id", "agent_id"] {
        assert!(of_start(member).len() <= 128, "{params}");
    }
    assert!(params.get("agent_type").is_none() && params.get("mode").is_none(), "{params}");
    let id = format!("claude-code/{}/{}", of_start("session"), of_start("call_id"));
    assert_eq!(requests[1]["params"]["request_id"], id, "{requests:?}");
}

#[test]
fn a_daemon_that_fails_to_judge_is_no_silence() {
    let setup = Setup::new();
    scripted(&setup, json!({"error": {"code": -32603, "message": "panicked"}}));
    for agent in ["claude-code", "codex"] {
        let answer = said(&hook_without_terminal(&setup, agent, &bash("PreToolUse", "ls")));
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    }
}

#[test]
fn an_allow_and_a_denial_are_said_in_the_agent_s_form() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("allow", "rule"));
    let answer = said(&hook(&setup, &["claude-code"], &bash("PreToolUse", "ls").to_string()));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "allow");
    // Codex takes an allow before a tool for an error, and one of its prompt for what it is.
    assert_eq!(said(&hook(&setup, &["codex"], &bash("PreToolUse", "ls").to_string())), Value::Null);
    let answer = said(&hook(&setup, &["codex"], &bash("PermissionRequest", "ls").to_string()));
    assert_eq!(answer["hookSpecificOutput"]["decision"], json!({"behavior": "allow"}));
    let request = requests.lock().unwrap()[0].clone();
    assert_eq!(request["method"], "permissions.request");
    // 5 seconds less than the agent's limit.
    assert!(request["params"]["wait_ms"].as_u64().is_some_and(|wait| (50_000..=55_000).contains(&wait)), "{request}");
    let expected = json!({
        "agent": "claude-code", "tool": "Bash", "input": {"command": "ls"}, "cwd": "/", "call_id": "toolu_1",
        "session": "s-1", "mode": "default",
    });
    let params = |request: &Value| {
        let mut params = request["params"].clone();
        params.as_object_mut().unwrap().remove("wait_ms");
        params
    };
    assert_eq!(params(&request), expected);
    let codex: Vec<Value> = requests.lock().unwrap()[1..].iter().map(params).collect();
    assert_eq!(codex[0], codex[1], "both events of one call are one request");

    let denying = Setup::new();
    scripted(&denying, judged("deny", "rule"));
    for agent in ["claude-code", "codex"] {
        let answer = said(&hook(&denying, &[agent], &bash("PreToolUse", "ls").to_string()));
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
        assert_eq!(answer["hookSpecificOutput"]["permissionDecisionReason"], "deny because of rule");
    }
}

#[test]
fn what_must_be_asked_is_asked_or_denied_and_the_rest_is_left_to_the_agent() {
    let setup = Setup::new();
    scripted(&setup, judged("ask", "rule"));
    let mut input = bash("PreToolUse", "git push");
    let answer = said(&hook(&setup, &["claude-code"], &input.to_string()));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "ask");
    let answer = said(&hook(&setup, &["codex"], &input.to_string()));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(said(&hook(&setup, &["codex"], &bash("PermissionRequest", "git push").to_string())), Value::Null);
    input["permission_mode"] = json!("bypassPermissions");
    let answer = said(&hook(&setup, &["claude-code"], &input.to_string()));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "ask");

    let setup = Setup::new();
    scripted(&setup, judged("ask", "default"));
    for agent in ["claude-code", "codex"] {
        assert_eq!(said(&hook(&setup, &[agent], &input.to_string())), Value::Null);
    }
}

#[test]
fn a_question_that_nobody_answers_is_a_denial_where_the_agent_has_no_terminal() {
    let ends: [fn(usize) -> Vec<Value>; 4] = [
        // Nobody answered the person's question in time.
        |_| vec![waiting(), judged("ask", "rule")],
        // The daemon is stopped, and does not answer any more.
        |_| vec![waiting()],
        // It ends again and again, while a person is asked and before.
        |_| Vec::new(),
        |_| vec![waiting(), json!({"error": {"code": -32800, "message": "cancelled", "data": {"kind": "cancelled"}}})],
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let setup = Setup::new();
        scripted_by(&setup, move |number, _| end(number));
        for agent in ["claude-code", "codex"] {
            let answer = said(&hook_without_terminal(&setup, agent, &bash("PreToolUse", "git push")));
            assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{number}: {answer}");
        }
        let answer = said(&hook_without_terminal(&setup, "codex", &bash("PermissionRequest", "git push")));
        assert_eq!(answer["hookSpecificOutput"]["decision"]["behavior"], "deny", "{number}: {answer}");
    }
}

#[test]
fn a_question_that_nobody_answers_is_asked_again_by_an_agent_with_a_terminal() {
    let setup = Setup::new();
    scripted_by(&setup, |_, _| vec![waiting()]);
    fs::write(setup.path("input"), bash("PreToolUse", "git push").to_string()).unwrap();
    let mut command = setup.command(Path::new("setsid"));
    command.args(["--ctty", "--wait", "sh", "-c", "\"$0\" hook claude-code < \"$1\""]);
    let terminal = Terminal::run(command.arg(toolctl()).arg(setup.path("input")));
    terminal.wait_for("\"permissionDecision\":\"ask\"");
    assert!(terminal.end().0.success());
}

#[test]
fn a_request_is_repeated_when_the_daemon_is_lost_while_a_person_is_asked() {
    let cancelled = json!({"error": {"code": -32800, "message": "cancelled", "data": {"kind": "cancelled"}}});
    for lost in [vec![], vec![waiting(), cancelled]] {
        let setup = Setup::new();
        let requests = scripted_by(&setup, move |number, _| match number {
            0 => lost.clone(),
            _ => vec![waiting(), judged("allow", "person")],
        });
        let answer = said(&hook(&setup, &["claude-code"], &bash("PreToolUse", "git push").to_string()));
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "allow", "{answer}");
        let requests = requests.lock().unwrap();
        assert_eq!((requests.len(), &requests[0]["params"]["call_id"]), (2, &requests[1]["params"]["call_id"]));
    }
}

#[test]
fn what_a_hook_denies_in_place_of_a_question_is_reported_as_not_done() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("ask", "rule"));
    let answer = said(&hook(&setup, &["codex"], &bash("PreToolUse", "git push").to_string()));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    let requests = requests.lock().unwrap();
    assert_eq!((&requests[1]["method"], &requests[1]["params"]["ok"]), (&json!("permissions.done"), &json!(false)));
    assert_eq!(requests[1]["params"]["denied"], "cannot_ask");
}

/// Each hook that denies in place of a question, with a real daemon: the audit log has a denial and its reason.
#[test]
fn a_call_that_a_hook_denied_in_place_of_a_question_is_a_denial_in_the_audit_log() {
    const CANNOT: &str = "the agent cannot ask a person here (";
    let asks = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"git push\"\naction = \"ask\"\n";
    let in_vain = "[agents.codex]\nask = \"toold\"\n";
    let push = |event: &str, tool: &str| {
        let mut input = bash(event, "git push");
        input["tool_name"] = json!(tool);
        input
    };
    let mut protected = bash("PreToolUse", "");
    (protected["tool_name"], protected["permission_mode"]) = (json!("Write"), json!("bypassPermissions"));
    protected["tool_input"] = json!({"file_path": ".git/hooks/pre-commit", "content": "x"});
    let cases = [
        (asks, "codex", push("PreToolUse", "Bash"), "shell", CANNOT),
        (asks, "gemini", push("BeforeTool", "run_shell_command"), "shell", CANNOT),
        (in_vain, "codex", push("PreToolUse", "Bash"), "shell", "nobody to ask ("),
        ("", "claude-code", protected, "file.write", "in this mode, the agent does not ask about this file ("),
    ];
    for (config, agent, mut input, category, why) in cases {
        let daemon = Setup::new().config(config).file(".git/HEAD", "ref: refs/heads/main\n").start();
        drop(daemon.connect());
        input["cwd"] = json!(daemon.work());
        let answer = said(&hook_without_terminal(&daemon.setup, agent, &input)).to_string();
        assert!(answer.contains("\"deny\""), "{agent}: {answer}");
        let list = daemon.connect().result("audit.query", json!({"agent": agent}));
        let row = &list["entries"][0];
        assert_eq!(row["outcome"], "denied", "{list}");
        let decision = &row["decisions"].as_array().unwrap().last().unwrap();
        assert_eq!((&decision["category"], &decision["verdict"]), (&json!(category), &json!("deny")), "{row}");
        let rule = decision["rule"].as_str().unwrap();
        assert!(rule.starts_with(why) || rule.contains(&format!("({why}")), "{rule}");
        let shown = daemon.toolctl(&["audit", "--decisions"]).stdout;
        assert!(String::from_utf8_lossy(&shown).contains(rule), "{}", String::from_utf8_lossy(&shown));
    }
}

/// A hook of an agent whose questions a person is asked about in `person`.
struct AskingHook {
    child: Child,
    daemon: TestDaemon,
}

impl AskingHook {
    /// Until the person is asked.
    fn start() -> Self {
        let setup = Setup::new().config("[agents.codex]\nask = \"toold\"\n");
        let daemon = setup.start();
        let mut person = Self::person(&daemon);
        let mut command = daemon.setup.command(toolctl());
        command.args(["hook", "codex"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = bash("PreToolUse", "git push");
        input["cwd"] = json!(daemon.work());
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        asked(&mut person);
        Self { child, daemon }
    }

    fn person(daemon: &TestDaemon) -> Wire {
        let mut person = daemon.connect();
        person.result("permissions.subscribe", json!({}));
        person
    }
}

/// The id of the next ask.
fn asked(person: &mut Wire) -> Value {
    let mut event = person.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "asked", "{event}");
    event["request"]["request_id"].take()
}

#[test]
fn after_a_crash_or_restart_a_person_is_asked_again_and_the_answer_counts() {
    for signal in ["KILL", "TERM"] {
        let mut asking = AskingHook::start();
        asking.daemon.restart(signal);
        // The hook is back before the person is.
        let mut other = asking.daemon.connect();
        until("the question", || {
            (other.result("permissions.pending", json!({}))["asks"].as_array()?.len() == 1).then_some(())
        });
        let mut person = AskingHook::person(&asking.daemon);
        let id = asked(&mut person);
        person.result("permissions.reply", json!({"request_id": id, "action": "deny", "message": "not today"}));
        let answer = said(&asking.child.wait_with_output().unwrap());
        let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap_or_default();
        assert!(reason.contains("not today"), "{signal}: {answer}");
    }
}

#[test]
fn a_daemon_that_ends_while_a_person_is_asked_allows_nothing() {
    let mut asking = AskingHook::start();
    asking.daemon.signal("TERM");
    asking.daemon.wait();
    let answer = said(&asking.child.wait_with_output().unwrap());
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("toold ended before it answered"), "{reason}");
}

#[test]
fn a_pause_another_level_and_another_socket_while_a_person_is_asked_allow_nothing() {
    let denied = |hook: Child, why: &str| {
        let answer = said(&hook.wait_with_output().unwrap());
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
        let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    };
    let asking = AskingHook::start();
    assert!(asking.daemon.toolctl(&["pause"]).status.success());
    denied(asking.child, "everything is paused");

    let asking = AskingHook::start();
    let mut person = asking.daemon.connect();
    let asks = person.result("permissions.pending", json!({}))["asks"].take();
    let session = asks[0]["session_id"].as_str().unwrap().to_owned();
    for level in ["operate", "read"] {
        assert!(asking.daemon.toolctl(&["level", level, "--session", &session]).status.success());
    }
    let reply = json!({"request_id": asks[0]["request_id"], "action": "deny", "message": "not today"});
    person.result("permissions.reply", reply);
    denied(asking.child, "not today");

    let mut asking = AskingHook::start();
    let socket = asking.daemon.setup.path("run/toold.sock");
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    // It answers nothing.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    asking.daemon.signal("KILL");
    asking.daemon.wait();
    denied(asking.child, "toold ended before it answered");
    fs::remove_file(&socket).unwrap();
    // The record that a killed daemon leaves.
    fs::remove_file(socket.with_extension("sock.json")).unwrap();
}

/// The first process below this one that runs `toolctl`.
fn toolctl_below(process: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.into_iter().find_map(|child: u32| {
        let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        if name.trim() == "toolctl" { Some(child) } else { toolctl_below(child) }
    })
}

#[test]
fn an_installed_hook_that_is_killed_has_the_status_of_a_denial() {
    for agent in ["claude-code", "codex", "gemini", "qwen-code"] {
        let setup = Setup::new();
        done(&setup, &["install", agent, "--hooks", "--fail", "open", "--yes"]);
        let (_, file, _) = AGENTS.into_iter().find(|(name, ..)| *name == agent).unwrap();
        let settings: Value = serde_json::from_str(&fs::read_to_string(setup.home(file)).unwrap()).unwrap();
        let event = if agent == "gemini" { "BeforeTool" } else { "PreToolUse" };
        let command = hook_command(&settings["hooks"][event], agent);
        let run = |input: Value| {
            let mut shell = setup.command(Path::new("sh"));
            shell.arg("-c").arg(&command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut shell = shell.spawn().unwrap();
            shell.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
            shell
        };
        let tool = if matches!(agent, "gemini" | "qwen-code") { "run_shell_command" } else { "Bash" };
        let mut input = bash(event, "git push");
        (input["tool_name"], input["cwd"]) = (json!(tool), json!(setup.path("work")));
        // A person is asked, who does not answer.
        let requests = scripted_by(&setup, |_, _| {
            vec![json!({"method": "permissions.waiting", "params": {"request": "r", "until": "2999-01-01T00:00:00Z"}})]
        });
        let shell = run(input.clone());
        let hook = until("the hook", || (!requests.lock().unwrap().is_empty()).then(|| toolctl_below(shell.id()))?);
        let hook = rustix::process::Pid::from_raw(hook as i32).unwrap();
        rustix::process::kill_process(hook, rustix::process::Signal::KILL).unwrap();
        let output = shell.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{agent}: {command}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("toolctl ended without an answer"), "{output:?}");
        // Without a daemon, an open hook is as silent as ever.
        fs::remove_file(setup.path("run/toold.sock")).unwrap();
        assert_eq!(run(input).wait_with_output().unwrap().status.code(), Some(0), "{agent}: {command}");
        // Nothing is denied once toolctl is gone.
        let gone = command.replace(toolctl().to_str().unwrap(), "/nonexistent/toolctl");
        assert_ne!(gone, command);
        let output = setup.command(Path::new("sh")).arg("-c").arg(&gone).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{agent}: {gone}: {output:?}");
    }
}

/// Its hook lives on, as one does that the agent has started in a session of its own.
#[test]
fn a_person_is_asked_no_more_for_an_agent_that_was_killed() {
    let daemon = Setup::new().config("[agents.codex]\nask = \"toold\"\n").start();
    let mut person = AskingHook::person(&daemon);
    let mut input = bash("PreToolUse", "git push");
    input["cwd"] = json!(daemon.work());
    let agent = "import subprocess, sys\nsubprocess.run([sys.argv[1], 'hook', 'codex'], input=sys.argv[2], text=True, start_new_session=True)";
    let mut agent = daemon
        .setup
        .command(Path::new("python3"))
        .args(["-c", agent])
        .arg(toolctl())
        .arg(input.to_string())
        .spawn()
        .unwrap();
    let id = asked(&mut person);
    agent.kill().unwrap();
    agent.wait().unwrap();
    let resolved = person.notification("permissions.event")["result"].take();
    assert_eq!((&resolved["action"], &resolved["request_id"]), (&json!("cancelled"), &id));
    let list = until("the row", || {
        let list = daemon.connect().result("audit.query", json!({"agent": "codex"}));
        list["entries"][0]["outcome"].is_string().then_some(list)
    });
    let rule = list["entries"][0]["decisions"][0]["rule"].as_str().unwrap();
    assert!(rule.starts_with("the agent ended before an answer ("), "{list}");
}

#[test]
fn a_daemon_that_refuses_or_answers_nonsense_allows_nothing() {
    for answer in [
        json!({"error": {"code": -32601, "message": "unknown method"}}),
        json!({"result": null}),
        json!({"result": {"decision": true}}),
        json!({"result": []}),
    ] {
        let setup = Setup::new();
        scripted(&setup, answer.clone());
        let output = hook(&setup, &["claude-code"], &bash("PreToolUse", "ls").to_string());
        assert!(!String::from_utf8_lossy(&output.stdout).contains("allow"), "{answer}: {output:?}");
        assert!(output.status.success());
    }
}

#[test]
fn the_end_of_a_tool_is_reported_for_the_request_of_its_start() {
    let setup = Setup::new();
    let requests = scripted(&setup, json!({"result": {}}));
    assert_eq!(said(&hook(&setup, &["claude-code"], &bash("PostToolUse", "ls").to_string())), Value::Null);
    assert_eq!(said(&hook(&setup, &["claude-code"], &bash("PostToolUseFailure", "ls").to_string())), Value::Null);
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0]["method"], "permissions.done");
    assert_eq!(requests[0]["params"], json!({"request_id": "claude-code/s-1/toolu_1", "ok": true}));
    assert_eq!(requests[1]["params"]["ok"], false);
}

#[test]
fn tools_of_toold_and_other_events_are_not_judged_by_the_hook() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("deny", "rule"));
    let mut own = bash("PreToolUse", "ls");
    own["tool_name"] = json!("mcp__toold__bash");
    let entry = json!({"mcpServers": {"toold": {"command": toolctl(), "args": ["mcp"]}}});
    fs::write(setup.path("home/.claude.json"), entry.to_string()).unwrap();
    assert_eq!(said(&hook(&setup, &["claude-code"], &own.to_string())), Value::Null);
    let start = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/"});
    assert_eq!(said(&hook(&setup, &["claude-code"], &start.to_string())), Value::Null);
    // The hook only tells the daemon which agent is calling. The daemon judges nothing.
    let requests = requests.lock().unwrap();
    let own: Vec<&Value> = requests.iter().map(|request| &request["params"]["is_own"]).collect();
    assert_eq!(own, [true], "{requests:?}");
}

#[test]
fn a_server_that_only_has_the_name_of_toold_is_judged() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("deny", "rule"));
    let mut foreign = bash("PreToolUse", "ls");
    foreign["tool_name"] = json!("mcp__toold__bash");
    let denied = |setup: &Setup| {
        let answer = said(&hook(setup, &["claude-code"], &foreign.to_string()));
        answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    };
    assert!(denied(&setup), "no configuration names it");
    let entry = json!({"mcpServers": {"toold": {"command": "./toolctl", "args": ["mcp"]}}});
    fs::write(setup.path("home/.claude.json"), entry.to_string()).unwrap();
    assert!(denied(&setup));
    let requests = requests.lock().unwrap();
    assert_eq!(requests[1]["params"]["needs"], json!([{"category": "mcp", "target": "toold/bash"}]));
}

/// Its server is the one of the agent's configuration; where that has none, no need is named, and each rule may be meant.
#[test]
fn a_resource_of_a_server_is_judged_by_its_uri() {
    let setup = Setup::new();
    let requests = scripted(&setup, judged("deny", "rule"));
    let entry = json!({"mcpServers": {"files": {"command": "files"}}});
    fs::write(setup.path("home/.claude.json"), entry.to_string()).unwrap();
    for server in ["files", "plugin:p:files", "Files"] {
        let mut reading = bash("PreToolUse", "");
        reading["tool_name"] = json!("ReadMcpResourceTool");
        reading["tool_input"] = json!({"server": server, "uri": "file:///srv/x"});
        said(&hook(&setup, &["claude-code"], &reading.to_string()));
    }
    let needs: Vec<Value> = requests.lock().unwrap().iter().map(|request| request["params"]["needs"].clone()).collect();
    let named = json!([{"category": "mcp", "target": "files/resource/file:///srv/x"}]);
    assert_eq!(needs, [named, Value::Null, Value::Null]);
}

/// A daemon whose socket cannot be opened may have rules that deny.
#[test]
fn a_hook_is_not_silent_while_a_daemon_runs_that_it_cannot_reach() {
    let daemon = Setup::new().start();
    let setup = &daemon.setup;
    let socket = setup.path("run/toold.sock");
    let decision = || {
        let answer = said(&hook(setup, &["codex", "--fail", "open"], &bash("PreToolUse", "ls").to_string()));
        answer["hookSpecificOutput"]["permissionDecision"].as_str().map(str::to_owned)
    };
    // A daemon that answers does not look at its socket any more.
    assert_eq!(decision(), None);
    fs::rename(&socket, setup.path("run/away")).unwrap();
    let moved = decision();
    fs::rename(setup.path("run/away"), &socket).unwrap();
    assert_eq!(moved.as_deref(), Some("deny"));
}

fn agents(setup: &Setup, arguments: &[&str]) -> Output {
    setup.command(toolctl()).arg("agents").args(arguments).output().unwrap()
}

#[track_caller]
fn done(setup: &Setup, arguments: &[&str]) -> String {
    let output = agents(setup, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The agent, its file, and the file's text before.
const AGENTS: [(&str, &str, &str); 8] = [
    (
        "claude-code",
        ".claude/settings.json",
        "{\n  // mine\n  \"model\": \"x\",\n  \"hooks\": {\"PreToolUse\": []}\n}\n",
    ),
    ("codex", ".codex/hooks.json", ""),
    ("gemini", ".gemini/settings.json", "{\"theme\": \"dark\"}\n"),
    ("cursor", ".cursor/hooks.json", "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"mine\"}]}}\n"),
    ("copilot", ".copilot/hooks/toold.json", ""),
    ("opencode", ".config/opencode/plugins/toold.js", ""),
    ("qwen-code", ".qwen/settings.json", "{\"theme\": \"dark\"}\n"),
    ("vscode", ".copilot/hooks/toold-vscode.json", ""),
];

#[test]
fn hooks_are_shown_installed_listed_and_removed() {
    for (agent, file, before) in AGENTS {
        let setup = Setup::new();
        let file = setup.home(file);
        if !before.is_empty() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, before).unwrap();
        }
        // Without a terminal to ask on, nothing is written.
        let asked = agents(&setup, &["install", agent, "--hooks"]);
        assert!(!asked.status.success(), "{asked:?}");
        assert!(String::from_utf8_lossy(&asked.stdout).contains("+ "), "{asked:?}");
        assert_eq!(fs::read_to_string(&file).unwrap_or_default(), before);
        let shown = done(&setup, &["install", agent, "--hooks", "--yes"]);
        assert_eq!(shown.contains("only after you trust it"), agent == "codex", "{shown}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(toolctl().to_str().unwrap()), "{text}");
        assert!(done(&setup, &["install", agent, "--hooks", "--yes"]).contains("already has the hooks"));
        let listed: Value = serde_json::from_str(&done(&setup, &["list", "--json"])).unwrap();
        let of_agent = listed["agents"].as_array().unwrap().iter().find(|found| found["agent"] == agent).unwrap();
        assert_eq!((&of_agent["hooks"], &of_agent["mcp"]), (&json!(true), &json!(false)), "{listed}");
        done(&setup, &["install", agent, "--hooks", "--undo", "--yes"]);
        assert_eq!(fs::read_to_string(&file).unwrap_or_default(), before, "{agent}");
    }
}

/// The files of each agent that an installation changes.
const CHANGED: [(&str, &[&str]); 8] = [
    ("claude-code", &[".claude/settings.json", ".claude.json"]),
    ("codex", &[".codex/hooks.json", ".codex/config.toml"]),
    ("gemini", &[".gemini/settings.json"]),
    ("cursor", &[".cursor/hooks.json", ".cursor/mcp.json"]),
    ("copilot", &[".copilot/mcp-config.json", ".copilot/hooks/toold.json"]),
    ("opencode", &[".config/opencode/opencode.json"]),
    ("qwen-code", &[".qwen/settings.json"]),
    ("vscode", &[".config/Code/User/mcp.json", ".copilot/hooks/toold-vscode.json"]),
];

#[test]
fn undo_leaves_every_file_byte_for_byte_as_it_was() {
    let theirs = "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"command\": \"x\"}]}]}, \"mcpServers\": {\"x\": {\"command\": \"y\"}}}";
    for (agent, files) in CHANGED {
        for text in [None, Some(""), Some("{\"a\": 1}"), Some(theirs)] {
            for is_link in [false, true] {
                let setup = Setup::new();
                let home = setup.path("home");
                let files_of_person = || (files_below(&home), files_below(&setup.path("config")));
                for (number, file) in files.iter().enumerate() {
                    let file = setup.home(file);
                    fs::create_dir_all(file.parent().unwrap()).unwrap();
                    let Some(text) = text else {
                        if is_link {
                            symlink(format!("not-there-{number}"), &file).unwrap();
                        }
                        continue;
                    };
                    // Codex's configuration is TOML.
                    let text = if file.extension().is_some_and(|end| end == "toml") { "" } else { text };
                    let real = if is_link { home.join(format!("real-{number}")) } else { file.clone() };
                    fs::write(&real, text).unwrap();
                    if is_link {
                        symlink(&real, &file).unwrap();
                    }
                }
                let before = files_of_person();
                done(&setup, &["install", agent, "--yes"]);
                let installed = files_of_person();
                assert_ne!(installed, before, "{agent} {text:?}");
                done(&setup, &["install", agent, "--yes"]);
                assert_eq!(files_of_person(), installed, "{agent} {text:?}");
                done(&setup, &["install", agent, "--undo", "--yes"]);
                assert_eq!(files_of_person(), before, "{agent} {text:?}, link: {is_link}");
            }
        }
    }
}

#[test]
fn a_plugin_of_somebody_else_is_not_replaced() {
    let setup = Setup::new();
    let file = setup.home(".config/opencode/plugins/toold.js");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "export const Mine = 1\n").unwrap();
    for arguments in
        [["install", "opencode", "--hooks", "--yes"].as_slice(), &["install", "opencode", "--undo", "--yes"]]
    {
        let output = agents(&setup, arguments);
        assert_eq!(fs::read_to_string(&file).unwrap(), "export const Mine = 1\n", "{output:?}");
    }
    let refused = agents(&setup, &["install", "opencode", "--hooks", "--yes"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("it is not a file of toold: move it away"),
        "{refused:?}"
    );
}

#[test]
fn an_installed_hook_does_not_believe_a_repository_about_where_toold_is() {
    let setup = Setup::new();
    let commands: Vec<(&str, String)> = AGENTS
        .into_iter()
        .filter(|(agent, ..)| *agent != "opencode")
        .map(|(agent, file, _)| {
            done(&setup, &["install", agent, "--hooks", "--yes"]);
            let text = fs::read_to_string(setup.home(file)).unwrap();
            (agent, hook_command(&serde_json::from_str(&text).unwrap(), agent))
        })
        .collect();
    let requests = scripted(&setup, judged("deny", "rule"));
    let elsewhere = setup.path("work/repository");
    for (number, (agent, command)) in commands.iter().enumerate() {
        let mut hook = setup.command(Path::new("sh"));
        hook.arg("-c").arg(command).env("TOOLD_SOCKET", "/nonexistent/socket").env("TOOLD_CONFIG", elsewhere.join("c"));
        for name in ["CONFIG_HOME", "STATE_HOME", "RUNTIME_DIR", "DATA_HOME", "CACHE_HOME"] {
            hook.env(format!("XDG_{name}"), elsewhere.join(name));
        }
        let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let payloads = format!("{}/agents/payloads/{agent}.json", env!("CARGO_MANIFEST_DIR"));
        let payloads: Vec<Value> = serde_json::from_str(&fs::read_to_string(payloads).unwrap()).unwrap();
        let before = payloads.iter().find(|entry| entry["expected"].get("deny").is_some_and(|deny| deny != "silence"));
        child.stdin.take().unwrap().write_all(before.unwrap()["payload"].to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(requests.lock().unwrap().len(), number + 1, "{agent}: {command}: {output:?}");
        assert!(!elsewhere.exists(), "{agent}: {output:?}");
    }
}

/// The first command of a hook in an agent's file.
fn hook_command(value: &Value, agent: &str) -> String {
    let inner = match value {
        Value::String(text) if text.contains(&format!(" hook {agent} ")) => return text.clone(),
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().map(|value| hook_command(value, agent)).find(|command| !command.is_empty()).unwrap_or_default()
}

/// Each file with its text, and each link with its target, by path.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_below(&path));
        } else if kind.is_symlink() {
            found.insert(path.clone(), fs::read_link(&path).unwrap().display().to_string());
        } else {
            found.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    found
}

#[test]
fn undo_leaves_what_others_added_since() {
    let setup = Setup::new();
    let file = setup.path("home/.claude/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "{}\n").unwrap();
    done(&setup, &["install", "claude-code", "--hooks", "--yes"]);
    let changed = fs::read_to_string(&file).unwrap().replacen('{', "{\n  \"model\": \"theirs\",", 1);
    fs::write(&file, changed).unwrap();
    done(&setup, &["install", "claude-code", "--hooks", "--undo", "--yes"]);
    let left: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(left, json!({"model": "theirs"}));
}

#[test]
fn hooks_and_mcp_entry_are_installed_in_one_go() {
    let setup = Setup::new();
    fs::create_dir_all(setup.path("home/.codex")).unwrap();
    done(&setup, &["install", "codex", "--yes"]);
    let config = fs::read_to_string(setup.path("home/.codex/config.toml")).unwrap();
    assert!(config.contains("[mcp_servers.toold]"), "{config}");
    assert!(fs::read_to_string(setup.path("home/.codex/hooks.json")).unwrap().contains("hook codex"));
    done(&setup, &["install", "codex", "--undo", "--yes"]);
    assert!(!setup.path("home/.codex/hooks.json").exists() && !setup.path("home/.codex/config.toml").exists());
}

#[test]
fn hooks_are_installed_where_the_agent_s_variable_points_and_found_to_be_off_where_a_repository_says_so() {
    let setup = Setup::new();
    let run = |arguments: &[&str]| {
        let mut command = setup.command(toolctl());
        command.env("CLAUDE_CONFIG_DIR", setup.path("home/cfg")).env("CODEX_HOME", setup.path("home/cdx"));
        command.arg("--no-start").args(arguments).output().unwrap()
    };
    for (agent, file) in [("claude-code", "cfg/settings.json"), ("codex", "cdx/hooks.json")] {
        let output = run(&["agents", "install", agent, "--yes"]);
        assert!(output.status.success(), "{output:?}");
        assert!(fs::read_to_string(setup.home(file)).unwrap().contains(" hook "), "{agent}");
    }
    assert!(setup.path("home/cfg/.claude.json").exists() && setup.path("home/cdx/config.toml").exists());
    assert!(!setup.path("home/.claude").exists() && !setup.path("home/.codex").exists());
    let hooks = |agent: &str| {
        let listed: Value = serde_json::from_slice(&run(&["agents", "list", "--json"]).stdout).unwrap();
        let found = listed["agents"].as_array().unwrap().iter().find(|found| found["agent"] == agent).cloned();
        found.map(|found| (found["hooks"].clone(), found["hooks_off"]["setting"].clone()))
    };
    assert_eq!(hooks("claude-code"), Some((json!(true), Value::Null)));
    let repository = setup.path("work/.claude/settings.local.json");
    fs::create_dir_all(repository.parent().unwrap()).unwrap();
    fs::write(&repository, "{\"disableAllHooks\": true}").unwrap();
    assert_eq!(hooks("claude-code"), Some((json!(true), json!("\"disableAllHooks\": true"))));
    let told = String::from_utf8(run(&["agents", "doctor"]).stdout).unwrap();
    let off = format!("the hooks do not run: \"disableAllHooks\": true in {}", repository.display());
    assert!(told.contains(&off), "{told}");
}

#[test]
fn a_doctor_makes_no_agent_of_the_program_that_runs_it() {
    let daemon = Setup::new().start();
    let line = "\"$0\" mcp doctor && \"$0\" permissions grant shell 'git pull'";
    let script = "import subprocess, sys; sys.exit(subprocess.run(['sh', '-c', sys.argv[2], sys.argv[1]]).returncode)";
    let mut command = daemon.setup.command(Path::new("python3"));
    let output = command.args(["-c", script]).arg(toolctl()).arg(line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_doctor_misses_hooks_that_were_installed_and_says_what_holds_meanwhile() {
    let setup = Setup::new();
    let doctor = || {
        let output = agents(&setup, &["doctor"]);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    for (agent, file, broken) in [
        ("gemini", ".gemini/settings.json", "{\"a\": \n"),
        ("codex", ".codex/hooks.json", "{\"hooks\": []}"),
        ("opencode", ".config/opencode/plugins/toold.js", "export const Other = 1;\n"),
    ] {
        done(&setup, &["install", agent, "--hooks", "--yes"]);
        fs::remove_file(setup.home(file)).unwrap();
        let (_, said) = doctor();
        assert!(said.contains(&format!("bad   {agent}: the hooks that were installed in")), "{said}");
        fs::write(setup.home(file), broken).unwrap();
        let (_, said) = doctor();
        assert!(said.contains(&format!("bad   {agent}: no hooks, and they cannot be installed: ")), "{said}");
        fs::remove_file(setup.home(file)).unwrap();
        done(&setup, &["install", agent, "--hooks", "--yes"]);
        done(&setup, &["install", agent, "--hooks", "--undo", "--yes"]);
        let (_, said) = doctor();
        assert!(!said.contains(&format!("bad   {agent}")), "{said}");
    }
    let (is_well, said) = doctor();
    assert!(!is_well && said.starts_with("bad   toold is not running (toolctl status starts it)\n"), "{said}");
    scripted(&setup, json!({"error": {"code": -32603, "message": "panicked"}}));
    let (_, said) = doctor();
    assert!(said.lines().next().unwrap().contains("hooks make agents ask, and deny where they cannot"), "{said}");
}

#[test]
fn the_list_and_the_doctor_say_how_the_last_hook_ended() {
    let setup = Setup::new();
    fs::create_dir_all(setup.path("home/.codex")).unwrap();
    done(&setup, &["install", "codex", "--hooks", "--yes"]);
    let doctor = agents(&setup, &["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("only after you trust it") && told.contains("no hook has run yet"), "{told}");
    hook(&setup, &["codex"], &bash("PreToolUse", "ls").to_string());
    let kept = setup.path("state/toold/hooks/codex.json");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let doctor = agents(&setup, &["doctor"]);
    assert!(!doctor.status.success());
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("bad   toold is not running") && told.contains("codex: last hook failed"), "{told}");
    scripted(&setup, judged("allow", "rule"));
    hook(&setup, &["codex"], &bash("PreToolUse", "ls").to_string());
    let told = done(&setup, &["doctor"]);
    assert!(told.contains("codex: last hook ok: PreToolUse, allow"), "{told}");
}
