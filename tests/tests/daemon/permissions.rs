//! Prompts: several frontends with one prompt, shared grants, and clients that may not answer.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

fn event(wire: &mut Wire) -> Value {
    wire.notification("permissions.event")["result"].take()
}

fn asked(wire: &mut Wire) -> Value {
    let mut event = event(wire);
    assert_eq!(event["type"], "asked", "{event}");
    event["request"].take()
}

fn run(wire: &mut Wire, command: &str, call_id: &str) -> u64 {
    wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}, "call_id": call_id}))
}

fn subscribed(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

#[test]
fn the_first_reply_wins_and_the_other_prompts_close() {
    let daemon = TestDaemon::asking();
    let (mut one, mut two, mut agent) = (subscribed(&daemon), subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "echo asked", "c");
    let (ask, same) = (asked(&mut one), asked(&mut two));
    assert_eq!(ask, same);
    assert_eq!(
        (&ask["category"], &ask["target"], &ask["tool"]),
        (&json!("shell"), &json!("echo asked"), &json!("bash"))
    );
    assert_eq!((&ask["call_id"], &ask["cwd"]), (&json!("c"), &json!(daemon.work())));
    assert!(ask["suggestions"].as_array().unwrap().iter().any(|s| s["pattern"] == "echo asked"), "{ask}");
    assert_eq!(one.result("permissions.pending", json!({}))["asks"][0], ask);

    let reply = json!({"request_id": ask["request_id"], "action": "allow"});
    assert_eq!(
        two.error("permissions.reply", json!({"request_id": ask["request_id"], "action": "yes"}))["code"],
        -32602
    );
    one.result("permissions.reply", reply.clone());
    assert_eq!(two.error("permissions.reply", reply)["code"], -32004);
    for wire in [&mut one, &mut two] {
        let resolved = event(wire);
        assert_eq!((&resolved["type"], &resolved["action"]), (&json!("resolved"), &json!("allow")), "{resolved}");
        assert_eq!(resolved["by"]["client"], "test");
    }
    let result = agent.answer(id)["result"].take();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("asked"), "{result}");
    assert_eq!(one.result("permissions.pending", json!({})), json!({"asks": []}));
}

#[test]
fn a_grant_of_one_frontend_holds_for_all_at_once_and_after_a_restart() {
    let mut daemon = TestDaemon::asking();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "echo one", "a");
    let ask = asked(&mut person);
    let reply = json!({"request_id": ask["request_id"], "action": "allow", "scope": "always", "pattern": "echo *"});
    person.result("permissions.reply", reply);
    assert_eq!(agent.answer(id)["result"]["is_error"], false);
    let mut other = daemon.connect();
    assert_eq!(other.tool("bash", json!({"command": "echo two three"}))["is_error"], false);
    let grants = person.result("permissions.list", json!({}))["grants"].take();
    assert_eq!(
        (&grants[0]["pattern"], &grants[0]["scope"], &grants[0]["by"]),
        (&json!("echo *"), &json!("always"), &json!("test"))
    );

    daemon.restart("TERM");
    let mut wire = daemon.connect();
    assert_eq!(wire.tool("bash", json!({"command": "echo again"}))["is_error"], false);
    wire.result("permissions.revoke", json!({"id": grants[0]["id"]}));
    assert_eq!(wire.tool("bash", json!({"command": "echo again"}))["is_error"], true);
    assert_eq!(wire.error("permissions.revoke", json!({"id": grants[0]["id"]}))["code"], -32004);
}

