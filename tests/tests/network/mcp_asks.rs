//! Permission prompts and questions as elicitations of MCP clients, in both eras, along with native frontends.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

const APPROVES: &str = "[mcp.clients.trusted]\napprove = true\n";

/// A daemon with a folder that a person has opened.
fn daemon() -> TestDaemon {
    let daemon = Setup::new().config(APPROVES).start();
    daemon.connect();
    daemon
}

/// A client of an older revision that shows forms.
fn old(daemon: &TestDaemon, name: &str) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": name, "version": "1"},
        "_meta": {"toold/default-cwd": daemon.work()},
    });
    wire.result("initialize", params);
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    wire
}

/// A stateless request of a client that shows forms.
fn new(daemon: &TestDaemon, name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
        "toold/cwd": daemon.work(),
    });
    params
}

fn touch(file: &str) -> Value {
    json!({"name": "bash", "arguments": {"command": format!("touch {file}")}})
}

/// A native frontend that can answer.
fn person(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

fn answer(client: &mut Wire, asked: &Value, result: Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
}

fn accept(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

#[track_caller]
fn elicitation(client: &mut Wire) -> Value {
    let asked = client.next_message().unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    asked
}

#[test]
fn a_client_that_may_approve_is_asked() {
    let daemon = daemon();
    let mut client = old(&daemon, "trusted");
    let id = client.request("tools/call", touch("a"));
    let asked = elicitation(&mut client);
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("bash") && message.contains("touch a"), "{message}");
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["decision"]));
    answer(&mut client, &asked, accept("allow once"));
    assert_eq!(client.answer(id)["result"]["isError"], false);
    assert!(daemon.work().join("a").exists());

    // An approval for one call does not cover the next.
    let id = client.request("tools/call", touch("a"));
    let asked = elicitation(&mut client);
    answer(&mut client, &asked, accept("allow in this trusted session"));
    assert_eq!(client.answer(id)["result"]["isError"], false);
    // The approval for the session is remembered, for exactly this command.
    assert_eq!(client.result("tools/call", touch("a"))["isError"], false);
    let id = client.request("tools/call", touch("b"));
    let asked = elicitation(&mut client);
    let no = json!({"action": "accept", "content": {"decision": "deny", "message": "use a"}});
    answer(&mut client, &asked, no);
    let refused = client.answer(id);
    assert_eq!(refused["result"]["isError"], true);
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("use a"), "{refused}");
    assert!(!daemon.work().join("b").exists());
    // Nothing of it outlives the session.
    let grants = daemon.connect().result("permissions.list", json!({}));
    let scopes: Vec<&str> =
        grants["grants"].as_array().unwrap().iter().filter_map(|grant| grant["scope"].as_str()).collect();
    assert!(scopes.iter().all(|scope| *scope == "session"), "{grants}");
}

#[test]
fn declining_dismissing_and_nonsense_are_no() {
    let daemon = daemon();
    let mut client = old(&daemon, "trusted");
    for no in [json!({"action": "decline"}), json!({"action": "cancel"})] {
        let id = client.request("tools/call", touch("a"));
        let asked = elicitation(&mut client);
        answer(&mut client, &asked, no);
        assert_eq!(client.answer(id)["result"]["isError"], true);
    }
    let id = client.request("tools/call", touch("a"));
    for _ in 0..3 {
        let asked = elicitation(&mut client);
        answer(&mut client, &asked, accept("always"));
    }
    assert_eq!(client.answer(id)["result"]["isError"], true);
    assert!(!daemon.work().join("a").exists());
}

#[test]
fn a_client_that_may_not_approve_is_not_asked() {
    let daemon = daemon();
    let mut client = old(&daemon, "other");
    let refused = client.result("tools/call", touch("a"));
    assert_eq!(refused["isError"], true);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("toolctl permissions grant"), "{refused}");
    // A person can answer for it.
    let mut person = person(&daemon);
    let id = client.request("tools/call", touch("a"));
    let asked = person.notification("permissions.event");
    let request_id = asked["result"]["request"]["request_id"].clone();
    person.result("permissions.reply", json!({"request_id": request_id, "action": "allow"}));
    assert_eq!(client.answer(id)["result"]["isError"], false);
}

