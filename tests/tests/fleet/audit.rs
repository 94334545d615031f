//! The audit log of all daemons in one stream.

use std::fs;

use serde_json::json;
use toold_tests::{Bus, FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

use crate::status::{joined, status};

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
    for daemon in [&laptop, &build] {
        joined(daemon);
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
    joined(&laptop);
    joined(&build);
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
    joined(&laptop);
    joined(&build);
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
    joined(&laptop);
    call(&mut laptop.connect(), 2);
    until("the new rows are in the stream", || (ids(&bus, "laptop") == [5, 6]).then_some(()));
}

#[test]
fn rows_are_not_sent_while_that_is_switched_off() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let laptop = start(&plan, "laptop", &nats, "");
    joined(&laptop);
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
    joined(&laptop);
    call(&mut laptop.connect(), 3);
    all_are_sent(&bus, "laptop", &laptop);
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
    joined(&laptop);
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

/// The server could answer with anything.
#[test]
fn a_forged_row_in_the_stream_does_not_stop_the_log() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop"], &[]);
    let mut laptop = start(&plan, "laptop", &nats, "");
    joined(&laptop);
    call(&mut laptop.connect(), 1);
    all_are_sent(&bus, "laptop", &laptop);
    let last = bus.stored("TOOLD_AUDIT").pop().unwrap();
    let forged = String::from_utf8(last.payload).unwrap().replace("\"id\":1,", "\"id\":1000000,");
    bus.send("toold.audit.laptop", None, forged.as_bytes());
    laptop.restart("KILL");
    call(&mut laptop.connect(), 1);
    until("the next row follows", || (ids(&bus, "laptop") == [1, 1_000_000, 2]).then_some(()));
    let refused = status(&mut laptop.connect())["refused"]["bad_signature"].take();
    assert_eq!(refused, 1);
}
