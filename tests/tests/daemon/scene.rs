//! Scenes with several people: grants that pass from one terminal to the other, and frontends that die in the middle.

use serde_json::{Value, json};
use toold_tests::{Terminal, TestDaemon, Wire, toolctl, until};

/// `toolctl call` of this command at a terminal of its own.
fn call(daemon: &TestDaemon, command: &str, more: &[&str]) -> Terminal {
    let mut toolctl = daemon.setup.command(toolctl());
    let command = format!("command={command}");
    Terminal::run(toolctl.args(["call", "bash", &command]).args(more))
}

fn approver(daemon: &TestDaemon) -> Terminal {
    let terminal = Terminal::run(daemon.setup.command(toolctl()).arg("approve"));
    terminal.wait_for("waiting for prompts");
    terminal
}

const PROMPT: &str = "allow once";

/// The first of two terminals is asked and answered with a key; the same call in the second is not asked.
#[track_caller]
fn answer_holds_for_the_other(key: &str, more: &[&str]) {
    let daemon = TestDaemon::asking();
    let mut first = call(&daemon, "echo it is done", more);
    first.wait_for(PROMPT);
    first.press_until(key, "allowed");
    assert!(first.end().0.success());
    let (status, written) = call(&daemon, "echo it is done", more).end();
    assert!(status.success() && !written.contains(PROMPT), "{written:?}");
    // Another command still prompts.
    let mut third = call(&daemon, "echo another", more);
    third.wait_for(PROMPT);
    third.press_until("n", "denied");
    assert!(!third.end().0.success());
}

#[test]
fn session_grant_from_one_terminal_applies_in_the_other() {
    answer_holds_for_the_other("s", &["--session", "shared"]);
}

#[test]
fn project_grant_from_one_terminal_applies_in_the_other() {
    answer_holds_for_the_other("p", &[]);
}

#[test]
fn permanent_grant_from_one_terminal_applies_in_the_other() {
    answer_holds_for_the_other("a", &[]);
}

#[test]
fn a_prompt_that_stands_in_the_other_terminal_is_answered_too() {
    let daemon = TestDaemon::asking();
    let mut first = call(&daemon, "echo it is done", &[]);
    let second = call(&daemon, "echo it is done", &[]);
    first.wait_for(PROMPT);
    second.wait_for(PROMPT);
    first.press_until("a", "allowed");
    for terminal in [first, second] {
        let (status, written) = terminal.end();
        assert!(status.success() && written.contains("it is done\r\n"), "{written:?}");
    }
}

#[test]
fn approvers_that_are_killed_lose_no_ask() {
    let daemon = TestDaemon::asking();
    let mut agent = daemon.connect();
    let mut people: Vec<Terminal> = (0..3).map(|_| approver(&daemon)).collect();
    for round in 0..3 {
        let command = format!("echo round{round}");
        let id = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
        people.iter().for_each(|person| person.wait_for(&command));
        // Two are killed while they show it, and two others connect.
        people.truncate(1);
        people.extend([approver(&daemon), approver(&daemon)]);
        people.iter().for_each(|person| person.wait_for(&command));
        people[2].press_until("y", "allowed");
        let result = agent.answer(id)["result"].take();
        assert!(result["content"][0]["text"].as_str().unwrap().contains(&format!("round{round}")), "{result}");
    }
    assert_eq!(agent.result("permissions.pending", json!({})), json!({"asks": []}));
}