#[test]
fn the_first_answer_wins_and_the_other_prompt_closes() {
    let daemon = daemon();
    let mut person = person(&daemon);
    let mut client = old(&daemon, "trusted");
    let id = client.request("tools/call", touch("a"));
    let asked = elicitation(&mut client);
    let seen = person.notification("permissions.event")["result"]["request"].clone();
    assert_eq!(seen["target"], "touch a");
    person.result("permissions.reply", json!({"request_id": seen["request_id"], "action": "allow"}));
    let closed = client.notification("notifications/cancelled");
    assert_eq!(closed["requestId"], asked["id"]);
    assert_eq!(client.answer(id)["result"]["isError"], false);

    // The other way round.
    let id = client.request("tools/call", touch("b"));
    let asked = elicitation(&mut client);
    let seen = person.notification("permissions.event");
    // The person is also notified how the first one ended.
    let seen = if seen["result"]["type"] == "resolved" { person.notification("permissions.event") } else { seen };
    assert_eq!(seen["result"]["request"]["target"], "touch b");
    answer(&mut client, &asked, accept("allow once"));
    let resolved = person.notification("permissions.event");
    assert_eq!(resolved["result"]["type"], "resolved", "{resolved}");
    assert_eq!(resolved["result"]["by"]["client"], "trusted");
    assert_eq!(client.answer(id)["result"]["isError"], false);
}

#[test]
fn a_question_is_a_form() {
    let daemon = daemon();
    let mut client = old(&daemon, "other");
    let arguments =
        json!({"question": "Which way?", "options": [{"label": "Left"}, {"label": "Right", "description": "Longer"}]});
    let id = client.request("tools/call", json!({"name": "question", "arguments": arguments}));
    let asked = elicitation(&mut client);
    assert_eq!(asked["params"]["message"], "Which way?\nRight: Longer");
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["choice"]["enum"], json!(["Left", "Right"]));
    // An answer that is not one of the options prompts again.
    answer(&mut client, &asked, json!({"action": "accept", "content": {"choice": "Up"}}));
    let asked = elicitation(&mut client);
    answer(&mut client, &asked, json!({"action": "accept", "content": {"choice": "Right"}}));
    let result = client.answer(id);
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("Right"), "{result}");
}

#[test]
fn a_stateless_client_comes_again_with_its_answer() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let required = client.result("tools/call", new(&daemon, "trusted", touch("a")));
    assert_eq!(required["resultType"], "input_required");
    let (key, asked) = required["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().contains("touch a"));
    let state = required["requestState"].as_str().unwrap();
    let again = |name: &str, mut params: Value, state: &str, decision: &str| {
        params["inputResponses"] = json!({key: accept(decision)});
        params["requestState"] = json!(state);
        new(&daemon, name, params)
    };

    // The state is valid only for this request of this client, and only unchanged.
    for (params, state) in [(touch("b"), state.to_owned()), (touch("a"), format!("{state}x"))] {
        let refused = client.error("tools/call", again("trusted", params, &state, "allow once"));
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    let mut other = Wire::connect(&daemon.socket());
    let refused = other.error("tools/call", again("trusted", touch("a"), state, "allow once"));
    assert_eq!(refused["code"], -32602);
    assert!(!daemon.work().join("a").exists());

    let done = client.result("tools/call", again("trusted", touch("a"), state, "allow once"));
    assert_eq!((&done["isError"], &done["resultType"]), (&json!(false), &json!("complete")));
    assert!(daemon.work().join("a").exists());
    // Once only.
    let refused = client.error("tools/call", again("trusted", touch("a"), state, "allow once"));
    assert_eq!(refused["code"], -32602);
}

#[test]
fn invalid_answer_prompts_again() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let first = client.result("tools/call", new(&daemon, "trusted", touch("a")));
    let mut params = touch("a");
    params["inputResponses"] = json!({"another": accept("allow once")});
    params["requestState"] = first["requestState"].clone();
    let second = client.result("tools/call", new(&daemon, "trusted", params));
    assert_eq!(second["resultType"], "input_required");
    assert_eq!(first["inputRequests"], second["inputRequests"]);
    assert_ne!(first["requestState"], second["requestState"]);
    // An answer before the prompt grants nothing.
    let mut params = touch("a");
    params["inputResponses"] =
        second["inputRequests"].as_object().unwrap().keys().map(|key| (key.clone(), accept("allow once"))).collect();
    let third = client.result("tools/call", new(&daemon, "trusted", params));
    assert_eq!(third["resultType"], "input_required");
}

