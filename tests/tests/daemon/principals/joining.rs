//! Which sessions an agent sees and joins.

use serde_json::{Value, json};
use toold_tests::{TestDaemon, Wire};

use crate::principals::peers::spoken;

fn agent(daemon: &TestDaemon) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    wire
}

fn persons(daemon: &TestDaemon, id: &str, mode: &str) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"session_id": id, "cwd": daemon.work()}));
    wire.result("permissions.set_mode", json!({"mode": mode}));
    wire
}

fn ids(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().unwrap().iter().map(|session| session["session_id"].as_str().unwrap()).collect()
}

/// Requests of an agent that is another program than this test.
fn other_agent(daemon: &TestDaemon, requests: &[Value]) -> Vec<Value> {
    let mut all = vec![json!(["session.open", {"cwd": daemon.work(), "role": "agent"}])];
    all.extend(requests.iter().cloned());
    spoken(daemon, &[], &json!(all)).split_off(1)
}

#[test]
fn no_agent_sees_or_joins_a_session_in_yolo() {
    let daemon = TestDaemon::start();
    let mut person = persons(&daemon, "free", "yolo");
    let mut agent = agent(&daemon);
    assert!(!ids(&agent.result("session.list", json!({}))).contains(&"free"));
    let tries = [
        ("session.open", json!({"session_id": "free"})),
        ("session.close", json!({"session_id": "free"})),
        ("tools.list", json!({"session_id": "free"})),
        ("tools.execute", json!({"session_id": "free", "name": "bash", "arguments": {"command": "touch done"}})),
        ("calls.list", json!({"session_id": "free"})),
        ("tools.interrupt", json!({"session_id": "free"})),
    ];
    for (method, params) in tries {
        let error = agent.error(method, params);
        assert_eq!(error["data"]["kind"], "unknown_session", "{method}: {error}");
    }
    assert!(!daemon.work().join("done").exists());
    // The person ends the mode, and a program may work with its own editor.
    person.result("permissions.set_mode", json!({"mode": "default"}));
    agent.result("session.open", json!({"session_id": "free"}));
}

#[test]
fn an_agent_joins_no_session_of_another_program() {
    let daemon = TestDaemon::start();
    let _person = persons(&daemon, "work", "default");
    let answers = other_agent(
        &daemon,
        &[
            json!(["session.list", {}]),
            json!(["session.open", {"session_id": "work"}]),
            json!(["tools.execute", {"session_id": "work", "name": "read", "arguments": {"path": "x"}}]),
            json!(["session.close", {"session_id": "work"}]),
        ],
    );
    assert!(!ids(&answers[0]["result"]).contains(&"work"), "{}", answers[0]);
    for answer in &answers[1..] {
        assert_eq!(answer["error"]["data"]["kind"], "unknown_session", "{answer}");
    }
}

#[test]
fn an_agent_comes_back_to_its_own_session_after_a_restart_and_to_no_other() {
    let mut daemon = TestDaemon::start();
    let _person = persons(&daemon, "persons", "default");
    let open = |id: &str| json!(["session.open", {"session_id": id, "cwd": daemon.work(), "role": "agent"}]);
    spoken(&daemon, &[], &json!([open("agents")]));
    daemon.restart("TERM");
    let open = |id: &str| json!(["session.open", {"session_id": id, "role": "agent"}]);
    let answers = spoken(&daemon, &[], &json!([open("agents"), open("persons")]));
    assert_eq!(answers[0]["result"]["resumed"], true, "{}", answers[0]);
    assert_eq!(answers[1]["error"]["data"]["kind"], "unknown_session", "{}", answers[1]);
}

#[test]
fn a_person_hands_a_session_on_with_a_code_that_is_good_once() {
    let daemon = TestDaemon::start();
    let mut person = persons(&daemon, "work", "default");
    let shared = person.result("session.share", json!({"session_id": "work"}));
    let code = shared["code"].as_str().unwrap();
    assert_eq!(shared["expires_in"], 600);
    let join = json!(["session.open", {"session_id": code}]);
    let answers = other_agent(&daemon, &[join.clone(), json!(["connect", {}]), join]);
    assert_eq!(answers[0]["result"]["session_id"], "work", "{}", answers[0]);
    assert_eq!(answers[1]["error"]["data"]["kind"], "unknown_session", "{}", answers[1]);
    // Not even with a code.
    person.result("permissions.set_mode", json!({"mode": "yolo"}));
    let code = person.result("session.share", json!({}))["code"].take();
    let answers = other_agent(&daemon, &[json!(["session.open", {"session_id": code}])]);
    assert_eq!(answers[0]["error"]["data"]["kind"], "session_in_yolo", "{}", answers[0]);
}

#[test]
fn people_see_and_join_the_sessions_of_agents() {
    let daemon = TestDaemon::start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"session_id": "agents", "cwd": daemon.work(), "role": "agent"}));
    let mut person = daemon.connect();
    assert!(ids(&person.result("session.list", json!({}))).contains(&"agents"));
    assert_eq!(person.result("session.open", json!({"session_id": "agents"}))["resumed"], true);
}
