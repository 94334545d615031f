//! What must be true after all that.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use toold_tests::{Bus, until};

use crate::fleet_chaos::answers::PersonAnswers;
use crate::fleet_chaos::clients::{ASKED, ChaosCallEnd, ChaosCallRecord};
use crate::fleet_chaos::faults::FaultCounts;
use crate::fleet_chaos::machines::{Machine, Machines};

pub(crate) fn check(machines: &Machines, calls: &[ChaosCallRecord], answers: &PersonAnswers, faults: FaultCounts) {
    machines.wait_until_complete();
    let mut ends: BTreeMap<(&str, ChaosCallEnd), u64> = BTreeMap::new();
    for call in calls {
        *ends.entry((call.tool, call.end)).or_default() += 1;
    }
    for (fault, count) in &faults {
        println!("{count:6} {fault}");
    }
    for ((tool, end), count) in &ends {
        println!("{count:6} calls of {tool}: {end:?}");
    }
    println!("{:6} asks allowed, {} denied", answers.allowed.len(), answers.denied.len());
    println!("why calls did not run:");
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.end == ChaosCallEnd::DidNotRun) {
        *reasons.entry(without_names(&call.text)).or_default() += 1;
    }
    for (reason, count) in &reasons {
        println!("{count:6} {reason}");
    }
    nothing_is_left(machines);
    each_ran_at_most_once(machines, calls, answers);
    let url = machines.nats.lock().url();
    let bus = Bus::connect(&url);
    for machine in &machines.all {
        audit_is_complete(machine, &bus);
    }
    for subject in bus.stored("OBJ_TOOLD_BLOBS") {
        assert!(subject.subject.contains(".M."), "a blob is left: {}", subject.subject);
    }
    until("all asks have ended", || {
        bus.stored("TOOLD_ASKS").iter().all(|ask| !ask.json()["ended"].is_null()).then_some(())
    });
}

/// The words of an answer, in which the names of machines, and numbers, are the same for all.
fn without_names(answer: &str) -> String {
    let words = answer.split(|char: char| !char.is_alphanumeric() && char != '_');
    let is_name = |word: &str| Machines::names().any(|name| word == name);
    let shown = words.filter(|word| !word.is_empty()).map(|word| match word.split_once('_') {
        _ if is_name(word) => "NAME".to_owned(),
        Some((name, tool)) if is_name(name) => format!("NAME_{tool}"),
        _ if word.bytes().any(|byte| byte.is_ascii_digit()) => "N".to_owned(),
        _ => word.to_owned(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// No calls run, and all audit rows are sent.
fn nothing_is_left(machines: &Machines) {
    for machine in &machines.all {
        until(&format!("all calls on {} have ended, and its audit rows are sent", machine.name), || {
            let status = machine.status();
            (status["running"] == 0 && status["audit_waiting"] == 0).then_some(())
        });
        let refused = machine.status()["refused"].take();
        println!("       refused by {}: {refused}", machine.name);
    }
}

fn each_ran_at_most_once(machines: &Machines, calls: &[ChaosCallRecord], answers: &PersonAnswers) {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for machine in &machines.all {
        for line in fs::read_to_string(&machine.ledger).unwrap_or_default().lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
    }
    let mut wrong = Vec::new();
    for call in calls.iter().filter(|call| call.has_effect()) {
        let ran = lines.remove(&call.id).unwrap_or(0);
        let may_run = !call.after_revocation && (call.tool != ASKED || answers.allowed.contains(&call.id));
        let right = match call.end {
            ChaosCallEnd::Ok => ran == 1 && may_run,
            ChaosCallEnd::DidNotRun => ran == 0,
            ChaosCallEnd::Unknown | ChaosCallEnd::Cancelled | ChaosCallEnd::Interrupted | ChaosCallEnd::CallerDied => {
                ran == 0 || ran == 1 && may_run
            }
            ChaosCallEnd::Failed => false,
        };
        if !right {
            wrong.push(format!(
                "{} ({}) ended as {:?}, ran {ran} times, and was permitted: {may_run}; {}",
                call.id, call.tool, call.end, call.text
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines.is_empty(), "lines of no call: {lines:?}");
    assert!(calls.iter().any(|call| call.end == ChaosCallEnd::Ok), "no call succeeded");
    let failed: Vec<_> = calls.iter().filter(|call| call.end == ChaosCallEnd::Failed).map(|call| &call.text).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Each row of a daemon's log is in the stream once, in order.
fn audit_is_complete(machine: &Machine, bus: &Bus) {
    let subject = format!("toold.audit.{}", machine.name);
    let sent: Vec<u64> = bus
        .stored("TOOLD_AUDIT")
        .iter()
        .filter(|message| message.subject == subject)
        .map(|message| message.json()["row"]["id"].as_u64().unwrap())
        .collect();
    assert!(sent.windows(2).all(|two| two[0] < two[1]), "{} sent rows twice or out of order: {sent:?}", machine.name);
    let mut written = Vec::new();
    loop {
        let after = written.last().copied().unwrap_or(0);
        let page: Value = machine.result("audit.query", json!({"after": after, "limit": 1000}));
        written.extend(page["entries"].as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()));
        if page["more"] != true {
            break;
        }
    }
    // Rows from before it joined are its own.
    written.retain(|row| sent.first().is_some_and(|first| row >= first));
    assert_eq!(sent, written, "the rows of {} that were sent, and those in its log", machine.name);
    println!("{:6} audit rows of {}", sent.len(), machine.name);
}
