//! Data that outlives the daemon: sessions, grants, the audit log and the values of plugins, in one SQLite database.
//!
//! [`Store`] is everything that the daemon sees; each kind of content has its file. How a database
//! is found, created, checked and perhaps opened read-only is in `opening`; the one thread that
//! writes is in `writer`, and removal of old rows between other work in `cleaning`. Refusals are
//! stored in a second place: `refusals`. Functions that return a `Result` block: call them on a
//! thread that may block.

mod columns;
mod opening;
mod schema;
mod transaction;
mod turns;
mod writer;

pub mod audit;
mod audit_chain;
mod audit_rows;
mod audit_verification;
mod cleaning;
pub mod clock_trust;
pub mod grants;
mod health;
mod journal;
mod plugin_values;
mod refusals;
pub mod sessions;
mod stored_grant;
pub mod trust;
pub mod workspaces;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use rusqlite::{Connection, Transaction};

use crate::clock_trust::{AgeAllowance, ClockTrust};
use crate::health::StoreHealth;
use crate::journal::CallJournal;
use crate::opening::{OpenedDatabase, look_again};
use crate::refusals::Refusals;
use crate::transaction::in_transaction;
use crate::trust::Switch;
use crate::turns::Turns;
use crate::writer::{StoreWriter, WriterMessage};

/// How long the audit log and the sessions are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Rows of the audit log, and unused sessions, are removed at this age.
    pub max_age: Duration,
    /// The oldest rows of the audit log are removed when there are more.
    pub max_rows: u64,
    /// The sessions that were unused the longest are removed when there are more.
    pub max_sessions: u64,
    /// Nothing is removed because of its age before the store has been open for this long: a clock may be wrong for
    /// moments, after a start most of all.
    pub settle: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(90 * 24 * 3600),
            max_rows: 200_000,
            max_sessions: 10_000,
            settle: Duration::from_secs(600),
        }
    }
}

/// The owner of the sessions in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStorage {
    /// Sessions, and grants for a session, are stored for the next start.
    Kept,
    /// They end with this process, such as those of a daemon that serves its parent alone: it shares a
    /// database, and must not take another daemon's session for its own.
    Own,
}

/// An open database, or the readable part of one. Shared freely; closed once.
pub struct Store {
    health: Arc<StoreHealth>,
    sessions: SessionStorage,
    /// The refusals, in a file separate from the database.
    refusals: Arc<Refusals>,
    /// Nothing was ever written to the database before, and it has not been compared with the
    /// refusals yet.
    is_new: AtomicBool,
    /// For queries that calls wait for; nothing that reads more than a few rows uses it. `None`
    /// when nothing can be read.
    reader: Mutex<Option<Connection>>,
    /// For large reads, a piece at a time; `None` where `reader` serves for them too.
    scanner: Mutex<Option<Connection>>,
    scans: Turns,
    /// Empty as long as nothing can be written.
    sender: OnceLock<SyncSender<WriterMessage>>,
    retention: Retention,
    /// Why the database is not written, as long as that may end by itself.
    passing: Mutex<Option<String>>,
    journal: Arc<CallJournal>,
    /// Grants of this run that the database did not take: nothing of them could come back.
    not_in_database: Mutex<HashSet<String>>,
    /// The switches of plugins as they were read last.
    known_switches: Mutex<Option<Vec<Switch>>>,
    /// Plugins that were switched while that could not be stored.
    held_switches: Mutex<Vec<Switch>>,
    clock: Arc<ClockTrust>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// Why something is not stored or not read, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store takes no writes for as long as it is open.
    #[error("not stored: {0}")]
    Refused(String),
    /// Nothing can be read for as long as the store is open.
    #[error("{0}")]
    Unreadable(String),
    /// Another process has been writing for longer than the time limit.
    #[error("another process keeps the database busy: try again")]
    Busy,
    #[error("the database is damaged: {0}")]
    Damaged(String),
    #[error("the database failed: {0}")]
    Failed(String),
    /// The disk is full or rejects writes. Later writes may succeed.
    #[error("not stored: {0}. Free space on the disk of toold's state folder; storing then continues by itself")]
    NotWritten(String),
    /// The disk failed, or refuses this file alone. Later writes may succeed.
    #[error(
        "not stored: {0}. Look at the disk of toold's state folder (`dmesg`), and at limits of quota and file size"
    )]
    DiskFailed(String),
    /// The requester is gone.
    #[error("cancelled")]
    Cancelled,
    #[error("there are {} grants already: revoke some first (toolctl permissions list)", stored_grant::MAX_GRANTS)]
    TooManyGrants,
    #[error("{} plugins are already switched on or off, which is the maximum", trust::MAX_SWITCHES)]
    TooManySwitches,
    #[error("a plugin can store {} MiB at most: delete some of its keys", plugin_values::MAX_PLUGIN >> 20)]
    PluginTooLarge,
    #[error("the daemon is stopping")]
    Closed,
    #[error("a value of {bytes} bytes is too large to keep: {} bytes at most", plugin_values::MAX_VALUE)]
    ValueTooLarge { bytes: usize },
    #[error("a plugin can store {} keys at most: delete some", plugin_values::MAX_KEYS)]
    TooManyKeys,
    #[error("a key has 1 to {} bytes, not {bytes}", plugin_values::MAX_KEY)]
    KeyLength { bytes: usize },
    /// A query that cannot be understood.
    #[error("{0}")]
    BadQuery(String),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{
            DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase, SystemIoFailure,
        };
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => Self::Busy,
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged(error.to_string()),
            Some(DiskFull) => Self::NotWritten(error.to_string()),
            Some(SystemIoFailure) => Self::DiskFailed(error.to_string()),
            // SQLite's codes are not ours, and its new versions add more.
            Some(_) | None => Self::Failed(error.to_string()),
        }
    }
}

