//! Clients of version 0.1, which speak revision 1 of the protocol: the daemon still serves their exact messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toold_tests::{TestDaemon, Wire};

/// `session.open` as each client of 0.1 writes it.
fn openings(daemon: &TestDaemon) -> [(&'static str, Value); 6] {
    let cwd = daemon.work();
    [
        ("toolctl", json!({"cwd": cwd, "client": {"name": "toolctl", "version": "0.1.0"}, "protocol": 1})),
        ("python", json!({"cwd": cwd, "client": {"name": "python"}, "protocol": 1})),
        ("node", json!({"cwd": cwd, "client": {"name": "node"}, "protocol": 1})),
        ("vscode", json!({"cwd": cwd, "roots": [], "client": {"name": "vscode"}, "protocol": 1})),
        ("nvim", json!({"cwd": cwd, "client": {"name": "nvim", "version": "0.7.2"}, "protocol": 1})),
        ("emacs", json!({"cwd": cwd, "protocol": 1, "client": {"name": "emacs", "version": "28.2"}})),
    ]
}

/// A client of 0.1 that reads an answer into a class of its own fails on members that it does not know.
#[track_caller]
fn has_the_members_of_0_1(opened: &Value) {
    let members: BTreeSet<&str> = opened.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, BTreeSet::from(["session_id", "cwd", "resumed", "server"]), "{opened}");
    assert_eq!(opened["server"]["protocol"], 1, "{opened}");
}

#[test]
fn an_older_client_opens_lists_calls_and_answers() {
    let daemon = TestDaemon::start();
    for (name, open) in openings(&daemon) {
        let mut client = Wire::connect(&daemon.socket());
        let opened = client.result("session.open", open.clone());
        has_the_members_of_0_1(&opened);
        assert_eq!((&opened["cwd"], &opened["resumed"]), (&json!(daemon.work()), &json!(false)), "{name}");
        let listed = client.result("tools.list", json!({}));
        assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "bash"), "{name}");
        let kinds = json!(["tools.changed", "call.finished", "notice"]);
        assert!(client.result("events.subscribe", json!({"kinds": kinds})).is_string(), "{name}");
        client.result("permissions.subscribe", json!({}));
        client.result("questions.subscribe", json!({}));
        let made = format!("touch made-by-{name}");
        let call = json!({"name": "bash", "arguments": {"command": made}, "call_id": "1", "progress": true});
        let id = client.request("tools.execute", call);
        let ask = client.notification("permissions.event")["result"]["request"].take();
        assert_eq!((&ask["target"], &ask["category"]), (&json!(made), &json!("shell")), "{name}");
        client
            .result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow", "scope": "once"}));
        assert_eq!(client.answer(id)["result"]["is_error"], false, "{name}");
        assert!(daemon.work().join(format!("made-by-{name}")).exists());
        assert_eq!(client.notification("events.event")["result"]["kind"], "call.finished", "{name}");
        // It resumes the session by its id.
        drop(client);
        let mut again = open;
        again["session_id"] = opened["session_id"].clone();
        let resumed = Wire::connect(&daemon.socket()).result("session.open", again);
        has_the_members_of_0_1(&resumed);
        assert_eq!((&resumed["session_id"], &resumed["resumed"]), (&opened["session_id"], &json!(true)), "{name}");
    }
}

#[test]
fn an_older_agent_is_served_in_a_folder_that_waits_and_without_the_variables_that_it_may_not_set() {
    let daemon = TestDaemon::start();
    let mut person = Wire::connect(&daemon.socket());
    person.result("session.open", openings(&daemon)[0].1.clone());
    person.result("permissions.subscribe", json!({}));
    let folder = daemon.setup.path("home/letters");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("letter.txt"), "dear reader\n").unwrap();
    let mut agent = Wire::connect(&daemon.socket());
    let env = json!({"NODE_OPTIONS": "--evil"});
    let open = json!({"cwd": folder, "role": "agent", "env": env, "client": {"name": "python"}, "protocol": 1});
    has_the_members_of_0_1(&agent.result("session.open", open));
    let id = agent.request("tools.execute", json!({"name": "read", "arguments": {"path": "letter.txt"}}));
    // A prompt like any other: the answer of a 0.1 frontend counts.
    let ask = person.notification("permissions.event")["result"]["request"].take();
    assert_eq!((&ask["target"], &ask["category"]), (&json!(folder), &json!("file.read")));
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow", "scope": "once"}));
    let result = agent.answer(id)["result"].take();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("dear reader"), "{result}");
}

#[test]
fn current_client_reads_fields_that_older_ones_ignore() {
    let daemon = TestDaemon::start();
    let open = |client: &mut Wire, more: Value| {
        let mut params = json!({"cwd": daemon.work(), "client": {"name": "new"}, "protocol": 2});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.result("session.open", params)
    };
    let mut person = Wire::connect(&daemon.socket());
    let opened = open(&mut person, json!({}));
    assert_eq!((&opened["workspace"], &opened["server"]["protocol"]), (&json!("open"), &json!(2)));
    let mut agent = Wire::connect(&daemon.socket());
    let opened = open(&mut agent, json!({"role": "agent", "env": {"NODE_OPTIONS": "--evil"}}));
    assert_eq!((&opened["workspace"], &opened["env_ignored"]), (&json!("open"), &json!(["NODE_OPTIONS"])));
}

#[test]
fn a_revision_that_is_not_spoken_is_refused_with_those_that_are() {
    let daemon = TestDaemon::start();
    let error = Wire::connect(&daemon.socket()).error("session.open", json!({"cwd": daemon.work(), "protocol": 3}));
    assert_eq!((&error["data"]["kind"], &error["data"]["supported"]), (&json!("unsupported_protocol"), &json!([1, 2])));
}