#[test]
fn identical_asks_are_one_prompt() {
    let daemon = TestDaemon::asking();
    let mut person = subscribed(&daemon);
    let (mut one, mut two) = (Wire::connect(&daemon.socket()), Wire::connect(&daemon.socket()));
    one.result("session.open", json!({"cwd": daemon.work(), "session_id": "s"}));
    two.result("session.open", json!({"session_id": "s"}));
    let write = |wire: &mut Wire, call_id: &str| {
        wire.request(
            "tools.execute",
            json!({"name": "read", "arguments": {"path": "/etc/hostname"}, "call_id": call_id}),
        )
    };
    let first = write(&mut one, "1");
    let ask = asked(&mut person);
    let second = write(&mut two, "2");
    until("both calls wait for it", || {
        let pending = person.result("permissions.pending", json!({}))["asks"].take();
        (pending[0]["call_ids"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    // The open prompt says who waits for its answer now.
    let changed = asked(&mut person);
    assert_eq!((&changed["request_id"], changed["call_ids"].as_array().map(Vec::len)), (&ask["request_id"], Some(2)));
    let reply = json!({"request_id": ask["request_id"], "action": "deny", "message": "not now"});
    person.result("permissions.reply", reply);
    for (wire, id) in [(&mut one, first), (&mut two, second)] {
        let result = wire.answer(id)["result"].take();
        assert!(result["content"][0]["text"].as_str().unwrap().contains("not now"), "{result}");
    }
    assert_eq!(event(&mut person)["type"], "resolved");
}

#[test]
fn nobody_is_asked_about_a_part_of_a_line_that_is_denied() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"git push *\"\naction = \"deny\"\n";
    let daemon = Setup::new().config(rule).start();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "touch x && git push", "denied");
    let result = agent.answer(id)["result"].take();
    let words = result["content"][0]["text"].as_str().unwrap();
    assert!(result["is_error"] == true && words.contains("git push"), "{result}");
    // The next event is that of another line: there was none about the first one.
    let id = run(&mut agent, "touch y", "asked");
    let ask = asked(&mut person);
    assert_eq!(ask["target"], "touch y", "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_eq!(agent.answer(id)["result"]["is_error"], true);
    assert!(!daemon.work().join("x").exists());
}

#[test]
fn an_ask_ends_with_its_call() {
    let daemon = TestDaemon::asking();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "echo x", "c");
    asked(&mut person);
    agent.result("tools.cancel", json!({"call_id": "c"}));
    assert_eq!(agent.answer(id)["error"]["code"], -32800);
    let resolved = event(&mut person);
    assert_eq!((&resolved["action"], &resolved["by"]), (&json!("cancelled"), &Value::Null));

    run(&mut agent, "echo y", "d");
    asked(&mut person);
    drop(agent);
    assert_eq!(event(&mut person)["action"], "cancelled");
}

#[test]
fn late_frontend_sees_open_prompts() {
    let daemon = TestDaemon::asking();
    let (mut first, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "echo late", "c");
    let ask = asked(&mut first);
    // The only frontend disconnects; the call waits a while for another.
    let mut second = subscribed(&daemon);
    drop(first);
    assert_eq!(asked(&mut second)["request_id"], ask["request_id"]);
    second.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(agent.answer(id)["result"]["is_error"], false);
}

#[test]
fn an_agent_cannot_answer_nor_grant() {
    let daemon = TestDaemon::asking();
    let mut person = subscribed(&daemon);
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    agent.result("permissions.subscribe", json!({}));
    let id = run(&mut agent, "echo x", "c");
    let ask = asked(&mut person);
    assert_eq!(asked(&mut agent)["request_id"], ask["request_id"]);
    let reply = json!({"request_id": ask["request_id"], "action": "allow"});
    let grant = json!({"category": "shell", "pattern": "**", "scope": "always"});
    for (method, params) in [
        ("permissions.reply", reply.clone()),
        ("permissions.grant", grant),
        ("permissions.set_mode", json!({"mode": "yolo"})),
        ("permissions.revoke", json!({"id": "x"})),
    ] {
        assert_eq!(agent.error(method, params)["code"], -32002, "{method}");
    }
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_eq!(agent.answer(id)["result"]["is_error"], true);
    drop(person);
    until("the person is gone", || (agent.result("daemon.status", json!({}))["connections"] == 1).then_some(()));
    // A subscribed agent does not count as a client that can answer.
    let result = agent.tool("bash", json!({"command": "echo y"}));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("toolctl permissions grant"), "{result}");
}

#[test]
fn tool_started_process_cannot_answer_prompts() {
    // The command connects to the daemon's own socket and tries to allow everything.
    let script = r#"
import json, os, socket, sys
if len(sys.argv) > 2: sys.stdout = open(sys.argv[2] + ".part", "w")
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
def call(method, params):
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"); f.flush()
    return json.loads(f.readline())
for method, params in [
    ("permissions.grant", {"category": "shell", "pattern": "**", "scope": "always"}),
    ("permissions.set_mode", {"mode": "yolo"}),
    ("permissions.reply", {"request_id": "x", "action": "allow"}),
    ("daemon.shutdown", {}), ("plugins.reload", {}), ("session.open", {"cwd": "/"}), ("tools.provide", {"tools": []}),
]:
    print(method, call(method, params).get("error", {}).get("code"))
if len(sys.argv) > 2: sys.stdout.close(); os.rename(sys.argv[2] + ".part", sys.argv[2])
"#;
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(rule).file("try.py", script).start();
    let mut wire = daemon.connect();
    let socket = daemon.socket().display().to_string();
    // As a child, in its own process session, and as an orphan whose parents died.
    for command in [
        format!("python3 try.py {socket}"),
        format!("setsid -w python3 try.py {socket}"),
        format!(
            "(setsid sh -c '(python3 try.py {socket} out.txt) &' &); while [ ! -e out.txt ]; do sleep 0.05; done; cat out.txt"
        ),
    ] {
        let result = wire.tool("bash", json!({"command": command}));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.matches("-32002").count(), 7, "{command}: {result}");
    }
    assert_eq!(wire.result("permissions.list", json!({}))["grants"], json!([]));
}