impl Store {
    /// Opens the database at `path`, an absolute path, and creates it when it does not exist: the
    /// folder and the file are accessible to their owner only. Keeps sessions.
    ///
    /// Never fails: parts that cannot be read, written or parsed are left unchanged, and
    /// [`problems`](Self::problems) reports them. May wait a second for another process; a database that is still locked
    /// then is left to [`open_again`](Self::open_again).
    pub fn open(path: &Path) -> Self {
        Self::open_with(path, Retention::default(), SessionStorage::Kept)
    }

    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, retention: Retention, sessions: SessionStorage) -> Self {
        Self::over(path, opening::open(path), retention, sessions)
    }

    fn over(path: &Path, opened: OpenedDatabase, retention: Retention, sessions: SessionStorage) -> Self {
        let OpenedDatabase { reader, scanner, writer, problem, may_pass, damaged, is_new, loss } = opened;
        let health = Arc::new(StoreHealth::new(path.to_owned(), writer.is_some()));
        if damaged {
            health.set_damaged();
        }
        if let Some(loss) = loss {
            tracing::error!(loss, "the database");
            health.report_problem(loss);
        }
        let passing = problem.clone().filter(|_| may_pass);
        if let Some(problem) = problem {
            tracing::error!(%problem, "the database");
            health.refuse(problem);
        }
        let newest = reader.as_ref().and_then(newest_row);
        let clock = Arc::new(ClockTrust::new(newest, retention.settle));
        let journal = Arc::new(CallJournal::open(path));
        health.set_unjournaled(journal.problem());
        let store = Self {
            health,
            sessions,
            refusals: Arc::new(Refusals::beside(path)),
            is_new: AtomicBool::new(is_new),
            reader: Mutex::new(reader),
            scanner: Mutex::new(scanner),
            scans: Turns::default(),
            sender: OnceLock::new(),
            retention,
            passing: Mutex::new(passing),
            journal,
            not_in_database: Mutex::default(),
            known_switches: Mutex::default(),
            held_switches: Mutex::default(),
            clock,
            writer: Mutex::default(),
        };
        if let Some(writer) = writer {
            store.start_writer(writer);
        }
        // Before anything is refused or revoked: the two places still hold the state of the
        // previous run.
        store.load_grants();
        store
    }

    /// Opens the database again, if what kept it from being written may have ended. True once it is used: what was read of
    /// the store before has to be read again. Blocks for a second at most.
    pub fn open_again(&self) -> bool {
        let mut passing = self.passing.lock();
        let Some(before) = passing.clone() else { return false };
        let OpenedDatabase { reader, scanner, writer, problem, may_pass, damaged, is_new, loss: _ } =
            opening::open(self.path());
        if damaged {
            self.health.set_damaged();
        }
        let Some(writer) = writer else {
            let problem = problem.unwrap_or_else(|| before.clone());
            if problem != before {
                tracing::error!(%problem, "the database");
                self.health.refuse_otherwise(&before, problem.clone());
                *self.reader.lock() = reader;
            }
            *passing = Some(problem).filter(|_| may_pass);
            return false;
        };
        self.clock.set_newest(reader.as_ref().and_then(newest_row));
        self.is_new.store(is_new, Ordering::Relaxed);
        *self.reader.lock() = reader;
        *self.scanner.lock() = scanner;
        // Refusals in the file are written into it.
        self.not_in_database.lock().clear();
        self.health.accept(&before);
        self.start_writer(writer);
        *passing = None;
        tracing::info!(path = %self.path().display(), "the database is used from now on");
        true
    }

    /// Whether [`open_again`](Self::open_again) may succeed later.
    pub fn may_open_later(&self) -> bool {
        self.passing.lock().is_some()
    }

    fn start_writer(&self, connection: Connection) {
        self.journal.attach_writer();
        let clock = (self.retention, self.clock.clone());
        let (health, refusals, journal) = (self.health.clone(), self.refusals.clone(), self.journal.clone());
        match StoreWriter::start(connection, health, refusals, clock, journal) {
            Ok((sender, thread)) => {
                *self.writer.lock() = Some(thread);
                // It is started once.
                let _ = self.sender.set(sender);
            }
            Err(error) => {
                let why = format!("can't start the thread that writes the database: {error}. Nothing is stored.");
                self.health.refuse(why);
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.health.path()
    }

    /// Problems as sentences for the user: what, where, and how to fix it. Empty when there are
    /// none.
    pub fn problems(&self) -> Vec<String> {
        self.health.look();
        self.health.look_inside(look_again);
        self.look_at_refusals();
        let mut problems = self.health.problems();
        problems.extend(self.refusals.problems());
        problems
    }

    /// Rows of the audit log that this daemon could not write since it started.
    pub fn lost_rows(&self) -> u64 {
        self.health.lost_in_all()
    }

    /// Whether the database is damaged, so that reads may miss rows that were written.
    pub fn is_damaged(&self) -> bool {
        self.health.is_damaged()
    }

    /// What may be removed now because of its age, here and in the daemon's folders.
    pub fn may_remove_old(&self) -> AgeAllowance {
        self.clock.allowance()
    }

    /// Whether anything can be stored.
    pub fn takes_writes(&self) -> bool {
        self.health.refusal().is_none()
    }

    /// Waits until all earlier rows are in the database, or have failed.
    pub fn flush(&self) {
        let Some(sender) = self.sender.get() else { return };
        let (done, wait) = mpsc::sync_channel(1);
        if sender.send(WriterMessage::Flush(done)).is_ok() {
            // Fails when the writer ends, which flushes.
            let _ = wait.recv();
        }
    }

    /// Writes the remaining rows and closes the database. Later writes are rejected; a second call
    /// does nothing.
    pub fn close(&self) {
        self.passing.lock().take();
        let writer = self.writer.lock().take();
        if let (Some(sender), Some(writer)) = (self.sender.get(), writer) {
            // Fails when the writer has ended already.
            let _ = sender.send(WriterMessage::Close);
            if writer.join().is_err() {
                tracing::error!("the thread that writes the database panicked");
            }
        }
        // The writer did, if there is one.
        self.journal.close(false);
        self.reader.lock().take();
        self.scanner.lock().take();
    }

    fn keeps_sessions(&self) -> bool {
        match self.sessions {
            SessionStorage::Kept => true,
            SessionStorage::Own => false,
        }
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let reader = self.reader.lock();
        let Some(connection) = reader.as_ref() else {
            return Err(StoreError::Unreadable(
                self.health.refusal().unwrap_or_else(|| StoreError::Closed.to_string()),
            ));
        };
        work(connection).inspect_err(|error| self.health.heed(error))
    }

    /// As [`read`](Self::read), for one piece of a large read: no call waits for it.
    fn scan<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let _turn = self.scans.wait();
        let scanner = self.scanner.lock();
        match scanner.as_ref() {
            Some(connection) => work(connection).inspect_err(|error| self.health.heed(error)),
            None => self.read(work),
        }
    }

    /// Runs `work` in a transaction on the writing thread; returns when it is committed.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(|connection| in_transaction(connection, work))
    }

    /// As [`write`](Self::write), but also waits until the data is on disk.
    fn write_durably<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(|connection| {
            connection.pragma_update(None, "synchronous", "full")?;
            let done = in_transaction(connection, work);
            connection.pragma_update(None, "synchronous", "normal")?;
            done
        })
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.health.look();
        if let Some(why) = self.health.refusal() {
            return Err(StoreError::Refused(why));
        }
        let sender = self.sender.get().ok_or(StoreError::Closed)?;
        let (answer, answered) = mpsc::sync_channel(1);
        let job = move |connection: &mut Connection| {
            // Fails when the requester is gone.
            let _ = answer.send(work(connection));
        };
        sender.send(WriterMessage::Run(Box::new(job))).map_err(|_| StoreError::Closed)?;
        answered.recv().map_err(|_| StoreError::Closed)?.inspect_err(|error| self.health.heed(error))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// When the newest row was written, among those that every use of the daemon writes.
fn newest_row(connection: &Connection) -> Option<SystemTime> {
    let select = "SELECT max(at) FROM (SELECT max(at) AS at FROM audit UNION ALL SELECT max(used_at) FROM sessions)";
    let at: Option<i64> = connection.query_row(select, [], |row| row.get(0)).ok()?;
    at.map(columns::to_time)
}

/// The path of a database with a suffix added to its file name, as for SQLite's own files next to
/// it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
