//! A large database: cleaning and searching it block no other client.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, until};

/// Adds rows to the audit log of a daemon that does not run.
fn add_rows(database: &Path, rows: u64) {
    let connection = Connection::open(database).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = off;
             BEGIN;
             WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {rows})
             INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, duration_ms, \
             input_bytes, output_bytes)
             SELECT unixepoch() * 1000 - {rows} + n, 'call_' || n, 'session_' || (n % 50), 'read', 'builtin:toold', 'test', \
             1, '[]', 'ok', 1, 10, 10 FROM c;
             COMMIT;"
        ))
        .unwrap();
}

fn rows(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap()
}

/// A daemon that keeps 1,000 rows, and has this many when it starts.
fn with_rows(count: u64, keeps: u64) -> (TestDaemon, Connection) {
    let setup = Setup::new().file("a.txt", "here").config(&format!("[audit]\nmax_rows = {keeps}\n"));
    let setup = setup.start().into_setup();
    let database = setup.path("state/toold/toold.db");
    add_rows(&database, count);
    let daemon = setup.start();
    (daemon, Connection::open(database).unwrap())
}

#[test]
fn calls_are_answered_while_old_rows_are_removed() {
    let (daemon, database) = with_rows(60_000, 1_000);
    let mut wire = daemon.connect();
    let (mut meanwhile, mut last, mut steps) = (0, i64::MAX, 0);
    until("the old rows are gone", || {
        let left = rows(&database);
        assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
        // Opening a session writes to the database, and waits for its turn.
        let open = json!({"cwd": daemon.work(), "client": {"name": "other"}});
        wire.result("session.open", open);
        if left > 2_000 {
            meanwhile += 1;
            steps += u32::from(left < last);
            last = left;
        }
        (left <= 2_000).then_some(())
    });
    assert!(meanwhile > 5 && steps > 3, "{meanwhile} rounds of calls were answered meanwhile, {steps} saw it go on");
}

#[test]
fn audit_rows_over_the_limit_are_removed_while_the_daemon_runs() {
    let (daemon, database) = with_rows(10, 1_000);
    let mut wire = daemon.connect();
    for _ in 0..5_000 {
        wire.tool("read", json!({"path": "a.txt"}));
    }
    // The daemon checks the limit after each 2,000 rows.
    until("the first rows are gone", || (rows(&database) <= 3_000).then_some(()));
}

#[test]
fn a_search_through_all_rows_lets_calls_pass() {
    let (daemon, _database) = with_rows(100_000, 1_000_000);
    let mut others = daemon.connect();
    let mut search = daemon.connect();
    let query = json!({"tool": "never_called"});
    let asked = search.request("audit.query", query);
    // The search is running or over; these calls do not wait for it in either case.
    for _ in 0..20 {
        assert_eq!(others.tool("read", json!({"path": "a.txt"}))["is_error"], false);
        others.result("permissions.check", json!({"category": "shell", "target": "ls"}));
    }
    let answer: Value = search.answer(asked);
    assert_eq!(answer["result"]["entries"], json!([]));
    assert_eq!(answer["result"]["more"], false);
    let last = search.result("audit.query", json!({"session_id": "session_7", "limit": 3}));
    assert_eq!(last["entries"].as_array().unwrap().len(), 3);
}
