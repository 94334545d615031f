//! Mounted MCP servers with a process for each session or each project, and shared ones that ask people.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n";

/// A daemon with the stand-in mounted as `s`.
fn mounted(more: &str) -> TestDaemon {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py");
    let server = format!("[mcp.servers.s]\ncommand = \"python3\"\nargs = {}\n{more}\n", json!([program]));
    let daemon = Setup::new().config(&(ALLOW.to_owned() + &server)).start();
    let mut wire = daemon.connect();
    until("its tools are listed", || wire.call("tools.schema", json!({"name": "s_echo"})).get("result").map(|_| ()));
    daemon
}

/// A session in a folder, and its id.
fn session(daemon: &TestDaemon, folder: &Path) -> (Wire, Value) {
    let mut wire = Wire::connect(&daemon.socket());
    let opened = wire.result("session.open", json!({"cwd": folder}));
    (wire, opened["session_id"].clone())
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The process that serves a session.
#[track_caller]
fn pid(wire: &mut Wire) -> u64 {
    let result = wire.tool("s_where", json!({}));
    let seen: Value = serde_json::from_str(text(&result)).unwrap_or_else(|_| panic!("{result}"));
    seen["pid"].as_u64().unwrap()
}

fn server(daemon: &TestDaemon) -> Value {
    Wire::connect(&daemon.socket()).result("mcp.servers", json!({}))["servers"][0].take()
}

fn is_there(pid: u64) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn folder(daemon: &TestDaemon, name: &str) -> PathBuf {
    let folder = daemon.setup.path(name);
    fs::create_dir(&folder).unwrap();
    folder
}

/// The next form that a person is asked to fill in.
#[track_caller]
fn next_form(wire: &mut Wire) -> Value {
    loop {
        let mut event = wire.notification("questions.event")["result"].take();
        if event["type"] == "asked" {
            return event["request"].take();
        }
    }
}

#[test]
fn each_session_has_a_process_that_ends_with_it() {
    let daemon = mounted("scope = \"session\"");
    let ((mut one, first), (mut two, second)) = (session(&daemon, &daemon.work()), session(&daemon, &daemon.work()));
    until("the process that listed the tools has ended", || (server(&daemon)["instances"] == json!([])).then_some(()));
    let (a, b) = (pid(&mut one), pid(&mut two));
    assert_ne!(a, b);
    assert_eq!((pid(&mut one), pid(&mut two)), (a, b));
    let shown = server(&daemon);
    assert_eq!(
        (&shown["scope"], &shown["state"], &shown["max_instances"]),
        (&json!("session"), &json!("running"), &json!(16))
    );
    let instances = shown["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 2, "{shown}");
    for (id, pid) in [(&first, a), (&second, b)] {
        let instance = instances.iter().find(|instance| instance["session"] == *id).expect("it has one");
        assert_eq!(instance["pid"], pid);
        assert!(instance["memory_bytes"].as_u64().unwrap() > 1 << 20 && instance["uptime_s"].is_f64(), "{instance}");
    }
    let printed = String::from_utf8(daemon.toolctl(&["mcp", "servers"]).stdout).unwrap();
    for words in [first.as_str().unwrap(), &a.to_string(), "MiB"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    // Each tool is there once.
    let listed = one.result("tools.list", json!({}));
    let named = listed["tools"].as_array().unwrap().iter().filter(|tool| tool["name"] == "s_where").count();
    assert_eq!(named, 1);

    one.result("session.close", json!({"session_id": first}));
    until("its process has ended", || (!is_there(a)).then_some(()));
    assert_eq!(pid(&mut two), b);
    assert_eq!(server(&daemon)["instances"].as_array().unwrap().len(), 1);
}

#[test]
fn an_mcp_client_that_disconnects_takes_its_process_along() {
    let daemon = mounted("scope = \"session\"");
    let mut client = Wire::connect(&daemon.socket());
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
        "_meta": {"toold/default-cwd": daemon.work()},
    });
    client.result("initialize", hello);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let called = client.result("tools/call", json!({"name": "s_where", "arguments": {}}));
    let seen: Value = serde_json::from_str(text(&called)).unwrap();
    let process = seen["pid"].as_u64().unwrap();
    assert!(is_there(process));
    drop(client);
    until("its process has ended", || (!is_there(process)).then_some(()));
}

#[test]
fn nothing_is_left_of_instances_when_the_daemon_is_killed() {
    let mut daemon = mounted("scope = \"session\"");
    let processes: Vec<u64> = (0..2).map(|_| pid(&mut session(&daemon, &daemon.work()).0)).collect();
    daemon.restart("KILL");
    until("they have ended", || processes.iter().all(|pid| !is_there(*pid)).then_some(()));
}

#[test]
fn sessions_of_one_project_share_a_process() {
    let daemon = mounted("scope = \"project\"");
    let other = folder(&daemon, "other");
    fs::create_dir(daemon.work().join(".toold")).unwrap();
    fs::create_dir(daemon.work().join("below")).unwrap();
    let (mut one, _) = session(&daemon, &daemon.work());
    let (mut below, _) = session(&daemon, &daemon.work().join("below"));
    let (mut elsewhere, _) = session(&daemon, &other);
    until("the process that listed the tools has ended", || (server(&daemon)["instances"] == json!([])).then_some(()));
    let shared = pid(&mut one);
    assert_eq!(pid(&mut below), shared);
    assert_ne!(pid(&mut elsewhere), shared);
    let shown = server(&daemon);
    let projects: Vec<&Value> =
        shown["instances"].as_array().unwrap().iter().map(|instance| &instance["project"]).collect();
    assert_eq!(projects, [&json!(other), &json!(daemon.work())], "{shown}");
}

#[test]
fn calls_beyond_max_instances_are_refused_until_there_is_room() {
    let daemon = mounted("scope = \"session\"\nmax_instances = 1");
    let ((mut one, first), (mut two, _)) = (session(&daemon, &daemon.work()), session(&daemon, &daemon.work()));
    let process = pid(&mut one);
    let refused = two.tool("s_echo", json!({"text": "x"}));
    assert_eq!(refused["is_error"], true);
    for words in ["max_instances", "toolctl mcp servers", "idle_timeout_ms"] {
        assert!(text(&refused).contains(words), "{words}: {refused}");
    }
    assert!(!refused.to_string().contains(first.as_str().unwrap()), "a session is named to another one: {refused}");
    assert_eq!(pid(&mut one), process);
    one.result("session.close", json!({"session_id": first}));
    until("there is room", || (two.tool("s_echo", json!({"text": "x"}))["is_error"] == false).then_some(()));
}

#[test]
fn an_idle_instance_ends_and_the_next_call_starts_another() {
    let daemon = mounted("scope = \"session\"\nidle_timeout_ms = 200");
    let (mut one, _) = session(&daemon, &daemon.work());
    let process = pid(&mut one);
    until("it has ended", || (!is_there(process)).then_some(()));
    assert_ne!(pid(&mut one), process);
}

#[test]
fn with_a_process_for_each_session_questions_reach_the_right_frontend() {
    let daemon = mounted("scope = \"session\"");
    let ((mut one, _), (mut two, _)) = (session(&daemon, &daemon.work()), session(&daemon, &daemon.work()));
    one.result("questions.subscribe", json!({}));
    let hangs = two.request("tools.execute", json!({"name": "s_hold", "arguments": {"key": "k"}}));
    until("the other session's call runs", || (server(&daemon)["running"] == 1).then_some(()));
    let id = one.request("tools.execute", json!({"name": "s_ask"}));
    let asked = next_form(&mut one);
    assert_eq!(asked["question"], "MCP server s asks: Which color?");
    one.result("questions.reply", json!({"request_id": asked["request_id"], "content": {"color": "red"}}));
    let result = one.answer(id)["result"].take();
    assert!(text(&result).contains("\"accept\"") && text(&result).contains("red"), "{result}");
    assert_eq!(text(&two.tool("s_release", json!({"key": "k"}))), "released");
    two.answer(hangs);
}

#[test]
fn a_shared_server_that_does_not_say_for_which_call_it_asks_serves_one_session_at_a_time() {
    let daemon = mounted("");
    let ((mut one, _), (mut two, _)) = (session(&daemon, &daemon.work()), session(&daemon, &daemon.work()));
    one.result("questions.subscribe", json!({}));
    let hold = json!({"name": "s_hold", "arguments": {"key": "k"}, "progress": true});
    let held = two.request("tools.execute", hold);
    // The server has the call.
    assert_eq!(two.notification("tools.progress")["message"], "holding");
    // The daemon did not know that this server asks people. Nobody has cancelled anything.
    let result = one.tool("s_ask", json!({}));
    for words in ["nobody was asked", "calls of 2 sessions", "scope = "] {
        assert!(text(&result).contains(words), "{words}: {result}");
    }
    assert!(!text(&result).contains("cancel"), "{result}");
    // Now it knows, and the call waits for that of the other session.
    let id = one.request("tools.execute", json!({"name": "s_ask", "progress": true}));
    let waits = one.notification("tools.progress");
    assert!(waits.to_string().contains("waiting: a call of another session"), "{waits}");
    assert_eq!(text(&two.tool("s_release", json!({"key": "k"}))), "released");
    two.answer(held);
    let asked = next_form(&mut one);
    one.result("questions.reply", json!({"request_id": asked["request_id"], "content": {"color": "blue"}}));
    let result = one.answer(id)["result"].take();
    assert!(text(&result).contains("blue"), "{result}");
}
