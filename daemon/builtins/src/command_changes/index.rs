//! The index of one folder: what is at each path below it, with the contents of files kept.
//!
//! Events of the system say what to look at again, so that bringing the index up to date costs only what has changed.
//! Where there are no events, or some were lost, the whole folder is looked through.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toold_host::file_facts;
use toold_host::files::{self, FileType, OpenError, UserAttributes};
use toold_host::folder_events::{WatchBudget, WatchedFolders};
use toold_host::git_state;
use toold_host::ignore_files::IgnoreFiles;

use super::beyond::MAX_REPOSITORIES;
use super::index_log::{IndexLog, LogLine};
use crate::journal::contents::{ContentBatch, KeptContents};
use crate::journal::state::MAX_KEPT_FILE;
use crate::journal::{ChangingCall, FileVersion, ForeignFile, InodeId, PathChange, PathState, RawPath, SpecialKind};
use crate::stamps::FileDigest;

/// The largest file whose content is kept though Git ignores it.
const MAX_IGNORED_FILE: u64 = 1 << 20;
/// The limit of one index.
const MAX_ENTRIES: usize = 100_000;
/// The longest look through a whole folder around a command.
const MAX_WALK: Duration = Duration::from_millis(150);
/// How long it is not looked through again if that took longer, and how long an index that cannot be built is not tried again.
const TO_LOOK_AGAIN: Duration = Duration::from_secs(60);
const TO_BUILD_AGAIN: Duration = Duration::from_secs(600);
/// Folders of version control, which record changes themselves.
const OWN_RECORDS: [&str; 4] = [".git", ".jj", ".hg", ".svn"];

/// What is known of a path.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct KnownEntry {
    state: PathState,
    /// Differs if the entry was written, replaced or given another mode.
    stamp: KnownStamp,
    /// For a file: which one it is, and how many names it has.
    file: Option<(InodeId, u64)>,
    /// It had just been changed when it was looked at, and may be changed again without another stamp: clocks of files are coarse.
    #[serde(default)]
    is_fresh: bool,
}

/// The content of a file, and its attributes.
type KeptFile = (Option<FileDigest>, Option<UserAttributes>);

type KnownStamp = (u64, i64, i64, i64, i64, u64, u32);

fn stamp(facts: &Metadata) -> KnownStamp {
    let (modified, changed) = ((facts.mtime(), facts.mtime_nsec()), (facts.ctime(), facts.ctime_nsec()));
    (facts.ino(), modified.0, modified.1, changed.0, changed.1, facts.size(), facts.mode())
}

impl KnownEntry {
    /// Whether a content that is not kept cannot be compared, so that the stamps decide.
    fn is_same(&self, other: &Self) -> bool {
        let unknown = |entry: &Self| matches!(entry.state, PathState::File { content: None, .. });
        match unknown(self) || unknown(other) {
            true => self.stamp == other.stamp,
            false => self.state.is_like(&other.state),
        }
    }

    fn new(state: PathState, facts: &Metadata) -> Self {
        let file = facts.is_file().then(|| (InodeId::of(facts), facts.nlink()));
        let is_fresh = in_nanos((facts.ctime(), facts.ctime_nsec())) >= file_clock();
        Self { state, stamp: stamp(facts), file, is_fresh }
    }

    /// When the entry was changed last, in nanoseconds since 1970.
    fn changed(&self) -> u64 {
        in_nanos((self.stamp.3, self.stamp.4))
    }

    fn inode(&self) -> u64 {
        self.stamp.0
    }

    fn has_other_names(&self) -> bool {
        self.file.is_some_and(|(_, names)| names > 1)
    }

    fn version(&self) -> Option<FileVersion> {
        let PathState::File { size, .. } = self.state else { return None };
        let (file, _) = self.file?;
        Some(FileVersion { file, size, modified: (self.stamp.1, self.stamp.2) })
    }
}

/// The time in which a call runs.
struct CallWindow {
    id: u64,
    /// Its call, as `SESSION/CALL`.
    name: String,
    /// Whether the call may change files, as far as its command is known.
    may_write: bool,
    /// The session has gone on without a report of the call's end. Until one comes, nothing is the call's that another one may have
    /// done.
    is_overdue: bool,
    /// The calls that have ended since, with changes, as `SESSION/CALL`.
    ended_since: BTreeSet<String>,
    /// When it began, in nanoseconds since 1970 by the clock that files get their times from.
    opened: u64,
    /// The time by that clock then: a file that was changed later has a later time, but for those of the same moment.
    clock: u64,
    /// What was at the paths that changed, before the first change.
    touched: BTreeMap<PathBuf, Option<KnownEntry>>,
    /// The other calls that may have changed a path.
    shared: HashMap<PathBuf, BTreeSet<String>>,
    /// The paths that it may have changed, and the newest call when it first did.
    changed: HashMap<PathBuf, u64>,
    /// Paths that the daemon's own tools change, and record themselves.
    others: HashSet<PathBuf>,
    /// Files and folders that were left out of the index and that are gone now.
    gone: BTreeSet<PathBuf>,
    /// The same of those that are in it now, since they are ignored no longer, and in which something has changed.
    adopted: BTreeSet<PathBuf>,
    /// Why the changes of the call are not known.
    lost: Option<String>,
}

