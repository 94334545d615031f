//! The journal: records what calls changed, so that [`crate::undo`] can undo it.
//!
//! What a call did is one record, the file `UNDO/SESSION/WHEN.call`: each path that it changed, with what was there before
//! and after. Contents are in [a store of their own](contents), by their hash. So a change can be undone long after its
//! session or its daemon has ended. Undoing a call renames its file to `.undone`.

pub(crate) mod begun;
pub(crate) mod contents;
pub(crate) mod draft;
pub(crate) mod made;
pub(crate) mod state;

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toold_engine::cx::Cx;
use toold_engine::redact;
use toold_proto::tool::{CallId, SessionId, ToolName};

use crate::quoted_names::named;
use crate::stamps::FileDigest;
use contents::KeptContents;
pub use state::{FileVersion, ForeignFile, InodeId, PathState, RawPath, SpecialKind};

const OPEN: &str = "call";
const UNDONE: &str = "undone";
/// The folder of contents. No session has this id.
const CONTENTS: &str = "@contents";
/// Bytes of a record, which is some 200 for each path.
const MAX_RECORD: u64 = 256 << 20;
/// Bytes of a command line in a record.
const MAX_COMMAND: usize = 500;
/// What is named as the other that may have made a change, if it was found after a daemon was killed.
pub(crate) const AFTER_A_KILL: &str = "whoever changed files until the daemon ran again";
/// The same for what changed while a command ran in the background, which may be very long.
pub(crate) const BESIDE_THE_BACKGROUND: &str = "whoever else changed files while it ran in the background";
/// The same for what changed while a daemon and its successor ran commands.
pub(crate) const BESIDE_ANOTHER_DAEMON: &str = "a command of the daemon that ran beside this one during a restart";
/// The same for what another call that went on had changed before this one began.
pub(crate) const CHANGED_BEFORE: &str = "a call that had changed the same files before and went on";
/// How long changes are kept.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// What one call changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeRecord {
    pub session_id: SessionId,
    pub call_id: CallId,
    pub tool: ToolName,
    /// Who called: an agent's name, or that of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The command line, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub at: SystemTime,
    /// By path, each once.
    pub changes: Vec<PathChange>,
    /// Other calls that ran meanwhile and may have made a part of the changes, as `SESSION/CALL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_with: Vec<String>,
    #[serde(flatten)]
    pub beyond: UnrecordedChanges,
    #[serde(skip)]
    pub undone: bool,
    /// The record's file.
    #[serde(skip)]
    pub(crate) kept: PathBuf,
}

/// Changes of a call beside those that are recorded, as far as they are known: undo leaves them as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnrecordedChanges {
    /// Files and folders that were removed and of which nothing is kept, such as ignored folders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<RawPath>,
    /// The `.git` of repositories whose branches or index the call changed, or may have changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<RawPath>,
    /// Files and folders outside of the session's folders that the call wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<RawPath>,
    /// Files and folders that Git ignored until the call, and in which it changed something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<RawPath>,
}

