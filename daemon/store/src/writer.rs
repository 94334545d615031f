//! The one thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::audit_rows::StoredRow;
use crate::cleaning::Cleaning;
use crate::clock_trust::ClockTrust;
use crate::columns::{from_count, from_time, to_count};
use crate::health::StoreHealth;
use crate::journal::left::{LeftJournal, others};
use crate::journal::{BATCH, CallJournal, QUEUE};
use crate::refusals::Refusals;
use crate::transaction::in_transaction;
use crate::{Retention, StoreError, audit_chain, audit_rows};

/// Messages that wait for the writer.
const INBOX: usize = 256;
/// How long a row may wait for others.
const LINGER: Duration = Duration::from_millis(100);
/// How soon rows that the disk rejected are retried.
const RETRY: Duration = Duration::from_secs(1);
/// How soon journals are looked for again whose daemons had not ended.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Writes after which old content is removed.
const CLEAN_AFTER: usize = 2_000;

pub(crate) enum WriterMessage {
    /// Rows are waiting.
    Rows,
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
    /// Answered when all earlier rows are written, or lost.
    Flush(SyncSender<()>),
    Close,
}

pub(crate) struct StoreWriter {
    connection: Connection,
    health: Arc<StoreHealth>,
    refusals: Arc<Refusals>,
    cleaning: Cleaning,
    journal: Arc<CallJournal>,
    /// Taken from the journal, but not written yet.
    rows: Vec<StoredRow>,
    /// The number of the last event of the journal that is in the database.
    moved: u64,
    /// When journals of other runs are looked for again; `None` when there are none.
    look_for_left: Option<Instant>,
    /// The latest time at which the waiting rows are written.
    due: Option<Instant>,
    writes_since_cleaning: usize,
}

impl StoreWriter {
    /// The channel and the thread, which ends with [`WriterMessage::Close`] or when all senders are gone.
    pub(crate) fn start(
        connection: Connection,
        health: Arc<StoreHealth>,
        refusals: Arc<Refusals>,
        (retention, clock): (Retention, Arc<ClockTrust>),
        journal: Arc<CallJournal>,
    ) -> std::io::Result<(SyncSender<WriterMessage>, JoinHandle<()>)> {
        let (sender, inbox) = sync_channel(INBOX);
        let (rows, cleaning) = (Vec::new(), Cleaning::new(retention, clock));
        let writer = Self {
            connection,
            health,
            refusals,
            cleaning,
            journal,
            rows,
            moved: 0,
            look_for_left: None,
            due: None,
            writes_since_cleaning: 0,
        };
        let thread = std::thread::Builder::new().name("store".into()).spawn(move || writer.run(&inbox))?;
        Ok((sender, thread))
    }

    fn run(mut self, inbox: &Receiver<WriterMessage>) {
        self.move_left_journals();
        // Calls that ended before there was a writer.
        self.write_rows();
        loop {
            // A wake-up is not sent while the inbox is full.
            if self.due.is_none() && self.journal.waiting() > 0 {
                self.due = Some(Instant::now() + LINGER);
            }
            let due = [self.due, self.look_for_left].into_iter().flatten().fold(self.cleaning.due(), Instant::min);
            let message = inbox.recv_timeout(due.saturating_duration_since(Instant::now()));
            match message {
                Ok(WriterMessage::Rows) => {
                    self.due.get_or_insert_with(|| Instant::now() + LINGER);
                    if self.journal.waiting() >= BATCH {
                        self.write_rows();
                    }
                }
                Ok(WriterMessage::Run(job)) => {
                    job(&mut self.connection);
                    self.count(1);
                }
                Ok(WriterMessage::Flush(done)) => {
                    self.write_rows();
                    // Fails when the requester is gone.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(WriterMessage::Close) | Err(RecvTimeoutError::Disconnected) => break,
            }
            // Also between messages that come without a pause.
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.write_rows();
            }
            if self.cleaning.due() <= Instant::now() {
                self.clean();
            }
            if self.look_for_left.is_some_and(|due| due <= Instant::now()) {
                self.move_left_journals();
            }
        }
        self.write_rows();
        let lost = self.rows.iter().filter(|row| row.number.is_none()).count();
        if lost > 0 {
            tracing::error!(rows = lost, "the last rows of the audit log could not be written");
        }
        self.end_journal();
    }

    /// Nothing more comes: what is not in the database stays in the journal for the next start.
    fn end_journal(&mut self) {
        let is_stored = self.rows.is_empty() && self.health.refusal().is_none();
        self.journal.close(is_stored);
        if is_stored {
            // Harmless when it stays: no other journal has this id.
            let _ = self.connection.execute("DELETE FROM audit_journals WHERE id = ?1", [self.journal.id()]);
        }
    }

    /// Moves what runs left behind that were killed.
    fn move_left_journals(&mut self) {
        self.look_for_left = None;
        if self.health.refusal().is_some() {
            return;
        }
        let (left, used) = others(self.health.path(), self.journal.path());
        let mut again = used;
        for journal in left {
            let path = journal.path.display().to_string();
            match self.move_journal(&journal) {
                Ok(()) => {
                    if let Err(error) = journal.remove() {
                        tracing::warn!(%error, path, "a journal of calls that is in the database cannot be removed");
                    }
                }
                Err(error) => {
                    tracing::error!(%error, path, "a journal of calls cannot be moved into the database");
                    self.health.heed(&error);
                    again = true;
                }
            }
        }
        self.look_for_left = again.then(|| Instant::now() + LOOK_AGAIN);
    }

