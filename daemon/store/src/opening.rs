//! Finds, creates and checks the database. If it cannot be written it is opened for reading; if it cannot be read it is
//! left alone.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::health::damaged;
use crate::{StoreError, beside, schema};

/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same while the database is opened: nobody is served meanwhile, and it is tried again.
const OPENING_PATIENCE: Duration = Duration::from_millis(500);

/// Bytes that the write-ahead log keeps once all of it is in the database.
const MAX_LOG: i64 = 16 << 20;

/// The result of opening a database.
#[derive(Default)]
pub(crate) struct OpenedDatabase {
    pub(crate) reader: Option<Connection>,
    /// For large reads, in addition to [`reader`](Self::reader); `None` when that one has to serve
    /// for them.
    pub(crate) scanner: Option<Connection>,
    pub(crate) writer: Option<Connection>,
    /// Why there is no writer, or neither.
    pub(crate) problem: Option<String>,
    /// That may end by itself: it is worth trying again.
    pub(crate) may_pass: bool,
    /// Reads may miss rows that were written.
    pub(crate) damaged: bool,
    /// Nothing was ever written to it.
    pub(crate) is_new: bool,
    /// What was lost before it was opened.
    pub(crate) loss: Option<String>,
}

/// Why a database is not opened for writing.
enum Hurdle {
    /// It cannot be written, but perhaps read.
    ReadOnly(String),
    /// The same, for as long as the disk takes nothing.
    NoRoom(String),
    /// Another process holds it.
    Locked(String),
    /// A part of it is damaged.
    Damaged(String),
    /// It is not a database of ours.
    Closed(String),
}

pub(crate) fn open(path: &Path) -> OpenedDatabase {
    let loss = loss(path);
    match make(path) {
        Ok(()) => OpenedDatabase { loss, ..open_existing(path) },
        Err(error) => {
            OpenedDatabase { problem: Some(unreachable(path, &error.to_string())), ..OpenedDatabase::default() }
        }
    }
}

/// A database without content beside files that are only written after it: it was cut.
fn loss(path: &Path) -> Option<String> {
    let is_empty = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0);
    let others = ["refusals.jsonl", crate::journal::NAME];
    let was_written = others.iter().any(|name| path.with_file_name(name).exists());
    (is_empty && was_written).then(|| {
        format!(
            "{} had become empty: its grants, sessions and audit log are lost, unless you have a copy. A new one was \
             begun; refusals count as far as refusals.jsonl lists them.",
            path.display()
        )
    })
}

fn open_existing(path: &Path) -> OpenedDatabase {
    let served = |connection: &Connection| connection.busy_timeout(PATIENCE);
    match open_writer(path) {
        Ok((writer, is_new)) => match (open_reader(path), open_reader(path), served(&writer)) {
            (Ok(reader), Ok(scanner), Ok(())) => OpenedDatabase {
                reader: Some(reader),
                scanner: Some(scanner),
                writer: Some(writer),
                is_new,
                ..OpenedDatabase::default()
            },
            (Err(error), _, _) | (_, Err(error), _) => OpenedDatabase {
                problem: Some(unreachable(path, &error.to_string())),
                may_pass: matches!(error, StoreError::Busy),
                ..OpenedDatabase::default()
            },
            (_, _, Err(error)) => {
                OpenedDatabase { problem: Some(unreachable(path, &error.to_string())), ..OpenedDatabase::default() }
            }
        },
        Err(Hurdle::ReadOnly(problem)) => to_read(path, problem, read_plainly(path).or_else(|| read_unchanging(path))),
        Err(Hurdle::NoRoom(problem)) => {
            let reader = read_plainly(path).or_else(|| read_unchanging(path));
            OpenedDatabase { may_pass: true, ..to_read(path, problem, reader) }
        }
        Err(Hurdle::Locked(problem)) => OpenedDatabase { may_pass: true, ..to_read(path, problem, read_plainly(path)) },
        Err(Hurdle::Damaged(reason)) => {
            let problem = Some(damaged(path, &reason));
            OpenedDatabase { reader: read_plainly(path), damaged: true, problem, ..OpenedDatabase::default() }
        }
        Err(Hurdle::Closed(problem)) => OpenedDatabase { problem: Some(problem), ..OpenedDatabase::default() },
    }
}

fn to_read(path: &Path, problem: String, reader: Option<Connection>) -> OpenedDatabase {
    let is_new = path.metadata().is_ok_and(|metadata| metadata.len() == 0);
    let rest = match reader {
        _ if is_new => "Nothing is stored until then.",
        Some(_) => "Its grants apply; nothing new is stored.",
        None => "It cannot be read either; nothing new is stored.",
    };
    OpenedDatabase { reader, problem: Some(format!("{problem} {rest}")), is_new, ..OpenedDatabase::default() }
}

/// Creates the folder and an empty file, both accessible to their owner only, where they are
/// missing.
fn make(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // A folder that cannot be written may still contain a database.
        Err(error) => return if path.exists() { Ok(()) } else { Err(error) },
    }
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        // Fails for another user's file, which will not be opened for writing either.
        let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
    }
    Ok(())
}

/// True for a database that was empty.
fn open_writer(path: &Path) -> Result<(Connection, bool), Hurdle> {
    let hurdle = |error: StoreError| self::hurdle(path, &error);
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(hurdle)?;
    let version = schema::version(&connection).map_err(hurdle)?;
    judge_owner(path, &connection, version)?;
    if !schema::is_readable(version) {
        let is_newer = version > schema::VERSION;
        let problem = format!(
            "{} was written by {} toold (its version is {version}, this one knows {}): run that one, or move the file away.",
            path.display(),
            if is_newer { "a newer" } else { "an older" },
            schema::VERSION
        );
        return Err(if is_newer { Hurdle::ReadOnly(problem) } else { Hurdle::Closed(problem) });
    }
    if connection.is_readonly("main").unwrap_or(true) {
        return Err(not_writable(path, "it may not be written"));
    }
    prepare(&mut connection).map_err(hurdle)?;
    check(&connection).map_err(hurdle)?;
    Ok((connection, version == 0))
}