#[test]
fn check_shows_decision_and_reason() {
    let config = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"git status\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(config).file(".env", "SECRET=1").file("a.txt", "x").start();
    let mut wire = daemon.connect();
    let mut check = |category: &str, target: &str| {
        let answer = wire.result("permissions.check", json!({"category": category, "target": target}));
        (answer["verdict"].as_str().unwrap().to_owned(), answer["rule"].as_str().unwrap().to_owned())
    };
    assert!(
        matches!(check("shell", "git status"), (verdict, rule) if verdict == "allow" && rule.contains("config.toml:1"))
    );
    assert_eq!(check("shell", "git status && rm -rf x").0, "ask");
    assert_eq!(check("file.read", "a.txt").0, "allow");
    assert_eq!(check("file.read", "/etc/passwd").0, "ask");
    assert_eq!(check("file.read", ".env").0, "deny");
    assert_eq!(check("file.write", ".toold/config.toml").0, "deny");
    assert_eq!(check("network", "example.org:443").0, "deny");
}

#[test]
fn modes_change_which_calls_prompt() {
    let daemon = TestDaemon::asking();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["session.mode"]}));
    let mut under = |mode: &str, command: &str| {
        wire.result("permissions.set_mode", json!({"mode": mode}));
        assert_eq!(wire.notification("events.event")["result"]["mode"], mode);
        wire.tool("bash", json!({"command": command}))["is_error"].as_bool().unwrap()
    };
    assert!(under("default", "touch a"));
    assert!(!under("yolo", "touch b"));
    assert!(under("plan", "touch c"));
    assert!(daemon.work().join("b").exists() && !daemon.work().join("a").exists() && !daemon.work().join("c").exists());
}

#[test]
fn a_project_grant_holds_in_its_project_only() {
    let daemon =
        Setup::new().asking().file("here/.toold/x", "").file("here/deep/x", "").file("there/.toold/x", "").start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work().join("here/deep")}));
    wire.result("permissions.grant", json!({"category": "shell", "pattern": "echo *", "scope": "project"}));
    assert_eq!(wire.tool("bash", json!({"command": "echo x"}))["is_error"], false);
    let mut other = Wire::connect(&daemon.socket());
    other.result("session.open", json!({"cwd": daemon.work().join("there")}));
    assert_eq!(other.tool("bash", json!({"command": "echo x"}))["is_error"], true);
    for (scope, pattern) in [("once", "echo"), ("always", "echo [")] {
        let grant = json!({"category": "shell", "pattern": pattern, "scope": scope});
        assert_eq!(
            wire.call("permissions.grant", grant)["error"]["code"],
            if scope == "once" { json!(-32602) } else { Value::Null }
        );
    }
}

#[test]
fn a_command_that_a_tool_declares_is_asked_for_once_and_before_it_starts() {
    let tool = "hygge.register_tool{name = 'mark',
        permission = function(input) return {category = 'shell', target = 'touch mark-' .. input.name, reason = 'to mark it'} end,
        execute = function(ctx, input) return hygge.exec('touch', {'mark-' .. input.name}).code end}";
    let daemon = Setup::new().plugin("marks.lua", tool).start();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = agent.request("tools.execute", json!({"name": "mark", "arguments": {"name": "once"}}));
    let ask = asked(&mut person);
    assert_eq!((&ask["target"], &ask["chain"]), (&json!("touch mark-once"), &json!(["marks"])), "{ask}");
    assert!(ask["reason"].as_str().unwrap().contains("to mark it"), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    let result = agent.answer(id)["result"].take();
    assert_eq!(result["content"][0]["text"], "0", "{result}");
    assert_eq!(event(&mut person)["type"], "resolved");

    // An answer for longer covers the declaration and the run of the next call.
    let id = agent.request("tools.execute", json!({"name": "mark", "arguments": {"name": "again"}}));
    let ask = asked(&mut person);
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow", "scope": "always"}));
    assert_eq!(agent.answer(id)["result"]["content"][0]["text"], "0");
    assert_eq!(agent.tool("mark", json!({"name": "again"}))["content"][0]["text"], "0");

    // A grant for the caller's own commands is none for the plugin's.
    person.result("permissions.grant", json!({"category": "shell", "pattern": "touch mark-other", "scope": "always"}));
    let id = agent.request("tools.execute", json!({"name": "mark", "arguments": {"name": "other"}}));
    assert_eq!(event(&mut person)["type"], "resolved");
    let ask = asked(&mut person);
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_ne!(agent.answer(id)["result"]["is_error"], false);
    assert!(!daemon.work().join("mark-other").exists());
}
