//! What is kept comes back after a restart.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::json;
use toold_engine::policy::grants::{Grant, GrantScope};
use toold_proto::permission::Action;
use toold_proto::session::Mode;
use toold_store::trust::{Switch, TrustKind, Trusted};
use toold_store::{Retention, SessionStorage, Store, StoreError};
use toold_test_kit::until;

use crate::{grant, session, session_id, settled};

fn database() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/toold.db");
    (dir, path)
}

/// A store that must have nothing to complain of.
#[track_caller]
fn open(path: &Path) -> Store {
    let store = Store::open(path);
    assert_eq!(store.problems(), Vec::<String>::new());
    store
}

fn texts(grants: &[Grant]) -> Vec<String> {
    grants.iter().map(|grant| format!("{grant:?}")).collect()
}

#[test]
fn the_database_is_for_its_owner_alone() {
    let (_dir, path) = database();
    let store = open(&path);
    store.set_plugin_value("p", "k", &json!(1)).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in path.parent().unwrap().read_dir().unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_database_that_others_could_read_is_closed_to_them() {
    let (_dir, path) = database();
    drop(open(&path));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&path));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn trust_and_switches_are_restored() {
    let (_dir, path) = database();
    let store = open(&path);
    let place = Path::new("/p/.toold/plugins/a b.lua");
    let trusted = |digest: &str| Trusted { digest: digest.into(), by: Some("toolctl".into()), at: crate::now() };
    let (old, new) = (trusted("aa"), trusted("bb"));
    store.set_trusted(place, TrustKind::Plugin, &old).unwrap();
    store.set_trusted(place, TrustKind::Plugin, &new).unwrap();
    let switch = |project: Option<&str>, on| Switch { project: project.map(Into::into), plugin: "git".into(), on };
    for switch in [switch(None, false), switch(Some("/p"), false), switch(None, true)] {
        store.set_plugin_switch(&switch).unwrap();
    }
    drop(store);
    let store = open(&path);
    assert_eq!(store.trusted(place, TrustKind::Plugin).unwrap(), Some(new));
    assert_eq!(store.trusted(place, TrustKind::Config).unwrap(), None);
    assert_eq!(store.plugin_switches(), [switch(None, true), switch(Some("/p"), false)]);
}

#[test]
fn sessions_come_back() {
    let (_dir, path) = database();
    let (a, b) = (session("a"), session("b"));
    let store = open(&path);
    store.save_session(&a).unwrap();
    store.save_session(&b).unwrap();
    assert_eq!(store.find_session(&a.id).unwrap(), Some(a.clone()));
    drop(store);
    let store = open(&path);
    assert_eq!(store.find_session(&a.id).unwrap(), Some(a));
    assert_eq!(store.find_session(&session_id("c")).unwrap(), None);
    assert!(store.find_session(&b.id).unwrap().is_some());
    assert!(store.delete_session(&b.id).unwrap());
    assert!(!store.delete_session(&b.id).unwrap());
    assert_eq!(store.find_session(&b.id).unwrap(), None);
}

#[test]
fn yolo_ends_with_the_daemon() {
    let (_dir, path) = database();
    let mut yolo = session("a");
    yolo.mode = Mode::Yolo;
    open(&path).save_session(&yolo).unwrap();
    assert_eq!(open(&path).find_session(&yolo.id).unwrap().unwrap().mode, Mode::Default);
}

#[test]
fn a_mode_that_is_not_known_is_the_strictest() {
    let (_dir, path) = database();
    open(&path).save_session(&session("a")).unwrap();
    Connection::open(&path).unwrap().execute("UPDATE sessions SET mode = '\"reckless\"'", []).unwrap();
    assert_eq!(open(&path).find_session(&session_id("a")).unwrap().unwrap().mode, Mode::Plan);
}

#[test]
fn a_private_daemon_takes_no_session_of_the_shared_one() {
    let (_dir, path) = database();
    let shared = open(&path);
    shared.save_session(&session("a")).unwrap();
    shared.save_grant(&grant("g", GrantScope::Session(session_id("a")))).unwrap();
    shared.save_grant(&grant("h", GrantScope::Always)).unwrap();
    let private = Store::open_with(&path, Retention::default(), SessionStorage::Own);
    assert_eq!(private.find_session(&session_id("a")).unwrap(), None);
    private.save_session(&session("b")).unwrap();
    private.save_grant(&grant("i", GrantScope::Session(session_id("a")))).unwrap();
    assert_eq!(private.load_grants().iter().map(|grant| grant.id.as_str()).collect::<Vec<_>>(), ["h"]);
    assert!(shared.find_session(&session_id("a")).unwrap().is_some());
    assert_eq!(shared.find_session(&session_id("b")).unwrap(), None);
    assert_eq!(shared.load_grants().len(), 2);
}

