//! A database that cannot be used as it should: left as it is, told, and read where it can be.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use toold_engine::audit::AuditLog;
use toold_engine::policy::grants::{GrantScope, GrantStore};
use toold_proto::audit::AuditQuery;
use toold_proto::permission::Action;
use toold_store::{Store, StoreError};

use crate::{grant, row, session, session_id};

/// A database with a grant, a session, a value and an audit row, closed.
fn filled(dir: &Path) -> PathBuf {
    let path = dir.join("toold.db");
    let store = Store::open(&path);
    store.save_grant(&grant("g", GrantScope::Always)).unwrap();
    store.save_session(&session("s")).unwrap();
    store.set_plugin_value("p", "k", &json!(1)).unwrap();
    store.record(&row(1)).unwrap();
    assert_eq!(store.problems(), Vec::<String>::new());
    drop(store);
    path
}

/// Writes are refused in words that name the file; nothing blocks.
#[track_caller]
fn takes_nothing(store: &Store) {
    let refused = store.save_grant(&grant("new", GrantScope::Always)).unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    assert!(refused.to_string().contains(&store.path().display().to_string()), "{refused}");
    assert!(matches!(store.save_session(&session("new")), Err(StoreError::Refused(_))));
    assert!(matches!(store.set_plugin_value("p", "new", &json!(1)), Err(StoreError::Refused(_))));
    assert!(matches!(store.delete_session(&session_id("s")), Err(StoreError::Refused(_))));
    // The journal may take them.
    (0..20_000).for_each(|n| _ = store.record(&row(n)));
    store.flush();
    // What may be lost of the past is a problem of its own.
    let mut problems = store.problems();
    problems.retain(|problem| !problem.contains("refusals may be lost") && !problem.contains("calls are not recorded"));
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[track_caller]
fn gives_all(store: &Store) {
    assert_eq!(store.load_grants().len(), 1);
    assert!(store.find_session(&session_id("s")).unwrap().is_some());
    assert_eq!(store.plugin_value("p", "k").unwrap(), Some(json!(1)));
    assert_eq!(store.query_audit(&AuditQuery::default(), &|| false).unwrap().entries.len(), 1);
}

#[track_caller]
fn gives_nothing(store: &Store) {
    assert!(store.load_grants().is_empty());
    assert!(matches!(store.find_session(&session_id("s")), Err(StoreError::Unreadable(_))));
    assert!(matches!(store.query_audit(&AuditQuery::default(), &|| false), Err(StoreError::Unreadable(_))));
}

#[test]
fn foreign_file_is_left_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let bytes: Vec<u8> = (0..50_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open(&path);
    takes_nothing(&store);
    gives_nothing(&store);
    assert!(store.problems()[0].contains("move the file away"), "{:?}", store.problems());
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    // The others are the file of refusals, and the calls for a database that takes them.
    assert_eq!(dir.path().read_dir().unwrap().count(), 3);
}

#[test]
fn of_a_damaged_database_only_refusals_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path());
    let store = Store::open(&path);
    for n in 0..500 {
        let mut more = grant(&format!("more-{n:03}"), GrantScope::Always);
        more.action = if n % 2 == 0 { Action::Deny } else { Action::Allow };
        store.save_grant(&more).unwrap();
    }
    drop(store);
    let page = Connection::open(&path)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'grants'", [], |row| row.get::<_, u32>(0))
        .unwrap();
    // The page that points to the others: one of its pointers leads into the void.
    let mut bytes = std::fs::read(&path).unwrap();
    let start = (page as usize - 1) * 4096;
    assert_eq!(bytes[start], 5, "an inner page");
    let last_cell = usize::from(u16::from_be_bytes([bytes[start + 14], bytes[start + 15]]));
    bytes[start + last_cell..start + last_cell + 4].copy_from_slice(&[0x7f; 4]);
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open(&path);
    takes_nothing(&store);
    assert!(store.problems()[0].contains("damaged"), "{:?}", store.problems());
    let read = store.load_grants();
    // Those on pages that cannot be reached any more come from the file of refusals.
    assert_eq!(read.len(), 250);
    assert!(read.iter().all(|grant| grant.action == Action::Deny));
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn folder_in_place_of_the_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    std::fs::create_dir(&path).unwrap();
    let store = Store::open(&path);
    takes_nothing(&store);
    gives_nothing(&store);
}

#[test]
fn file_in_place_of_the_folder_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("state"), "").unwrap();
    let store = Store::open(&dir.path().join("state/toold.db"));
    takes_nothing(&store);
    gives_nothing(&store);
}

#[test]
fn a_newer_database_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let store = Store::open(&path);
    takes_nothing(&store);
    gives_all(&store);
    assert!(store.problems()[0].contains("newer toold"), "{:?}", store.problems());
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn another_programs_database_is_let_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let store = Store::open(&path);
    takes_nothing(&store);
    gives_nothing(&store);
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn locked_database_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let store = Store::open(&path);
    takes_nothing(&store);
    gives_nothing(&store);
    assert!(store.problems()[0].contains("locked by another process"), "{:?}", store.problems());
}

#[test]
fn removed_database_is_reported() {
    for replaced in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = filled(dir.path());
        let store = Store::open(&path);
        store.save_grant(&grant("before", GrantScope::Always)).unwrap();
        std::fs::rename(&path, dir.path().join("away")).unwrap();
        if replaced {
            std::fs::write(&path, "").unwrap();
        }
        takes_nothing(&store);
        assert!(store.problems()[0].contains("is gone"), "{:?}", store.problems());
    }
}

