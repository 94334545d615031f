//! What a person refused stays refused, whatever becomes of the database or of the file beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use toold_engine::policy::grants::{Grant, GrantScope, GrantStore};
use toold_proto::permission::Action;
use toold_store::Store;
use toold_test_kit::until;

use crate::{grant, now, session_id};

fn refusal(id: &str) -> Grant {
    Grant { action: Action::Deny, ..grant(id, GrantScope::Always) }
}

fn ids(store: &Store) -> Vec<String> {
    store.load_grants().into_iter().map(|grant| grant.id).collect()
}

/// A closed store with two refusals and a permission, its database, and the file of refusals.
fn refused() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let store = Store::open(&path);
    for id in ["no-1", "no-2"] {
        store.add(&refusal(id)).unwrap();
    }
    store.add(&grant("yes", GrantScope::Always)).unwrap();
    assert_eq!(store.problems(), Vec::<String>::new());
    drop(store);
    let file = dir.path().join("refusals.jsonl");
    (dir, path, file)
}

fn in_database(path: &Path) -> Vec<String> {
    let database = Connection::open(path).unwrap();
    let mut select = database.prepare("SELECT id FROM grants WHERE action = 'deny' ORDER BY id").unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn refusals_stand_in_a_file_that_people_can_read_and_others_cannot() {
    let (_dir, _path, file) = refused();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("git status *") && text.contains("\"deny\"") && !text.contains("\"yes\""), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_database_that_is_gone_gets_its_refusals_back() {
    let (_dir, path, _file) = refused();
    fs::remove_file(&path).unwrap();
    let store = Store::open(&path);
    assert_eq!(ids(&store), ["no-1", "no-2"]);
    assert_eq!((store.lost_refusals(), store.problems()), (None, Vec::new()));
    drop(store);
    assert_eq!(in_database(&path), ["no-1", "no-2"]);
}

#[test]
fn a_file_that_is_gone_or_damaged_is_written_again_from_the_database() {
    let damages: [fn(&Path); 4] = [
        |file| fs::remove_file(file).unwrap(),
        |file| fs::write(file, "").unwrap(),
        |file| {
            let text = fs::read_to_string(file).unwrap();
            fs::write(file, &text[..text.len() - 20]).unwrap();
        },
        |file| {
            let text = fs::read_to_string(file).unwrap();
            fs::write(file, text.replace("git status", "git stash!")).unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        for running in [false, true] {
            let (_dir, path, file) = refused();
            let before = fs::read_to_string(&file).unwrap();
            let running = running.then(|| Store::open(&path));
            damage(&file);
            let store = running.unwrap_or_else(|| Store::open(&path));
            assert_eq!((store.lost_refusals(), store.problems()), (None, Vec::new()), "{number}");
            assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), before.lines().count(), "{number}");
            fs::remove_file(&path).unwrap();
            drop(store);
            assert_eq!(ids(&Store::open(&path)), ["no-1", "no-2"], "{number}");
        }
    }
}

#[test]
fn a_revoked_refusal_is_gone_from_both() {
    let (_dir, path, file) = refused();
    let store = Store::open(&path);
    store.remove("no-1").unwrap();
    assert!(!fs::read_to_string(&file).unwrap().contains("no-1"));
    drop(store);
    assert_eq!(ids(&Store::open(&path)), ["no-2", "yes"]);
    assert_eq!(in_database(&path), ["no-2"]);
}

/// What a crash between the two writes leaves.
#[test]
fn a_refusal_in_either_place_counts_until_it_is_revoked() {
    let (_dir, path, file) = refused();
    let before = fs::read(&file).unwrap();
    let store = Store::open(&path);
    store.remove("no-1").unwrap();
    drop(store);
    fs::write(&file, before).unwrap();
    assert_eq!(ids(&Store::open(&path)), ["no-1", "no-2", "yes"]);
    assert_eq!(in_database(&path), ["no-1", "no-2"]);
    let store = Store::open(&path);
    store.remove("no-1").unwrap();
    drop(store);
    assert_eq!(ids(&Store::open(&path)), ["no-2", "yes"]);
}

#[test]
fn a_refusal_that_ends_leaves_both() {
    let (_dir, path, file) = refused();
    let store = Store::open_with(&path, crate::settled(), toold_store::SessionStorage::Kept);
    let mut short = refusal("short");
    short.expires_at = Some(now());
    store.add(&short).unwrap();
    store.add(&Grant { expires_at: Some(now() + std::time::Duration::from_millis(5)), ..refusal("soon") }).unwrap();
    until("they end", || (ids(&store) == ["no-1", "no-2", "yes"]).then_some(()));
    until("they leave the database", || (in_database(&path) == ["no-1", "no-2"]).then_some(()));
    until("they leave the file", || (fs::read_to_string(&file).unwrap().lines().count() == 3).then_some(()));
}

#[test]
fn session_refusal_is_removed_with_its_session() {
    let (_dir, path, file) = refused();
    let store = Store::open(&path);
    let id = session_id("s");
    store.save_session(&crate::session("s")).unwrap();
    store.add(&Grant { scope: GrantScope::Session(id.clone()), ..refusal("here") }).unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains("here"));
    store.delete_session(&id).unwrap();
    assert!(!fs::read_to_string(&file).unwrap().contains("here"));
    assert_eq!(in_database(&path), ["no-1", "no-2"]);
}