#[test]
fn a_person_can_answer_while_a_stateless_client_is_away() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    // Nobody else can be asked yet.
    let required = client.result("tools/call", new(&daemon, "trusted", touch("a")));
    let mut person = person(&daemon);
    let seen = person.result("permissions.pending", json!({}))["asks"][0].take();
    person.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    person.result("permissions.reply", json!({"request_id": seen["request_id"], "action": "allow"}));
    // The call goes on at once.
    person.notification("events.event");
    assert!(daemon.work().join("a").exists());
    let mut params = touch("a");
    params["requestState"] = required["requestState"].clone();
    let done = client.result("tools/call", new(&daemon, "trusted", params));
    assert_eq!(done["isError"], false, "{done}");
}

#[test]
fn open_prompts_of_a_stateless_client_end_with_it() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    // Nobody else can be asked yet.
    client.result("tools/call", new(&daemon, "trusted", touch("a")));
    let mut person = person(&daemon);
    drop(client);
    let mut resolved = person.notification("permissions.event");
    while resolved["result"]["type"] != "resolved" {
        resolved = person.notification("permissions.event");
    }
    assert_eq!(resolved["result"]["action"], "cancelled", "{resolved}");
    assert_eq!(daemon.connect().result("permissions.pending", json!({}))["asks"], json!([]));
}

#[test]
fn parallel_calls_that_ask_the_same_end_with_one_answer_each() {
    let daemon = daemon();
    let mut client = old(&daemon, "trusted");
    let first = client.request("tools/call", touch("a"));
    let one = elicitation(&mut client);
    let second = client.request("tools/call", touch("a"));
    let two = elicitation(&mut client);
    // The first call is given up; the prompt of the other stays.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": first}}));
    answer(&mut client, &two, accept("allow once"));
    assert_eq!(client.answer(second)["result"]["isError"], false);
    assert_ne!(one["id"], two["id"]);
}

#[test]
fn a_stateless_client_answers_a_question_in_its_next_request_unless_somebody_else_did() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let question = |text: &str| {
        let arguments = json!({"question": text, "options": [{"label": "Left"}, {"label": "Right"}]});
        json!({"name": "question", "arguments": arguments})
    };
    let asks = client.result("tools/call", new(&daemon, "other", question("Which way?")));
    assert_eq!(asks["resultType"], "input_required", "{asks}");
    let (key, request) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["params"]["requestedSchema"]["properties"]["choice"]["enum"], json!(["Left", "Right"]));
    let mut again = question("Which way?");
    again["requestState"] = asks["requestState"].clone();
    again["inputResponses"] = json!({key: {"action": "accept", "content": {"choice": "Right"}}});
    let result = client.result("tools/call", new(&daemon, "other", again));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("Right"), "{result}");

    // A person can answer: the client, which could not close its dialog, is not asked.
    let mut person = daemon.connect();
    person.result("questions.subscribe", json!({}));
    let asked = client.request("tools/call", new(&daemon, "other", question("And now?")));
    let seen = person.notification("questions.event")["result"].take();
    assert_eq!(seen["request"]["question"], "And now?", "{seen}");
    let left = seen["request"]["options"][0]["id"].clone();
    let answer = json!({"request_id": seen["request"]["request_id"], "answer_ids": [left]});
    person.result("questions.reply", answer);
    let result = client.answer(asked)["result"].take();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("Left"), "{result}");
}