/// A file that another program created must not get our tables.
fn judge_owner(path: &Path, connection: &Connection, version: i64) -> Result<(), Hurdle> {
    let look = || -> Result<(i32, bool), StoreError> {
        let id = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let empty = connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((id, empty))
    };
    let (id, empty) = look().map_err(|error| hurdle(path, &error))?;
    if id == schema::APPLICATION_ID || (id == 0 && version == 0 && empty) {
        return Ok(());
    }
    Err(Hurdle::Closed(format!(
        "{} is another program's database. It is left as it is, and nothing is stored. Move it away, and restart the \
         daemon.",
        path.display()
    )))
}

fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    if schema::version(connection)? == 0 {
        // Only a database without tables accepts it; one of an earlier version reuses its free
        // pages instead.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.pragma_update(None, "journal_mode", "wal")?;
    }
    // Committed data survives the end of the process; a power cut may lose the last moments. Grants
    // are written more carefully.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG)?;
    schema::migrate(connection)
}

/// Checks the parts that must be correct. The audit log may be large and is skipped.
fn check(connection: &Connection) -> Result<(), StoreError> {
    for table in ["grants", "sessions"] {
        let found: String = connection.query_row(&format!("PRAGMA quick_check({table})"), [], |row| row.get(0))?;
        if found != "ok" {
            return Err(StoreError::Damaged(found));
        }
    }
    Ok(())
}

fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

fn read_plainly(path: &Path) -> Option<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok().filter(|connection| read_grants(connection).is_ok())
}

/// For a folder in which SQLite cannot create its shared memory: it reads the file alone. The
/// latest writes may still be in the write-ahead log, such as the revocation of a grant: then
/// nothing is read.
fn read_unchanging(path: &Path) -> Option<Connection> {
    if beside(path, "-wal").metadata().is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let path = path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags).ok()?;
    protect(&connection).ok()?;
    Some(connection).filter(|connection| read_grants(connection).is_ok())
}

/// Reads the file with a connection that knows nothing of it, since those that are open go on with the pages that they have.
///
/// # Errors
/// `Damaged` if the file was cut or overwritten; others, such as that it is locked, say nothing about that.
pub(crate) fn look_again(path: &Path) -> Result<(), StoreError> {
    // Never opened by other means: closing it would end the locks that SQLite holds.
    if path.metadata().is_ok_and(|facts| facts.len() == 0) {
        return Err(StoreError::Damaged("it was cut to nothing".to_owned()));
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    Ok(read_grants(&connection)?)
}

fn read_grants(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM grants", [], |_| Ok(()))
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(OPENING_PATIENCE)?;
    protect(&connection)?;
    Ok(connection)
}

/// The content of a damaged or forged file is data, never code.
fn protect(connection: &Connection) -> Result<(), StoreError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(())
}

fn hurdle(path: &Path, error: &StoreError) -> Hurdle {
    match error {
        StoreError::Damaged(reason) => Hurdle::Damaged(reason.clone()),
        StoreError::Busy => Hurdle::Locked(format!(
            "{} has been locked by another process since the daemon started. It is used once it is free.",
            path.display()
        )),
        StoreError::NotWritten(reason) | StoreError::DiskFailed(reason) => Hurdle::NoRoom(format!(
            "{} cannot be written ({reason}): free space on the file system of {}. It is used once there is room.",
            path.display(),
            path.parent().unwrap_or(path).display()
        )),
        other => not_writable(path, &other.to_string()),
    }
}

fn not_writable(path: &Path, reason: &str) -> Hurdle {
    Hurdle::ReadOnly(format!(
        "{} cannot be written ({reason}): make it and its folder writable for its owner, and restart the daemon.",
        path.display()
    ))
}

fn unreachable(path: &Path, reason: &str) -> String {
    format!(
        "{} cannot be opened ({reason}). Nothing is stored: grants, sessions and the audit log of this run end with \
         the daemon. Make its path available, and restart the daemon.",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_an_earlier_version_is_brought_up_to_date() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("toold.db");
        let old = Connection::open(&path).unwrap();
        schema::tests::make_version_6(&old);
        let grant = "INSERT INTO grants (id, category, pattern, action, scope, chain, granted_at, review) \
                     VALUES ('g', 'shell', 'git *', 'allow', 'always', '[]', 0, 1)";
        old.execute(grant, []).unwrap();
        drop(old);
        let store = crate::Store::open(&path);
        assert_eq!(store.problems(), Vec::<String>::new());
        assert_eq!(store.load_grants().len(), 1);
        assert!(store.query_audit(&Default::default(), &|| false).unwrap().entries.is_empty());
    }

    #[test]
    fn a_database_of_an_unknown_earlier_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("toold.db");
        let old = Connection::open(&path).unwrap();
        schema::tests::make_version_6(&old);
        old.pragma_update(None, "user_version", 5).unwrap();
        drop(old);
        let problems = crate::Store::open(&path).problems();
        assert!(problems[0].contains("was written by an older toold (its version is 5"), "{problems:?}");
        assert_eq!(schema::version(&Connection::open(&path).unwrap()).unwrap(), 5);
    }
}
