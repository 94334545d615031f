//! What each method that changes something answers while nothing can be stored, and what is true then: a table of
//! methods by kinds of failure.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

use crate::faults::{is_root, with_mounts};

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

fn level(wire: &mut Wire) -> Value {
    wire.result("permissions.level", json!({}))["level"].take()
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
        change("permissions.set_level", json!({"level": "read"}), true, |wire| level(wire) == "read"),
        change("permissions.set_level", json!({"level": "operate"}), false, |wire| level(wire) == "operate"),
        change("workspaces.allow", json!({"path": format!("{work}/new")}), false, |wire| is_workspace(wire, "/new")),
        change("workspaces.forget", json!({"path": format!("{work}/old")}), true, |wire| !is_workspace(wire, "/old")),
        change("plugins.disable", json!({"name": "on"}), true, |wire| !runs(wire, "on")),
        change("plugins.enable", json!({"name": "off"}), false, |wire| runs(wire, "off")),
    ]
}

/// Methods that change what is stored, and are not in [`changes`].
const SEPARATE: &str =
    "session.open session.close permissions.reply plugins.trust tools.execute tools.execute_batch commands.run";

/// Methods that change files of the state folder, and not the database.
const OWN_FILES: &str = "daemon.pause daemon.resume permissions.observe secrets.set secrets.remove secrets.unlock \
mcp.login.finish mcp.logout fleet.grant fleet.revoke files.undo files.forget";

/// Methods that read, or change what ends with the daemon in any case.
const STORE_NOTHING: &str = "audit.query audit.verify buffers.clear buffers.set cache.clear cache.stats calls.begun calls.get \
calls.list commands.list daemon.config daemon.metrics daemon.ping daemon.reload daemon.restart daemon.shutdown daemon.status \
events.subscribe events.unsubscribe files.history fleet.audit fleet.grants fleet.status hooks.list hooks.run mcp.login.begin \
mcp.registry.get mcp.registry.search mcp.restart mcp.servers mcp.test memories.list notify.test page.open page.revoke \
page.sessions permissions.check permissions.code permissions.confine permissions.confirm permissions.done permissions.level \
permissions.list permissions.pending permissions.replay permissions.request permissions.review permissions.subscribe \
permissions.suggest permissions.unsubscribe plugins.evaluate plugins.list plugins.logs plugins.profile plugins.reload \
plugins.show prompt.parse prompt.parse_stream prompt.render questions.reply questions.subscribe questions.unsubscribe \
remotes.list remotes.reconnect rpc.discover secrets.give_back secrets.list session.list session.share shells.attach \
shells.detach shells.kill shells.list shells.resize shells.write skills.get skills.list subagents.list todo.list tools.cancel \
tools.cost tools.interrupt tools.list tools.provide tools.provide_progress tools.provide_result tools.schema tools.search \
tools.unprovide workspaces.list";