impl UnrecordedChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    fn paths(&self) -> impl Iterator<Item = &RawPath> {
        self.not_kept.iter().chain(&self.repositories).chain(&self.outside).chain(&self.ignored)
    }

    fn retain(&mut self, stays: impl Fn(&RawPath) -> bool) {
        for paths in [&mut self.not_kept, &mut self.repositories, &mut self.outside, &mut self.ignored] {
            paths.retain(&stays);
        }
    }

    /// Adds what another call did.
    pub(crate) fn add(&mut self, other: &Self) {
        let of = |all: &mut Vec<RawPath>, others: &[RawPath]| {
            all.extend_from_slice(others);
            all.sort();
            all.dedup();
        };
        of(&mut self.not_kept, &other.not_kept);
        of(&mut self.repositories, &other.repositories);
        of(&mut self.outside, &other.outside);
        of(&mut self.ignored, &other.ignored);
    }

    /// A sentence for each, for a person who undoes the call. `shown` gives the names.
    pub(crate) fn notes(&self, shown: impl Fn(&Path) -> String) -> Vec<String> {
        let of = |paths: &[RawPath], words: &dyn Fn(String) -> String| -> Vec<String> {
            paths.iter().map(|path| words(shown(path.path()))).collect()
        };
        [
            of(&self.not_kept, &|name| format!("{name} does not come back: nothing of it was kept")),
            of(&self.repositories, &|name| format!("Git's branches and index in {name} stay as they are")),
            of(&self.outside, &|name| {
                format!("{name} stays as it is: it is outside of the session's folders, and was not recorded")
            }),
            of(&self.ignored, &|name| {
                format!("{name} stays as it is: it was ignored until then, and was not recorded")
            }),
        ]
        .concat()
    }

    /// A clause for each, for a person.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let not_kept = self.not_kept.iter().map(|path| format!("{}, of which nothing is kept", named(path.path())));
        let git = self.repositories.iter().map(|git| format!("Git's branches and index in {}", named(git.path())));
        let outside = self.outside.iter();
        let outside = outside.map(|path| format!("{}, which is outside of the session's folders", named(path.path())));
        let ignored = self.ignored.iter().map(|path| format!("{}, which was ignored until then", named(path.path())));
        not_kept.chain(git).chain(outside).chain(ignored)
    }
}

/// What a call changed at one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    pub path: RawPath,
    /// `None` if there was nothing.
    pub before: Option<PathState>,
    /// `None` if there is nothing any more.
    pub after: Option<PathState>,
    /// Where the call moved the file from, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RawPath>,
    /// The file that was there before, if it was one and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<InodeId>,
    /// Another path that the former file has, if the call took this one from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<RawPath>,
    /// The file that the call left there, if it is one and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<FileVersion>,
    /// Where that file came from, if the call did not make it and it was at no path that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignFile>,
}

impl PathChange {
    pub(crate) fn new(path: &Path, before: Option<PathState>, after: Option<PathState>) -> Self {
        Self {
            path: RawPath(path.to_owned()),
            before,
            after,
            from: None,
            was: None,
            other: None,
            left: None,
            foreign: None,
        }
    }

    pub(crate) fn of_file(self, was: Option<InodeId>) -> Self {
        Self { was, ..self }
    }

    /// Why undoing it is impossible, if it is.
    pub(crate) fn lost_because(&self) -> Option<String> {
        let why = match self.foreign.and_then(ForeignFile::lost_because) {
            Some(why) => why,
            None => self.before.as_ref()?.lost_because()?,
        };
        Some(format!("{} cannot be brought back: {why}", named(self.path.path())))
    }
}

/// The call that changes something.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChangingCall {
    pub(crate) session_id: SessionId,
    pub(crate) call_id: CallId,
    pub(crate) tool: ToolName,
    pub(crate) agent: Option<String>,
    pub(crate) command: Option<String>,
}

impl ChangingCall {
    pub(crate) fn of(cx: &Cx) -> Self {
        let client = || cx.session.client.as_ref().map(|client| client.name.clone());
        Self {
            session_id: cx.session.id.clone(),
            call_id: cx.call_id.clone(),
            tool: cx.tool.clone(),
            agent: cx.agent.as_ref().map(|request| request.agent.clone()).or_else(client),
            command: None,
        }
    }

    pub(crate) fn with_command(mut self, line: &str) -> Self {
        self.command = Some(redact::one_line(line, MAX_COMMAND));
        self
    }

    /// Its name in the records of other calls.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.session_id, self.call_id)
    }
}

/// The sessions to look at.
#[derive(Clone, Copy, Debug)]
pub enum JournalScope<'a> {
    Session(&'a SessionId),
    Everybody,
}

/// Changes to undo.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All changes of a call.
    Call(CallId),
    /// All changes of the call that made the last change of a path that is not yet undone: a call is undone as a whole.
    /// The path is absolute and resolved.
    Path(PathBuf),
    /// All changes of these calls, but for those that other calls may have made.
    All(ChangeFilter),
}