impl CallWindow {
    fn new(id: u64, name: String, may_write: bool, opened: u64) -> Self {
        Self {
            id,
            name,
            may_write,
            is_overdue: false,
            ended_since: BTreeSet::new(),
            opened,
            clock: file_facts::file_clock().as_nanos() as u64,
            touched: BTreeMap::new(),
            shared: HashMap::new(),
            changed: HashMap::new(),
            others: HashSet::new(),
            gone: BTreeSet::new(),
            adopted: BTreeSet::new(),
            lost: None,
        }
    }

    /// Whether the call runs and may change files, as far as that is known.
    fn is_writer(&self) -> bool {
        self.may_write && !self.is_overdue
    }
}

/// What happened while a call ran.
#[derive(Default)]
pub(super) struct WindowChanges {
    pub(super) own: Vec<PathChange>,
    /// Changes that other calls may have made, too.
    pub(super) shared: Vec<PathChange>,
    /// The same, of paths that another call that still runs had changed before this one began, such as the log of a server.
    pub(super) contested: Vec<PathChange>,
    pub(super) shared_with: BTreeSet<String>,
    /// Files and folders that were removed while the call ran, and that were left out of the index: nothing of them is kept.
    pub(super) not_kept: Vec<PathBuf>,
    /// Files and folders that were ignored until then, and in which something was changed while the call ran.
    pub(super) ignored: Vec<PathBuf>,
    /// The calls that ended while the report of this call's end was overdue: it may have made their changes, as they may have.
    pub(super) ended_since: BTreeSet<String>,
    pub(super) lost: Option<String>,
}

impl WindowChanges {
    /// Sets aside what was removed and cannot be brought back, so that all else comes back: sockets and devices, which hold
    /// nothing, and in a call that only removed something whatever it is. What another call made may be the only copy of it.
    pub(super) fn set_lost_aside(&mut self) {
        let all = [&mut self.own, &mut self.shared, &mut self.contested];
        let only_removes = all.iter().all(|changes| changes.iter().all(|change| change.after.is_none()));
        for changes in all {
            let lost = changes.extract_if(.., |change| {
                let is_empty = matches!(change.before, Some(PathState::Special { .. }));
                change.after.is_none() && change.lost_because().is_some() && (only_removes || is_empty)
            });
            self.not_kept.extend(lost.map(|change| change.path.0));
        }
    }

    /// Why some of the changes cannot be undone, if so.
    pub(super) fn lost_for_ever(&self) -> Option<String> {
        let mut reasons =
            self.own.iter().chain(&self.shared).chain(&self.contested).filter_map(PathChange::lost_because);
        let first = reasons.next()?;
        Some(match reasons.count() {
            0 => first,
            more => format!("{first}, and {more} more"),
        })
    }
}

pub(super) struct FolderIndex {
    root: PathBuf,
    /// A folder of the daemon's own below the root, which is left out.
    own_folder: Option<PathBuf>,
    device: u64,
    /// The folder itself; `None` if it was gone. Another one at its path has none of the watches.
    root_file: Option<InodeId>,
    entries: BTreeMap<PathBuf, KnownEntry>,
    /// Files and folders that are left out of the index: ignored folders and large files, repositories, other file systems.
    left_out: BTreeSet<PathBuf>,
    /// The files `.git` of submodules and worktrees.
    git_files: BTreeSet<PathBuf>,
    /// Entries that are taken in now are no changes.
    is_adopting: bool,
    /// The files that have other names, here or elsewhere.
    linked: BTreeSet<PathBuf>,
    /// One of them was not known as such, or is another file now. Another of its names may be known with one name.
    has_new_link: bool,
    rules: Option<IgnoreFiles>,
    bytes: u64,
    /// The most that `bytes` may be.
    most: u64,
    is_built: bool,
    /// Why there is no index, or none that is up to date, and when it is tried again.
    off: Option<(String, tokio::time::Instant)>,
    budget: WatchBudget,
    /// Until it is built, and without events, the folder is looked through each time.
    watched: Option<WatchedFolders>,
    windows: Vec<CallWindow>,
    /// Where the log is made, if there is to be one, and the log.
    log_folder: Option<PathBuf>,
    log: Option<IndexLog>,
}

impl FolderIndex {
    pub(super) fn new(root: &Path, own_folder: Option<&Path>, budget: WatchBudget) -> Self {
        Self {
            root: root.to_owned(),
            own_folder: own_folder.map(Path::to_owned),
            device: 0,
            root_file: None,
            entries: BTreeMap::new(),
            left_out: BTreeSet::new(),
            git_files: BTreeSet::new(),
            is_adopting: false,
            linked: BTreeSet::new(),
            has_new_link: false,
            rules: None,
            bytes: 0,
            most: 0,
            is_built: false,
            off: None,
            budget,
            watched: None,
            windows: Vec::new(),
            log_folder: None,
            log: None,
        }
    }

    /// As [`Self::new`], with a log in this folder of records.
    pub(super) fn with_log(self, records: &Path) -> Self {
        Self { log_folder: Some(Self::log_folder(records)), ..self }
    }

    /// The folder of logs. No session has this id.
    pub(super) fn log_folder(records: &Path) -> PathBuf {
        records.join("@index")
    }

    /// An index that a log describes. Nothing is watched.
    pub(super) fn of_log(root: &Path, own_folder: Option<&Path>, device: u64) -> Self {
        let index = Self::new(root, own_folder, WatchBudget::new());
        Self { device, is_built: true, most: u64::MAX, ..index }
    }

    /// Whether it was looked at, or turned off.
    pub(super) fn is_built(&self) -> bool {
        self.is_built || self.off.is_some()
    }

