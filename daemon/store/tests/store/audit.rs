//! The audit log: every row is there once, without secrets, until it is old.

use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use toold_engine::audit::{AuditLog, AuditRow};
use toold_proto::audit::AuditQuery;
use toold_proto::event::Outcome;
use toold_proto::tool::ToolName;
use toold_store::{Retention, SessionStorage, Store, StoreError};
use toold_test_kit::until;

use crate::{row, session, session_id};

fn numbers(store: &Store, query: &AuditQuery) -> Vec<u64> {
    store.query_audit(query, &|| false).unwrap().entries.iter().map(|entry| entry.duration_ms).collect()
}

#[test]
fn rows_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    for n in 0..1_000 {
        store.record(&row(n)).unwrap();
    }
    let list = store.query_audit(&AuditQuery { limit: Some(1_000), ..AuditQuery::default() }, &|| false).unwrap();
    assert_eq!((list.entries.len(), list.more, list.lost), (1_000, false, 0));
    let expected = row(999);
    let last = &list.entries[999];
    assert_eq!(
        (&last.call_id, &last.session_id, &last.tool),
        (&expected.call_id, &expected.session_id, &expected.tool)
    );
    assert_eq!((last.connection, last.outcome, last.input_bytes, last.output_bytes), (7, Outcome::Ok, 10, 20));
    assert_eq!(last.decisions[0].rule, "grant g (git status *)");
    assert_eq!((last.cached, last.original_ms), (false, None));
}

#[test]
fn row_of_a_cached_result_has_the_time_of_the_original_call() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    store.record(&AuditRow { original: Some(Duration::from_millis(1500)), ..row(0) }).unwrap();
    let list = store.query_audit(&AuditQuery::default(), &|| false).unwrap();
    assert_eq!((list.entries[0].cached, list.entries[0].original_ms), (true, Some(1500)));
}

#[test]
fn a_query_narrows_and_pages() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    for n in 0..10 {
        let mut row = row(n);
        row.at = SystemTime::now() - Duration::from_secs(3_600 * (10 - n));
        if n % 2 == 0 {
            row.session_id = session_id("even");
        }
        if n == 3 {
            row.outcome = Outcome::Denied;
            row.tool = ToolName::parse("write").unwrap();
        }
        match n {
            4 => row.source = "agent:codex".to_owned(),
            5 => row.source = "agent:codex/explorer (1)".to_owned(),
            6 => row.client = Some("nvim".to_owned()),
            _ => row.client = None,
        }
        store.record(&row).unwrap();
    }
    let all = AuditQuery::default();
    assert_eq!(numbers(&store, &all), (0..10).collect::<Vec<_>>());
    assert_eq!(numbers(&store, &AuditQuery { limit: Some(2), ..all.clone() }), [8, 9]);
    assert!(store.query_audit(&AuditQuery { limit: Some(2), ..all.clone() }, &|| false).unwrap().more);
    let even = AuditQuery { session_id: Some(session_id("even")), ..all.clone() };
    assert_eq!(numbers(&store, &even), [0, 2, 4, 6, 8]);
    assert_eq!(numbers(&store, &AuditQuery { tool: ToolName::parse("write").ok(), ..all.clone() }), [3]);
    let of = |agent: &str| numbers(&store, &AuditQuery { agent: Some(agent.to_owned()), ..all.clone() });
    assert_eq!((of("codex"), of("nvim"), of("code")), (vec![4, 5], vec![6], vec![]));
    assert_eq!(numbers(&store, &AuditQuery { outcome: Some(Outcome::Denied), ..all.clone() }), [3]);
    assert_eq!(numbers(&store, &AuditQuery { since: Some("150m".into()), ..all.clone() }), [8, 9]);
    let at = humantime::format_rfc3339(SystemTime::now() - Duration::from_secs(5_400)).to_string();
    assert_eq!(numbers(&store, &AuditQuery { since: Some(at), ..all.clone() }), [9]);
    let first = store.query_audit(&all, &|| false).unwrap().entries[0].id;
    assert_eq!(numbers(&store, &AuditQuery { after: Some(first), limit: Some(3), ..all.clone() }), [1, 2, 3]);
    let error = store.query_audit(&AuditQuery { since: Some("yesterday".into()), ..all }, &|| false).unwrap_err();
    assert!(matches!(&error, StoreError::BadQuery(words) if words.contains("15m")), "{error}");
}