#[test]
fn each_method_is_in_the_table_or_stores_nothing() {
    let (daemon, mut wire, old) = daemon();
    let document = wire.result("rpc.discover", json!({}));
    let known: BTreeSet<String> = document["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap().to_owned())
        .filter(|name| !name.starts_with("$/"))
        .collect();
    let changes = changes(&old, daemon.work().to_str().unwrap());
    let listed: BTreeSet<String> = changes
        .iter()
        .map(|change| change.method)
        .chain([SEPARATE, OWN_FILES, STORE_NOTHING].into_iter().flat_map(str::split_whitespace))
        .map(str::to_owned)
        .collect();
    let differing: Vec<_> = known.symmetric_difference(&listed).collect();
    assert!(differing.is_empty(), "say what becomes of these while nothing can be stored: {differing:?}");
}

/// A daemon with something to take back, and its ids.
fn daemon() -> (TestDaemon, Wire, Value) {
    start(Some).unwrap()
}

/// `prepare`: what is done before the daemon starts; `None` where that is not possible.
fn start(prepare: impl FnOnce(Setup) -> Option<Setup>) -> Option<(TestDaemon, Wire, Value)> {
    let plugin = |name: &str| {
        format!("hygge.register_tool{{name = \"{name}\", description = \"d\", execute = function() return \"x\" end}}")
    };
    let setup = Setup::new().plugin("on.lua", &plugin("on")).plugin("off.lua", &plugin("off"));
    let setup = setup.config("[permission]\nlevel = \"edit\"\n").file("old/a", "").file("new/a", "");
    let setup = setup.file("p/.toold/plugins/here.lua", plugin("here"));
    let daemon = prepare(setup)?.start();
    let mut wire = daemon.connect();
    let mut grant = |action: &str, pattern: &str| {
        let params = json!({"category": "shell", "pattern": pattern, "scope": "always", "action": action});
        wire.result("permissions.grant", params)["id"].take()
    };
    let mut old = json!({"allows": grant("allow", "./old"), "denies": grant("deny", "./bad")});
    let opened = Wire::connect(&daemon.socket()).result("session.open", json!({"cwd": daemon.work()}));
    old["session"] = opened["session_id"].clone();
    wire.result("workspaces.allow", json!({"path": daemon.work().join("old")}));
    wire.result("plugins.disable", json!({"name": "off"}));
    Some((daemon, wire, old))
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
    check_sessions(kind, daemon, &old["session"]);
    check_answers(kind, daemon);
    let trusted = wire.error("plugins.trust", json!({"path": daemon.work().join("p")}));
    assert_eq!(trusted["data"]["kind"], "not_kept", "{kind}: {trusted}");
    let items = wire.result("plugins.trust", json!({"path": daemon.work().join("p"), "preview": true}))["items"].take();
    assert!(items.as_array().unwrap().iter().all(|item| item["trusted"] == false), "{kind}: {items}");
}

/// An answer that allows something from now on is not given, and the ask waits for another one.
#[track_caller]
fn check_answers(kind: &str, daemon: &TestDaemon) {
    let (mut person, mut caller) = (Wire::connect(&daemon.socket()), daemon.connect());
    person.result("permissions.subscribe", json!({}));
    let waiting = caller.request("tools.execute", json!({"name": "bash", "arguments": {"command": "./asked"}}));
    let ask = loop {
        let mut event = person.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            break event["request"]["request_id"].take();
        }
    };
    let always = json!({"request_id": ask, "action": "allow", "scope": "always"});
    let refused = person.error("permissions.reply", always);
    assert_eq!(refused["data"]["kind"], "not_kept", "{kind}: {refused}");
    assert!(refused["message"].as_str().unwrap().contains("nothing was changed"), "{kind}: {refused}");
    person.result("permissions.reply", json!({"request_id": ask, "action": "deny", "scope": "once"}));
    assert_eq!(caller.answer(waiting)["result"]["is_error"], true, "{kind}");
}

/// Sessions are opened and closed in any case, and say what will become of them.
#[track_caller]
fn check_sessions(kind: &str, daemon: &TestDaemon, stored: &Value) {
    let mut wire = Wire::connect(&daemon.socket());
    let says =
        |answer: &Value| answer["not_kept"].as_str().is_some_and(|why| why.contains("only until the daemon stops"));
    let opened = wire.result("session.open", json!({"cwd": daemon.work()}));
    assert!(says(&opened), "{kind}: {opened}");
    // It holds.
    assert_eq!(wire.tool("glob", json!({"pattern": "old/*"}))["is_error"], false, "{kind}");
    let again = wire.result("session.open", json!({"session_id": stored}));
    assert!(says(&again) && again["resumed"] == true, "{kind}: {again}");
    let closed = wire.result("session.close", json!({"session_id": stored}));
    assert!(says(&closed), "{kind}: {closed}");
}

/// Ends the daemon, changes its database, and starts it again.
fn with_changed_database(mut daemon: TestDaemon, change: impl FnOnce(&rusqlite::Connection)) -> TestDaemon {
    daemon.signal("TERM");
    daemon.wait();
    change(&rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap());
    daemon.start_again();
    daemon
}

#[test]
fn what_a_locked_database_does_not_take_is_not_answered_with_ok() {
    let (daemon, mut wire, old) = daemon();
    let other = rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    check("locked", &daemon, &mut wire, &old);
}