    pub(super) fn is_used(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Opens the window of a call. Blocks; at first for as long as it takes to read the folder. `is_late` says whether
    /// the call has begun meanwhile, so that it gets no window.
    ///
    /// # Errors
    /// Why the changes of the call cannot be undone.
    pub(super) fn open(
        &mut self,
        contents: &KeptContents,
        (id, call, may_write): (u64, &ChangingCall, bool),
        is_late: impl Fn() -> bool,
    ) -> Result<(), String> {
        self.settle(contents)?;
        if is_late() {
            return Err("the folder was not known yet when the command began".to_owned());
        }
        let opened = file_clock();
        self.add_window(id, call, may_write, opened);
        self.note(|| LogLine::Open { id, call: call.clone(), may_write, opened });
        self.flush();
        Ok(())
    }

    pub(super) fn add_window(&mut self, id: u64, call: &ChangingCall, may_write: bool, opened: u64) {
        self.windows.push(CallWindow::new(id, call.name(), may_write, opened));
    }

    fn note(&mut self, line: impl FnOnce() -> LogLine) {
        if let Some(log) = &mut self.log {
            log.add(&line());
        }
    }

    fn flush(&mut self) {
        if self.log.as_mut().is_some_and(|log| log.flush().is_err()) {
            self.log = None;
        }
    }

    /// Notes that the daemon lives while a command runs.
    pub(super) fn touch(&self) {
        self.log.iter().for_each(IndexLog::touch);
    }

    /// Notes that the changes of a call are recorded.
    pub(super) fn note_recorded(&mut self, id: u64) {
        self.note(|| LogLine::Close { id });
        self.flush();
        if self.windows.is_empty() && self.log.as_ref().is_some_and(|log| log.is_long(self.entries.len())) {
            self.begin_log();
        }
    }

    /// Begins a log with what is known.
    fn begin_log(&mut self) {
        self.log = self.log_folder.as_ref().and_then(|folder| IndexLog::new(folder).ok());
        let Some(log) = &mut self.log else { return };
        let own_folder = self.own_folder.clone().map(RawPath);
        log.add(&LogLine::Folder { root: RawPath(self.root.clone()), own_folder, device: self.device });
        for (path, entry) in &self.entries {
            log.add(&LogLine::Path(RawPath(path.clone()), Some(entry.clone())));
        }
        self.flush();
    }

    /// Whether the contents of all these files are kept as they are now. Blocks like [`Self::open`].
    ///
    /// # Errors
    /// Why nothing in the folder can be undone.
    pub(super) fn keeps(&mut self, contents: &KeptContents, paths: &[PathBuf]) -> Result<bool, String> {
        self.settle(contents)?;
        let is_kept = |state: &PathState| match state {
            PathState::File { content, .. } => content.is_some(),
            PathState::Link { .. } => true,
            PathState::Folder { .. } | PathState::Special { .. } => false,
        };
        Ok(paths.iter().all(|path| self.entries.get(path).is_some_and(|entry| is_kept(&entry.state))))
    }

    /// Closes a window. Blocks for as long as it takes to read what has changed.
    pub(super) fn close(&mut self, contents: &KeptContents, id: u64) -> WindowChanges {
        match (self.settle(contents), self.finish(id)) {
            (Err(why), WindowChanges { lost: None, .. }) => {
                WindowChanges { lost: Some(why), ..WindowChanges::default() }
            }
            (_, changes) => changes,
        }
    }

    /// The changes of a call of which no end was reported although its session goes on. Its window stays, overdue. Blocks as
    /// [`Self::close`].
    pub(super) fn close_overdue(&mut self, contents: &KeptContents, id: u64) -> WindowChanges {
        let known = self.windows.iter().find(|window| window.id == id);
        let Some((name, may_write)) = known.map(|window| (window.name.clone(), window.may_write)) else {
            return WindowChanges::default();
        };
        let changes = self.close(contents, id);
        self.windows.push(CallWindow { is_overdue: true, ..CallWindow::new(id, name, may_write, file_clock()) });
        changes
    }

    /// Closes a window without a record.
    pub(super) fn forget(&mut self, id: u64) {
        self.windows.retain(|window| window.id != id);
    }

    /// Closes a window, with the changes that are known.
    pub(super) fn finish(&mut self, id: u64) -> WindowChanges {
        let Some(at) = self.windows.iter().position(|window| window.id == id) else { return WindowChanges::default() };
        let mut window = self.windows.swap_remove(at);
        let ended_since = std::mem::take(&mut window.ended_since);
        let mut changes = WindowChanges { lost: window.lost.take(), ended_since, ..WindowChanges::default() };
        if changes.lost.is_some() {
            return changes;
        }
        let gone = std::mem::take(&mut window.gone);
        // It may have been made again.
        changes.not_kept = gone.into_iter().filter(|path| is_gone(path)).collect();
        changes.ignored = std::mem::take(&mut window.adopted).into_iter().collect();
        let mut foreign = self.foreign(&window);
        let others = self.other_paths(&window);
        for (path, before) in window.touched {
            let after = self.entries.get(&path);
            let is_same = match (&before, after) {
                (Some(before), Some(after)) => before.is_same(after),
                (None, None) => true,
                _ => false,
            };
            let was = before.as_ref().and_then(|before| before.file).map(|(file, _)| file);
            let left = after.and_then(KnownEntry::version);
            let other = was.filter(|was| left.is_none_or(|left| !left.file.is(*was)));
            let other = other.and_then(|was| others.get(&was.inode)).map(|path| RawPath(path.clone()));
            // Names of one file that are names of two now, or the reverse, are a change although no content is another one.
            let is_joined = was.zip(after).is_some_and(|(was, after)| {
                after.has_other_names() && after.file.is_some_and(|(file, _)| !file.is(was))
            });
            if is_same && other.is_none() && !is_joined || window.others.contains(&path) {
                continue;
            }
            let (before, after) = (before.map(|before| before.state), after.map(|after| after.state.clone()));
            let foreign = foreign.remove(&path).filter(|_| !is_same);
            let change = PathChange { was, other, left, foreign, ..PathChange::new(&path, before, after) };
            match window.shared.remove(&path) {
                None => changes.own.push(change),
                Some(names) => {
                    let is_earlier = |other: &CallWindow| {
                        names.contains(&other.name) && other.changed.get(&path).is_some_and(|newest| *newest < id)
                    };
                    match self.windows.iter().any(is_earlier) {
                        true => changes.contested.push(change),
                        false => changes.shared.push(change),
                    }
                    changes.shared_with.extend(names);
                    // Recorded once. What the others do to it from now on is a change of its own.
                    self.windows.iter_mut().for_each(|other| _ = other.touched.remove(&path));
                }
            }
        }
        if !changes.own.is_empty() || !changes.shared.is_empty() {
            let overdue = self.windows.iter_mut().filter(|other| other.is_overdue);
            overdue.for_each(|other| _ = other.ended_since.insert(window.name.clone()));
        }
        changes
    }

    /// For each file with several names that a path had before a call, a path that it has now.
    fn other_paths(&self, window: &CallWindow) -> HashMap<u64, PathBuf> {
        let before = window.touched.values().flatten().filter(|entry| entry.has_other_names());
        let files: HashSet<u64> = before.map(KnownEntry::inode).collect();
        if files.is_empty() {
            return HashMap::new();
        }
        let has = self.entries.iter().filter(|(_, entry)| entry.file.is_some() && files.contains(&entry.inode()));
        has.map(|(path, entry)| (entry.inode(), path.clone())).collect()
    }

    /// The files that a call put at paths though they are older than the call and were at none before.
    fn foreign(&self, window: &CallWindow) -> HashMap<PathBuf, ForeignFile> {
        let older = window.touched.keys().filter_map(|path| {
            let entry = self.entries.get(path)?;
            let (file, names) = entry.file?;
            let modified = entry.version()?.modified;
            is_older(file, modified, window.opened).then_some((path, file, names, modified))
        });
        let older: Vec<_> = older.collect();
        let links = self.foreign_links(window);
        if older.is_empty() {
            return links.into_iter().collect();
        }
        let before = self.entries_before(window);
        let known: HashSet<u64> = before.filter(|entry| entry.file.is_some()).map(KnownEntry::inode).collect();
        // If the file system ignores case, a file that has its only name in another case now is still found under the former one.
        let mut places: HashMap<u64, usize> = older.iter().map(|(_, file, ..)| (file.inode, 0)).collect();
        for entry in self.entries.values().filter(|entry| entry.file.is_some_and(|(_, names)| names <= 1)) {
            if let Some(count) = places.get_mut(&entry.inode()) {
                *count += 1;
            }
        }
        let is_unknown = |file: InodeId| !known.contains(&file.inode) || places[&file.inode] > 1;
        let unknown = older.into_iter().filter(|(_, file, ..)| is_unknown(*file));
        let unknown = unknown.map(|(path, _, names, modified)| {
            let foreign = match (names, in_nanos(modified) >= window.opened) {
                (..=1, _) => ForeignFile::Moved,
                (_, true) => ForeignFile::Written,
                (_, false) => ForeignFile::Linked,
            };
            (path.clone(), foreign)
        });
        unknown.chain(links).collect()
    }

    /// All entries as they were before a call.
    fn entries_before<'s>(&'s self, window: &'s CallWindow) -> impl Iterator<Item = &'s KnownEntry> {
        let untouched = self.entries.iter().filter(|(path, _)| !window.touched.contains_key(*path));
        window.touched.values().flatten().chain(untouched.map(|(_, entry)| entry))
    }

    /// The symbolic links that a call moved to paths from elsewhere: they are older than the call, and none of those that were there
    /// before had the same target.
    fn foreign_links(&self, window: &CallWindow) -> Vec<(PathBuf, ForeignFile)> {
        let target = |entry: &KnownEntry| match &entry.state {
            PathState::Link { target } => Some(target.clone()),
            _ => None,
        };
        let is_older = |path: &PathBuf| {
            let facts = path.symlink_metadata();
            facts.is_ok_and(|facts| is_older(InodeId::of(&facts), FileVersion::of(&facts).modified, window.opened))
        };
        let links = window.touched.keys().filter_map(|path| Some((path, target(self.entries.get(path)?)?)));
        let mut older: Vec<_> = links.filter(|(path, _)| is_older(path)).collect();
        if !older.is_empty() {
            let known: HashSet<RawPath> = self.entries_before(window).filter_map(target).collect();
            older.retain(|(_, target)| !known.contains(target));
        }
        older.into_iter().map(|(path, _)| (path.clone(), ForeignFile::Moved)).collect()
    }

    /// Paths that the daemon itself changes now: no command did it.
    pub(super) fn expect_others<'p>(&mut self, paths: impl Iterator<Item = &'p PathBuf> + Clone) {
        if self.windows.is_empty() {
            return;
        }
        let mut others: HashSet<PathBuf> = paths.filter(|path| path.starts_with(&self.root)).cloned().collect();
        let inodes: HashSet<u64> = self.inodes(others.iter().filter(|path| self.linked.contains(*path))).collect();
        let names =
            self.linked.iter().filter(|path| self.inodes([*path].into_iter()).any(|inode| inodes.contains(&inode)));
        let names: Vec<PathBuf> = names.cloned().collect();
        others.extend(names);
        for window in &mut self.windows {
            window.others.extend(others.iter().cloned());
        }
        self.note(|| LogLine::Others(others.into_iter().map(RawPath).collect()));
        self.flush();
    }

