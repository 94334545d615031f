//! The tables, as steps from each version to the next.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// Marks a database as ours: "tool" in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x746f_6f6c;

/// What this daemon reads and writes.
pub(crate) const VERSION: i64 = 8;

/// What makes loss of rows of the audit log visible. `audit_chain` has one row: the last row of the log and its hash, and the
/// last one that was removed because of its age. `audit_journals` tells which event of each journal was the last one that was
/// moved into `audit`, and `audit_breaks` what was missing from a journal.
macro_rules! audit_safety {
    () => {
        "
CREATE TABLE audit_chain (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last_id INTEGER NOT NULL,
    last BLOB NOT NULL,
    kept_after INTEGER NOT NULL,
    before BLOB NOT NULL
) STRICT;
CREATE TABLE audit_journals (
    id TEXT PRIMARY KEY,
    moved INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE audit_breaks (
    at INTEGER NOT NULL,
    what TEXT NOT NULL
) STRICT;
"
    };
}

/// The tables of [`VERSION`].
///
/// In `sessions`, `owner` is the client that opened the session, as JSON. In `grants`, `asked` is the ask that the grant
/// answers, as JSON, and `uses` how many calls of the audit log it has decided about. In `audit`, `original_ms` says how long
/// the call took whose result answered this one from the cache, and `chain` is a hash over the row and the one before.
const TABLES: &str = concat!(
    "
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    cwd BLOB NOT NULL,
    roots BLOB NOT NULL,
    client TEXT,
    model TEXT,
    mode TEXT NOT NULL,
    filter TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    owner TEXT
) STRICT;
CREATE INDEX sessions_by_use ON sessions (used_at);
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    category TEXT NOT NULL,
    pattern TEXT NOT NULL,
    action TEXT NOT NULL,
    scope TEXT NOT NULL,
    session_id TEXT,
    project BLOB,
    tools TEXT,
    chain TEXT NOT NULL,
    granted_by TEXT,
    granted_at INTEGER NOT NULL,
    expires_at INTEGER,
    asked TEXT,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER
) STRICT;
CREATE TABLE plugin_values (
    plugin TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (plugin, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    source TEXT NOT NULL,
    client TEXT,
    connection INTEGER NOT NULL,
    decisions TEXT NOT NULL,
    outcome TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    input_bytes INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL,
    original_ms INTEGER,
    chain BLOB
) STRICT;
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_session ON audit (session_id, id);
CREATE TABLE audit_lost (
    at INTEGER NOT NULL,
    rows INTEGER NOT NULL
) STRICT;
CREATE TABLE trust (
    path BLOB NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    trusted_by TEXT,
    trusted_at INTEGER NOT NULL,
    PRIMARY KEY (path, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE plugin_switches (
    project BLOB NOT NULL,
    plugin TEXT NOT NULL,
    is_on INTEGER NOT NULL,
    PRIMARY KEY (project, plugin)
) STRICT, WITHOUT ROWID;
CREATE TABLE workspaces (
    folder BLOB NOT NULL,
    kind TEXT NOT NULL,
    client TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (folder, kind, client)
) STRICT, WITHOUT ROWID;
",
    audit_safety!()
);

/// Steps from a version to the next. A released step is never changed.
const STEPS: &[(i64, &str)] = &[
    (6, "ALTER TABLE grants DROP COLUMN review;"),
    (7, concat!("ALTER TABLE audit ADD COLUMN chain BLOB;", audit_safety!())),
];

/// Whether [`migrate`] brings a database of this version, 0 for an empty one, to [`VERSION`].
pub(crate) fn is_readable(version: i64) -> bool {
    matches!(version, 0 | VERSION) || step_from(version).is_some()
}

/// Brings a database to [`VERSION`]. Each change is atomic, and made once when several daemons start.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = version(&transaction)?;
        let (change, next) = match step_from(version) {
            Some(step) => (step, version + 1),
            None if version == 0 => (TABLES, VERSION),
            None => return Ok(()),
        };
        transaction.execute_batch(change)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", next)?;
        transaction.commit()?;
    }
}

fn step_from(version: i64) -> Option<&'static str> {
    STEPS.iter().find(|(from, _)| *from == version).map(|(_, step)| *step)
}

pub(crate) fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Brings an empty database to version 6.
    pub(crate) fn make_version_6(connection: &Connection) {
        connection.execute_batch(TABLES).unwrap();
        connection.execute_batch("ALTER TABLE audit DROP COLUMN chain").unwrap();
        for table in ["audit_chain", "audit_journals", "audit_breaks"] {
            connection.execute_batch(&format!("DROP TABLE {table}")).unwrap();
        }
        connection.execute_batch("ALTER TABLE grants ADD COLUMN review INTEGER NOT NULL DEFAULT 0").unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 6).unwrap();
    }

    #[test]
    fn a_new_database_comes_to_the_newest_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), VERSION);
        migrate(&mut connection).unwrap();
    }

    #[test]
    fn older_database_keeps_its_content() {
        let mut connection = Connection::open_in_memory().unwrap();
        make_version_6(&connection);
        connection.execute("INSERT INTO plugin_values VALUES ('p', 'k', '1')", []).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), VERSION);
        let value: String = connection.query_row("SELECT value FROM plugin_values", [], |row| row.get(0)).unwrap();
        assert_eq!(value, "1");
    }

    #[test]
    fn a_version_that_no_step_begins_at_is_not_readable() {
        let readable: Vec<i64> = (-1..10).filter(|version| is_readable(*version)).collect();
        assert_eq!(readable, [0, 6, 7, VERSION]);
    }
}
