//! The audit log of all daemons in one stream.

use std::fs;

use serde_json::json;
use toold_tests::{Bus, FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

use crate::fleet::status::{joined, status};

/// The ids of a daemon's rows in the stream, in its order, and the databases that they are from.
fn stored(bus: &Bus, daemon: &str) -> Vec<(u64, String)> {
    let subject = format!("toold.audit.{daemon}");
    let rows = bus.stored("TOOLD_AUDIT").into_iter().filter(|message| message.subject == subject);
    let rows = rows.map(|message| message.json());
    rows.map(|row| (row["row"]["id"].as_u64().unwrap(), row["notes"]["log"].as_str().unwrap().to_owned())).collect()
}

fn ids(bus: &Bus, daemon: &str) -> Vec<u64> {
    stored(bus, daemon).into_iter().map(|(id, _)| id).collect()
}

/// The ids in the daemon's own audit log.
fn own(daemon: &TestDaemon) -> Vec<u64> {
    let list = daemon.connect().result("audit.query", json!({"after": 0, "limit": 1000}));
    list["entries"].as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

/// Waits until the daemon is connected, and knows where the rows begin that it sends.
fn sending(name: &str, daemon: &TestDaemon) {
    let begin = daemon.state().join(format!("fleet/audit-{name}.json"));
    until("the beginning of the log is noted", || begin.exists().then_some(()));
    joined(daemon);
}

fn call(wire: &mut Wire, times: usize) {
    for _ in 0..times {
        let result = wire.tool("read", json!({"path": "note"}));
        assert_eq!(result["is_error"], false, "{result}");
    }
}

fn start(plan: &FleetPlan, name: &str, nats: &NatsServer, more: &str) -> TestDaemon {
    Setup::new().file("note", "tea").config(&plan.config(name, &nats.url(), None, more)).start()
}

#[track_caller]
fn all_are_sent(bus: &Bus, name: &str, daemon: &TestDaemon) {
    let expected = own(daemon);
    until("all rows are in the stream", || (ids(bus, name).len() >= expected.len()).then_some(()));
    assert_eq!(ids(bus, name), expected, "{name}: {}", daemon.log());
}

/// Also after `kill -9` of the daemon and of the server, and after time without a server.
#[test]
fn each_row_is_in_the_stream_once_and_in_order() {
    let Some(mut nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop", "build"], &[]);
    let (mut laptop, mut build) = (start(&plan, "laptop", &nats, ""), start(&plan, "build", &nats, ""));
    for (name, daemon) in [("laptop", &laptop), ("build", &build)] {
        sending(name, daemon);
        call(&mut daemon.connect(), 5);
    }
    all_are_sent(&bus, "laptop", &laptop);
    all_are_sent(&bus, "build", &build);

    nats.kill();
    call(&mut laptop.connect(), 7);
    call(&mut build.connect(), 3);
    until("it is known how many wait", || (status(&mut laptop.connect())["audit_waiting"] == 7).then_some(()));
    laptop.restart("KILL");
    call(&mut laptop.connect(), 2);
    nats.start_again();
    sending("laptop", &laptop);
    sending("build", &build);
    all_are_sent(&bus, "laptop", &laptop);
    all_are_sent(&bus, "build", &build);

    // Killed while rows are sent.
    for _ in 0..3 {
        for daemon in [&mut laptop, &mut build] {
            call(&mut daemon.connect(), 40);
            daemon.restart("KILL");
            call(&mut daemon.connect(), 20);
        }
        nats.kill();
        nats.start_again();
    }
    sending("laptop", &laptop);
    sending("build", &build);
    all_are_sent(&bus, "laptop", &laptop);
    all_are_sent(&bus, "build", &build);
    let logs: std::collections::BTreeSet<String> = stored(&bus, "laptop").into_iter().map(|(_, log)| log).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    until("nothing waits", || (status(&mut laptop.connect())["audit_waiting"] == 0).then_some(()));
}

#[test]
fn rows_from_before_the_daemon_joined_are_not_sent() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let alone = Setup::new().file("note", "tea").start();
    call(&mut alone.connect(), 4);
    let laptop = alone.into_setup().config(&plan.config("laptop", &nats.url(), None, "")).start();
    sending("laptop", &laptop);
    call(&mut laptop.connect(), 2);
    until("the new rows are in the stream", || (ids(&bus, "laptop") == [5, 6]).then_some(()));
}

#[test]
fn rows_are_not_sent_while_that_is_switched_off() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let laptop = start(&plan, "laptop", &nats, "");
    sending("laptop", &laptop);
    call(&mut laptop.connect(), 2);
    all_are_sent(&bus, "laptop", &laptop);
    let off = start(&plan, "laptop", &nats, "audit = false");
    drop(off);

    let config = |more: &str| {
        fs::write(laptop.setup.path("config/toold/config.toml"), plan.config("laptop", &nats.url(), None, more))
            .unwrap();
        laptop.connect().result("daemon.reload", json!({}));
    };
    let position = || fs::read_to_string(laptop.state().join("fleet/audit-laptop.json")).unwrap();
    config("audit = false");
    until("it is switched off", || position().contains("\"is_off\":true").then_some(()));
    call(&mut laptop.connect(), 3);
    config("");
    until("it is switched on", || position().contains("\"is_off\":false").then_some(()));
    call(&mut laptop.connect(), 1);
    until("the last row is in the stream", || (ids(&bus, "laptop") == [1, 2, 6]).then_some(()));
}

#[test]
fn a_stream_that_was_emptied_gets_new_rows_only() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let mut laptop = start(&plan, "laptop", &nats, "");
    sending("laptop", &laptop);
    call(&mut laptop.connect(), 3);
    all_are_sent(&bus, "laptop", &laptop);
    let position = || fs::read_to_string(laptop.state().join("fleet/audit-laptop.json")).unwrap_or_default();
    until("the laptop knows that they are sent", || position().contains("\"row\":3").then_some(()));
    bus.purge("TOOLD_AUDIT");
    laptop.restart("KILL");
    call(&mut laptop.connect(), 2);
    until("the new rows are in the stream", || (ids(&bus, "laptop") == [4, 5]).then_some(()));
}

