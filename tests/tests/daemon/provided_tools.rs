//! Tools that one client provides and another calls; calls that outlive their connection.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"plugin\"\npattern = \"editor_*\"\naction = \"allow\"\n";

fn provide(wire: &mut Wire) -> Value {
    wire.result(
        "tools.provide",
        json!({"tools": [{
            "name": "editor_open",
            "description": "Opens a file in the editor",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "parallelizable": true
        }]}),
    )
}

fn invocation(wire: &mut Wire) -> Value {
    wire.notification("tools.invocation")["result"].take()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn call(wire: &mut Wire) -> u64 {
    let params = json!({"name": "editor_open", "arguments": {"path": "a.rs"}, "progress": true, "call_id": "c"});
    wire.request("tools.execute", params)
}

#[test]
fn a_provided_tool_is_listed_called_and_gone_with_its_provider() {
    let daemon = Setup::new().config(ALLOW).start();
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    let subscription = provide(&mut editor);
    let listed = agent.result("tools.schema", json!({"name": "editor_open"}));
    assert_eq!((&listed["source"]["kind"], &listed["source"]["name"]), (&json!("frontend"), &json!("test")));

    let id = call(&mut agent);
    let asked = invocation(&mut editor);
    assert_eq!((&asked["name"], &asked["arguments"]), (&json!("editor_open"), &json!({"path": "a.rs"})));
    assert_eq!((&asked["call_id"], &asked["cwd"]), (&json!("c"), &json!(daemon.work())));
    let invocation_id = asked["invocation_id"].clone();
    editor.result(
        "tools.provide_progress",
        json!({"invocation_id": invocation_id, "kind": "message", "text": "opening"}),
    );
    assert_eq!(agent.notification("tools.progress")["text"], "opening");
    // Only the connection that got the invocation can answer it.
    let stolen = json!({"invocation_id": invocation_id, "result": "stolen"});
    assert_eq!(agent.error("tools.provide_result", stolen)["code"], -32004);
    editor.result("tools.provide_result", json!({"invocation_id": invocation_id, "result": "opened"}));
    assert_eq!(text(&agent.answer(id)["result"]), "opened");
    let late = json!({"invocation_id": invocation_id, "result": "again"});
    assert_eq!(editor.error("tools.provide_result", late)["code"], -32004);

    assert_eq!(editor.result("tools.unprovide", json!({"subscription": subscription})), true);
    until("the tool is gone", || {
        (agent.call("tools.schema", json!({"name": "editor_open"}))["error"]["code"] == -32001).then_some(())
    });
}

#[test]
fn a_tool_that_was_taken_back_can_be_provided_again_at_once() {
    let daemon = Setup::new().config(ALLOW).start();
    for _ in 0..50 {
        // Before its session it is a provider of another name, so the tool would be taken.
        let mut editor = Wire::connect(&daemon.socket());
        let subscription = provide(&mut editor);
        editor.result("session.open", json!({"cwd": daemon.work(), "client": {"name": "editor"}}));
        assert_eq!(editor.result("tools.unprovide", json!({"subscription": subscription})), true);
        assert_eq!(editor.result("tools.unprovide", json!({"subscription": subscription})), false);
        assert_eq!(editor.error("tools.schema", json!({"name": "editor_open"}))["code"], -32001);
        let again = provide(&mut editor);
        assert_ne!(again, subscription);
        // Only its provider takes it back.
        let mut other = daemon.connect();
        assert_eq!(other.result("tools.unprovide", json!({"subscription": again})), false);
        assert_eq!(other.result("tools.schema", json!({"name": "editor_open"}))["source"]["name"], "editor");
        assert_eq!(editor.result("tools.unprovide", json!({"subscription": again})), true);
    }
}

#[test]
fn calls_fail_when_their_provider_disconnects() {
    let daemon = Setup::new().config(ALLOW).start();
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    provide(&mut editor);
    let id = call(&mut agent);
    invocation(&mut editor);
    drop(editor);
    let result = agent.answer(id)["result"].take();
    assert_eq!(result["is_error"], true);
    assert!(text(&result).contains("gone"), "{result}");
}

#[test]
fn a_provider_hears_of_cancel_and_time_out() {
    let daemon = Setup::new().config(ALLOW).start();
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    provide(&mut editor);
    let id = call(&mut agent);
    let asked = invocation(&mut editor);
    agent.result("tools.cancel", json!({"call_id": "c"}));
    assert_eq!(agent.answer(id)["error"]["code"], -32800);
    assert_eq!(invocation(&mut editor), json!({"invocation_id": asked["invocation_id"], "cancelled": true}));

    let params = json!({"name": "editor_open", "arguments": {"path": "b"}, "timeout_ms": 500});
    let id = agent.request("tools.execute", params);
    let asked = invocation(&mut editor);
    assert_eq!(agent.answer(id)["result"]["metadata"]["timed_out"], true);
    assert_eq!(invocation(&mut editor), json!({"invocation_id": asked["invocation_id"], "cancelled": true}));
}

#[test]
fn names_that_are_taken_or_wrong_are_refused_whole() {
    let daemon = TestDaemon::start();
    let mut editor = daemon.connect();
    for (tools, words) in [
        (json!([{"name": "editor_x", "description": ""}, {"name": "read", "description": ""}]), "builtin"),
        (json!([{"name": "Bad Name", "description": ""}]), "tool name"),
        (json!([{"name": "editor_x", "description": "", "input_schema": {"type": "string"}}]), "object"),
        (json!([{"name": "editor_x", "description": ""}, {"name": "editor_x", "description": ""}]), "twice"),
    ] {
        let error = editor.error("tools.provide", json!({"tools": tools}));
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert_eq!(editor.error("tools.schema", json!({"name": "editor_x"}))["code"], -32001);
    }
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    assert_eq!(agent.error("tools.provide", json!({"tools": []}))["code"], -32002);
}

#[test]
fn of_two_providers_the_one_of_the_session_is_called() {
    let daemon = Setup::new().config(ALLOW).start();
    let (mut mine, mut other) = (Wire::connect(&daemon.socket()), Wire::connect(&daemon.socket()));
    for (wire, session) in [(&mut mine, "mine"), (&mut other, "other")] {
        wire.result("session.open", json!({"cwd": daemon.work(), "session_id": session, "client": {"name": "editor"}}));
        provide(wire);
    }
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"session_id": "mine"}));
    let id = call(&mut agent);
    let asked = invocation(&mut mine);
    mine.result("tools.provide_result", json!({"invocation_id": asked["invocation_id"], "error": "no such file"}));
    let result = agent.answer(id)["result"].take();
    assert_eq!((text(&result), &result["is_error"]), ("no such file", &json!(true)));
    // When it disconnects, the other one continues to serve.
    drop(mine);
    until("it is gone", || (agent.result("daemon.status", json!({}))["connections"] == 2).then_some(()));
    let id = call(&mut agent);
    let asked = invocation(&mut other);
    let full = json!({"content": [{"type": "text", "text": "done"}], "metadata": {"line": 3}});
    other.result("tools.provide_result", json!({"invocation_id": asked["invocation_id"], "result": full}));
    assert_eq!(agent.answer(id)["result"]["metadata"]["line"], 3);
}

