//! `calls.journal` beside the database: the begin of each call that may change something, before it runs, and the end of
//! every call, before its answer. One append each, so that neither is lost when the daemon is killed.
//!
//! The writer moves the ends into the database; [`left`] has what another run left behind. Each event has a hash over
//! itself and the one before, so that a line that was removed or changed is noticed.

mod event;
pub(crate) mod left;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_engine::audit::AuditRow;

use crate::audit_rows::{RowClient, RowDecisions, StoredRow};
use crate::journal::event::{EventKind, JournalChain, JournalEvent, JournalHead};

/// The name of the journal. A daemon that runs at the same time has one with its id behind this name.
pub(crate) const NAME: &str = "calls.journal";
/// Rows that wait for the writer in memory. Those beyond are read from the journal, or lost when they are not there.
pub(crate) const QUEUE: usize = 8_192;
/// With this many rows, the batch is written at once.
pub(crate) const BATCH: usize = 4_096;
/// The size from which a journal begins again, once its rows are in the database.
const LARGE: u64 = 4 << 20;
/// How often it is seen whether the file is still there, and whole. Looking takes as long as an append.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// While the database takes no rows, the journal grows up to this size.
const FULL: u64 = 64 << 20;

/// The journal of this run, and the rows on their way to the writer.
pub(crate) struct CallJournal {
    path: PathBuf,
    id: String,
    state: Mutex<JournalState>,
}

struct JournalState {
    /// Or why there is none.
    file: Result<File, String>,
    /// Why nothing that is written to the file would be found again.
    gone: Option<String>,
    /// When its place was looked at last.
    looked: Option<Instant>,
    size: u64,
    /// The number of the last event.
    number: u64,
    chain: JournalChain,
    /// Calls that have begun and not ended: their begin as a line without its hash, and their decisions.
    begun: HashMap<u64, (StoredRow, RowDecisions)>,
    /// Calls come in runs of one kind, and looking for secrets takes longer than all else of a row.
    recent: RowDecisions,
    recent_client: RowClient,
    /// Is woken for the first row of a batch and for a full one, not for each: calls come a hundred thousand times a
    /// second, and a wake-up costs more than a call.
    rows: Vec<StoredRow>,
    /// Rows are in the journal that are not in `rows`.
    is_ahead: bool,
    /// A writer takes rows.
    has_writer: bool,
    closed: bool,
    line: Vec<u8>,
}

/// The outcome of recording the end of a call.
pub(crate) struct Recorded {
    /// Why the end is not in the journal.
    pub(crate) unwritten: Option<String>,
    pub(crate) wake: bool,
    /// It is neither in the journal nor on its way to the database.
    pub(crate) lost: bool,
}

