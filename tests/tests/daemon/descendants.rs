//! A process that a tool started has the rights of its tool's session, and never more.

use std::path::PathBuf;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW_ALL: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

/// Sends the content of a file to the daemon, and writes the answers to another file. It does so itself, or starts a
/// process whose parents have ended: one that stays in the process's session, or one that leaves it.
const SPEAK: &str = r#"
import json, os, socket, sys, time
place, how = sys.argv[2], sys.argv[3]

def wait(done):
    for _ in range(3000):
        if done(): return
        time.sleep(0.02)
    sys.exit("nobody came")

def speak():
    with socket.socket(socket.AF_UNIX) as s, open(place + ".part", "w") as out:
        s.connect(sys.argv[1])
        lines = s.makefile("rw")
        for number, (method, params) in enumerate(json.load(open(place))):
            if method == "wait":
                wait(lambda: os.path.exists(params))
                continue
            if method.startswith("mcp:"):
                method = method[4:]
            lines.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            lines.flush()
            answer = {}
            while answer.get("id") != number or "method" in answer:
                answer = json.loads(lines.readline())
            out.write(json.dumps(answer) + "\n")
            out.flush()
    os.rename(place + ".part", place + ".answers")

if how == "itself":
    speak()
    sys.exit()
if os.fork() == 0:
    parent = os.getpid()
    if os.fork() == 0:
        if how == "leaves":
            os.setsid()
        wait(lambda: os.getppid() != parent)
        speak()
    os._exit(0)
wait(lambda: os.path.exists(place + ".answers"))
"#;

fn setup() -> Setup {
    Setup::new().config(ALLOW_ALL).file("speak.py", SPEAK)
}

/// A program that sends the requests in a file of this name.
struct DescendantScript {
    script: PathBuf,
    socket: PathBuf,
    said: PathBuf,
}

impl DescendantScript {
    fn new(daemon: &TestDaemon, name: &str, requests: &Value) -> Self {
        let said = daemon.work().join(name);
        std::fs::write(&said, requests.to_string()).unwrap();
        Self { script: daemon.work().join("speak.py"), socket: daemon.socket(), said }
    }

    fn line(&self, how: &str) -> String {
        format!("python3 {} {} {} {how}", self.script.display(), self.socket.display(), self.said.display())
    }