/// Calls, by what is known of them.
#[derive(Clone, Debug, Default)]
pub struct ChangeFilter {
    pub since: Option<SystemTime>,
    pub agent: Option<String>,
    /// Only those that changed something in this folder.
    pub below: Option<PathBuf>,
    /// Only those of this session, and those that it may have made as well as another one.
    pub session: Option<SessionId>,
}

impl ChangeFilter {
    pub fn has(&self, record: &ChangeRecord) -> bool {
        let is_below = |folder: &PathBuf| record.paths().any(|path| path.0.starts_with(folder));
        let may_be_of = |session: &SessionId| {
            let is_its = |call: &String| call.split_once('/').is_some_and(|(id, _)| id == session.as_str());
            record.session_id == *session || record.shared_with.iter().any(is_its)
        };
        self.since.is_none_or(|since| record.at >= since)
            && self.session.as_ref().is_none_or(may_be_of)
            && self.below.as_ref().is_none_or(is_below)
            && self.agent.as_ref().is_none_or(|agent| record.agent.as_ref() == Some(agent))
    }
}

/// The journal of all sessions, in one folder.
pub(crate) struct Journal {
    /// `None` if the daemon has no folder for it.
    place: Option<JournalPlace>,
    next: AtomicU64,
}

struct JournalPlace {
    folder: PathBuf,
    contents: KeptContents,
}

