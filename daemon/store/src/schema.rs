//! The tables, as steps from each version to the next.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// Marks a database as ours: "tool" in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x746f_6f6c;

/// Step `n` takes a database from `user_version` n to n + 1. A released step is never changed.
const STEPS: &[&str] = &[SESSIONS_GRANTS_PLUGINS, AUDIT, TRUST, OWNERS_WORKSPACES, GRANT_USES, AUDIT_CACHED];

/// What this daemon reads and writes.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

const SESSIONS_GRANTS_PLUGINS: &str = "
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    cwd BLOB NOT NULL,
    roots BLOB NOT NULL,
    client TEXT,
    model TEXT,
    mode TEXT NOT NULL,
    filter TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
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
    expires_at INTEGER
) STRICT;
CREATE TABLE plugin_values (
    plugin TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (plugin, key)
) STRICT, WITHOUT ROWID;
";

const AUDIT: &str = "
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
    output_bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_session ON audit (session_id, id);
CREATE TABLE audit_lost (
    at INTEGER NOT NULL,
    rows INTEGER NOT NULL
) STRICT;
";

const TRUST: &str = "
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
";

/// `owner`: the client that opened a session, as JSON; NULL for sessions of version 0.1, which did
/// not record it.
/// `review`: 1 for a grant with a wildcard of version 0.1, until a person has seen it once more.
const OWNERS_WORKSPACES: &str = "
ALTER TABLE sessions ADD COLUMN owner TEXT;
ALTER TABLE grants ADD COLUMN review INTEGER NOT NULL DEFAULT 0;
UPDATE grants SET review = 1 WHERE action = 'allow' AND pattern GLOB '*[*?[{]*';
CREATE TABLE workspaces (
    folder BLOB NOT NULL,
    kind TEXT NOT NULL,
    client TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (folder, kind, client)
) STRICT, WITHOUT ROWID;
";

/// `asked`: the ask that a grant answers, as JSON. `uses`: how many calls of the audit log it has decided about.
const GRANT_USES: &str = "
ALTER TABLE grants ADD COLUMN asked TEXT;
ALTER TABLE grants ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE grants ADD COLUMN used_at INTEGER;
";

/// `original_ms`: of a call that was answered from the cache, how long the call took that produced the result.
const AUDIT_CACHED: &str = "
ALTER TABLE audit ADD COLUMN original_ms INTEGER;
";

/// Brings a database to [`VERSION`]. Each step is atomic, and runs once when several daemons start.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = version(&transaction)?;
        let step = usize::try_from(version).ok().and_then(|version| STEPS.get(version));
        let Some(step) = step else { return Ok(()) };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
}

pub(crate) fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A database as the first release created it.
    pub(crate) fn first_version(connection: &Connection) {
        connection.execute_batch(STEPS[0]).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
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
        first_version(&connection);
        connection.execute("INSERT INTO plugin_values VALUES ('p', 'k', '1')", []).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), VERSION);
        let value: String = connection.query_row("SELECT value FROM plugin_values", [], |row| row.get(0)).unwrap();
        assert_eq!(value, "1");
        connection.execute("INSERT INTO audit_lost VALUES (1, 2)", []).unwrap();
    }
}