#[test]
fn approver_sees_client_and_folder_and_the_grant_is_remembered() {
    let daemon = TestDaemon::asking();
    // This test is both a person's frontend and an agent. Without the frontend, its `toolctl` would be the agent's.
    daemon.connect();
    let folder = daemon.setup.path("home/letters");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("letter.txt"), "dear reader\n").unwrap();
    let agent = || {
        let mut wire = Wire::connect(&daemon.socket());
        let params = json!({"cwd": folder, "role": "agent", "client": {"name": "the agent"}});
        let opened = wire.result("session.open", params);
        (wire, opened["workspace"].as_str().unwrap().to_owned())
    };
    let (mut wire, workspace) = agent();
    assert_eq!(workspace, "pending");
    let mut person = approver(&daemon);
    let id = wire.request("tools.execute", json!({"name": "read", "arguments": {"path": "letter.txt"}}));
    person.wait_for("deny, with a reason");
    let shown = person.written();
    for part in [
        "asks for permission: use this workspace",
        "as a workspace of the agent",
        "allow, and remember it for this client",
    ] {
        assert!(shown.contains(part), "{part}: {shown:?}");
    }
    assert!(!shown.contains(PROMPT) && !shown.contains("in this project"), "{shown:?}");
    person.press_until("y", "allowed always");
    let result = wire.answer(id)["result"].take();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("dear reader"), "{result}");
    assert_eq!(agent().1, "open");
}

fn subscribed(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

fn event(wire: &mut Wire) -> Value {
    wire.notification("permissions.event")["result"].take()
}

#[test]
fn three_frontends_that_come_and_go_never_lose_double_or_block_an_ask() {
    let daemon = TestDaemon::asking();
    let mut agent = daemon.connect();
    let mut people: Vec<Wire> = (0..3).map(|_| subscribed(&daemon)).collect();
    for round in 0..30 {
        let command = format!("echo round{round}");
        let id = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
        let mut seen: Vec<Value> = people.iter_mut().map(event).collect();
        // One or two die without notice, and as many connect; they see the prompt once.
        for gone in 0..1 + round % 2 {
            people[(round + gone) % 3] = subscribed(&daemon);
            seen[(round + gone) % 3] = event(&mut people[(round + gone) % 3]);
        }
        for asked in &seen {
            assert_eq!((&asked["type"], &asked["request"]["target"]), (&json!("asked"), &json!(command)), "{asked}");
            assert_eq!(asked["request"]["request_id"], seen[0]["request"]["request_id"]);
        }
        let action = if round % 3 == 0 { "deny" } else { "allow" };
        let reply = json!({"request_id": seen[0]["request"]["request_id"], "action": action});
        people[round % 3].result("permissions.reply", reply.clone());
        assert_eq!(people[(round + 1) % 3].error("permissions.reply", reply)["code"], -32004);
        assert_eq!(agent.answer(id)["result"]["is_error"], action == "deny");
        // Each gets one notice of its end; their next event is the next prompt.
        for person in &mut people {
            let resolved = event(person);
            assert_eq!((&resolved["type"], &resolved["action"]), (&json!("resolved"), &json!(action)), "{resolved}");
        }
    }
    // All are gone: later prompts are denied, and nothing waits.
    drop(people);
    until("they are gone", || (agent.result("daemon.status", json!({}))["connections"] == 1).then_some(()));
    assert_eq!(agent.tool("bash", json!({"command": "echo alone"}))["is_error"], true);
    assert_eq!(agent.result("permissions.pending", json!({})), json!({"asks": []}));
}

#[test]
fn a_call_that_ends_while_frontends_change_takes_its_ask_along() {
    let daemon = TestDaemon::asking();
    let mut agent = daemon.connect();
    let mut person = subscribed(&daemon);
    for round in 0..10 {
        let call_id = format!("c{round}");
        let arguments = json!({"command": format!("echo {round}")});
        let id = agent.request("tools.execute", json!({"name": "bash", "arguments": arguments, "call_id": call_id}));
        assert_eq!(event(&mut person)["type"], "asked");
        let mut next = subscribed(&daemon);
        assert_eq!(event(&mut next)["type"], "asked");
        drop(person);
        agent.result("tools.cancel", json!({"call_id": call_id}));
        assert_eq!(agent.answer(id)["error"]["code"], -32800);
        assert_eq!(event(&mut next)["action"], "cancelled");
        person = next;
    }
    assert_eq!(person.result("permissions.pending", json!({})), json!({"asks": []}));
}