#[test]
fn a_provided_tool_needs_permission() {
    let daemon = TestDaemon::start();
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    provide(&mut editor);
    let result = agent.tool("editor_open", json!({"path": "x"}));
    assert_eq!(result["metadata"]["permission"]["category"], "plugin", "{result}");
}

#[test]
fn a_detached_call_outlives_its_connection() {
    let daemon = Setup::new().config(ALLOW).start();
    let (mut editor, mut agent) = (daemon.connect(), Wire::connect(&daemon.socket()));
    agent.result("session.open", json!({"cwd": daemon.work(), "session_id": "s"}));
    provide(&mut editor);
    agent.request(
        "tools.execute",
        json!({"name": "editor_open", "arguments": {"path": "x"}, "call_id": "long", "detach": true}),
    );
    let asked = invocation(&mut editor);
    drop(agent);
    let mut back = Wire::connect(&daemon.socket());
    back.result("session.open", json!({"session_id": "s"}));
    until("the connection is gone", || {
        let listed = back.result("session.list", json!({}));
        let own = listed["sessions"].as_array().unwrap().iter().find(|session| session["session_id"] == "s").cloned();
        (own.unwrap()["connections"] == 1).then_some(())
    });
    let running = back.result("calls.get", json!({"call_id": "long"}));
    assert_eq!((&running["state"], &running["tool"]), (&json!("running"), &json!("editor_open")));
    let output =
        json!({"invocation_id": asked["invocation_id"], "kind": "output", "stream": "stdout", "text": "so far"});
    editor.result("tools.provide_progress", output);
    until("the output is there", || {
        (back.result("calls.get", json!({"call_id": "long"}))["output"] == "so far").then_some(())
    });
    editor.result("tools.provide_result", json!({"invocation_id": asked["invocation_id"], "result": "opened"}));
    until("the call has ended", || {
        let call = back.result("calls.get", json!({"call_id": "long"}));
        (call["state"] == "finished").then(|| assert_eq!(text(&call["result"]), "opened"))
    });
    assert_eq!(back.result("calls.list", json!({}))["calls"].as_array().unwrap().len(), 1);
    assert_eq!(back.error("calls.get", json!({"call_id": "other"}))["code"], -32004);
}

