//! Stored data has limits while the daemon runs, and not only when it starts.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toold_tests::{Setup, Wire, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n\
                     [[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n";

fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    let files = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_below(&entry.path()),
        _ => [entry.path()].into(),
    };
    entries.flatten().flat_map(files).collect()
}

fn bytes_below(folder: &Path) -> u64 {
    files_below(folder).iter().map(|file| std::fs::metadata(file).map_or(0, |metadata| metadata.len())).sum()
}

#[test]
fn long_results_stay_within_their_limit_while_the_daemon_runs() {
    let daemon = Setup::new().config(&format!("{ALLOW}[spool]\nmax_mib = 2\n")).start();
    let mut wire = daemon.connect();
    let spool = daemon.state().join("spool");
    for _ in 0..12 {
        let result = wire.tool("bash", json!({"command": "yes 0123456789 | head -c 1000000"}));
        assert_eq!(result["is_error"], false, "{result}");
    }
    until("the folder is within its limit", || (bytes_below(&spool) <= 2 << 20).then_some(()));
    assert!(bytes_below(&spool) > 0, "{}", spool.display());
    // One text that exceeds the limit for all of them while it is still written.
    let before = files_below(&spool);
    let endless = wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": "yes; true"}}));
    let (path, text) = until("the text is written to a file", || {
        let path = files_below(&spool).difference(&before).next()?.clone();
        Some((path.clone(), File::open(path).ok()?))
    });
    until("it is given up", || (!path.exists()).then_some(()));
    assert!(text.metadata().unwrap().len() > 2 << 20, "it is longer than the limit");
    until("the folder is within its limit", || (bytes_below(&spool) <= 2 << 20).then_some(()));
    wire.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": endless}}));
    wire.answer(endless);
}

fn sessions(wire: &mut Wire) -> u64 {
    wire.result("daemon.status", json!({}))["sessions"].as_u64().unwrap()
}

#[test]
fn idle_sessions_are_unloaded_when_there_are_many() {
    let daemon = Setup::new().file("a.txt", "here").config("[daemon]\nmax_unused_sessions = 50\n").start();
    let mut wire = daemon.connect();
    let held = wire.result("session.open", json!({"cwd": daemon.work()}))["session_id"].clone();
    let environment: Value = (0..10).map(|n| (format!("VARIABLE_{n}"), json!("x".repeat(100)))).collect();
    let mut first = None;
    for _ in 0..700 {
        let opened = daemon.connect().result("session.open", json!({"cwd": daemon.work(), "env": environment}));
        first.get_or_insert(opened["session_id"].clone());
    }
    until("those that nobody used last are closed", || (sessions(&mut wire) <= 51).then_some(()));
    // The connected one stays, and one that was unloaded is found again.
    assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
    let list = wire.result("session.list", json!({}))["sessions"].clone();
    assert!(list.as_array().unwrap().iter().any(|session| session["session_id"] == held), "{list}");
    let again = daemon.connect().result("session.open", json!({"session_id": first}));
    assert_eq!(again["resumed"], true, "{again}");
}