#[test]
fn a_refusal_is_kept_beside_a_database_that_takes_nothing() {
    let (_dir, path, _file) = refused();
    fs::write(&path, vec![0x5a; 50_000]).unwrap();
    let store = Store::open(&path);
    assert_eq!(ids(&store), ["no-1", "no-2"]);
    store.add(&refusal("no-3")).unwrap();
    // Whatever would allow more is not answered with "ok", since nobody knows what the database says.
    store.remove("no-2").unwrap_err();
    store.add(&grant("yes-2", GrantScope::Always)).unwrap_err();
    drop(store);
    fs::remove_file(&path).unwrap();
    assert_eq!(ids(&Store::open(&path)), ["no-1", "no-2", "no-3"]);
}

#[test]
fn when_neither_place_can_be_read_that_is_reported_until_a_person_has_looked() {
    let (_dir, path, file) = refused();
    fs::write(&path, vec![0x5a; 50_000]).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() - 20]).unwrap();
    let store = Store::open(&path);
    assert_eq!(ids(&store), ["no-1"], "what can be read counts");
    assert!(store.lost_refusals().is_some_and(|why| why.contains("refusals.jsonl")), "{:?}", store.lost_refusals());
    drop(store);
    // A new database does not make up for it.
    fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let store = Store::open(&path);
        assert!(store.lost_refusals().is_some());
        assert!(
            store.problems().iter().any(|problem| problem.contains("add missing refusals again")),
            "{:?}",
            store.problems()
        );
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(Store::open(&path).lost_refusals(), None);
}

#[test]
fn a_database_that_can_be_read_again_makes_up_for_a_missing_file() {
    let (_dir, path, file) = refused();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, vec![0x5a; 50_000]).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(Store::open(&path).lost_refusals().is_some());
    fs::write(&path, whole).unwrap();
    let store = Store::open(&path);
    assert_eq!((store.lost_refusals(), ids(&store).len()), (None, 3));
}

#[test]
fn a_file_that_cannot_be_written_is_reported_and_the_refusal_is_kept_in_the_database() {
    let (_dir, path, file) = refused();
    let store = Store::open(&path);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    store.add(&refusal("no-3")).unwrap();
    let problems = store.problems();
    assert!(problems.iter().any(|problem| problem.contains("refusals.jsonl cannot be written")), "{problems:?}");
    fs::remove_dir(&file).unwrap();
    assert_eq!(store.problems(), Vec::<String>::new());
    drop(store);
    fs::remove_file(&path).unwrap();
    assert_eq!(ids(&Store::open(&path)), ["no-1", "no-2", "no-3"]);
}

#[test]
fn there_are_so_many_grants_and_no_more() {
    let (_dir, path, file) = refused();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 9997)
             INSERT INTO grants (id, category, pattern, action, scope, chain, granted_at) \
             SELECT 'g' || n, 'shell', 'ls', 'allow', 'always', '[]', 0 FROM c;",
        )
        .unwrap();
    let store = Store::open(&path);
    let before = fs::read(&file).unwrap();
    for more in [refusal("more"), grant("more", GrantScope::Always)] {
        let error = store.add(&more).unwrap_err();
        assert!(error.contains("revoke some first"), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    store.remove("g1").unwrap();
    store.add(&refusal("more")).unwrap();
}