    fn inodes<'s>(&'s self, paths: impl Iterator<Item = &'s PathBuf> + 's) -> impl Iterator<Item = u64> + 's {
        paths.filter_map(|path| self.entries.get(path)).map(KnownEntry::inode)
    }

    /// The contents of the files as they are now, and as they were before the calls that run.
    pub(super) fn contents(&self) -> impl Iterator<Item = FileDigest> {
        let before = self.windows.iter().flat_map(|window| window.touched.values().flatten());
        self.entries.values().chain(before).filter_map(|entry| entry.state.content())
    }

    /// The `.git` of the repositories in the folder, and of the one that it lies in.
    pub(super) fn repositories(&self) -> Vec<PathBuf> {
        let inside = self.left_out.iter().filter(|path| is_git(path)).chain(&self.git_files);
        let around = git_state::around(&self.root);
        let inside = inside.filter(|git| around.as_ref() != Some(*git)).cloned();
        around.clone().into_iter().chain(inside.collect::<Vec<_>>()).take(MAX_REPOSITORIES).collect()
    }

    /// Brings the index up to date.
    fn settle(&mut self, contents: &KeptContents) -> Result<(), String> {
        if let Some((why, until)) = &self.off {
            if tokio::time::Instant::now() < *until {
                return Err(why.clone());
            }
            self.off = None;
        }
        let mut batch = contents.batch();
        let looked = if self.is_built {
            let updated = self.update(&mut batch);
            updated.and_then(|()| self.look_at_linked(&mut batch).inspect_err(|why| self.turn_off(why)))
        } else {
            self.most = contents.most();
            self.build(&mut batch).inspect_err(|why| self.turn_off(why))
        };
        self.flush();
        // Also what was read before it failed: the index may go on to know it.
        let kept = batch.finish().map_err(not_kept).inspect_err(|why| self.turn_off(why));
        looked.and(kept)
    }

    /// Brings an index of a log up to date, however long that takes.
    ///
    /// # Errors
    /// The folder is not there any more, or is too large by now.
    pub(super) fn catch_up(&mut self, contents: &KeptContents) -> Result<(), String> {
        let facts = std::fs::symlink_metadata(&self.root).map_err(|error| error.to_string())?;
        if facts.dev() != self.device {
            return Err("its folder lies on another file system".to_owned());
        }
        let mut batch = contents.batch();
        self.walk(&mut batch, &self.root.clone(), None)?;
        batch.finish().map_err(not_kept)
    }

    fn update(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        if self.root_file != file_at(&self.root) {
            return self.look_anew(contents);
        }
        let has_events = self.watched.as_ref().is_some_and(WatchedFolders::reports);
        let mut dirty: BTreeMap<PathBuf, bool> = BTreeMap::new();
        let is_complete = self
            .watched
            .as_mut()
            .is_some_and(|watched| watched.take(|path, is_deep| *dirty.entry(path).or_default() |= is_deep));
        // The numbers of files are used again: a folder that was removed and made again may look like the same one.
        let is_watched = self.watched.as_ref().is_some_and(|watched| watched.has(&self.root));
        match (is_complete && (is_watched || !has_events), has_events) {
            (true, _) => {}
            // Some were lost. Those that come from now on are reported again.
            (false, true) => return self.look_anew(contents),
            (false, false) => return self.look_through(contents),
        }
        let is_rules = |path: &PathBuf| path.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore");
        let has_other_rules = dirty.keys().any(is_rules);
        if has_other_rules {
            self.rules = None;
        }
        for (path, is_deep) in dirty {
            self.refresh(contents, &path, is_deep).inspect_err(|why| self.turn_off(why))?;
        }
        match has_other_rules {
            true => self.adopt(contents).inspect_err(|why| self.turn_off(why)),
            false => Ok(()),
        }
    }

    /// Takes in what was left out and is ignored no longer. It was there before the calls that run, as far as is known.
    fn adopt(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        let left_out: Vec<PathBuf> = self.left_out.iter().cloned().collect();
        self.is_adopting = true;
        let adopted = left_out.iter().try_for_each(|path| self.refresh(contents, path, true));
        self.is_adopting = false;
        for path in left_out {
            let changed = self.below(&path).filter_map(|path| self.entries.get(path)).map(KnownEntry::changed).max();
            for window in self.running_writers().filter(|window| changed.is_some_and(|changed| changed > window.clock))
            {
                window.adopted.insert(path.clone());
            }
        }
        adopted
    }

    /// The windows of the calls that may have made a change now.
    fn running_writers(&mut self) -> impl Iterator<Item = &mut CallWindow> {
        let any_writes = self.windows.iter().any(CallWindow::is_writer);
        self.windows.iter_mut().filter(move |window| window.is_writer() || !any_writes)
    }

    /// A file with several names is changed through any of them, be it one outside, and only the folder of that name
    /// reports it.
    fn look_at_linked(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        let linked: Vec<PathBuf> = self.linked.iter().cloned().collect();
        for path in linked {
            self.refresh(contents, &path, false)?;
        }
        if std::mem::take(&mut self.has_new_link) {
            let inodes: HashSet<u64> = self.inodes(self.linked.iter()).collect();
            let is_other = |entry: &KnownEntry| entry.file.is_some() && inodes.contains(&entry.inode());
            let others = self.entries.iter().filter(|(path, entry)| is_other(entry) && !self.linked.contains(*path));
            let others: Vec<PathBuf> = others.map(|(path, _)| path.clone()).collect();
            for path in others {
                self.refresh(contents, &path, false)?;
            }
        }
        Ok(())
    }

    /// The first look at the folder.
    fn build(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        let facts = std::fs::symlink_metadata(&self.root).map_err(|error| format!("can't read its folder: {error}"))?;
        (self.device, self.root_file) = (facts.dev(), file_at(&self.root));
        self.watched = Some(WatchedFolders::new(&self.root, self.budget.clone()));
        self.walk(contents, &self.root.clone(), None)?;
        (self.is_built, self.has_new_link) = (true, false);
        self.begin_log();
        Ok(())
    }

    /// Looks through a folder of which changes are reported from now on. What was known of it is from before: the calls that
    /// run get all that is different, however long that takes.
    fn look_anew(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        self.root_file = file_at(&self.root);
        self.device = self.root_file.map_or(self.device, |root| root.device);
        // First, so that its watches are free again.
        self.watched = None;
        self.watched = Some(WatchedFolders::new(&self.root, self.budget.clone()));
        self.rules = None;
        self.walk(contents, &self.root.clone(), None).inspect_err(|why| self.turn_off(why))
    }

    fn look_through(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        let deadline = Instant::now() + MAX_WALK;
        // Entries stay known, so that it may take less time in a moment.
        self.walk(contents, &self.root.clone(), Some(deadline)).inspect_err(|why| self.lose(why, TO_LOOK_AGAIN))
    }

    /// No window knows what happened, and none is opened for so long.
    fn lose(&mut self, why: &str, pause: Duration) {
        self.off = Some((why.to_owned(), tokio::time::Instant::now() + pause));
        for window in &mut self.windows {
            window.lost.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Without an index, nothing is kept up to date. It is built again after a time: what stood in its way may be gone.
    fn turn_off(&mut self, why: &str) {
        self.lose(why, TO_BUILD_AGAIN);
        (self.watched, self.rules) = (None, None);
        (self.is_built, self.bytes) = (false, 0);
        self.entries.clear();
        self.left_out.clear();
        self.git_files.clear();
        self.linked.clear();
        self.log = None;
    }

    /// Looks at everything below a folder.
    fn walk(&mut self, contents: &mut ContentBatch<'_>, top: &Path, deadline: Option<Instant>) -> Result<(), String> {
        if top == self.root {
            self.look_at_root(contents)?;
        }
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let mut left = vec![top.to_owned()];
        while let Some(folder) = left.pop() {
            // Watched before it is read, so that nothing is missed in between.
            if let Some(watched) = &mut self.watched {
                watched.watch(&folder);
            }
            let names = match files::list(&folder, MAX_ENTRIES) {
                Ok(names) => names,
                // What is in a folder that cannot be read is as before, as far as anybody can tell.
                Err(OpenError::System { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                    self.note_unseen(&folder);
                    seen.extend(self.below(&folder).cloned());
                    continue;
                }
                // It is gone, or something else by now.
                Err(OpenError::NoFolder(_) | OpenError::Swapped(_)) => continue,
                Err(error) => return Err(error.to_string()),
            };
            for (name, _) in names {
                if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                    let limit = MAX_WALK.as_millis();
                    return Err(format!(
                        "its folder does not report all changes, and is too large to read in {limit} ms"
                    ));
                }
                let path = folder.join(name);
                if let Some(is_folder) = self.look_at(contents, &path)? {
                    seen.insert(path.clone());
                    if is_folder {
                        left.push(path);
                    }
                }
            }
        }
        let gone: Vec<PathBuf> =
            self.below(top).filter(|path| *path != top && !seen.contains(*path)).cloned().collect();
        for path in gone {
            self.set(&path, None);
        }
        self.note_gone(top);
        Ok(())
    }

    /// Looks at one path, and below it if `is_deep`, or if it is a folder that was not known.
    fn refresh(&mut self, contents: &mut ContentBatch<'_>, path: &Path, is_deep: bool) -> Result<(), String> {
        if path == self.root {
            return self.look_at_root(contents);
        }
        let was_known = self.entries.get(path).is_some_and(|entry| entry.state.is_folder());
        match self.look_at(contents, path)? {
            // One that is not watched may not have been readable before.
            Some(true) if is_deep || !was_known || !self.watched.as_ref().is_some_and(|watched| watched.has(path)) => {
                self.walk(contents, path, None)
            }
            Some(true) => Ok(()),
            found => {
                let others: Vec<PathBuf> = self.below(path).cloned().collect();
                for other in others.iter().filter(|other| found.is_none() || *other != path) {
                    self.set(other, None);
                }
                self.note_gone(path);
                Ok(())
            }
        }
    }

    fn look_at_root(&mut self, contents: &mut ContentBatch<'_>) -> Result<(), String> {
        let root = self.root.clone();
        if self.look_at(contents, &root)?.is_none() && self.entries.contains_key(&root) {
            self.set(&root, None);
        }
        Ok(())
    }

    /// The known paths at and below a path.
    fn below<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s PathBuf> + 's {
        let from = self.entries.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        from.map(|(known, _)| known).take_while(move |known| known.starts_with(path))
    }

    /// Looks at one path; returns whether it is a folder, and `None` if it has no place in the index.
    fn look_at(&mut self, contents: &mut ContentBatch<'_>, path: &Path) -> Result<Option<bool>, String> {
        if self.own_folder.as_deref() == Some(path) {
            return Ok(None);
        }
        // Through a link that has taken the place of a folder, something else would be found.
        let is_in_folder = |parent: &Path| {
            parent == self.root || self.entries.get(parent).is_some_and(|parent| parent.state.is_folder())
        };
        let is_root = path == self.root;
        if !is_root && !path.parent().is_some_and(is_in_folder) {
            return Ok(None);
        }
        let known = self.entries.get(path);
        let facts = match std::fs::symlink_metadata(path) {
            Ok(facts) => facts,
            // In a folder that may not be searched any more.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let is_folder = known.map(|known| known.state.is_folder());
                self.note_unseen(path);
                return Ok(is_folder);
            }
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(format!("can't look at {}: {error}", path.display())),
        };
        if known.is_some_and(|known| known.stamp == stamp(&facts) && !known.is_fresh) {
            return Ok(Some(facts.is_dir()));
        }
        // The file `.git` of a submodule or a worktree only says where its records are.
        if !facts.is_file() && path.file_name().is_some_and(|name| OWN_RECORDS.iter().any(|own| name == *own)) {
            return Ok(self.leave_out(path));
        }
        let is_ignored = !is_root && known.is_none() && self.rules().matched(path, facts.is_dir()).is_ignore();
        let state = if facts.is_dir() {
            if is_ignored || facts.dev() != self.device {
                return Ok(self.leave_out(path));
            }
            let attributes = files::open_folder(path).ok().map(UserAttributes::of);
            PathState::Folder { mode: Some(facts.mode() & 0o7777), attributes }
        } else if facts.is_symlink() {
            let Ok(target) = files::link_target(path) else { return Ok(None) };
            PathState::Link { target: RawPath(target) }
        } else if facts.is_file() {
            if is_ignored && facts.size() > MAX_IGNORED_FILE {
                return Ok(self.leave_out(path));
            }
            let (content, attributes) = match facts.size() <= MAX_KEPT_FILE {
                true => self.keep(contents, path)?,
                false => (None, None),
            };
            PathState::File { content, mode: Some(facts.mode() & 0o7777), size: facts.size(), attributes }
        } else {
            let kind = FileType::from_raw_mode(facts.mode() as _);
            PathState::Special { what: SpecialKind::of(kind), mode: Some(facts.mode() & 0o7777) }
        };
        if self.entries.len() >= MAX_ENTRIES {
            return Err(format!("its folder has more than {MAX_ENTRIES} files"));
        }
        let is_folder = state.is_folder();
        self.set(path, Some(KnownEntry::new(state, &facts)));
        Ok(Some(is_folder))
    }

    fn leave_out(&mut self, path: &Path) -> Option<bool> {
        if self.left_out.len() < MAX_ENTRIES {
            self.left_out.insert(path.to_owned());
        }
        None
    }

    /// The calls that run may have removed what was left out at and below a path and is not there any more.
    fn note_gone(&mut self, path: &Path) {
        let below = self.left_out.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        let gone = below.take_while(|left| left.starts_with(path)).filter(|left| is_gone(left));
        let gone: Vec<PathBuf> = gone.cloned().collect();
        for left in gone {
            self.left_out.remove(&left);
            self.running_writers().for_each(|window| _ = window.gone.insert(left.clone()));
        }
    }

    /// What has happened at a path cannot be seen. A call that has changed a folder above it may have done that, and more there.
    fn note_unseen(&mut self, path: &Path) {
        for window in &mut self.windows {
            if let Some(folder) = path.ancestors().find(|above| window.touched.contains_key(*above)) {
                let why =
                    || format!("what has changed in {} is not known: it may not be read any more", folder.display());
                window.lost.get_or_insert_with(why);
            }
        }
    }

    /// The content of a file, kept, and its attributes; `None` if it cannot be read.
    fn keep(&mut self, contents: &mut ContentBatch<'_>, path: &Path) -> Result<KeptFile, String> {
        let Ok((file, content)) = files::open_whole(path, MAX_KEPT_FILE) else { return Ok((None, None)) };
        let attributes = UserAttributes::of(&file);
        self.bytes += content.len() as u64;
        if self.bytes > self.most {
            return Err(format!("the contents of its folder take more than {} MiB", self.most >> 20));
        }
        let digest = contents.keep_of(&content, &file).map_err(not_kept)?;
        Ok((Some(digest), Some(attributes)))
    }

    fn rules(&mut self) -> &IgnoreFiles {
        self.rules.get_or_insert_with(|| IgnoreFiles::for_daemon(&self.root))
    }

    /// Notes what is at a path that was left out before.
    pub(super) fn set_adopted(&mut self, path: &Path, entry: KnownEntry) {
        self.is_adopting = true;
        self.set(path, Some(entry));
        self.is_adopting = false;
    }

    pub(super) fn set(&mut self, path: &Path, entry: Option<KnownEntry>) {
        let is_adopting = self.is_adopting;
        self.note(|| match entry.clone() {
            Some(entry) if is_adopting => LogLine::Adopted(RawPath(path.to_owned()), entry),
            entry => LogLine::Path(RawPath(path.to_owned()), entry),
        });
        if entry.as_ref().is_none_or(|entry| !entry.state.is_folder())
            && let Some(watched) = &mut self.watched
        {
            watched.unwatch(path);
        }
        match entry.as_ref().filter(|entry| entry.has_other_names()) {
            Some(entry) => {
                let is_other_file = self.entries.get(path).is_none_or(|known| known.inode() != entry.inode());
                self.has_new_link |= self.linked.insert(path.to_owned()) || is_other_file;
            }
            None => _ = self.linked.remove(path),
        }
        if entry.is_some() {
            self.left_out.remove(path);
        }
        if is_git(path) {
            match entry {
                Some(_) => self.git_files.insert(path.to_owned()),
                None => self.git_files.remove(path),
            };
        }
        let old = match entry {
            Some(entry) => self.entries.insert(path.to_owned(), entry),
            None => self.entries.remove(path),
        };
        if let Some(PathState::File { size, .. }) = old.as_ref().map(|old| &old.state) {
            self.bytes = self.bytes.saturating_sub(*size);
        }
        if is_adopting {
            return;
        }
        let names: Vec<(u64, String)> = self
            .windows
            .iter()
            .filter(|window| window.is_writer())
            .map(|window| (window.id, window.name.clone()))
            .collect();
        let newest = self.windows.iter().map(|window| window.id).max().unwrap_or_default();
        for window in &mut self.windows {
            // A command that only reads, as far as is known, did it only if nothing else may have.
            if !window.is_writer() && !names.is_empty() {
                continue;
            }
            window.touched.entry(path.to_owned()).or_insert_with(|| old.clone());
            window.changed.entry(path.to_owned()).or_insert(newest);
            let others = names.iter().filter(|(id, _)| *id != window.id).map(|(_, name)| name.clone());
            let others: BTreeSet<String> = others.collect();
            if !others.is_empty() {
                window.shared.entry(path.to_owned()).or_default().extend(others);
            }
        }
    }
}