#[test]
fn another_writer_is_waited_for_and_reported_as_busy() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path());
    let store = Store::open(&path);
    store.flush();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.record(&row(2)).unwrap();
    assert_eq!(store.save_grant(&grant("new", GrantScope::Always)), Err(StoreError::Busy));
    assert_eq!(store.load_grants().len(), 1);
    other.execute_batch("ROLLBACK").unwrap();
    store.save_grant(&grant("new", GrantScope::Always)).unwrap();
    assert_eq!(store.load_grants().len(), 2);
    assert_eq!(store.query_audit(&AuditQuery::default(), &|| false).unwrap().entries.len(), 2);
    assert_eq!(store.problems(), Vec::<String>::new());
}

#[test]
fn without_a_database_a_grant_holds_for_its_session_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let store = Store::open(&path);
    store.add(&grant("new", GrantScope::Session(session_id("s")))).unwrap();
    store.remove("new").unwrap();
    let error = store.add(&grant("new", GrantScope::Always)).unwrap_err();
    assert!(error.contains("newer toold"), "{error}");
    // It would be back at the next start.
    store.remove("g").unwrap_err();
}

/// Not a test by itself: what the next one runs as a user who may not write.
#[test]
fn child_that_may_not_write() {
    let Some(path) = std::env::var_os("TOOLD_STORE_READ_ONLY") else { return };
    let store = Store::open(Path::new(&path));
    takes_nothing(&store);
    gives_all(&store);
    assert!(store.problems()[0].contains("cannot be written"), "{:?}", store.problems());
}

/// For root every file can be written, so the store is opened by a process of the user 65534 then.
#[test]
fn a_database_that_may_not_be_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let path = filled(&state);
    let bytes = std::fs::read(&path).unwrap();
    let program = dir.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for (path, mode) in [(dir.path(), 0o755), (&program, 0o755), (&state, 0o555), (&path, 0o444)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut child = Command::new(&program);
    child.args(["--exact", "degraded::child_that_may_not_write"]).env("TOOLD_STORE_READ_ONLY", &path);
    if dir.path().metadata().unwrap().uid() == 0 {
        child.uid(65_534).gid(65_534);
    }
    let output = child.current_dir("/").output().unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_database_that_was_cut_to_nothing_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path());
    let store = Store::open(&path);
    let mut refusal = grant("no", GrantScope::Always);
    refusal.action = Action::Deny;
    store.add(&refusal).unwrap();
    drop(store);
    for file in ["toold.db-wal", "toold.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(file));
    }
    std::fs::write(&path, "").unwrap();
    let store = Store::open(&path);
    assert!(store.problems()[0].contains("had become empty"), "{:?}", store.problems());
    store.save_grant(&grant("new", GrantScope::Always)).unwrap();
    drop(store);
    assert_eq!(Store::open(&path).problems(), Vec::<String>::new());
}

/// Returns once the journal is looked after again.
fn wait_for_a_look() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(5) {
        std::thread::yield_now();
    }
}

#[test]
fn calls_are_not_said_to_be_recorded_where_the_folder_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (state, away) = (dir.path().join("state"), dir.path().join("away"));
    std::fs::create_dir(&state).unwrap();
    let store = Store::open(&state.join("toold.db"));
    store.record(&row(1)).unwrap();
    std::fs::rename(&state, &away).unwrap();
    wait_for_a_look();
    for refused in [store.record(&row(2)), store.begin(&row(3)).map(|_| ()), store.record(&row(4))] {
        let why = refused.unwrap_err();
        assert!(why.contains("calls.journal is gone"), "{why}");
    }
    assert!(
        store.problems().iter().any(|problem| problem.contains("calls are not recorded")),
        "{:?}",
        store.problems()
    );
    std::fs::rename(&away, &state).unwrap();
    wait_for_a_look();
    assert_eq!(store.record(&row(5)), Ok(()));
}

/// As seen by the daemon that starts after this one was killed.
#[test]
fn a_journal_that_was_cut_or_removed_doubles_and_loses_no_rows() {
    for change in ["cut", "removed", "as it was"] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("toold.db"));
        (0..3).for_each(|n| store.record(&row(n)).unwrap());
        store.flush();
        let journal = dir.path().join("calls.journal");
        match change {
            "cut" => File::options().write(true).open(&journal).unwrap().set_len(0).unwrap(),
            "removed" => std::fs::remove_file(&journal).unwrap(),
            _ => {}
        }
        wait_for_a_look();
        (3..6).for_each(|n| store.record(&row(n)).unwrap());
        store.begin(&row(6)).unwrap();
        store.flush();
        let next = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
            std::fs::copy(entry.path(), next.path().join(entry.file_name())).unwrap();
        }
        let store = Store::open(&next.path().join("toold.db"));
        let all = AuditQuery { after: Some(0), ..AuditQuery::default() };
        let entries = toold_test_kit::until("the rows are moved", || {
            let entries = store.query_audit(&all, &|| false).unwrap().entries;
            (entries.len() >= 7).then_some(entries)
        });
        let numbers: Vec<u64> = entries.iter().map(|entry| entry.duration_ms).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6], "{change}");
        let verification = store.verify_audit(&|| false).unwrap();
        assert_eq!(verification.broken, 0, "{change}: {verification:?}");
    }
}