    #[track_caller]
    fn answers(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.said.with_extension("answers")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The answers to a program that `bash` runs in the session of `wire`.
#[track_caller]
fn below(daemon: &TestDaemon, wire: &mut Wire, how: &str, requests: &Value) -> Vec<Value> {
    let speaker = DescendantScript::new(daemon, "said", requests);
    let ran = wire.tool("bash", json!({"command": speaker.line(how)}));
    assert_eq!(ran["is_error"], false, "{ran}");
    let answers = speaker.answers();
    std::fs::remove_file(speaker.said.with_extension("answers")).unwrap();
    answers
}

fn write(path: &str) -> Value {
    json!(["tools.execute", {"name": "write", "arguments": {"path": path, "content": "x"}}])
}

fn read(path: &str) -> Value {
    json!(["tools.execute", {"name": "read", "arguments": {"path": path}}])
}

fn bash(command: &str) -> Value {
    json!(["tools.execute", {"name": "bash", "arguments": {"command": command}}])
}

#[track_caller]
fn is_denied(answer: &Value) {
    assert!(answer["result"]["metadata"]["permission"].is_object(), "{answer}");
}

#[track_caller]
fn is_done(answer: &Value) {
    assert_eq!(answer["result"]["is_error"], false, "{answer}");
}

#[test]
fn it_has_the_mode_of_its_tools_session() {
    let daemon = setup().start();
    let mut wire = daemon.connect();
    is_denied(&below(&daemon, &mut wire, "itself", &json!([write("a.txt")]))[0]);
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let answers = below(&daemon, &mut wire, "itself", &json!([write("a.txt"), ["session.list", {}]]));
    is_done(&answers[0]);
    let sessions = answers[1]["result"]["sessions"].as_array().unwrap();
    assert_eq!((sessions.len(), &sessions[0]["mode"]), (1, &json!("accept_edits")), "it sees no other session");
    // The mode of another session does not matter.
    let mut other = daemon.connect();
    is_denied(&below(&daemon, &mut other, "itself", &json!([write("b.txt")]))[0]);
}

#[test]
fn it_follows_a_mode_that_is_narrowed_meanwhile() {
    let daemon = setup().start();
    let (mut wire, mut person) = (daemon.connect(), daemon.connect());
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let session = wire.result("session.list", json!({}))["sessions"][0]["session_id"].take();
    let go = daemon.work().join("go");
    let requests = json!([write("before"), ["wait", go], write("after"), bash("touch after"), read("before")]);
    let speaker = DescendantScript::new(&daemon, "said", &requests);
    let running =
        wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": speaker.line("itself")}}));
    until("the first file is written", || daemon.work().join("before").exists().then_some(()));
    person.result("permissions.set_mode", json!({"mode": "plan", "session_id": session}));
    std::fs::write(go, "").unwrap();
    is_done(&wire.answer(running));
    let answers = speaker.answers();
    is_done(&answers[0]);
    is_denied(&answers[1]);
    is_denied(&answers[2]);
    is_done(&answers[3]);
    assert!(!daemon.work().join("after").exists());
}

#[test]
fn plugin_started_process_has_the_mode_and_uses_only_grants_of_its_plugin() {
    let plugin = "hygge.register_tool{name = 'runs', parameters = {type = 'object'}, execute = function(ctx, input) \
                  return hygge.exec('bash', {'-c', input.line}).stderr end}\n";
    let daemon = setup().plugin("spender.lua", plugin).start();
    let mut wire = daemon.connect();
    let mut runs = |daemon: &TestDaemon, requests: Value| {
        let speaker = DescendantScript::new(daemon, "said", &requests);
        let ran = wire.tool("runs", json!({"line": speaker.line("itself")}));
        assert_eq!(ran["content"][0]["text"], "", "{ran}");
        speaker.answers()
    };
    let mut person = daemon.connect();
    let grant = |chain: &[&str]| json!({"category": "file.write", "pattern": daemon.work().join("**"), "scope": "always", "chain": chain});
    person.result("permissions.grant", grant(&[]));
    is_denied(&runs(&daemon, json!([write("a.txt")]))[0]);
    person.result("permissions.grant", grant(&["spender"]));
    is_done(&runs(&daemon, json!([write("a.txt")]))[0]);
}

#[test]
fn it_sees_no_tool_that_its_tools_session_does_not_see() {
    let daemon = setup().start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "tools": {"enable": ["bash", "read"]}}));
    let widen = json!(["session.open", {"tools": {"enable": ["write", "read"]}}]);
    let answers =
        below(&daemon, &mut wire, "itself", &json!([widen, ["tools.list", {}], write("a.txt"), bash("true")]));
    let names: Vec<&Value> = answers[1]["result"]["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["read"]);
    for refused in &answers[2..] {
        assert_eq!(refused["error"]["data"]["kind"], "unknown_tool", "{refused}");
    }
}

#[test]
fn a_session_that_it_opens_lies_within_its_tools() {
    let daemon = setup().file("p/deep/x", "").file("root/x", "text").file("other/x", "").start();
    let work = daemon.work();
    let mut wire = Wire::connect(&daemon.socket());
    let opened = wire.result("session.open", json!({"cwd": work.join("p"), "roots": [work.join("root")]}));
    let open = |params: Value| json!(["session.open", params]);
    for wider in [
        json!({"cwd": work.join("other")}),
        json!({"cwd": work}),
        json!({"cwd": "/"}),
        json!({"cwd": work.join("p"), "roots": [work.join("other")]}),
        json!({"session_id": opened["session_id"]}),
        json!({"session_id": "its-own"}),
    ] {
        let answers = below(&daemon, &mut wire, "itself", &json!([open(wider.clone())]));
        assert_eq!(answers[0]["error"]["code"], -32002, "{wider}: {answers:?}");
    }
    let again = open(json!({"cwd": work.join("p")}));
    let named = json!(["tools.list", {"session_id": opened["session_id"]}]);
    let answers = below(
        &daemon,
        &mut wire,
        "itself",
        &json!([
            open(json!({"cwd": work.join("p/deep")})),
            again,
            named,
            read(&work.join("root/x").display().to_string()),
            read(&work.join("other/x").display().to_string())
        ]),
    );
    assert_eq!(answers[0]["result"]["cwd"], json!(work.join("p/deep")));
    assert_eq!(answers[1]["error"]["code"], -32002, "there is only the one");
    assert_eq!(answers[2]["error"]["code"], -32004, "nor does it speak for its tool's");
    is_done(&answers[3]);
    is_denied(&answers[4]);
}

