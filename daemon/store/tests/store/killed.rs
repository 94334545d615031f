//! A daemon that dies while it writes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use rusqlite::Connection;
use serde_json::json;
use toold_engine::audit::AuditLog;
use toold_engine::policy::grants::GrantScope;
use toold_proto::audit::AuditQuery;
use toold_store::Store;
use toold_test_kit::own_process;

use crate::{grant, row};

/// Not a test by itself: writes without end, and tells what it has stored.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os("TOOLD_STORE_WRITE") else { return };
    let store = Store::open(Path::new(&path));
    let mut out = std::io::stdout();
    for n in 0.. {
        (n * 100..(n + 1) * 100).for_each(|n| store.record(&row(n)).unwrap());
        store.flush();
        store.save_grant(&grant(&format!("g{n}"), GrantScope::Always)).unwrap();
        store.set_plugin_value("p", "n", &json!(n)).unwrap();
        writeln!(out, "\nstored {n}").unwrap();
        out.flush().unwrap();
        // These are on their way when the end comes.
        store.record(&row(u64::MAX >> 1)).unwrap();
    }
}

#[test]
fn stored_rows_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    for round in 0..3 {
        let _ = std::fs::remove_file(&path);
        let mut child = own_process("killed::child_that_writes")
            .env("TOOLD_STORE_WRITE", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut rows = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("stored ")?.parse::<u64>().ok());
        let stored = rows.find(|n| *n >= 5 + round).unwrap();
        child.kill().unwrap();
        // The last row that it reported before the signal.
        let stored = rows.last().unwrap_or(stored);
        child.wait().unwrap();

        let store = Store::open(&path);
        assert_eq!(store.problems(), Vec::<String>::new());
        assert!(store.load_grants().len() as u64 > stored);
        assert!(store.plugin_value("p", "n").unwrap().unwrap().as_u64().unwrap() >= stored);
        let query = AuditQuery { limit: Some(1_000), ..AuditQuery::default() };
        let entries = store.query_audit(&AuditQuery { after: Some(0), ..query }, &|| false).unwrap().entries;
        let numbers = entries.iter().map(|entry| entry.duration_ms).filter(|n| *n != u64::MAX >> 1);
        let numbers: Vec<u64> = numbers.collect();
        assert!(numbers.len() as u64 >= ((stored + 1) * 100).min(900), "{} of {stored}", numbers.len());
        assert!(numbers.iter().enumerate().all(|(place, n)| place as u64 == *n), "rows are missing");
        drop(store);
        let whole: String =
            Connection::open(&path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
    }
}
