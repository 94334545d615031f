//! The one thread that writes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use toold_engine::audit::AuditRow;

use crate::health::Health;
use crate::{Retention, StoreError, audit, sessions};

/// Rows that wait for the writer. One more is lost, and counted.
pub(crate) const QUEUE: usize = 8_192;
/// So many rows are not kept waiting for others.
const BATCH: usize = 4_096;
/// Messages that wait for the writer.
const INBOX: usize = 256;
/// How long a row may wait for others.
const LINGER: Duration = Duration::from_millis(100);
/// Writes after which old content is looked for.
const PRUNE_AFTER: usize = 2_000;

/// Rows on their way to the writer. It is woken for the first of a batch and for a full one, not for each:
/// calls come a hundred thousand times a second, and a wake-up costs more than a call.
#[derive(Default)]
pub(crate) struct Rows(Mutex<Vec<AuditRow>>);

/// What became of a row.
pub(crate) enum Pushed {
    Waits,
    /// The writer must hear of it.
    Wake,
    /// There are too many.
    Lost,
}

impl Rows {
    pub(crate) fn push(&self, row: AuditRow) -> Pushed {
        let mut rows = self.lock();
        if rows.len() >= QUEUE {
            return Pushed::Lost;
        }
        let wake = rows.len().is_multiple_of(BATCH);
        rows.push(row);
        if wake { Pushed::Wake } else { Pushed::Waits }
    }

    fn take(&self) -> Vec<AuditRow> {
        std::mem::take(&mut *self.lock())
    }

    fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<AuditRow>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

pub(crate) enum Message {
    /// There are rows.
    Rows,
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
    /// Answered when all rows before it are written, or lost.
    Flush(SyncSender<()>),
    Close,
}

pub(crate) struct Writer {
    connection: Connection,
    health: Arc<Health>,
    retention: Retention,
    inbound: Arc<Rows>,
    /// Taken, and not written yet.
    rows: Vec<AuditRow>,
    /// When the rows that wait are written at the latest.
    due: Option<Instant>,
    writes_since_prune: usize,
}

impl Writer {
    /// The channel and the thread, which ends with [`Message::Close`] or when all senders are gone.
    pub(crate) fn start(
        connection: Connection,
        health: Arc<Health>,
        retention: Retention,
        inbound: Arc<Rows>,
    ) -> std::io::Result<(SyncSender<Message>, JoinHandle<()>)> {
        let (sender, inbox) = sync_channel(INBOX);
        let rows = Vec::new();
        let writer = Self { connection, health, retention, inbound, rows, due: None, writes_since_prune: 0 };
        let thread = std::thread::Builder::new().name("store".into()).spawn(move || writer.run(&inbox))?;
        Ok((sender, thread))
    }

    fn run(mut self, inbox: &Receiver<Message>) {
        self.prune();
        loop {
            // A wake-up is not sent while the inbox is full.
            if self.due.is_none() && self.inbound.len() > 0 {
                self.due = Some(Instant::now() + LINGER);
            }
            let message = match self.due {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match message {
                Ok(Message::Rows) => {
                    self.due.get_or_insert_with(|| Instant::now() + LINGER);
                    if self.inbound.len() >= BATCH {
                        self.write_rows();
                    }
                }
                Ok(Message::Run(job)) => {
                    job(&mut self.connection);
                    self.count(1);
                }
                Ok(Message::Flush(done)) => {
                    self.write_rows();
                    // Fails when the asker is gone.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.write_rows(),
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => break,
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
        match in_transaction(&mut self.connection, |transaction| audit::insert(transaction, rows, lost)) {
            Ok(()) => {
                let written = self.rows.len();
                self.rows.clear();
                self.count(written);
            }
            Err(StoreError::Busy) if self.rows.len() < QUEUE => {
                self.health.give_back_lost(lost);
                self.due = Some(Instant::now() + LINGER);
            }
            Err(error) => {
                tracing::error!(%error, rows = self.rows.len(), "rows of the audit log are lost");
                self.health.give_back_lost(lost);
                self.health.lose(self.rows.len() as u64);
                self.health.heed(&error);
                self.health
                    .tell(format!("the audit log cannot be written to {}: {error}", self.health.path().display()));
                self.rows.clear();
            }
        }
    }

    fn count(&mut self, writes: usize) {
        self.writes_since_prune += writes;
        if self.writes_since_prune >= PRUNE_AFTER {
            self.prune();
        }
    }

    /// Removes what is too old or too much. What another process hinders is done the next time.
    fn prune(&mut self) {
        self.writes_since_prune = 0;
        if self.health.refusal().is_some() {
            return;
        }
        let retention = self.retention;
        let pruned = in_transaction(&mut self.connection, |transaction| {
            audit::prune(transaction, &retention)?;
            sessions::prune(transaction, &retention)
        });
        if let Err(error) = pruned {
            tracing::warn!(%error, "old content of the database could not be removed");
            self.health.heed(&error);
        }
    }
}

/// Runs `work` in a transaction; nothing of it is left when it fails.
pub(crate) fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Immediate: a transaction that begins by reading and writes later cannot wait for another writer.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(done)
}
