//! The one thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use rusqlite::Connection;
use toold_engine::audit::AuditRow;

use crate::cleaning::Cleaning;
use crate::health::StoreHealth;
use crate::refusals::Refusals;
use crate::transaction::in_transaction;
use crate::{Retention, StoreError, audit_rows};

/// Rows that wait for the writer. Further rows are lost, and counted.
pub(crate) const QUEUE: usize = 8_192;
/// With this many rows, the batch is written at once.
const BATCH: usize = 4_096;
/// Messages that wait for the writer.
const INBOX: usize = 256;
/// How long a row may wait for others.
const LINGER: Duration = Duration::from_millis(100);
/// How soon rows that the disk rejected are retried.
const RETRY: Duration = Duration::from_secs(1);
/// Writes after which old content is removed.
const CLEAN_AFTER: usize = 2_000;

/// Rows on their way to the writer. It is woken for the first row of a batch and for a full one,
/// not for each: calls come a hundred thousand times a second, and a wake-up costs more than a
/// call.
#[derive(Default)]
pub(crate) struct Rows(Mutex<Vec<AuditRow>>);

/// The outcome of adding a row.
pub(crate) enum Pushed {
    Waits,
    /// The writer must be woken.
    Wake,
    /// The queue is full.
    Lost,
}

impl Rows {
    pub(crate) fn push(&self, row: AuditRow) -> Pushed {
        let mut rows = self.0.lock();
        if rows.len() >= QUEUE {
            return Pushed::Lost;
        }
        let wake = rows.len().is_multiple_of(BATCH);
        rows.push(row);
        if wake { Pushed::Wake } else { Pushed::Waits }
    }

    fn take(&self) -> Vec<AuditRow> {
        std::mem::take(&mut *self.0.lock())
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

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
    inbound: Arc<Rows>,
    /// Taken from the inbox, but not written yet.
    rows: Vec<AuditRow>,
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
        retention: Retention,
        inbound: Arc<Rows>,
    ) -> std::io::Result<(SyncSender<WriterMessage>, JoinHandle<()>)> {
        let (sender, inbox) = sync_channel(INBOX);
        let (rows, cleaning) = (Vec::new(), Cleaning::new(retention));
        let writer =
            Self { connection, health, refusals, cleaning, inbound, rows, due: None, writes_since_cleaning: 0 };
        let thread = std::thread::Builder::new().name("store".into()).spawn(move || writer.run(&inbox))?;
        Ok((sender, thread))
    }

    fn run(mut self, inbox: &Receiver<WriterMessage>) {
        loop {
            // A wake-up is not sent while the inbox is full.
            if self.due.is_none() && self.inbound.len() > 0 {
                self.due = Some(Instant::now() + LINGER);
            }
            let due = self.due.map_or(self.cleaning.due(), |due| due.min(self.cleaning.due()));
            let message = inbox.recv_timeout(due.saturating_duration_since(Instant::now()));
            match message {
                Ok(WriterMessage::Rows) => {
                    self.due.get_or_insert_with(|| Instant::now() + LINGER);
                    if self.inbound.len() >= BATCH {
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
        }
        self.write_rows();
        if !self.rows.is_empty() {
            tracing::error!(rows = self.rows.len(), "the last rows of the audit log could not be written");
        }
    }

    fn write_rows(&mut self) {
        self.due = None;
        self.rows.append(&mut self.inbound.take());
        let lost = self.health.take_lost();
        if self.rows.is_empty() && lost == 0 {
            return;
        }
        self.health.look();
        if self.health.refusal().is_some() {
            self.health.lose(self.rows.len() as u64);
            self.rows.clear();
            return;
        }
        let rows = &self.rows;
        match in_transaction(&mut self.connection, |transaction| audit_rows::insert(transaction, rows, lost)) {
            Ok(()) => {
                let written = self.rows.len();
                self.rows.clear();
                self.health.set_unwritten(None);
                self.count(written);
            }
            Err(StoreError::Busy) if self.rows.len() < QUEUE => {
                self.health.give_back_lost(lost);
                self.due = Some(Instant::now() + LINGER);
            }
            Err(error) => {
                // They are kept until there is space again; a damaged database never accepts them.
                let kept = if matches!(error, StoreError::NotWritten(_)) { QUEUE.min(self.rows.len()) } else { 0 };
                let more = (self.rows.len() - kept) as u64;
                tracing::error!(%error, kept, lost = more, "rows of the audit log cannot be written");
                self.health.give_back_lost(lost);
                self.health.lose(more);
                self.rows.truncate(kept);
                self.health.heed(&error);
                let path = self.health.path().display();
                self.health.set_unwritten(Some(format!("the audit log cannot be written to {path}: {error}")));
                self.due = (kept > 0).then(|| Instant::now() + RETRY);
            }
        }
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