#[test]
fn secrets_do_not_reach_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    let mut secret = row(1);
    secret.decisions[0].target = "curl -H 'Authorization: Bearer s3cr3t-s3cr3t' https://u:s3cr3t@h".into();
    secret.decisions[0].rule = "grant g (PASSWORD=s3cr3t x)".into();
    let long = format!("{} --token s3cr3t", "x".repeat(4_090));
    secret.decisions.push(toold_engine::audit::DecisionRecord { target: long, ..secret.decisions[0].clone() });
    store.record(&secret).unwrap();
    let entries = store.query_audit(&AuditQuery::default(), &|| false).unwrap().entries;
    assert_eq!(entries[0].decisions[0].target, "curl -H 'Authorization: [redacted]' https://u:[redacted]@h");
    store.close();
    for entry in dir.path().read_dir().unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"s3cr3t"));
    }
}

#[test]
fn each_row_has_the_client_of_its_own_call() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    let clients = [Some("a"), Some("a"), Some("token=s3cr3t"), None, Some("a"), Some("b")];
    for (number, client) in (0..).zip(clients) {
        let client = client.map(str::to_owned);
        let begun = Some(store.begin(&AuditRow { client: client.clone(), ..row(number) }).unwrap());
        store.record(&AuditRow { begun, client, ..row(number) }).unwrap();
    }
    let entries = store.query_audit(&AuditQuery::default(), &|| false).unwrap().entries;
    let stored: Vec<Option<&str>> = entries.iter().map(|entry| entry.client.as_deref()).collect();
    assert_eq!(stored, [Some("a"), Some("a"), Some("token=[redacted]"), None, Some("a"), Some("b")]);
}

#[test]
fn old_rows_and_too_many_rows_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let store = Store::open(&path);
    for n in 0..30 {
        let mut row = row(n);
        if n < 2 {
            row.at = SystemTime::now() - Duration::from_secs(10_000);
        }
        store.record(&row).unwrap();
    }
    drop(store);
    let retention =
        Retention { max_age: Duration::from_secs(5_000), max_rows: 10, settle: Duration::ZERO, ..Retention::default() };
    let store = Store::open_with(&path, retention, SessionStorage::Kept);
    until("old rows go", || (numbers(&store, &AuditQuery::default()) == (20..30).collect::<Vec<_>>()).then_some(()));
}

#[test]
fn a_full_queue_loses_no_row_that_is_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let store = Store::open(&path);
    store.flush();
    // While another connection writes, the writer waits, and the queue fills.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..20_000 {
        store.record(&row(n)).unwrap();
    }
    other.execute_batch("ROLLBACK").unwrap();
    let all = until("all rows are in the database", || {
        let list = store.query_audit(&AuditQuery { limit: Some(1), ..AuditQuery::default() }, &|| false).unwrap();
        (list.entries.first().map(|entry| entry.duration_ms) == Some(19_999)).then_some(list)
    });
    assert_eq!((all.entries[0].id, all.lost), (20_000, 0));
    assert_eq!(store.problems(), Vec::<String>::new());
    let verified = store.verify_audit(&|| false).unwrap();
    assert_eq!((verified.rows, verified.broken, verified.breaks), (20_000, 0, vec![]));
}

#[test]
fn a_call_counts_as_use_of_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    let mut old = session("s");
    old.used_at = SystemTime::UNIX_EPOCH;
    store.save_session(&old).unwrap();
    let row = row(1);
    store.record(&row).unwrap();
    store.flush();
    assert_eq!(store.find_session(&old.id).unwrap().unwrap().used_at, row.at);
}

#[test]
fn rows_are_written_when_the_store_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let store = Store::open(&path);
    (0..300).for_each(|n| store.record(&row(n)).unwrap());
    store.close();
    store.close();
    store.record(&row(301)).unwrap_err();
    assert_eq!(store.save_session(&session("a")), Err(StoreError::Closed));
    let store = Store::open(&path);
    let last = store.query_audit(&AuditQuery { limit: Some(1), ..AuditQuery::default() }, &|| false).unwrap().entries;
    assert_eq!((last[0].id, last[0].duration_ms), (300, 299));
}