#[test]
fn a_new_database_begins_a_new_log() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let mut laptop = start(&plan, "laptop", &nats, "");
    sending("laptop", &laptop);
    call(&mut laptop.connect(), 5);
    all_are_sent(&bus, "laptop", &laptop);
    laptop.signal("TERM");
    laptop.wait();
    for file in ["toold.db", "toold.db-wal", "toold.db-shm"] {
        let _ = fs::remove_file(laptop.state().join(file));
    }
    laptop.start_again();
    call(&mut laptop.connect(), 2);
    until("the new rows are in the stream", || (ids(&bus, "laptop") == [1, 2, 3, 4, 5, 1, 2]).then_some(()));
    let stored = stored(&bus, "laptop");
    assert!(stored[4].1 != stored[5].1 && stored[5].1 == stored[6].1, "{stored:?}");
    laptop.restart("KILL");
    call(&mut laptop.connect(), 1);
    until("the next row follows", || (ids(&bus, "laptop") == [1, 2, 3, 4, 5, 1, 2, 3]).then_some(()));
}

/// It also reports rows that were forged in the stream, or deleted from it.
#[test]
fn each_daemon_shows_the_rows_of_all() {
    let Some(mut nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop", "build"], &[]);
    let (laptop, build) = (start(&plan, "laptop", &nats, ""), start(&plan, "build", &nats, ""));
    for (name, daemon) in [("laptop", &laptop), ("build", &build)] {
        sending(name, daemon);
        call(&mut daemon.connect(), 3);
    }
    build.connect().tool("read", json!({"path": "nothing"}));
    let mut wire = laptop.connect();
    let mut search = |query: serde_json::Value| wire.result("fleet.audit", query);
    let list = until("all rows are there", || {
        Some(search(json!({}))).filter(|list| list["entries"].as_array().unwrap().len() == 7)
    });
    assert_eq!((&list["more"], &list["unverified"], &list["missing"]), (&json!(false), &json!(0), &json!({})));
    assert_eq!(list["entries"][0]["row"]["tool"], "read");
    let sequences = |list: &serde_json::Value| -> Vec<u64> {
        list["entries"].as_array().unwrap().iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect()
    };
    assert_eq!(sequences(&list), [1, 2, 3, 4, 5, 6, 7]);
    let of_laptop = search(json!({"daemon": "laptop"}));
    let places = of_laptop["entries"].as_array().unwrap().iter().map(|entry| &entry["daemon"]);
    assert_eq!(places.collect::<Vec<_>>(), ["laptop"; 3]);
    let failed = search(json!({"outcome": "error"}));
    assert_eq!((sequences(&failed).len(), &failed["entries"][0]["daemon"]), (1, &json!("build")));
    assert_eq!(sequences(&search(json!({"since": "1h"}))).len(), 7);
    assert_eq!(sequences(&search(json!({"since": "2100-01-01T00:00:00Z"}))).len(), 0);
    let page = search(json!({"limit": 2}));
    assert_eq!((sequences(&page), &page["more"], &page["last"]), (vec![6, 7], &json!(true), &json!(7)));
    let page = search(json!({"limit": 2, "before": 6}));
    assert_eq!((sequences(&page), &page["more"]), (vec![4, 5], &json!(true)));
    let page = search(json!({"limit": 4, "after": 1}));
    assert_eq!((sequences(&page), &page["more"], &page["last"]), (vec![2, 3, 4, 5], &json!(true), &json!(5)));
    let page = search(json!({"after": 7}));
    assert_eq!((sequences(&page), &page["more"], &page["last"]), (vec![], &json!(false), &json!(7)));

    // A row of one daemon in the name of the other, one again, and one that nobody signed; and one is taken away.
    let stored = bus.stored("TOOLD_AUDIT");
    let of = |name: &str| stored.iter().find(|message| message.subject == format!("toold.audit.{name}")).unwrap();
    bus.send("toold.audit.build", None, &of("laptop").payload);
    bus.send("toold.audit.laptop", None, &of("laptop").payload);
    bus.send("toold.audit.mallory", None, b"{}");
    bus.erase("TOOLD_AUDIT", sequences(&of_laptop)[1]);
    let list = until("they are there", || Some(search(json!({}))).filter(|list| list["unverified"] == 2));
    assert_eq!((list["entries"].as_array().unwrap().len(), &list["missing"]), (6, &json!({"laptop": 1})));
    for wrong in [json!({"daemon": "No name"}), json!({"since": "noon"})] {
        assert_eq!(laptop.connect().error("fleet.audit", wrong)["code"], -32602);
    }
    nats.kill();
    let refused = until("the server is missed", || {
        let mut answer = laptop.connect().call("fleet.audit", json!({}));
        answer.get_mut("error").map(serde_json::Value::take)
    });
    assert_eq!(refused["data"]["kind"], "broker_unavailable", "{refused}");
}

/// The server could answer with anything.
#[test]
fn a_forged_row_in_the_stream_does_not_stop_the_log() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let mut laptop = start(&plan, "laptop", &nats, "");
    sending("laptop", &laptop);
    call(&mut laptop.connect(), 1);
    all_are_sent(&bus, "laptop", &laptop);
    let last = bus.stored("TOOLD_AUDIT").pop().unwrap();
    let forged = String::from_utf8(last.payload).unwrap().replace("\"id\":1,", "\"id\":1000000,");
    bus.send("toold.audit.laptop", None, forged.as_bytes());
    laptop.restart("KILL");
    call(&mut laptop.connect(), 1);
    until("the next row follows", || (ids(&bus, "laptop") == [1, 1_000_000, 2]).then_some(()));
    // Again if it was killed before it noted what it had sent.
    let refused = status(&mut laptop.connect())["refused"]["bad_signature"].as_u64();
    assert!(matches!(refused, Some(1 | 2)), "{refused:?}");
}