impl CallJournal {
    /// Begins a journal in the folder of the database. Without one, calls are recorded by the database alone.
    pub(crate) fn open(database: &Path) -> Self {
        let id = event::new_id();
        let (path, file) = match left::begin(database, &id) {
            Ok((path, file)) => (path, Ok(file)),
            Err(error) => {
                let path = database.with_file_name(NAME);
                let words = format!("{} cannot be written: {error}", path.display());
                (path, Err(words))
            }
        };
        let mut state = JournalState {
            file,
            gone: None,
            looked: None,
            size: 0,
            number: 0,
            chain: JournalChain::default(),
            begun: HashMap::new(),
            recent: RowDecisions::default(),
            recent_client: RowClient::default(),
            rows: Vec::new(),
            is_ahead: false,
            has_writer: false,
            closed: false,
            line: Vec::new(),
        };
        if let Err(why) = state.write_head(&id, &path) {
            state.file = Err(why);
        }
        Self { path, id, state: Mutex::new(state) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Why nothing can be recorded, as of the last attempt.
    pub(crate) fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        state.file.as_ref().err().or(state.gone.as_ref()).cloned()
    }

    /// Records that a call begins; returns the number of the event.
    ///
    /// # Errors
    /// Why it is not recorded.
    pub(crate) fn begin(&self, row: &AuditRow) -> Result<u64, String> {
        let mut state = self.state.lock();
        self.look(&mut state);
        let (decisions, begun_before) = (state.decisions_of(row), row.begun);
        let row = StoredRow::new(row, &decisions, state.client_of(row));
        // One that the file does not have any more is not replaced.
        let of = begun_before.filter(|number| state.begun.contains_key(number));
        let number = state.append(&self.path, EventKind::Begin { of }, &row)?;
        of.and_then(|number| state.begun.remove(&number));
        state.begun.insert(number, (row, decisions));
        Ok(number)
    }

    /// From now on a writer takes rows. It begins with [`rows_ahead`](Self::rows_ahead).
    pub(crate) fn attach_writer(&self) {
        self.state.lock().has_writer = true;
    }

    /// Records the end of a call. The row is on its way to the database; without a writer, it stays in the journal.
    pub(crate) fn end(&self, row: &AuditRow) -> Recorded {
        let mut state = self.state.lock();
        self.look(&mut state);
        let begun = row.begun.and_then(|number| state.begun.remove(&number));
        let decisions = match begun {
            Some((_, decisions)) if decisions.are(&row.decisions) => decisions,
            Some(_) | None => state.decisions_of(row),
        };
        let mut row_to_store = StoredRow::new(row, &decisions, state.client_of(row));
        let written = state.append(&self.path, EventKind::End { of: row.begun }, &row_to_store);
        let (number, unwritten) = match written {
            Ok(number) => (Some(number), None),
            Err(why) => (None, Some(why)),
        };
        row_to_store.number = number;
        if state.closed || !state.has_writer {
            state.is_ahead |= number.is_some();
            return Recorded { lost: unwritten.is_some(), unwritten, wake: false };
        }
        // In the order of their numbers, so those that come after one that waits in the file wait there, too.
        let full = state.rows.len() >= QUEUE;
        if number.is_some() && (full || state.is_ahead) {
            state.is_ahead = true;
            return Recorded { unwritten, wake: false, lost: false };
        }
        if full {
            return Recorded { unwritten, wake: false, lost: true };
        }
        let wake = state.rows.len().is_multiple_of(BATCH);
        state.rows.push(row_to_store);
        Recorded { unwritten, wake, lost: false }
    }

    pub(crate) fn take_rows(&self) -> Vec<StoredRow> {
        std::mem::take(&mut self.state.lock().rows)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().rows.len()
    }

    /// The writer could not put rows into the database, and they are in the journal.
    pub(crate) fn leave_rows(&self) {
        let mut state = self.state.lock();
        state.is_ahead = true;
        // Or the rows before these would be behind the last one in the database.
        state.rows.retain(|row| row.number.is_none());
    }

    /// Rows that are in the journal alone, behind the event `after`, which was the last one in the database.
    pub(crate) fn rows_ahead(&self, after: u64) -> Vec<StoredRow> {
        let mut state = self.state.lock();
        if !state.is_ahead || !state.rows.is_empty() {
            return Vec::new();
        }
        match left::read(&self.path) {
            Ok(events) => {
                state.is_ahead = false;
                events.ended_after(after)
            }
            Err(error) => {
                tracing::error!(%error, path = %self.path.display(), "the journal of calls cannot be read");
                Vec::new()
            }
        }
    }

    /// Begins the file again when it is large and `insert` has put its last rows into the database.
    pub(crate) fn shorten(&self, insert: impl FnOnce(&[StoredRow]) -> bool) {
        let mut state = self.state.lock();
        if state.size < LARGE || state.is_ahead || state.file.is_err() {
            return;
        }
        let rows = std::mem::take(&mut state.rows);
        if !rows.is_empty() && !insert(&rows) {
            state.rows = rows;
            return;
        }
        if let Err(error) = self.begin_again(&mut state) {
            tracing::warn!(error, path = %self.path.display(), "the journal of calls cannot be shortened");
        }
    }

    /// Begins the file again where it was removed or cut, such as with the whole folder. What it held of calls that have ended is
    /// in the database, or on its way there.
    fn look(&self, state: &mut JournalState) {
        if state.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return;
        }
        state.looked = Some(Instant::now());
        let Ok(file) = &state.file else { return };
        let own = file.metadata().map(|own| (own.dev(), own.ino()));
        let again = match (own, self.path.symlink_metadata()) {
            (Ok(own), Ok(there)) if own == (there.dev(), there.ino()) => {
                if there.len() == state.size {
                    state.gone = None;
                    return;
                }
                self.begin_again(state)
            }
            (Ok(_), Ok(_)) => Err("another file is in its place".to_owned()),
            (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => self.begin_again(state),
        };
        if again.is_ok() {
            tracing::error!(path = %self.path.display(), "another program changed the journal of calls: it begins again");
        }
        state.gone = again.err().map(|why| format!("{} is gone: {why}", self.path.display()));
    }

    fn begin_again(&self, state: &mut JournalState) -> Result<(), String> {
        let new = left::replacement(&self.path).map_err(|error| error.to_string())?;
        let before = (std::mem::replace(&mut state.file, Ok(new)), state.size, state.chain, state.gone.take());
        state.size = 0;
        let written = self.write_begun(state);
        if written.is_err() {
            (state.file, state.size, state.chain, state.gone) = before;
        }
        written
    }

    fn write_begun(&self, state: &mut JournalState) -> Result<(), String> {
        let begun = state.begun.iter().map(|(number, (row, _))| (*number, row.clone()));
        let mut begun: Vec<(u64, StoredRow)> = begun.collect();
        begun.sort_by_key(|(number, _)| *number);
        state.write_head(&self.id, &self.path)?;
        for (number, row) in &begun {
            state.write(&self.path, &JournalEvent { number: *number, kind: EventKind::Begin { of: None }, row })?;
        }
        left::put_in_place(&self.path).map_err(|error| error.to_string())
    }

    /// Nothing is recorded from now on. Removes the file when all of it is in the database.
    pub(crate) fn close(&self, is_stored: bool) {
        let mut state = self.state.lock();
        state.closed = true;
        if is_stored && state.begun.is_empty() && state.rows.is_empty() && !state.is_ahead && state.file.is_ok() {
            // What is left would only be looked at, and removed, at the next start.
            let _ = std::fs::remove_file(&self.path);
        }
        state.file = Err("the daemon is stopping".to_owned());
    }
}

impl JournalState {
    fn decisions_of(&mut self, row: &AuditRow) -> RowDecisions {
        if !self.recent.are(&row.decisions) {
            self.recent = RowDecisions::new(&row.decisions);
        }
        self.recent.clone()
    }

