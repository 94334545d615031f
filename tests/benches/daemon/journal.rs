//! The journal of calls: what one record costs the call that waits for it.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use toold_engine::audit::{AuditLog, AuditRow, DecisionRecord};
use toold_proto::event::Outcome;
use toold_proto::tool::{CallId, SessionId, ToolName};
use toold_store::Store;

use crate::stats::{Demand, goal, median};

/// Records in a row, fewer than the database takes at once.
const RECORDS: u32 = 500;

pub(crate) fn run(quick: bool) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("toold.db"));
    let row = call();
    let rounds = if quick { 3 } else { 100 };
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut numbers = Vec::new();
        begins.push(each(|| numbers.push(store.begin(&row).unwrap())));
        let mut numbers = numbers.into_iter();
        ends.push(each(|| store.record(&AuditRow { begun: numbers.next(), ..row.clone() }).unwrap()));
        store.flush();
    }
    for (what, times) in [("begin", begins), ("end", ends)] {
        let micros = median(times).as_secs_f64() * 1e6;
        goal(19, &format!("the {what} of a call in the journal"), micros, "us", Demand::AtMost(5.0));
    }
    println!();
}

fn each(mut record: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..RECORDS).for_each(|_| record());
    black_box(start.elapsed()) / RECORDS
}

fn call() -> AuditRow {
    AuditRow {
        begun: None,
        at: SystemTime::now(),
        call_id: CallId::parse("call_1").unwrap(),
        session_id: SessionId::parse("session").unwrap(),
        tool: ToolName::parse("bash").unwrap(),
        source: "builtin:toold".into(),
        client: Some("bench".into()),
        connection: 1,
        decisions: vec![DecisionRecord {
            category: "shell".into(),
            target: "git status".into(),
            verdict: "allow".into(),
            rule: "it only reads".into(),
            ..DecisionRecord::default()
        }],
        outcome: Outcome::Ok,
        duration_ms: 1,
        original: None,
        input_bytes: 10,
        output_bytes: 20,
    }
}