#[test]
fn what_a_lost_database_does_not_take_is_not_answered_with_ok() {
    let (daemon, mut wire, old) = daemon();
    std::fs::remove_file(daemon.state().join("toold.db")).unwrap();
    check("lost", &daemon, &mut wire, &old);
}

#[test]
fn what_a_newer_database_does_not_take_is_not_answered_with_ok() {
    let (daemon, wire, old) = daemon();
    drop(wire);
    let daemon = with_changed_database(daemon, |database| {
        database.pragma_update(None, "user_version", 99).unwrap();
    });
    check("newer", &daemon, &mut daemon.connect(), &old);
}

#[test]
fn what_a_damaged_database_does_not_take_is_not_answered_with_ok() {
    let (daemon, mut wire, old) = daemon();
    let mut other = rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap();
    other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    std::fs::OpenOptions::new().write(true).open(daemon.state().join("toold.db")).unwrap().set_len(0).unwrap();
    _ = other.transaction().map(drop);
    until("the damage is seen", || (wire.result("daemon.status", json!({}))["store"]["damaged"] == true).then_some(()));
    check("damaged", &daemon, &mut wire, &old);
}

#[test]
fn what_a_full_disk_does_not_take_is_not_answered_with_ok() {
    if !is_root() {
        return toold_tests::skip("only root can fill the disk in the daemon's mounts");
    }
    let mounted = |setup: Setup| {
        let line = format!("mount -t tmpfs -o size=2m tmpfs {}", setup.path("state").display());
        with_mounts(setup, &line)
    };
    let Some((daemon, mut wire, old)) = start(mounted) else { return };
    let state = format!("/proc/{}/root{}", daemon.pid(), daemon.setup.path("state").display());
    // As much as fits; what SQLite's log has room for is taken until it is used up.
    std::fs::write(format!("{state}/filler"), vec![0; 4 << 20]).unwrap_err();
    until("the database is full too", || {
        let grant = json!({"category": "shell", "pattern": "./filler", "scope": "always"});
        wire.call("permissions.grant", grant).get("error").is_some().then_some(())
    });
    check("full", &daemon, &mut wire, &old);
    let kept = [
        ("todo", json!({"items": [{"content": "x", "status": "pending"}]})),
        ("remember", json!({"content": "x", "scope": "global"})),
    ];
    for (tool, arguments) in kept {
        let answer = wire.tool(tool, arguments);
        assert_eq!(answer["is_error"], true, "{tool}: {answer}");
    }
}

#[test]
fn a_session_whose_stored_state_cannot_be_read_gets_no_wider_one() {
    let setup = Setup::new().file("a", "");
    let mut daemon = setup.start();
    let mut wire = daemon.connect();
    let session = wire.result("session.open", json!({"cwd": daemon.work()}))["session_id"].take();
    wire.result("permissions.set_mode", json!({"mode": "plan"}));
    drop(wire);
    daemon.signal("KILL");
    daemon.wait();
    let other = rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    daemon.start_again();
    let mut wire = Wire::connect(&daemon.socket());
    // Its folder is not known.
    let opened = wire.result("session.open", json!({"session_id": session, "cwd": daemon.work()}));
    assert!(opened["resumed"] == false && opened["not_kept"].is_string(), "{opened}");
    drop(other);
    until("the stored mode holds", || (mode(&mut wire) == "plan").then_some(()));
    until("the session is stored", || {
        let opened = Wire::connect(&daemon.socket()).result("session.open", json!({"session_id": session}));
        opened.get("not_kept").is_none().then_some(())
    });
}

#[test]
fn a_change_that_is_kept_while_the_database_works_is_there_after_a_kill() {
    let (mut daemon, mut wire, old) = daemon();
    let session = wire.result("session.open", json!({"cwd": daemon.work()}))["session_id"].take();
    let mut changes = changes(&old, daemon.work().to_str().unwrap());
    // A level allows more commands than those that are looked at here.
    changes.retain(|change| change.method != "permissions.set_level");
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