#[test]
fn grants_come_back_as_they_were() {
    let (_dir, path) = database();
    let store = open(&path);
    store.save_session(&session("a")).unwrap();
    let mut expected = vec![
        grant("g1", GrantScope::Session(session_id("a"))),
        grant("g2", GrantScope::Project(PathBuf::from("/work/a b"))),
        grant("g3", GrantScope::Always),
    ];
    expected[1].action = Action::Deny;
    expected[1].tools = None;
    expected[1].chain = Vec::new();
    expected[2].expires_at = Some(crate::now() + Duration::from_secs(3600));
    for grant in &expected {
        store.save_grant(grant).unwrap();
    }
    expected.sort_by_key(|grant| (grant.granted_at, grant.id.clone()));
    assert_eq!(texts(&store.load_grants()), texts(&expected));
    drop(store);
    assert_eq!(texts(&open(&path).load_grants()), texts(&expected));
}

#[test]
fn a_revoked_grant_stays_away() {
    let (_dir, path) = database();
    let store = open(&path);
    store.save_grant(&grant("g", GrantScope::Always)).unwrap();
    assert!(store.delete_grant("g").unwrap());
    assert!(!store.delete_grant("g").unwrap());
    drop(store);
    assert!(open(&path).load_grants().is_empty());
}

#[test]
fn an_expired_grant_is_dropped() {
    let (_dir, path) = database();
    let store = Store::open_with(&path, settled(), SessionStorage::Kept);
    let mut past = grant("g", GrantScope::Always);
    past.expires_at = Some(SystemTime::now() - Duration::from_secs(1));
    store.save_grant(&past).unwrap();
    assert!(store.load_grants().is_empty());
    let database = Connection::open(&path).unwrap();
    let left = || database.query_row("SELECT count(*) FROM grants", [], |row| row.get::<_, u32>(0)).unwrap();
    until("it goes", || (left() == 0).then_some(()));
}

#[test]
fn a_session_takes_its_grants_with_it() {
    let (_dir, path) = database();
    let store = open(&path);
    store.save_session(&session("a")).unwrap();
    store.save_grant(&grant("g", GrantScope::Session(session_id("a")))).unwrap();
    store.save_grant(&grant("h", GrantScope::Always)).unwrap();
    store.delete_session(&session_id("a")).unwrap();
    assert_eq!(store.load_grants().len(), 1);
}

#[test]
fn unparsable_grant_is_kept_reported_and_allows_nothing() {
    let (_dir, path) = database();
    open(&path).save_grant(&grant("g", GrantScope::Always)).unwrap();
    let edit = |sql: &str| Connection::open(&path).unwrap().execute(sql, []).unwrap();
    edit("UPDATE grants SET category = 'file.read', pattern = '/a/[b'");
    let store = Store::open(&path);
    assert!(store.load_grants().is_empty());
    let problems = store.problems();
    assert!(problems[0].contains("grant g ") && problems[0].contains("/a/[b"), "{problems:?}");
    assert!(store.takes_writes());
    drop(store);
    edit("UPDATE grants SET pattern = '/a/b'");
    assert_eq!(open(&path).load_grants().len(), 1);
}

#[test]
fn a_refusal_that_cannot_be_understood_refuses_more_not_less() {
    let (_dir, path) = database();
    open(&path).save_grant(&grant("g", GrantScope::Project("/p".into()))).unwrap();
    let edit = "UPDATE grants SET action = 'deny', category = 'file.read', pattern = '/a/[b'";
    Connection::open(&path).unwrap().execute(edit, []).unwrap();
    let store = Store::open(&path);
    let grants = store.load_grants();
    assert_eq!(grants[0].pattern.as_str(), "**");
    assert_eq!((grants[0].action, &grants[0].scope), (Action::Deny, &GrantScope::Project("/p".into())));
    assert!(store.problems()[0].contains("toolctl permissions revoke g"), "{:?}", store.problems());
}

