//! A database that cannot be written, is locked, damaged or gone: the daemon reports it, and keeps serving with
//! the grants that it has.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

use crate::faults::{is_root, with_mounts};

/// A setup whose database has a grant to read a file outside the working folder, and that file.
fn with_grant() -> (Setup, PathBuf) {
    let setup = Setup::new().file("a.txt", "here");
    let outside = setup.path("outside.txt");
    std::fs::write(&outside, "from outside").unwrap();
    let daemon = setup.start();
    let params = json!({"category": "file.read", "pattern": outside, "scope": "always"});
    daemon.connect().result("permissions.grant", params);
    (daemon.into_setup(), outside)
}

fn database(daemon: &TestDaemon) -> PathBuf {
    daemon.state().join("toold.db")
}

#[track_caller]
fn serves(wire: &mut Wire) {
    let read = wire.tool("read", json!({"path": "a.txt"}));
    assert_eq!(read["is_error"], false, "{read}");
}

#[track_caller]
fn assert_reported(daemon: &TestDaemon, wire: &mut Wire, words: &str) {
    let problems = wire.result("daemon.status", json!({}))["problems"].take();
    assert!(problems.to_string().contains(words), "{words}: {problems}");
    let doctor = daemon.toolctl(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned() + &String::from_utf8_lossy(&doctor.stderr);
    // Its lines may be wrapped.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(&doctor).contains(words), "{words}: {doctor}");
}

fn grant(wire: &mut Wire) -> Value {
    wire.call("permissions.grant", json!({"category": "shell", "pattern": "ls", "scope": "always"}))
}

#[track_caller]
fn keeps_no_grant(wire: &mut Wire, words: &str) {
    let answer = grant(wire);
    assert!(answer["error"]["message"].as_str().is_some_and(|message| message.contains(words)), "{words}: {answer}");
    let session = json!({"category": "shell", "pattern": "pwd", "scope": "session"});
    assert!(wire.call("permissions.grant", session)["result"].is_object());
}

#[test]
fn grants_of_a_newer_database_count_and_none_is_added() {
    let (setup, outside) = with_grant();
    let path = setup.path("state/toold/toold.db");
    rusqlite::Connection::open(path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let daemon = setup.start();
    let mut wire = daemon.connect();
    serves(&mut wire);
    assert_eq!(wire.tool("read", json!({"path": outside}))["is_error"], false);
    keeps_no_grant(&mut wire, "newer toold");
    assert_reported(&daemon, &mut wire, "newer toold");
}

#[test]
fn grants_of_a_database_on_a_read_only_disk_count_and_none_is_added() {
    let (setup, outside) = with_grant();
    let state = setup.path("state").display().to_string();
    let line = format!("mount --bind {state} {state} && mount -o remount,bind,ro {state}");
    let Some(setup) = with_mounts(setup, &line) else { return };
    let daemon = setup.start();
    let mut wire = daemon.connect();
    serves(&mut wire);
    assert_eq!(wire.tool("read", json!({"path": outside}))["is_error"], false);
    keeps_no_grant(&mut wire, "cannot be written");
    assert_reported(&daemon, &mut wire, "cannot be written");
}

#[test]
fn a_database_that_another_process_holds_is_reported() {
    let (setup, outside) = with_grant();
    let other = rusqlite::Connection::open(setup.path("state/toold/toold.db")).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let mut daemon = setup.start();
    let mut wire = daemon.connect();
    serves(&mut wire);
    assert_eq!(wire.tool("read", json!({"path": outside}))["is_error"], true);
    keeps_no_grant(&mut wire, "locked by another process");
    assert_reported(&daemon, &mut wire, "locked by another process");
    // This one holds although it is in the file of refusals alone.
    wire.result(
        "permissions.grant",
        json!({"category": "shell", "pattern": "./no", "scope": "always", "action": "deny"}),
    );
    let calls = wire.call("audit.query", json!({}));
    assert!(calls["error"].is_object(), "{calls}");
    drop(other);
    // The same daemon uses it once it is free, with all that was in it, and all that came meanwhile.
    until("the stored grant counts", || {
        (wire.tool("read", json!({"path": outside}))["is_error"] == false).then_some(())
    });
    assert!(grant(&mut wire)["result"].is_object());
    let verdict = |wire: &mut Wire, target: &str| {
        wire.result("permissions.check", json!({"category": "shell", "target": target}))["verdict"].take()
    };
    assert_eq!(verdict(&mut wire, "./no"), "deny");
    assert_eq!(verdict(&mut wire, "pwd"), "allow", "the session's grant from before");
    let recorded = wire.result("audit.query", json!({"tool": "read"}))["entries"].take();
    assert!(recorded.as_array().unwrap().len() >= 3, "calls from before are recorded: {recorded}");
    assert_eq!(wire.result("daemon.status", json!({})).get("problems"), None);
    drop(wire);
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    assert_eq!((verdict(&mut wire, "./no"), verdict(&mut wire, "ls")), (json!("deny"), json!("allow")));
}

#[test]
fn a_database_that_is_held_for_a_while_is_written_later() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let mut wire = daemon.connect();
    let other = rusqlite::Connection::open(database(&daemon)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    serves(&mut wire);
    let answer = grant(&mut wire);
    assert!(answer["error"]["message"].as_str().unwrap().contains("busy"), "{answer}");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(grant(&mut wire)["result"].is_object());
    assert_eq!(wire.result("audit.query", json!({}))["entries"].as_array().unwrap().len(), 1);
    assert_eq!(wire.result("daemon.status", json!({})).get("problems"), None);
}

#[test]
fn a_database_that_is_damaged_while_it_is_used_is_reported() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let mut wire = daemon.connect();
    serves(&mut wire);
    assert!(grant(&mut wire)["result"].is_object());
    // Moves the rows from the log into the file.
    let mut other = rusqlite::Connection::open(database(&daemon)).unwrap();
    other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let length = std::fs::metadata(database(&daemon)).unwrap().len();
    overwrite(&database(&daemon), 0, &vec![0x5a; length as usize]);
    // Makes the others read the file again.
    _ = other.transaction().and_then(|change| change.execute("DELETE FROM grants", []).map(|_| ()));
    let answer = until("the damage is seen", || {
        serves(&mut wire);
        let answer = grant(&mut wire);
        answer.get("error").is_some().then_some(answer)
    });
    assert!(answer["error"]["message"].as_str().unwrap().contains("damaged"), "{answer}");
    serves(&mut wire);
    assert_reported(&daemon, &mut wire, "is damaged");
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_database_that_is_removed_while_it_is_used_is_reported() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let mut wire = daemon.connect();
    assert!(grant(&mut wire)["result"].is_object());
    // The daemon may write a file there meanwhile.
    until("the folder is removed", || std::fs::remove_dir_all(daemon.setup.path("state")).ok());
    serves(&mut wire);
    // It would be gone at the next start.
    keeps_no_grant(&mut wire, "is gone");
    assert_reported(&daemon, &mut wire, "is gone");
    // Earlier grants hold for as long as the daemon lives.
    let checked = wire.result("permissions.check", json!({"category": "shell", "target": "ls"}));
    assert_eq!(checked["verdict"], "allow");
    let write = wire.tool("write", json!({"path": "new.txt", "content": "x"}));
    assert_eq!(write["is_error"], true, "nobody is there to allow it: {write}");
    // A mode that allows more would be another one after the next start.
    let refused = wire.error("permissions.set_mode", json!({"mode": "accept_edits"}));
    assert_eq!(refused["data"]["kind"], "not_kept", "{refused}");
}

#[test]
fn a_full_disk_is_reported_and_leaves_files_whole() {
    let setup = Setup::new();
    let (state, work) = (setup.path("state").display().to_string(), setup.path("work/disk").display().to_string());
    std::fs::create_dir(&work).unwrap();
    let line = format!("mount -t tmpfs -o size=1m tmpfs {state} && mount -t tmpfs -o size=1m tmpfs {work}");
    let Some(setup) = with_mounts(setup, &line) else { return };
    let daemon = setup.start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let write =
        |wire: &mut Wire, size: usize| wire.tool("write", json!({"path": "disk/a.txt", "content": "x".repeat(size)}));
    assert_eq!(write(&mut wire, 400_000)["is_error"], false);
    let full = write(&mut wire, 900_000);
    assert_eq!(full["is_error"], true, "{full}");
    assert!(full.to_string().contains("No space left"), "{full}");
    let seen = |path: &str| PathBuf::from(format!("/proc/{}/root{path}", daemon.pid()));
    if is_root() {
        assert_eq!(std::fs::read(seen(&work).join("a.txt")).unwrap(), "x".repeat(400_000).as_bytes());
        assert_eq!(std::fs::read_dir(seen(&work)).unwrap().count(), 1);
        let filler = seen(&state).join("filler");
        // As much as fits.
        std::fs::write(&filler, vec![0; 2 << 20]).unwrap_err();
        assert_eq!(wire.tool("read", json!({"path": "disk/a.txt"}))["is_error"], false);
        // The database's log may have been enlarged by a change that failed, and has room for a small one.
        until("the database is full too", || grant(&mut wire).get("error").is_some().then_some(()));
        keeps_no_grant(&mut wire, "full");
        let refused = grant(&mut wire);
        assert_eq!(refused["error"]["data"]["kind"], "not_kept", "{refused}");
        let made = wire.call("shells.list", json!({}));
        assert!(made["result"].is_object(), "{made}");
        until("the lost rows are reported", || {
            wire.tool("read", json!({"path": "disk/a.txt", "limit": 1}));
            let problems = wire.result("daemon.status", json!({}))["problems"].take();
            problems.to_string().contains("audit log").then_some(())
        });
        assert_reported(&daemon, &mut wire, "audit log");
        // A change is made even if it cannot be recorded, for undo or in the audit log, and says so.
        let written = write(&mut wire, 300_000);
        assert_eq!(written["is_error"], false);
        assert!(written["content"].to_string().contains("cannot be undone"), "{written}");
        assert!(written["content"].to_string().contains("not recorded in the audit log"), "{written}");
        std::fs::remove_file(filler).unwrap();
        // It recovers by itself, and so does the audit log, with the rows that it could not write meanwhile.
        assert!(grant(&mut wire)["result"].is_object());
        until("the rows are written", || {
            let status = wire.result("daemon.status", json!({}));
            status.get("problems").is_none().then_some(())
        });
        let written = wire.result("audit.query", json!({"tool": "read", "limit": 1_000}));
        assert!(written["entries"].as_array().unwrap().len() >= 2, "{written}");
        assert_eq!(written["lost"], 0);
    } else {
        toold_tests::skip("only root can look into the daemon's mounts: less was tested");
    }
}