impl Journal {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        let place = folder.map(|folder| JournalPlace { contents: KeptContents::new(folder.join(CONTENTS)), folder });
        Self { place, next: AtomicU64::new(1) }
    }

    /// The store of contents.
    ///
    /// # Errors
    /// The daemon has no folder for it.
    pub(crate) fn contents(&self) -> io::Result<&KeptContents> {
        Ok(&self.place()?.contents)
    }

    /// The folder of the journal, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.folder.as_path())
    }

    fn place(&self) -> io::Result<&JournalPlace> {
        self.place.as_ref().ok_or_else(|| io::Error::other("the daemon has no folder to keep the old content in"))
    }

    /// Records what a call did, or is about to do; nothing if that is nothing. Blocks.
    ///
    /// # Errors
    /// It cannot be recorded, and so cannot be undone later.
    pub(crate) fn record(
        &self,
        call: &ChangingCall,
        changes: Vec<PathChange>,
        shared_with: Vec<String>,
    ) -> io::Result<Option<KeptRecord>> {
        self.record_with(call, changes, shared_with, UnrecordedChanges::default())
    }

    /// The same, with what else the call did. There may be nothing but that.
    pub(crate) fn record_with(
        &self,
        call: &ChangingCall,
        mut changes: Vec<PathChange>,
        shared_with: Vec<String>,
        beyond: UnrecordedChanges,
    ) -> io::Result<Option<KeptRecord>> {
        if changes.is_empty() && beyond.is_empty() {
            return Ok(None);
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let folder = self.place()?.folder.join(call.session_id.as_str());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let at = SystemTime::now();
        let nanos = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // File names sort by time; another daemon may write to the same folder.
        let name = format!("{nanos:020}-{:08}-{number:08}.{OPEN}", std::process::id());
        let call = call.clone();
        let record = ChangeRecord {
            session_id: call.session_id,
            call_id: call.call_id,
            tool: call.tool,
            agent: call.agent,
            command: call.command,
            at,
            changes,
            shared_with,
            beyond,
            undone: false,
            kept: PathBuf::new(),
        };
        let kept = KeptRecord(folder.join(name));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&kept.0)?;
        file.write_all(&serde_json::to_vec(&record)?)?;
        Ok(Some(kept))
    }

    /// Notes in the records of these calls, `SESSION/CALL`, that another one may have made their changes, too. Blocks.
    ///
    /// # Errors
    /// A record cannot be written.
    pub(crate) fn note_shared(&self, calls: &BTreeSet<String>, with: &ChangingCall) -> io::Result<()> {
        let sessions: BTreeSet<&str> = calls.iter().filter_map(|call| Some(call.split_once('/')?.0)).collect();
        for session in sessions.into_iter().filter_map(|session| SessionId::parse(session).ok()) {
            let records = self.read(JournalScope::Session(&session)).into_iter().filter(|record| !record.undone);
            let is_of = |record: &ChangeRecord| calls.contains(&format!("{}/{}", record.session_id, record.call_id));
            for mut record in records.filter(is_of).filter(|record| !record.shared_with.contains(&with.name())) {
                record.shared_with.push(with.name());
                record.write_again()?;
            }
        }
        Ok(())
    }

    /// The records, oldest first. Blocks.
    pub(crate) fn read(&self, whose: JournalScope<'_>) -> Vec<ChangeRecord> {
        let Some(JournalPlace { folder, .. }) = &self.place else { return Vec::new() };
        let mut records = match whose {
            JournalScope::Session(id) => of_folder(&folder.join(id.as_str())),
            JournalScope::Everybody => {
                let folders = fs::read_dir(folder).into_iter().flatten().flatten();
                let of_sessions = folders.filter(|folder| !folder.file_name().as_encoded_bytes().starts_with(b"@"));
                of_sessions.flat_map(|folder| of_folder(&folder.path())).collect()
            }
        };
        records.sort_by(|a, b| a.kept.file_name().cmp(&b.kept.file_name()));
        records
    }

    /// The selected records that are not undone, newest first. Blocks.
    pub(crate) fn selected(&self, whose: JournalScope<'_>, selection: &Selection) -> Vec<ChangeRecord> {
        let mut open: Vec<ChangeRecord> = self.read(whose).into_iter().rev().filter(|record| !record.undone).collect();
        // A name that is not UTF-8 comes as it is shown.
        let is_at = |change: &PathChange, path: &Path| {
            let is_shown_so = || change.path.0.to_string_lossy() == path.to_string_lossy();
            change.path.0 == path || path.to_string_lossy().contains('\u{fffd}') && is_shown_so()
        };
        let touches = |record: &ChangeRecord, path: &Path| record.changes.iter().any(|change| is_at(change, path));
        // Call ids are unique only within a session.
        let of_call = match selection {
            Selection::Call(id) => {
                open.iter().filter(|record| record.call_id == *id).min_by_key(|record| record.is_doubtful())
            }
            Selection::Path(path) => open.iter().find(|record| touches(record, path)),
            Selection::All(filter) => {
                open.retain(|record| filter.has(record) && record.shared_with.is_empty());
                return open;
            }
        };
        let Some(found) = of_call.cloned() else { return Vec::new() };
        open.retain(|record| {
            let is_of_call = record.call_id == found.call_id && record.session_id == found.session_id;
            is_of_call && record.is_doubtful() == found.is_doubtful()
        });
        open
    }

    /// Removes the changes of `path` and of all below it from all records, and the records that are empty then; all
    /// records without a path. Contents that nothing else needs are removed too. Returns how many changes it removed.
    /// Blocks.
    ///
    /// # Errors
    /// A record cannot be written or removed.
    pub(crate) fn forget(&self, path: Option<&Path>) -> io::Result<usize> {
        let mut forgotten = 0;
        for mut record in self.read(JournalScope::Everybody) {
            let (all, changes) = (record.paths().count(), record.changes.len());
            let stays = |other: &RawPath| path.is_some_and(|path| !other.0.starts_with(path));
            record.changes.retain(|change| stays(&change.path));
            record.beyond.retain(stays);
            let left = record.paths().count();
            forgotten += changes - record.changes.len();
            if left == 0 {
                fs::remove_file(&record.kept)?;
            } else if left < all {
                record.write_again()?;
            }
        }
        if let Some(place) = &self.place {
            place.contents.clean(&self.needed(), true);
        }
        Ok(forgotten)
    }

    fn needed(&self) -> HashSet<FileDigest> {
        let records = self.read(JournalScope::Everybody);
        let changes = records.iter().flat_map(|record| &record.changes);
        let states = changes.flat_map(|change| [&change.before, &change.after]).flatten();
        states.filter_map(PathState::content).collect()
    }

    /// Removes the records that are too old, if `may_remove` allows it for one more of that many, then the oldest until their
    /// contents fit, and all contents that nobody needs; `indexed` gives those that indexes need, or `None` if that is not
    /// known now. Blocks.
    pub(crate) fn clean(
        &self,
        may_remove: &mut dyn FnMut(u64) -> bool,
        indexed: impl FnOnce() -> Option<HashSet<FileDigest>>,
    ) {
        let Some(place) = &self.place else { return };
        let records = self.read(JournalScope::Everybody);
        let (mut seen, mut bytes, most) = (HashSet::new(), 0, place.contents.most());
        let fitting = records.iter().rev().take_while(|record| {
            for digest in record.changes.iter().filter_map(|change| change.before.as_ref()?.content()) {
                if seen.insert(digest) {
                    bytes += place.contents.size(digest);
                }
            }
            bytes <= most
        });
        let too_many = records.len() - fitting.count();
        for (at, record) in records.iter().enumerate() {
            let is_old = record.at.elapsed().is_ok_and(|age| age > MAX_AGE);
            if at < too_many || is_old && may_remove(records.len() as u64) {
                // If this fails, it is tried again at the next cleaning.
                let _ = fs::remove_file(&record.kept);
                if let Some(session) = record.kept.parent() {
                    // Fails while the folder is not empty.
                    let _ = fs::remove_dir(session);
                }
            }
        }
        if let Some(mut needed) = indexed() {
            needed.extend(self.needed());
            place.contents.clean(&needed, false);
        }
    }
}

