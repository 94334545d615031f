//! What each method that changes something answers while nothing can be stored, and what is true then: a table of
//! methods by kinds of failure.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

/// A change, and whether it is in force.
struct KeptChange {
    method: &'static str,
    params: Value,
    /// It lets clients do less, so it holds although it is not stored.
    narrows: bool,
    holds: fn(&mut Wire) -> bool,
}

fn verdict(wire: &mut Wire, command: &str) -> Value {
    wire.result("permissions.check", json!({"category": "shell", "target": command}))["verdict"].take()
}

fn mode(wire: &mut Wire) -> Value {
    wire.result("permissions.list", json!({}))["mode"].take()
}

fn is_workspace(wire: &mut Wire, name: &str) -> bool {
    let list = wire.result("workspaces.list", json!({}))["workspaces"].take();
    list.as_array()
        .unwrap()
        .iter()
        .any(|entry| entry["source"] == "allowed" && entry["path"].as_str().unwrap().ends_with(name))
}

fn runs(wire: &mut Wire, plugin: &str) -> bool {
    let list = wire.result("plugins.list", json!({}))["plugins"].take();
    list.as_array().unwrap().iter().any(|entry| entry["name"] == plugin && entry["status"] != "disabled")
}

fn changes(old: &Value, work: &str) -> Vec<KeptChange> {
    let change = |method, params, narrows, holds| KeptChange { method, params, narrows, holds };
    let allow = |action: &str, pattern: &str| json!({"category": "shell", "pattern": pattern, "scope": "always", "action": action});
    vec![
        change("permissions.grant", allow("allow", "./new"), false, |wire| verdict(wire, "./new") == "allow"),
        change("permissions.grant", allow("deny", "./never"), true, |wire| verdict(wire, "./never") == "deny"),
        change("permissions.revoke", json!({"id": old["allows"]}), true, |wire| verdict(wire, "./old") != "allow"),
        change("permissions.revoke", json!({"id": old["denies"]}), false, |wire| verdict(wire, "./bad") != "deny"),
        change("permissions.set_mode", json!({"mode": "plan"}), true, |wire| mode(wire) == "plan"),
        change("permissions.set_mode", json!({"mode": "accept_edits"}), false, |wire| mode(wire) == "accept_edits"),
        change("workspaces.allow", json!({"path": format!("{work}/new")}), false, |wire| is_workspace(wire, "/new")),
        change("workspaces.forget", json!({"path": format!("{work}/old")}), true, |wire| !is_workspace(wire, "/old")),
        change("plugins.disable", json!({"name": "on"}), true, |wire| !runs(wire, "on")),
        change("plugins.enable", json!({"name": "off"}), false, |wire| runs(wire, "off")),
    ]
}

/// A daemon with something to take back, and its ids.
fn daemon() -> (TestDaemon, Wire, Value) {
    let plugin = |name: &str| {
        format!("hygge.register_tool{{name = \"{name}\", description = \"d\", execute = function() return \"x\" end}}")
    };
    let setup = Setup::new().plugin("on.lua", &plugin("on")).plugin("off.lua", &plugin("off"));
    let daemon = setup.file("old/a", "").file("new/a", "").start();
    let mut wire = daemon.connect();
    let mut grant = |action: &str, pattern: &str| {
        let params = json!({"category": "shell", "pattern": pattern, "scope": "always", "action": action});
        wire.result("permissions.grant", params)["id"].take()
    };
    let old = json!({"allows": grant("allow", "./old"), "denies": grant("deny", "./bad")});
    wire.result("workspaces.allow", json!({"path": daemon.work().join("old")}));
    wire.result("plugins.disable", json!({"name": "off"}));
    (daemon, wire, old)
}

#[track_caller]
fn check(kind: &str, daemon: &TestDaemon, wire: &mut Wire, old: &Value) {
    for KeptChange { method, params, narrows, holds } in changes(old, daemon.work().to_str().unwrap()) {
        assert!(!holds(wire), "{kind}: {method} {params}: it holds before");
        let answer = wire.call(method, params.clone());
        let is_kept = match answer.get("error") {
            None => true,
            Some(error) => {
                assert_eq!(error["data"]["kind"], "not_kept", "{kind}: {method} {params}: {answer}");
                let says = if narrows { "only until the daemon stops" } else { "nothing was changed" };
                assert!(error["message"].as_str().unwrap().contains(says), "{kind}: {method} {params}: {answer}");
                false
            }
        };
        assert_eq!(holds(wire), is_kept || narrows, "{kind}: {method} {params}: {answer}");
        // A refusal has a file of its own.
        let by_file = method == "permissions.grant" && narrows;
        assert!(!is_kept || by_file, "{kind}: {method} {params} is kept: {answer}");
    }
}

#[test]
fn what_cannot_be_stored_is_not_answered_with_ok() {
    let (daemon, mut wire, old) = daemon();
    let other = rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    check("locked", &daemon, &mut wire, &old);
    drop(other);

    let (daemon, mut wire, old) = self::daemon();
    std::fs::remove_file(daemon.state().join("toold.db")).unwrap();
    check("lost", &daemon, &mut wire, &old);

    let (mut daemon, wire, old) = self::daemon();
    drop(wire);
    daemon.signal("TERM");
    daemon.wait();
    let database = rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    daemon.start_again();
    check("newer", &daemon, &mut daemon.connect(), &old);
}

#[test]
fn a_change_that_is_kept_while_the_database_works_is_there_after_a_kill() {
    let (mut daemon, mut wire, old) = daemon();
    let session = wire.result("session.open", json!({"cwd": daemon.work()}))["session_id"].take();
    let changes = changes(&old, daemon.work().to_str().unwrap());
    for KeptChange { method, params, holds, .. } in &changes {
        wire.result(method, params.clone());
        assert!(holds(&mut wire), "{method} {params}");
    }
    daemon.restart("KILL");
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"session_id": session}));
    for KeptChange { method, params, holds, .. } in changes.iter().filter(|change| change.params["mode"] != "plan") {
        toold_tests::until("it is there", || holds(&mut wire).then_some(()));
        println!("{method} {params}");
    }
}
