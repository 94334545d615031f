//! Features of editors in addition to tool calls: questions, buffers, undo, slash commands.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

const ASKING: &str = r#"
hygge.register_tool{
  name = "pick", description = "Asks which one", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    local answer = ctx.question{question = "Which?", options = {{label = "this"}, {label = "that"}}}
    return hygge.json.encode(answer or {})
  end,
}
hygge.register_command{
  name = "shout", description = "Says it loudly",
  execute = function(ctx, input) return input:upper() .. "!" end,
}
"#;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn event(wire: &mut Wire) -> Value {
    wire.notification("questions.event")["result"].take()
}

#[test]
fn a_question_goes_to_all_and_the_first_answer_counts() {
    let daemon = Setup::new().plugin("asking.lua", ASKING).start();
    let (mut one, mut two, mut agent) = (daemon.connect(), daemon.connect(), daemon.connect());
    for wire in [&mut one, &mut two] {
        wire.result("questions.subscribe", json!({}));
    }
    let id = agent.request("tools.execute", json!({"name": "pick"}));
    let asked = event(&mut one);
    assert_eq!((&asked["type"], &asked["request"]["question"]), (&json!("asked"), &json!("Which?")));
    assert_eq!(event(&mut two)["request"]["request_id"], asked["request"]["request_id"]);
    let request_id = asked["request"]["request_id"].clone();
    let option = asked["request"]["options"][1]["id"].clone();
    let wrong = json!({"request_id": request_id, "answer_ids": ["no such"]});
    assert_eq!(one.error("questions.reply", wrong)["code"], -32602);
    let reply = json!({"request_id": request_id, "answer_ids": [option]});
    one.result("questions.reply", reply.clone());
    assert_eq!(two.error("questions.reply", reply)["code"], -32004);
    assert_eq!(event(&mut two)["action"], "answered");
    let result = agent.answer(id)["result"].take();
    assert!(text(&result).contains("that"), "{result}");
}

#[test]
fn a_question_that_nobody_hears_is_bad_news_at_once() {
    let daemon = Setup::new().plugin("asking.lua", ASKING).start();
    let result = daemon.connect().tool("pick", json!({}));
    assert_eq!(result["is_error"], true, "{result}");
}

#[test]
fn slash_commands_are_listed_and_run() {
    let daemon = Setup::new().plugin("asking.lua", ASKING).start();
    let mut wire = daemon.connect();
    let listed = wire.result("commands.list", json!({}));
    assert_eq!(listed["commands"], json!([{"name": "shout", "description": "Says it loudly", "plugin": "asking"}]));
    assert_eq!(text(&wire.result("commands.run", json!({"name": "/shout", "input": "hey"}))), "HEY!");
    assert_eq!(wire.error("commands.run", json!({"name": "whisper"}))["code"], -32004);
}

#[test]
fn a_buffer_lies_over_its_file_as_long_as_its_editor_is_there() {
    let daemon = Setup::new().file("a.txt", "on disk\n").start();
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    editor.result("buffers.set", json!({"path": "a.txt", "version": 1, "text": "unsaved\n"}));
    let read = |agent: &mut Wire| text(&agent.tool("read", json!({"path": "a.txt"}))).to_owned();
    assert!(read(&mut agent).contains("unsaved"));
    let found = agent.tool("grep", json!({"pattern": "unsaved"}));
    assert!(text(&found).contains("a.txt"), "{found}");
    assert_eq!(editor.result("buffers.clear", json!({"path": "a.txt"})), json!({"cleared": true}));
    assert!(read(&mut agent).contains("on disk"));
    editor.result("buffers.set", json!({"path": "a.txt", "version": 2, "text": "again\n"}));
    assert!(read(&mut agent).contains("again"));
    drop(editor);
    toold_tests::until("the buffer is gone", || read(&mut agent).contains("on disk").then_some(()));
    assert_eq!(std::fs::read_to_string(daemon.work().join("a.txt")).unwrap(), "on disk\n");
}

#[test]
fn changes_of_a_session_can_be_undone() {
    let daemon = Setup::new().file("a.txt", "before\n").start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    wire.tool("read", json!({"path": "a.txt"}));
    let written = wire.result(
        "tools.execute",
        json!({"name": "write", "arguments": {"path": "a.txt", "content": "after\n"}, "call_id": "w"}),
    );
    assert_eq!(written["is_error"], false, "{written}");
    let history = wire.result("files.history", json!({}))["changes"].take();
    assert_eq!(
        (&history[0]["call_id"], &history[0]["tool"], &history[0]["created"]),
        (&json!("w"), &json!("write"), &json!(false))
    );
    wire.result("files.undo", json!({"call_id": "w"}));
    assert_eq!(std::fs::read_to_string(daemon.work().join("a.txt")).unwrap(), "before\n");
    assert_eq!(wire.error("files.undo", json!({"call_id": "w"}))["data"]["kind"], "nothing_to_undo");
    assert_eq!(wire.error("files.undo", json!({}))["code"], -32602);
}

#[test]
fn a_connection_s_own_session_ends_with_it() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let mut other = Wire::connect(&daemon.socket());
    other.result("tools.list", json!({}));
    assert_eq!(wire.result("session.list", json!({}))["sessions"].as_array().unwrap().len(), 2);
    drop(other);
    toold_tests::until("its session is gone", || {
        (wire.result("session.list", json!({}))["sessions"].as_array().unwrap().len() == 1).then_some(())
    });
}

/// A client that unsubscribes as soon as it has the id gets a confirmation, and the subscription ends.
#[test]
fn a_subscription_can_be_ended_as_soon_as_it_is_answered() {
    let daemon = TestDaemon::start();
    let tools = json!([{"name": "editor_open", "description": "Opens a file", "input_schema": {"type": "object"}}]);
    let rounds = &|of: &str, params: &Value| {
        let mut wire = daemon.connect();
        let (begin, end) = match of {
            "tools" => ("tools.provide".to_owned(), "tools.unprovide".to_owned()),
            _ => (format!("{of}.subscribe"), format!("{of}.unsubscribe")),
        };
        for round in 0..700 {
            let subscription = wire.result(&begin, params.clone());
            let ended = wire.result(&end, json!({"subscription": subscription}));
            assert_eq!(ended, true, "{end}, round {round}");
        }
    };
    std::thread::scope(|scope| {
        for of in ["events", "permissions", "questions"] {
            scope.spawn(move || rounds(of, &json!({})));
        }
        scope.spawn(|| rounds("tools", &json!({"tools": tools})));
    });
}