/// The file of a new record.
pub(crate) struct KeptRecord(PathBuf);

impl KeptRecord {
    /// The call has changed nothing after all.
    pub(crate) fn withdraw(self) {
        // Undoing it finds that everything is as before.
        let _ = fs::remove_file(self.0);
    }
}

impl ChangeRecord {
    /// All that the call changed, as far as that is known.
    fn paths(&self) -> impl Iterator<Item = &RawPath> {
        self.changes.iter().map(|change| &change.path).chain(self.beyond.paths())
    }

    /// Writes the record in place of what it was. A crash leaves either the old or the new one.
    fn write_again(&self) -> io::Result<()> {
        let new = self.kept.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&new, &self.kept)
    }

    /// Marks the changes as undone. If this fails, a second attempt to undo them reports that the files have changed
    /// since.
    pub(crate) fn set_undone(&self) -> io::Result<()> {
        let undone = self.kept.with_extension(UNDONE);
        match fs::rename(&self.kept, &undone) {
            // Somebody else has undone it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && undone.exists() => Ok(()),
            renamed => renamed,
        }
    }

    /// Whether somebody else made the changes as likely as the call: when no daemon ran, or a call that changes these files again
    /// and again. They are not undone with the rest of the call.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.shared_with.iter().any(|other| [AFTER_A_KILL, CHANGED_BEFORE].contains(&other.as_str()))
    }

    /// Whether no other call made the changes.
    pub(crate) fn is_of_one_call(&self) -> bool {
        self.shared_with.iter().all(|other| other == BESIDE_THE_BACKGROUND)
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        let agent = self.agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
        format!("{} in call {}{agent}", self.tool, self.call_id)
    }
}

fn of_folder(folder: &Path) -> Vec<ChangeRecord> {
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| described(&entry.path())).collect()
}

/// Reads a record; `None` for other files, and for one that a crash left incomplete.
fn described(kept: &Path) -> Option<ChangeRecord> {
    let undone = match kept.extension()?.to_str()? {
        OPEN => false,
        UNDONE => true,
        _ => return None,
    };
    let text = toold_host::files::read_named(kept, MAX_RECORD).ok()?;
    let record: ChangeRecord = serde_json::from_slice(&text).ok()?;
    Some(ChangeRecord { undone, kept: kept.to_owned(), ..record })
}