/// Rows of a hundred sessions, made by the database itself.
fn with_rows(count: u64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    drop(Store::open(&path));
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {count})
             INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, duration_ms, \
             input_bytes, output_bytes)
             SELECT unixepoch() * 1000, 'call_' || n, 'session_' || (n % 100), 'read', 'builtin:toold', NULL, 1, '[]', 'ok', \
             n, 1, 1 FROM c;"
        ))
        .unwrap();
    (dir, Store::open(&path))
}

#[test]
fn a_search_lets_reads_and_writes_pass_between_its_pieces() {
    let (_dir, store) = with_rows(30_000);
    let pieces = std::cell::Cell::new(0);
    let beside = || {
        pieces.set(pieces.get() + 1);
        // On this thread: a lock that the search held would not be given again.
        store.save_session(&session("s")).unwrap();
        assert!(store.find_session(&session_id("s")).unwrap().is_some());
        assert!(store.query_audit(&AuditQuery { limit: Some(1), ..AuditQuery::default() }, &|| false).is_ok());
        false
    };
    let query = AuditQuery { tool: ToolName::parse("write").ok(), ..AuditQuery::default() };
    assert!(store.query_audit(&query, &beside).unwrap().entries.is_empty());
    assert!(pieces.get() >= 15, "{} pieces", pieces.get());
}

#[test]
fn a_search_whose_asker_is_gone_ends() {
    let (_dir, store) = with_rows(30_000);
    let asked = std::cell::Cell::new(0);
    let gone = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let query = AuditQuery { tool: ToolName::parse("write").ok(), ..AuditQuery::default() };
    assert_eq!(store.query_audit(&query, &gone), Err(StoreError::Cancelled));
    assert_eq!(asked.get(), 3);
}

#[test]
fn pages_in_either_direction_are_whole() {
    let (_dir, store) = with_rows(9_000);
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let query = AuditQuery { after: Some(after), limit: Some(1_000), ..AuditQuery::default() };
        let list = store.query_audit(&query, &|| false).unwrap();
        after = list.entries.last().unwrap().id;
        seen.extend(list.entries.iter().map(|entry| entry.duration_ms));
        if !list.more {
            break;
        }
    }
    assert_eq!(seen, (1..=9_000).collect::<Vec<_>>());
    let of_one = AuditQuery { session_id: Some(session_id("session_7")), limit: Some(1_000), ..AuditQuery::default() };
    assert_eq!(numbers(&store, &of_one), (0..90).map(|n| n * 100 + 7).collect::<Vec<_>>());
    let last = AuditQuery { limit: Some(2), ..of_one };
    assert_eq!(numbers(&store, &last), [8_807, 8_907]);
}

/// The number of the last event of a run that was killed is not known: its files are all that is left.
fn kill(dir: &std::path::Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in dir.read_dir().unwrap().flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[test]
fn calls_of_a_killed_run_are_recorded_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    store.record(&row(0)).unwrap();
    store.flush();
    let begun = AuditRow { outcome: Outcome::Interrupted, ..row(1) };
    let number = store.begin(&begun).unwrap();
    store.begin(&AuditRow { outcome: Outcome::Interrupted, ..row(2) }).unwrap();
    store.record(&AuditRow { begun: Some(number), ..row(1) }).unwrap();
    store.record(&row(3)).unwrap();
    // As it is at this moment.
    let journal = dir.path().join("calls.journal");
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&journal.metadata().unwrap()) & 0o777, 0o600);
    let killed = kill(dir.path());
    for _ in 0..2 {
        let store = Store::open(&killed.path().join("toold.db"));
        let entries = store.query_audit(&AuditQuery::default(), &|| false).unwrap().entries;
        let found: Vec<_> = entries.iter().map(|entry| (entry.duration_ms, entry.outcome)).collect();
        let expected = [(0, Outcome::Ok), (1, Outcome::Ok), (3, Outcome::Ok), (2, Outcome::Interrupted)];
        assert_eq!(found, expected);
        assert_eq!(store.problems(), Vec::<String>::new());
        let verified = store.verify_audit(&|| false).unwrap();
        assert_eq!((verified.rows, verified.broken), (4, 0), "{verified:?}");
    }
    drop(store);
    assert!(journal.exists(), "one call has not ended");
    drop(Store::open(&dir.path().join("toold.db")));
    assert!(!journal.exists());
}