#[test]
fn compare_and_set_is_one_step_for_all_daemons() {
    let (_keep, path) = database();
    let count = |store: &Store| {
        for _ in 0..200 {
            loop {
                let old = store.plugin_value("p", "n").unwrap();
                let next = json!(old.as_ref().map_or(0, |n| n.as_u64().unwrap()) + 1);
                let old = old.map(|old| old.to_string());
                if store.compare_and_set_plugin_value("p", "n", old.as_deref(), Some(&next)).unwrap() {
                    break;
                }
            }
        }
    };
    let stores = [open(&path), open(&path)];
    std::thread::scope(|scope| {
        for store in stores.iter().chain(&stores) {
            scope.spawn(|| count(store));
        }
    });
    assert_eq!(stores[0].plugin_value("p", "n").unwrap(), Some(json!(800)));
    assert!(!stores[1].compare_and_set_plugin_value("p", "n", None, None).unwrap());
    assert!(stores[1].compare_and_set_plugin_value("p", "n", Some("800"), None).unwrap());
    assert_eq!(stores[0].plugin_value("p", "n").unwrap(), None);
}

#[test]
fn plugin_values_are_restored() {
    let (_dir, path) = database();
    let store = open(&path);
    store.set_plugin_value("p", "b%", &json!({"x": [1, null]})).unwrap();
    store.set_plugin_value("p", "b_1", &json!(1)).unwrap();
    store.set_plugin_value("p", "B", &json!(2)).unwrap();
    store.set_plugin_value("q", "b%", &json!("other")).unwrap();
    store.set_plugin_value("p", "b_1", &json!(3)).unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(store.plugin_value("p", "b%").unwrap(), Some(json!({"x": [1, null]})));
    assert_eq!(store.plugin_value("p", "b_1").unwrap(), Some(json!(3)));
    assert_eq!(store.plugin_value("q", "b%").unwrap(), Some(json!("other")));
    assert_eq!(store.plugin_value("q", "b_1").unwrap(), None);
    assert_eq!(store.plugin_keys("p", "").unwrap(), ["B", "b%", "b_1"]);
    assert_eq!(store.plugin_keys("p", "b_").unwrap(), ["b_1"]);
    assert!(store.delete_plugin_value("p", "b%").unwrap());
    assert!(!store.delete_plugin_value("p", "b%").unwrap());
    assert_eq!(store.plugin_keys("p", "").unwrap(), ["B", "b_1"]);
}

#[test]
fn a_plugin_cannot_keep_without_end() {
    let (_dir, path) = database();
    let store = open(&path);
    let most = "x".repeat((1 << 20) - 2);
    store.set_plugin_value("p", "k", &json!(most)).unwrap();
    let more = json!(most + "x");
    assert_eq!(store.set_plugin_value("p", "k", &more), Err(StoreError::ValueTooLarge { bytes: (1 << 20) + 1 }));
    assert_eq!(store.set_plugin_value("p", "", &json!(1)), Err(StoreError::KeyLength { bytes: 0 }));
    assert_eq!(store.set_plugin_value("p", &"k".repeat(257), &json!(1)), Err(StoreError::KeyLength { bytes: 257 }));
    drop(store);
    let fill = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
                INSERT INTO plugin_values SELECT 'p', 'n' || i, '0' FROM n";
    Connection::open(&path).unwrap().execute(fill, []).unwrap();
    let store = open(&path);
    assert_eq!(store.plugin_keys("p", "").unwrap().len(), 10_000);
    assert_eq!(store.set_plugin_value("p", "new", &json!(1)), Err(StoreError::TooManyKeys));
    store.set_plugin_value("p", "n2", &json!(1)).unwrap();
    store.set_plugin_value("q", "new", &json!(1)).unwrap();
}

#[test]
fn sessions_that_nobody_uses_go() {
    let (_dir, path) = database();
    let store = open(&path);
    let mut old = session("old");
    old.used_at = SystemTime::now() - Duration::from_secs(1_000);
    store.save_session(&old).unwrap();
    store.save_session(&session("new")).unwrap();
    store.save_grant(&grant("g", GrantScope::Session(session_id("old")))).unwrap();
    drop(store);
    let retention = Retention { max_age: Duration::from_secs(500), settle: Duration::ZERO, ..Retention::default() };
    let store = Store::open_with(&path, retention, SessionStorage::Kept);
    until("the old one goes", || store.find_session(&old.id).unwrap().is_none().then_some(()));
    assert!(store.find_session(&session_id("new")).unwrap().is_some());
    assert!(store.load_grants().is_empty());
}