    fn client_of(&mut self, row: &AuditRow) -> RowClient {
        if !self.recent_client.is(row.client.as_deref()) {
            self.recent_client = RowClient::new(row.client.as_deref());
        }
        self.recent_client.clone()
    }

    fn write_head(&mut self, id: &str, path: &Path) -> Result<(), String> {
        self.chain = JournalChain::default();
        self.line.clear();
        self.chain.add(&JournalHead { journal: 1, id: id.to_owned() }, &mut self.line);
        self.write_line(path)
    }

    fn append(&mut self, path: &Path, kind: EventKind, row: &StoredRow) -> Result<u64, String> {
        if self.size >= FULL {
            return Err(format!("{} is full, because the database takes nothing", path.display()));
        }
        let number = self.number + 1;
        self.write(path, &JournalEvent { number, kind, row })?;
        self.number = number;
        Ok(number)
    }

    fn write(&mut self, path: &Path, event: &JournalEvent<&StoredRow>) -> Result<(), String> {
        let before = self.chain;
        self.line.clear();
        self.chain.add(event, &mut self.line);
        self.write_line(path).inspect_err(|_| self.chain = before)
    }

    fn write_line(&mut self, path: &Path) -> Result<(), String> {
        if let Some(gone) = &self.gone {
            return Err(gone.clone());
        }
        let file = self.file.as_mut().map_err(|why| why.clone())?;
        match file.write(&self.line) {
            Ok(written) if written == self.line.len() => {
                self.size += written as u64;
                Ok(())
            }
            other => {
                // A part of a line would spoil the next one. Where it cannot be removed either, the reader skips it.
                let _ = file.set_len(self.size);
                let error = other.err().unwrap_or_else(|| io::Error::from(io::ErrorKind::StorageFull));
                Err(format!("{} cannot be written: {error}", path.display()))
            }
        }
    }
}