#[test]
fn a_second_daemon_has_a_journal_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let (first, second) = (Store::open(&path), Store::open(&path));
    for n in 0..10 {
        first.record(&row(2 * n)).unwrap();
        second.record(&row(2 * n + 1)).unwrap();
    }
    first.flush();
    let mut found = numbers(&second, &AuditQuery::default());
    found.sort_unstable();
    assert_eq!(found, (0..20).collect::<Vec<_>>());
    assert_eq!(second.verify_audit(&|| false).unwrap().broken, 0);
    drop((first, second));
    let left: Vec<_> = dir.path().read_dir().unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("journal")), "{left:?}");
}

#[test]
fn what_was_removed_or_changed_is_found() {
    let change = |statement: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("toold.db");
        let store = Store::open(&path);
        (0..10).for_each(|n| store.record(&row(n)).unwrap());
        drop(store);
        Connection::open(&path).unwrap().execute_batch(statement).unwrap();
        let verified = Store::open(&path).verify_audit(&|| false).unwrap();
        (verified.broken, verified.breaks.first().and_then(|found| found.id))
    };
    assert_eq!(change(""), (0, None));
    assert_eq!(change("DELETE FROM audit WHERE id = 4"), (1, Some(5)));
    assert_eq!(change("DELETE FROM audit WHERE id < 3"), (1, Some(3)));
    assert_eq!(change("DELETE FROM audit WHERE id > 8"), (1, Some(10)));
    assert_eq!(change("DELETE FROM audit WHERE id > 8; DELETE FROM audit_chain"), (1, Some(8)));
    assert_eq!(change("DELETE FROM audit"), (1, Some(10)));
    assert_eq!(change("UPDATE audit SET outcome = 'denied' WHERE id = 4"), (1, Some(4)));
    assert_eq!(change("UPDATE audit SET decisions = '[]' WHERE id = 10").1, Some(10));
    assert_eq!(change("UPDATE audit SET chain = NULL WHERE id = 10").0, 2);
}

#[test]
fn rows_that_went_for_their_age_are_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toold.db");
    let store = Store::open(&path);
    (0..30).for_each(|n| store.record(&row(n)).unwrap());
    drop(store);
    let retention = Retention { max_rows: 10, ..Retention::default() };
    let store = Store::open_with(&path, retention, SessionStorage::Kept);
    until("old rows go", || (numbers(&store, &AuditQuery::default()).len() == 10).then_some(()));
    store.record(&row(30)).unwrap();
    let verified = store.verify_audit(&|| false).unwrap();
    assert_eq!((verified.rows, verified.broken, verified.checkpoint), (11, 0, Some(20)), "{verified:?}");
}

#[test]
fn a_line_that_was_removed_from_a_journal_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("toold.db"));
    (0..5).for_each(|n| store.record(&row(n)).unwrap());
    let killed = kill(dir.path());
    let journal = killed.path().join("calls.journal");
    let text = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().enumerate().filter(|(place, _)| *place != 3).map(|(_, line)| line).collect();
    // The rows are not in this database: it is younger than the journal.
    std::fs::remove_file(killed.path().join("toold.db")).unwrap();
    std::fs::write(&journal, lines.join("\n") + "\n{\"torn\": ").unwrap();
    let store = Store::open(&killed.path().join("toold.db"));
    assert_eq!(numbers(&store, &AuditQuery::default()), [0, 1, 3, 4]);
    let verified = store.verify_audit(&|| false).unwrap();
    assert_eq!((verified.rows, verified.broken), (4, 1), "{verified:?}");
    assert!(store.problems()[0].contains("1 of its lines"), "{:?}", store.problems());
}