#[test]
fn project_denials_apply_in_every_folder() {
    let deny = "[[permission.rules]]\ncategory = \"file.read\"\npattern = \"data/**\"\naction = \"deny\"\n";
    let daemon = setup().file(".toold/config.toml", deny).file("data/x", "").file("y", "text").start();
    let mut wire = daemon.connect();
    let speaker = DescendantScript::new(&daemon, "said", &json!([read("data/x"), read("y")]));
    let ran = wire.tool("bash", json!({"command": format!("cd / && {}", speaker.line("itself"))}));
    is_done(&json!({"result": ran}));
    let answers = speaker.answers();
    assert!(answers[0]["result"]["metadata"]["permission"]["rule"].to_string().contains("data/**"), "{answers:?}");
    // It works in its tool's folder, not in the one that it changed to.
    is_done(&answers[1]);
}

#[test]
fn only_grants_of_the_tools_session_apply() {
    let daemon = setup().start();
    let (mut wire, mut other) = (daemon.connect(), daemon.connect());
    let grant = json!({"category": "file.write", "pattern": "granted/*", "scope": "session"});
    wire.result("permissions.grant", grant);
    is_done(&below(&daemon, &mut wire, "itself", &json!([write("granted/a")]))[0]);
    is_denied(&below(&daemon, &mut wire, "itself", &json!([write("more")]))[0]);
    is_denied(&below(&daemon, &mut other, "itself", &json!([write("granted/b")]))[0]);
    let deny = json!({"category": "file.write", "pattern": "granted/c", "scope": "session", "action": "deny"});
    wire.result("permissions.grant", deny);
    is_denied(&below(&daemon, &mut wire, "itself", &json!([write("granted/c")]))[0]);
}

#[test]
fn an_orphan_is_known_by_the_session_of_processes_that_it_stayed_in() {
    let daemon = setup().start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    is_done(&below(&daemon, &mut wire, "stays", &json!([write("a.txt")]))[0]);
}

#[test]
fn unknown_orphan_reads_only_allowed_files() {
    let daemon = setup().file("y", "text").start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let path = daemon.work().join("y").display().to_string();
    let new = daemon.work().join("new").display().to_string();
    let open = json!(["session.open", {"cwd": daemon.work()}]);
    let requests = json!([open, ["session.list", {}], write(&new), bash("true"), read(&path)]);
    let answers = below(&daemon, &mut wire, "leaves", &requests);
    assert_eq!(answers[0]["error"]["code"], -32002, "{answers:?}");
    assert_eq!(answers[1]["result"]["sessions"], json!([]));
    answers[2..].iter().for_each(is_denied);
    wire.result("permissions.grant", json!({"category": "file.read", "pattern": path, "scope": "always"}));
    is_done(&below(&daemon, &mut wire, "leaves", &json!([read(&path)]))[0]);
}

#[test]
fn a_mcp_client_below_a_tool_is_held_the_same_way() {
    let daemon = setup().start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "tools": {"disable": ["edit"]}}));
    let hello = json!(["initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}]);
    let call = |path: &str| json!(["mcp:tools/call", {"name": "write", "arguments": {"path": path, "content": "x"}}]);
    let requests = json!([hello, ["mcp:tools/list", {}], call("a.txt"), call("/tmp/a.txt")]);
    let answers = below(&daemon, &mut wire, "itself", &requests);
    let tools = answers[1]["result"]["tools"].to_string();
    assert!(tools.contains("\"write\"") && !tools.contains("\"edit\""), "{tools}");
    assert_eq!(answers[2]["result"]["isError"], true, "{answers:?}");
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let answers = below(&daemon, &mut wire, "itself", &requests);
    assert_eq!(answers[2]["result"]["isError"], json!(false), "{answers:?}");
    assert_eq!(answers[3]["result"]["isError"], true, "{answers:?}");
}

#[test]
fn toolctl_below_a_tool_works_with_its_session() {
    let daemon = setup().file("deep/y", "text").start();
    let mut wire = daemon.connect();
    let toolctl = toold_tests::toolctl().display();
    let calls = format!("cd deep && {toolctl} call read path=y; {toolctl} call write path=z content=x");
    let ran = wire.tool("bash", json!({"command": calls}));
    let text = ran["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("text") && !daemon.work().join("deep/z").exists(), "{text}");
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let ran = wire.tool("bash", json!({"command": calls}));
    assert!(daemon.work().join("deep/z").exists(), "{ran}");
}