#[test]
fn frontend_may_run_work_that_built_ins_delegate() {
    let daemon = TestDaemon::start();
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "session_id": "s"}));
    for (name, arguments) in [
        ("compact", json!({})),
        ("subagent", json!({"type": "reviewer", "description": "review", "prompt": "review it"})),
        ("question", json!({"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]})),
    ] {
        let result = agent.tool(name, arguments.clone());
        assert_eq!(result["is_error"], true, "nobody does {name}: {result}");

        let mut frontend = Wire::connect(&daemon.socket());
        frontend.result("session.open", json!({"session_id": "s"}));
        frontend.result("tools.provide", json!({"roles": ["agent", "compact", "question"]}));
        let id = agent.request("tools.execute", json!({"name": name, "arguments": arguments, "progress": true}));
        let asked = invocation(&mut frontend);
        let role = if name == "subagent" { "agent" } else { name };
        assert_eq!((&asked["role"], &asked["name"], &asked["session_id"]), (&json!(role), &json!(name), &json!("s")));
        let progress = json!({"invocation_id": asked["invocation_id"], "kind": "message", "text": "at it"});
        frontend.result("tools.provide_progress", progress);
        assert_eq!(agent.notification("tools.progress")["text"], "at it");
        frontend.result("tools.provide_result", json!({"invocation_id": asked["invocation_id"], "result": "done"}));
        assert_eq!(text(&agent.answer(id)["result"]), "done");
        drop(frontend);
        until("the frontend is gone", || {
            let connections = agent.result("daemon.status", json!({}))["connections"].take();
            (connections == 1).then_some(())
        });
    }
}

#[test]
fn a_conversation_is_summarised_by_its_own_frontend_only() {
    let daemon = TestDaemon::start();
    let (mut other, mut agent) = (daemon.connect(), daemon.connect());
    other.result("tools.provide", json!({"roles": ["compact"]}));
    assert_eq!(agent.tool("compact", json!({}))["is_error"], true);
}

#[test]
fn question_goes_to_every_subscribed_client() {
    let daemon = TestDaemon::start();
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    person.result("questions.subscribe", json!({}));
    let arguments = json!({"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]});
    let id = agent.request("tools.execute", json!({"name": "question", "arguments": arguments}));
    let mut asked = person.notification("questions.event")["result"]["request"].take();
    let choice = asked["options"][1]["id"].take();
    person.result("questions.reply", json!({"request_id": asked["request_id"], "answer_ids": [choice]}));
    assert_eq!(text(&agent.answer(id)["result"]), "blue");
    let id = agent.request("tools.execute", json!({"name": "question", "arguments": arguments}));
    person.notification("questions.event");
    let asked = person.notification("questions.event")["result"]["request"].take();
    person.result("questions.reply", json!({"request_id": asked["request_id"], "cancelled": true}));
    let result = agent.answer(id)["result"].take();
    assert_eq!((&result["is_error"], &result["metadata"]["cancelled"]), (&json!(false), &json!(true)));
}
