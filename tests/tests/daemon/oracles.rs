//! Agents learn nothing about places that they may not read: neither from folders and paths in parameters, nor from
//! the prompt that a person sees.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

/// A daemon with these outside of the agent's folder: `letter`, `link` (to `subdir`), and nothing at `none`.
fn daemon() -> TestDaemon {
    let daemon =
        Setup::new().file("notes.txt", "mine\n").file("private/x", "").file(".aiexclude", "private/\n").start();
    let outside = daemon.setup.path("outside");
    std::fs::create_dir_all(outside.join("subdir")).unwrap();
    std::fs::write(outside.join("letter"), "first\nTOKEN=abc\nlast\n").unwrap();
    symlink("subdir", outside.join("link")).unwrap();
    daemon
}

/// An agent in a session of its own, whose id is `name`, or in that session.
fn agent(daemon: &TestDaemon, name: &str) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "session_id": name, "role": "agent"}));
    wire
}

/// The answers of one method for several names, each without its own name.
fn answers(wire: &mut Wire, method: &str, names: &[&str], params: impl Fn(&str) -> Value) -> Vec<String> {
    let answers = names.iter().map(|name| {
        let mut answer = wire.call(method, params(name));
        answer.as_object_mut().unwrap().remove("id");
        answer.to_string().replace(name, "NAME")
    });
    answers.collect()
}

#[test]
fn call_folder_does_not_reveal_outside_files() {
    let daemon = daemon();
    let mut wire = agent(&daemon, "a");
    let outside = daemon.setup.path("outside");
    for base in ["../outside".to_owned(), outside.display().to_string()] {
        let answers = answers(
            &mut wire,
            "tools.execute",
            &["letter", "subdir", "link", "none"],
            |name| json!({"name": "list", "cwd": format!("{base}/{name}")}),
        );
        assert!(answers[0].contains("outside the session"), "{answers:?}");
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    }
    let answers =
        answers(&mut wire, "tools.execute", &["private", "private/none"], |name| json!({"name": "list", "cwd": name}));
    assert!(answers[0].contains("may not be read") && answers[0] == answers[1], "{answers:?}");
}

#[test]
fn check_does_not_reveal_outside_files() {
    let daemon = daemon();
    let mut wire = agent(&daemon, "a");
    let outside = daemon.setup.path("outside").display().to_string();
    for category in ["file.read", "file.write"] {
        let targets = answers(
            &mut wire,
            "permissions.check",
            &["letter", "subdir", "link", "none"],
            |name| json!({"category": category, "target": format!("{outside}/{name}/../../work/notes.txt")}),
        );
        assert!(targets.iter().all(|answer| *answer == targets[0]), "{targets:?}");
        let folders = answers(
            &mut wire,
            "permissions.check",
            &["letter", "subdir", "link", "none"],
            |name| json!({"category": category, "target": "x", "cwd": format!("{outside}/{name}")}),
        );
        assert!(folders.iter().all(|answer| *answer == folders[0]), "{folders:?}");
    }
    let redirects = answers(
        &mut wire,
        "permissions.check",
        &["letter", "subdir", "link", "none"],
        |name| json!({"category": "shell", "target": format!("echo < {outside}/{name}/x")}),
    );
    let parts = redirects.iter().all(|answer| answer.contains("outside/NAME/x"));
    assert!(parts, "{redirects:?}");
}

#[test]
fn only_clients_that_may_answer_see_the_diff() {
    let daemon = daemon();
    let (mut person, mut caller) = (daemon.connect(), agent(&daemon, "a"));
    let (mut watching, mut events) = (agent(&daemon, "a"), agent(&daemon, "a"));
    person.result("permissions.subscribe", json!({}));
    watching.result("permissions.subscribe", json!({}));
    events.result("events.subscribe", json!({"kinds": ["permission.asked"]}));

    let arguments = json!({"path": "../outside/letter", "content": "more\n", "mode": "append"});
    let id = caller.request("tools.execute", json!({"name": "write", "arguments": arguments}));
    let ask = person.notification("permissions.event")["result"]["request"].take();
    assert!(ask["diff"].as_str().unwrap().contains("TOKEN=abc"), "{ask}");
    let seen = watching.notification("permissions.event")["result"]["request"].take();
    let pending = watching.result("permissions.pending", json!({}))["asks"][0].take();
    let event = events.notification("events.event")["result"]["request"].take();
    for seen in [seen, pending, event] {
        assert_eq!((&seen["request_id"], &seen["diff"]), (&ask["request_id"], &Value::Null), "{seen}");
    }
    // An allowed change does not reveal it afterwards either.
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    let result = caller.answer(id)["result"].take();
    assert_eq!(result["is_error"], false, "{result}");
    assert!(!result.to_string().contains("TOKEN"), "{result}");
}