    fn move_journal(&mut self, journal: &LeftJournal) -> Result<(), StoreError> {
        let events = &journal.events;
        if let Some(damage) = &events.damage {
            let path = journal.path.display();
            tracing::error!(%path, damage, "a journal of calls");
            self.health.report_problem(format!("{path} was changed by another program: {damage}"));
        }
        in_transaction(&mut self.connection, |transaction| {
            let moved = "SELECT moved FROM audit_journals WHERE id = ?1";
            let moved: Option<i64> = transaction.query_row(moved, [&events.id], |row| row.get(0)).optional()?;
            let moved = moved.map_or(0, to_count);
            let ended = events.ended_after(moved);
            let whole = u64::try_from(i64::MAX).unwrap_or_default();
            // All of it is in the database already, and only the file could not be removed.
            let interrupted = if moved >= whole { &[] } else { &events.interrupted[..] };
            tracing::info!(ended = ended.len(), interrupted = interrupted.len(), "calls of a run that was killed");
            audit_rows::insert(transaction, &ended, 0)?;
            audit_rows::insert(transaction, interrupted, 0)?;
            if let Some(damage) = events.damage.as_ref().filter(|_| moved < whole) {
                audit_chain::note_break(transaction, from_time(SystemTime::now()), &format!("a journal: {damage}"))?;
            }
            set_moved(transaction, &events.id, whole)
        })
    }

    fn write_rows(&mut self) {
        self.due = None;
        self.rows.append(&mut self.journal.take_rows());
        while self.write_batch() {
            self.rows = self.journal.rows_ahead(self.moved);
            if self.rows.is_empty() {
                let Self { journal, connection, moved, .. } = self;
                journal.shorten(|rows| insert(connection, journal.id(), rows, 0, moved).is_ok());
                return;
            }
        }
    }

    /// Writes the rows that are here. False when something has to be tried again.
    fn write_batch(&mut self) -> bool {
        let lost = self.health.take_lost();
        if self.rows.is_empty() && lost == 0 {
            return true;
        }
        self.health.look();
        if self.health.refusal().is_some() {
            self.health.give_back_lost(lost);
            self.give_up(0);
            return false;
        }
        match insert(&mut self.connection, self.journal.id(), &self.rows, lost, &mut self.moved) {
            Ok(()) => {
                let written = self.rows.len();
                self.rows.clear();
                self.health.set_unwritten(None);
                // What was missing in the journal is in the database now.
                self.health.set_unjournaled(self.journal.problem());
                self.count(written);
                true
            }
            Err(StoreError::Busy) if self.rows.len() < QUEUE => {
                self.health.give_back_lost(lost);
                self.due = Some(Instant::now() + LINGER);
                false
            }
            Err(error) => {
                // They are kept until there is space again; a damaged database never accepts them.
                let may_be_written =
                    matches!(error, StoreError::NotWritten(_) | StoreError::DiskFailed(_) | StoreError::Busy);
                let kept = if may_be_written { QUEUE.min(self.rows.len()) } else { 0 };
                self.health.give_back_lost(lost);
                let more = self.give_up(kept);
                tracing::error!(%error, kept, lost = more, "rows of the audit log cannot be written");
                self.health.heed(&error);
                let path = self.health.path().display();
                self.health.set_unwritten(Some(format!("the audit log cannot be written to {path}: {error}")));
                self.due = may_be_written.then(|| Instant::now() + RETRY);
                false
            }
        }
    }

    /// Forgets all rows but the first `kept`. Those that are in the journal are read from there again; the others are lost,
    /// and their number is returned.
    fn give_up(&mut self, kept: usize) -> u64 {
        let given_up = self.rows.split_off(kept.min(self.rows.len()));
        let lost = given_up.iter().filter(|row| row.number.is_none()).count();
        if lost < given_up.len() {
            self.journal.leave_rows();
        }
        self.health.lose(lost as u64);
        lost as u64
    }

    fn count(&mut self, writes: usize) {
        self.writes_since_cleaning += writes;
        if self.writes_since_cleaning >= CLEAN_AFTER {
            self.writes_since_cleaning = 0;
            self.cleaning.hurry();
        }
    }

    /// Removes a piece of the rows that are too old or too many. A piece that another process
    /// blocks is done later.
    fn clean(&mut self) {
        if self.health.refusal().is_some() {
            return self.cleaning.postpone();
        }
        match self.cleaning.step(&mut self.connection) {
            Ok(piece) if piece.refusals.is_empty() => {}
            Ok(piece) => {
                if let Err(error) = self.refusals.remove(|row| piece.refusals.contains(&row.id)) {
                    tracing::warn!(error, "refusals that ended stay in their file");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "old content of the database could not be removed");
                self.health.heed(&error);
            }
        }
    }
}

/// Inserts rows of the journal with this id, and notes how far they go.
fn insert(
    connection: &mut Connection,
    journal: &str,
    rows: &[StoredRow],
    lost: u64,
    moved: &mut u64,
) -> Result<(), StoreError> {
    let last = rows.iter().filter_map(|row| row.number).fold(*moved, u64::max);
    in_transaction(connection, |transaction| {
        audit_rows::insert(transaction, rows, lost)?;
        if last > *moved { set_moved(transaction, journal, last) } else { Ok(()) }
    })?;
    *moved = last;
    Ok(())
}

fn set_moved(transaction: &Transaction, journal: &str, number: u64) -> Result<(), StoreError> {
    let set = "INSERT INTO audit_journals (id, moved) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET moved = ?2";
    transaction.prepare_cached(set)?.execute(params![journal, from_count(number)])?;
    Ok(())
}
