//! Refusals, stored a second time in a plain file next to the database. The file is written first.
//!
//! A refusal counts while it is in either place. The file has one line of JSON for each, after a
//! header line with their number and checksum, so that a truncated file is detected.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};
use toold_files::FileReplacement;

use crate::columns::from_time;
use crate::stored_grant::{MAX_GRANTS, StoredGrant};

/// A daemon never writes a larger file.
const MAX_BYTES: u64 = 64 << 20;
/// How long to wait for another process that writes the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// The file, and its last known state.
pub(crate) struct Refusals {
    path: PathBuf,
    known: Mutex<RefusalState>,
}

#[derive(Default)]
struct RefusalState {
    /// The refusals that the file had last, or should have.
    rows: Vec<StoredGrant>,
    lost: Option<LostRefusals>,
    /// Why the file is not up to date, as a sentence for the user.
    problem: Option<String>,
}

/// Past refusals may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LostRefusals {
    why: String,
    /// They may still be in the database, once it can be read.
    in_database: bool,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    /// The version of this format.
    refusals: u32,
    count: usize,
    /// BLAKE3 of the lines that follow, in hexadecimal digits.
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<LostRefusals>,
}

/// The content of the file.
struct Contents {
    rows: Vec<StoredGrant>,
    lost: Option<LostRefusals>,
    state: FileState,
}

enum FileState {
    Missing,
    Whole,
    /// Part of the file, or all of it, cannot be read.
    Damaged(String),
}

/// How much of the past the database contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseView {
    /// Everything that was ever written to it can be read.
    Whole,
    /// It has just been created.
    New,
    /// There is none.
    Absent,
    /// It cannot be read, or only in part.
    Incomplete,
}

pub(crate) struct Agreed {
    /// All that is refused.
    pub(crate) all: Vec<StoredGrant>,
    pub(crate) not_in_database: Vec<StoredGrant>,
}

impl Refusals {
    pub(crate) fn beside(database: &Path) -> Self {
        Self { path: database.with_file_name("refusals.jsonl"), known: Mutex::default() }
    }

    /// Why refusals may be lost, as a sentence for the user.
    pub(crate) fn lost(&self) -> Option<String> {
        self.known.lock().lost.as_ref().map(|lost| lost.why.clone())
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let known = self.known.lock();
        let lost = known.lost.as_ref().map(|lost| lost.why.clone());
        lost.into_iter().chain(known.problem.clone()).collect()
    }