/// Whether something was made before a moment. Where the file system does not tell, the last change has to do: what looks older
/// may be the only copy.
fn is_older(file: InodeId, modified: (i64, i64), than: u64) -> bool {
    file.born.unwrap_or_else(|| in_nanos(modified)) < than
}

fn in_nanos((seconds, nanos): (i64, i64)) -> u64 {
    u64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(nanos)).unwrap_or(0)
}

/// Whether nothing is at a path, as far as that can be seen.
fn is_gone(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| is_missing(&error))
}

fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".git")
}

fn is_missing(error: &io::Error) -> bool {
    // No name can be so long.
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename)
}

/// The least time that a file can get from now on, in nanoseconds since 1970: the clock of files is behind others.
fn file_clock() -> u64 {
    const BEHIND: Duration = Duration::from_millis(10);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(BEHIND);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

fn file_at(path: &Path) -> Option<InodeId> {
    path.symlink_metadata().ok().map(|facts| InodeId::of(&facts))
}

fn not_kept(error: io::Error) -> String {
    format!("contents cannot be kept: {error}")
}

#[cfg(test)]
mod tests {
    use toold_proto::tool::{CallId, SessionId, ToolName};

    use super::*;

    fn changes(window: impl FnOnce(&mut FolderIndex, &Path)) -> Vec<PathChange> {
        let folder = tempfile::tempdir().unwrap();
        let mut index = FolderIndex::of_log(folder.path(), None, 0);
        let call = ChangingCall {
            session_id: SessionId::parse("s").unwrap(),
            call_id: CallId::parse("c").unwrap(),
            tool: ToolName::parse("bash").unwrap(),
            agent: None,
            command: None,
        };
        std::fs::write(folder.path().join("FILE"), "text").unwrap();
        index.set(&folder.path().join("FILE"), Some(entry(&folder.path().join("FILE"))));
        index.add_window(1, &call, true, file_clock() + 3_600_000_000_000);
        window(&mut index, folder.path());
        index.finish(1).own
    }

    fn entry(path: &Path) -> KnownEntry {
        let facts = path.symlink_metadata().unwrap();
        let state = PathState::File { content: Some(blake3::hash(b"text")), mode: None, size: 4, attributes: None };
        KnownEntry::new(state, &facts)
    }

    /// Undoing the call would remove the file itself, which is still found as `FILE`.
    #[test]
    fn a_name_in_another_case_is_no_further_file() {
        let changes = changes(|index, folder| index.set(&folder.join("file"), Some(entry(&folder.join("FILE")))));
        assert!(changes[0].lost_because().is_some(), "{changes:?}");
    }

    #[test]
    fn a_file_that_was_moved_is_known() {
        let changes = changes(|index, folder| {
            let entry = entry(&folder.join("FILE"));
            index.set(&folder.join("FILE"), None);
            index.set(&folder.join("file"), Some(entry));
        });
        assert!(changes.len() == 2 && changes.iter().all(|change| change.lost_because().is_none()), "{changes:?}");
    }

    #[test]
    fn where_it_is_not_known_when_files_were_made_their_last_change_has_to_do() {
        let file = |born| InodeId { device: 1, inode: 1, born };
        assert!(is_older(file(Some(4)), (0, 9), 5) && !is_older(file(Some(5)), (0, 1), 5));
        assert!(is_older(file(None), (0, 4), 5) && !is_older(file(None), (0, 5), 5));
    }
}
