//! The files of journals: which one is ours, and what those of other runs still hold.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::NAME;
use super::event::{EventKind, HASH_CHARS, JournalChain, JournalEvent, JournalHead};
use crate::audit_rows::StoredRow;

/// Journals that wait for a database.
const MAX_LEFT: usize = 4;
/// More is never written to one.
const MAX_FILE: u64 = 256 << 20;

/// Begins a journal. One that a run left behind is put aside first; while another daemon uses it, ours has the name with
/// `id` behind it.
pub(super) fn begin(database: &Path, id: &str) -> io::Result<(PathBuf, File)> {
    let path = database.with_file_name(NAME);
    let own = database.with_file_name(format!("{NAME}.{id}"));
    match open_locked(&path) {
        Ok(None) => Ok((own.clone(), make(&own)?)),
        Ok(Some(_left)) => {
            std::fs::rename(&path, database.with_file_name(format!("{NAME}.left-{id}")))?;
            remove_surplus(database);
            Ok((path.clone(), make(&path)?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match make(&path) {
            // Another daemon starts at the same moment.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok((own.clone(), make(&own)?)),
            made => Ok((path, made?)),
        },
        Err(error) => Err(error),
    }
}

/// While no database takes them, each run leaves a journal behind: the oldest go.
fn remove_surplus(database: &Path) {
    let mut left: Vec<_> = paths(database)
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".left-"))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    left.sort();
    let surplus = left.len().saturating_sub(MAX_LEFT);
    for (_, path) in &left[..surplus] {
        tracing::error!(path = %path.display(), "no database takes the calls of this journal: it is removed");
        // It is tried again at the next start.
        let _ = std::fs::remove_file(path);
    }
}

/// A new file in which a journal is written again, until [`put_in_place`].
pub(super) fn replacement(path: &Path) -> io::Result<File> {
    let new = new_name(path);
    // Left by a daemon that was killed; otherwise there is none.
    let _ = std::fs::remove_file(&new);
    make(&new)
}

pub(super) fn put_in_place(path: &Path) -> io::Result<()> {
    std::fs::rename(new_name(path), path)
}

/// Not a name that [`others`] finds: the file is not whole yet.
fn new_name(path: &Path) -> PathBuf {
    let mut name = OsString::from("new-");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

fn make(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
    // Nobody else knows the file yet.
    file.lock()?;
    Ok(file)
}

/// `None` while another daemon uses the file.
fn open_locked(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).append(true).custom_flags(O_NOFOLLOW).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Its daemon may have removed or replaced it meanwhile.
    let (opened, there) = (file.metadata()?, path.symlink_metadata()?);
    Ok(((opened.dev(), opened.ino()) == (there.dev(), there.ino())).then_some(file))
}

const O_NOFOLLOW: i32 = 0o400_000;

/// What a journal holds.
#[derive(Default)]
pub(crate) struct JournalEvents {
    pub(crate) id: String,
    /// Rows of ended calls, in order.
    ended: Vec<StoredRow>,
    /// Rows of calls that have begun and not ended, in order.
    pub(crate) interrupted: Vec<StoredRow>,
    /// What is wrong with the file.
    pub(crate) damage: Option<String>,
}

impl JournalEvents {
    /// The rows of calls whose end has a higher number.
    pub(crate) fn ended_after(&self, number: u64) -> Vec<StoredRow> {
        self.ended.iter().filter(|row| row.number.is_some_and(|own| own > number)).cloned().collect()
    }
}

/// A journal whose daemon has ended. It stays locked until this is dropped.
pub(crate) struct LeftJournal {
    pub(crate) path: PathBuf,
    pub(crate) events: JournalEvents,
    _file: File,
}

impl LeftJournal {
    pub(crate) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// The journals beside a database whose daemons have ended, and whether there are others that may be left soon.
pub(crate) fn others(database: &Path, own: &Path) -> (Vec<LeftJournal>, bool) {
    let (mut left, mut used) = (Vec::new(), false);
    for path in paths(database).into_iter().filter(|path| path != own) {
        let found = open_locked(&path).and_then(|file| match file {
            Some(file) => Ok(Some((read(&path)?, file))),
            None => Ok(None),
        });
        match found {
            Ok(Some((events, file))) => left.push(LeftJournal { path, events, _file: file }),
            Ok(None) => used = true,
            Err(error) => tracing::warn!(%error, path = %path.display(), "a journal of calls cannot be read"),
        }
    }
    (left, used)
}

/// The files of all journals beside a database.
fn paths(database: &Path) -> Vec<PathBuf> {
    let Some(Ok(entries)) = database.parent().map(Path::read_dir) else { return Vec::new() };
    let is_journal = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| name == NAME || name.strip_prefix(NAME).is_some_and(|end| end.starts_with('.')))
    };
    let entries = entries.flatten().filter(|entry| is_journal(&entry.file_name()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads a journal. A last line that is not whole was never recorded.
pub(crate) fn read(path: &Path) -> io::Result<JournalEvents> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> JournalEvents {
    let mut events = JournalEvents::default();
    let mut begun: HashMap<u64, StoredRow> = HashMap::new();
    let mut chain = JournalChain::default();
    let mut is_head = true;
    let mut bad = 0_usize;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let parts = line.split_at_checked(HASH_CHARS).filter(|(_, json)| json.first() == Some(&b' '));
        let Some((hash, json)) = parts.map(|(hash, json)| (hash, &json[1..])) else {
            bad += 1;
            continue;
        };
        chain = chain.after(json);
        if !chain.is_written_as(hash) {
            bad += 1;
            // What follows is compared with the line that is there.
            chain = JournalChain::parse(hash).unwrap_or(chain);
        }
        if std::mem::take(&mut is_head) {
            match serde_json::from_slice::<JournalHead>(json) {
                Ok(head) => events.id = head.id,
                Err(_) => bad += 1,
            }
            continue;
        }
        let Ok(JournalEvent::<StoredRow> { number, kind, mut row }) = serde_json::from_slice(json) else {
            bad += 1;
            continue;
        };
        row.number = Some(number);
        match kind {
            EventKind::Begin { of } => {
                of.and_then(|number| begun.remove(&number));
                begun.insert(number, row);
            }
            EventKind::End { of } => {
                of.and_then(|number| begun.remove(&number));
                events.ended.push(row);
            }
        }
    }
    events.interrupted = begun.into_values().collect();
    events.interrupted.sort_by_key(|row| row.number);
    events.damage = (bad > 0).then(|| format!("{bad} of its lines were changed, or follow a line that was removed"));
    events
}