    /// Whether the file has, or should have, a refusal of this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.known.lock().rows.iter().any(|row| row.id == id)
    }

    /// Whether the file is up to date; an empty one may be missing where nothing can be written.
    pub(crate) fn is_well(&self, takes_writes: bool) -> bool {
        let known = self.known.lock();
        let nothing = known.rows.is_empty() && known.lost.is_none();
        (nothing && !takes_writes) || (known.problem.is_none() && matches!(self.read().state, FileState::Whole))
    }

    /// Merges the refusals of the database and of the file; a refusal in either counts. Afterwards
    /// the file has all of them, or [`problems`](Self::problems) say why not.
    pub(crate) fn reconcile(&self, in_database: Vec<StoredGrant>, view: DatabaseView, takes_writes: bool) -> Agreed {
        let mut known = self.known.lock();
        let locked = self.lock_folder();
        let contents = self.read();
        let lost = self.judge(&contents, view);
        let mut all = in_database.clone();
        add_missing(&mut all, contents.rows.clone());
        let not_in_database = without(&all, &in_database);
        let now = from_time(SystemTime::now());
        known.rows = all.iter().filter(|row| !row.has_ended(now)).cloned().collect();
        known.lost = lost;
        let same = matches!(contents.state, FileState::Whole)
            && contents.lost == known.lost
            && without(&known.rows, &contents.rows).is_empty()
            && contents.rows.len() == known.rows.len();
        // Where nothing can be stored and nothing has to be, problems of the file do not matter.
        let nothing = known.rows.is_empty() && known.lost.is_none();
        if !same && (takes_writes || !nothing) {
            let written = locked.and_then(|_locked| self.write(&known));
            known.problem = written.err().map(|error| self.not_written(&error));
        }
        Agreed { all, not_in_database }
    }

    /// What may be lost, judging by both places.
    fn judge(&self, contents: &Contents, view: DatabaseView) -> Option<LostRefusals> {
        let advice = format!(
            "Until then toold asks about everything, even about what is allowed. Check `toolctl permissions list`, \
             add missing refusals again, remove {}, and restart the daemon",
            self.path.display()
        );
        let lost = |what: &str, in_database| Some(LostRefusals { why: format!("{what}. {advice}."), in_database });
        match (&contents.lost, &contents.state, view) {
            // The database that may have contained them can be read again.
            (Some(LostRefusals { in_database: true, .. }), FileState::Whole, DatabaseView::Whole) => None,
            (Some(lost), _, view) => {
                Some(LostRefusals { in_database: lost.in_database && view == DatabaseView::Incomplete, ..lost.clone() })
            }
            (None, FileState::Whole, _) => None,
            // A readable database contains all refusals of the file.
            (None, FileState::Missing | FileState::Damaged(_), DatabaseView::Whole) => None,
            (None, FileState::Missing, DatabaseView::New | DatabaseView::Absent) => None,
            (None, FileState::Missing, DatabaseView::Incomplete) => {
                lost("refusals may be lost: the database cannot be read, and the file of refusals is missing", true)
            }
            (None, FileState::Damaged(why), view) => lost(
                &format!(
                    "refusals may be lost: neither the database nor {} ({why}) can be read completely",
                    self.path.display()
                ),
                view == DatabaseView::Incomplete,
            ),
        }
    }

    /// Rewrites the file if it is damaged or missing, with its expected content and that of the
    /// database.
    pub(crate) fn write_again(&self, in_database: Vec<StoredGrant>, database_is_whole: bool) {
        let mut known = self.known.lock();
        let locked = self.lock_folder();
        let contents = self.read();
        if !database_is_whole || !matches!(contents.state, FileState::Whole) {
            add_missing(&mut known.rows, contents.rows);
        } else {
            known.rows = contents.rows;
        }
        add_missing(&mut known.rows, in_database);
        let written = locked.and_then(|_locked| self.write(&known));
        known.problem = written.err().map(|error| self.not_written(&error));
    }

    /// Adds a refusal, or its new state. When it returns, it survives a power cut.
    ///
    /// # Errors
    /// Why the file could not store it, as a sentence for the user.
    pub(crate) fn add(&self, row: StoredGrant) -> Result<(), String> {
        let mut is_full = false;
        self.change(|rows| {
            rows.retain(|held| held.id != row.id);
            is_full = rows.len() >= MAX_GRANTS;
            rows.push(row);
            !is_full
        })?;
        match is_full {
            true => Err(format!("{} holds {MAX_GRANTS} refusals already: revoke some first", self.path.display())),
            false => Ok(()),
        }
    }

    /// Removes refusals. True when there were any.
    ///
    /// # Errors
    /// Why the file still has them, as a sentence for the user.
    pub(crate) fn remove(&self, gone: impl Fn(&StoredGrant) -> bool) -> Result<bool, String> {
        self.change(|rows| {
            let before = rows.len();
            rows.retain(|row| !gone(row));
            rows.len() < before
        })
    }

    /// `change` returns whether it did anything.
    fn change(&self, change: impl FnOnce(&mut Vec<StoredGrant>) -> bool) -> Result<bool, String> {
        let mut known = self.known.lock();
        let locked = self.lock_folder();
        // Other daemons of the user write it as well.
        let contents = self.read();
        let mut rows = contents.rows;
        if !matches!(contents.state, FileState::Whole) {
            add_missing(&mut rows, known.rows.clone());
        }
        if !change(&mut rows) {
            return Ok(false);
        }
        let now = from_time(SystemTime::now());
        rows.retain(|row| !row.has_ended(now));
        let before = std::mem::replace(&mut known.rows, rows);
        match locked.and_then(|_locked| self.write(&known)) {
            Ok(()) => {
                known.problem = None;
                Ok(true)
            }
            Err(error) => {
                known.rows = before;
                let problem = self.not_written(&error);
                known.problem = Some(problem.clone());
                Err(problem)
            }
        }
    }

    fn not_written(&self, error: &io::Error) -> String {
        format!(
            "{} cannot be written ({error}). It keeps refusals in case the database is damaged: make it writable, \
             and free space for it",
            self.path.display()
        )
    }

    /// Blocks while another process changes the file, [`PATIENCE`] at most.
    fn lock_folder(&self) -> io::Result<File> {
        let folder = File::open(self.folder())?;
        let until = Instant::now() + PATIENCE;
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(folder),
                Err(fs::TryLockError::Error(error)) => return Err(error),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(fs::TryLockError::WouldBlock) => return Err(io::Error::other("another process holds it")),
            }
        }
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn read(&self) -> Contents {
        let nothing = |state| Contents { rows: Vec::new(), lost: None, state };
        let bytes = match self.read_bytes() {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return nothing(FileState::Missing);
            }
            Err(error) => return nothing(FileState::Damaged(error.to_string())),
        };
        let (first, rest) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => (&bytes[..], &[][..]),
        };
        let header: Option<Header> = serde_json::from_slice(first).ok();
        // A damaged line may have been any of them.
        let lines = if header.is_some() { rest } else { &bytes };
        let rows: Vec<StoredGrant> =
            lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let state = match &header {
            None => FileState::Damaged("its first line cannot be read".to_owned()),
            Some(header) if header.refusals != 1 => {
                FileState::Damaged(format!("it is of version {}, this toold reads 1", header.refusals))
            }
            Some(header) if header.count != rows.len() => {
                FileState::Damaged(format!("{} of {} lines can be read", rows.len(), header.count))
            }
            Some(header) if header.digest != digest(rest) => FileState::Damaged("its lines were changed".to_owned()),
            Some(_) => FileState::Whole,
        };
        Contents { rows, lost: header.and_then(|header| header.lost), state }
    }

    fn read_bytes(&self) -> io::Result<Vec<u8>> {
        let facts = fs::metadata(&self.path)?;
        // Anything but a regular file could block the reader.
        if !facts.is_file() || facts.len() > MAX_BYTES {
            return Err(io::Error::other(format!("it is no file of at most {MAX_BYTES} bytes")));
        }
        fs::read(&self.path)
    }

    /// Replaces the file atomically, also across a power cut.
    fn write(&self, known: &RefusalState) -> io::Result<()> {
        let mut lines = Vec::new();
        for row in &known.rows {
            serde_json::to_writer(&mut lines, row)?;
            lines.push(b'\n');
        }
        let header = Header { refusals: 1, count: known.rows.len(), digest: digest(&lines), lost: known.lost.clone() };
        let mut content = serde_json::to_vec(&header)?;
        content.push(b'\n');
        content.append(&mut lines);
        toold_files::replace(&self.path, &self.path.with_extension("new"), &content, FileReplacement::PrivateAndDurable)
    }
}

fn digest(lines: &[u8]) -> String {
    blake3::hash(lines).to_hex().to_string()
}

fn without(all: &[StoredGrant], held: &[StoredGrant]) -> Vec<StoredGrant> {
    let held: HashSet<&str> = held.iter().map(|row| row.id.as_str()).collect();
    all.iter().filter(|row| !held.contains(row.id.as_str())).cloned().collect()
}

fn add_missing(rows: &mut Vec<StoredGrant>, more: Vec<StoredGrant>) {
    let missing = without(&more, rows);
    rows.extend(missing);
}
