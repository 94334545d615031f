//! What commands change in the session's folders, so that it can be undone like the changes of `edit`.
//!
//! Around each command, an [index](index::FolderIndex) of the session's folders is brought up to date; the difference
//! becomes a record of [`crate::journal`]. A change while only one command runs is that command's. One while several run
//! is recorded as possibly made by each of them.

pub(crate) mod beyond;
mod index;
mod index_log;
mod interrupted;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;
use toold_engine::session::Session;
use toold_host::file_systems::{answering, free_bytes};
use toold_host::folder_events::WatchBudget;
use toold_host::git_state::GitState;
use toold_host::sandbox::control_watch::ControlWatch;

use crate::journal::contents::KeptContents;
use crate::journal::{
    BESIDE_ANOTHER_DAEMON, BESIDE_THE_BACKGROUND, CHANGED_BEFORE, ChangingCall, Journal, JournalScope, RawPath,
    UnrecordedChanges, made,
};
use crate::quoted_names::named;
use crate::stamps::FileDigest;
use beyond::{DeclaredChanges, StatesBefore};
use index::{FolderIndex, WindowChanges};

/// How long a command waits for the index, before it and after it.
const MAX_WAIT: Duration = Duration::from_millis(300);
/// How long undoing waits for the record of a command that changed much.
const MAX_RECORDING: Duration = Duration::from_secs(10);
/// How often it is noted that the daemon lives.
const BEAT: Duration = Duration::from_secs(1);
/// The limit of indexed folders, and how long one is kept without use.
const MAX_FOLDERS: usize = 8;
const MAX_UNUSED: Duration = Duration::from_secs(3600);
/// Nothing is kept when less is free on the disk.
const MIN_FREE: u64 = 512 << 20;

/// The indexed folders of a daemon.
pub(crate) struct CommandChanges {
    journal: Arc<Journal>,
    folders: Mutex<HashMap<PathBuf, Arc<IndexedFolder>>>,
    next: AtomicU64,
    budget: WatchBudget,
    /// How long a command waits.
    wait: Mutex<Duration>,
    /// The number of commands that have ended and whose changes are still being recorded.
    unrecorded: Mutex<usize>,
    recorded: Condvar,
    /// Another daemon runs commands too.
    is_beside_another: AtomicBool,
}

struct IndexedFolder {
    index: Mutex<FolderIndex>,
    used: Mutex<Instant>,
    /// It is looked at for the first time. Further commands do not wait for that.
    is_building: AtomicBool,
    /// The repositories in it and around it, as they were seen last.
    repositories: Mutex<BTreeMap<PathBuf, GitState>>,
}

impl CommandChanges {
    pub(crate) fn new(journal: Arc<Journal>) -> Self {
        Self {
            journal,
            folders: Mutex::default(),
            next: AtomicU64::new(1),
            budget: WatchBudget::new(),
            wait: Mutex::new(MAX_WAIT),
            unrecorded: Mutex::default(),
            recorded: Condvar::new(),
            is_beside_another: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_wait(&self, wait: Duration) {
        *self.wait.lock() = wait;
    }

    pub(crate) fn set_beside_another_daemon(&self, is_beside: bool) {
        self.is_beside_another.store(is_beside, Ordering::Relaxed);
    }

    /// Waits until the changes of commands that have ended are recorded, within bounds. Blocks.
    pub(crate) fn wait_until_recorded(&self) {
        let mut unrecorded = self.unrecorded.lock();
        self.recorded.wait_while_for(&mut unrecorded, |unrecorded| *unrecorded > 0, MAX_RECORDING);
    }

    /// Whoever waits for records waits until the value is dropped.
    pub(crate) fn recording(changes: &Arc<Self>) -> RecordingWork {
        *changes.unrecorded.lock() += 1;
        RecordingWork(changes.clone())
    }

    /// Records what commands had changed when their daemon was killed. Blocks.
    pub(crate) fn record_interrupted(&self) {
        interrupted::record(&self.journal);
    }

    /// Begins to watch for the changes of a call: before its command starts. Waits a moment at most. `may_write` is
    /// false for a command that is known only to read, and `declared` is what its words say that it changes elsewhere.
    pub(crate) async fn begin(
        changes: &Arc<Self>,
        session: &Session,
        call: ChangingCall,
        (may_write, declared): (bool, &DeclaredChanges),
    ) -> CommandWindow {
        let id = changes.next.fetch_add(1, Ordering::Relaxed);
        let mut window = CommandWindow {
            changes: changes.clone(),
            call,
            id,
            open: Vec::new(),
            before: StatesBefore::of(declared),
            is_overdue: false,
            lost: None,
            control: None,
            is_in_background: false,
            is_beside_another: changes.is_beside_another.load(Ordering::Relaxed),
            is_elsewhere: false,
            _alive: None,
        };
        let Some(own_folder) = changes.journal.folder().map(Path::to_owned) else {
            window.lost = Some("the daemon has no folder for former contents".to_owned());
            return window;
        };
        for root in roots(session) {
            if let Some(why) = is_no_place(&root) {
                (window.lost, window.is_elsewhere) = (Some(why), true);
                continue;
            }
            let Some(folder) = changes.folder(&root, own_folder.parent()) else {
                window.lost = Some(format!("commands run in more than {MAX_FOLDERS} folders"));
                continue;
            };
            let is_late = Arc::new(AtomicBool::new(false));
            let (late, own, own_journal, call) =
                (is_late.clone(), folder.clone(), changes.journal.clone(), window.call.clone());
            let longest = *changes.wait.lock();
            // Asked before this command begins to read the folder itself, which it waits for.
            let is_building = folder.is_building.load(Ordering::Relaxed);
            let wait = if is_building { Duration::from_millis(1) } else { longest };
            let work = tokio::task::spawn_blocking(move || {
                let is_late = || late.load(Ordering::Relaxed);
                own.open(&own_journal, (id, &call, may_write), longest, is_late)?;
                Ok(own.repositories())
            });
            match timeout(wait, work).await {
                Ok(Ok(Ok(repositories))) => {
                    window.before.add(repositories);
                    window.open.push(folder);
                }
                Ok(Ok(Err(why))) => window.lost = Some(why),
                // The runtime stops.
                Ok(Err(_)) => {}
                Err(_) => {
                    is_late.store(true, Ordering::Relaxed);
                    // It may have been opened just now.
                    window.open.push(folder);
                    window.lost = Some("the daemon is still reading the session's folder".to_owned());
                }
            }
        }
        window._alive = Some(AbortOnDropHandle::new(tokio::spawn(note_alive(window.open.clone()))));
        window
    }

    /// Whether undo keeps what is in these files of the session. Begins to read its folder if that was not done; blocks for a
    /// moment at most.
    pub(crate) fn keeps(&self, session: &Session, paths: &[&Path]) -> bool {
        let Some(own_folder) = self.journal.folder().map(Path::to_owned) else { return false };
        let (roots, longest) = (roots(session), *self.wait.lock());
        roots.into_iter().all(|root| {
            let below: Vec<PathBuf> =
                paths.iter().filter(|path| path.starts_with(&root)).map(|path| (*path).to_owned()).collect();
            if below.is_empty() {
                return true;
            }
            let place = is_no_place(&root).is_none().then(|| self.folder(&root, own_folder.parent())).flatten();
            let (Some(folder), Ok(runtime)) = (place, tokio::runtime::Handle::try_current()) else { return false };
            let (journal, (sender, answer)) = (self.journal.clone(), mpsc::channel());
            drop(runtime.spawn_blocking(move || sender.send(folder.keeps(&journal, &below, longest))));
            answer.recv_timeout(longest).unwrap_or(false)
        })
    }

    /// Whether the session made what is at a path, with all that is in it, as [`made::made`]. Blocks: it reads the session's
    /// records and these files.
    pub(crate) fn made(&self, session: &Session, path: &Path) -> bool {
        let longest = *self.wait.lock();
        let mut unrecorded = self.unrecorded.lock();
        let wait = self.recorded.wait_while_for(&mut unrecorded, |unrecorded| *unrecorded > 0, longest);
        drop(unrecorded);
        !wait.timed_out() && made::made(&self.journal.read(JournalScope::Session(&session.id)), path, session.opened_at)
    }

    /// Paths that the daemon changes by itself now: no command did it. Blocks for a moment at most.
    pub(crate) fn expect_others<'p>(&self, paths: impl Iterator<Item = &'p PathBuf> + Clone) {
        let folders: Vec<Arc<IndexedFolder>> = self.folders.lock().values().cloned().collect();
        for folder in folders {
            if let Some(mut index) = folder.index.try_lock_for(MAX_WAIT) {
                index.expect_others(paths.clone());
            }
        }
    }

    /// Drops all indexes that no command uses, since the contents that they need are gone.
    pub(crate) fn forget(&self) {
        self.folders.lock().retain(|_, folder| folder.is_used());
    }

    /// The contents that the indexes need; `None` while one of them is brought up to date. Never waits.
    pub(crate) fn needed(&self) -> Option<HashSet<FileDigest>> {
        let folders: Vec<Arc<IndexedFolder>> = self.folders.lock().values().cloned().collect();
        let mut needed = HashSet::new();
        for folder in folders {
            needed.extend(folder.index.try_lock()?.contents());
        }
        Some(needed)
    }

    fn index(&self, root: &Path, own_folder: Option<&Path>) -> FolderIndex {
        let index = FolderIndex::new(root, own_folder, self.budget.clone());
        match self.journal.folder() {
            Some(records) => index.with_log(records),
            None => index,
        }
    }

    fn folder(&self, root: &Path, own_folder: Option<&Path>) -> Option<Arc<IndexedFolder>> {
        let mut folders = self.folders.lock();
        folders.retain(|known, folder| known == root || folder.used.lock().elapsed() < MAX_UNUSED || folder.is_used());
        if let Some(known) = folders.get(root) {
            *known.used.lock() = Instant::now();
            return Some(known.clone());
        }
        if folders.len() >= MAX_FOLDERS {
            let unused = folders.iter().filter(|(_, folder)| !folder.is_used());
            let oldest = unused.min_by_key(|(_, folder)| *folder.used.lock()).map(|(root, _)| root.clone())?;
            folders.remove(&oldest);
        }
        let folder = Arc::new(IndexedFolder {
            index: Mutex::new(self.index(root, own_folder)),
            used: Mutex::new(Instant::now()),
            is_building: AtomicBool::new(false),
            repositories: Mutex::default(),
        });
        folders.insert(root.to_owned(), folder.clone());
        Some(folder)
    }
}

impl IndexedFolder {
    /// One that is being read is in use.
    fn is_used(&self) -> bool {
        self.index.try_lock().is_none_or(|index| index.is_used())
    }

    fn open(
        &self,
        journal: &Journal,
        window: (u64, &ChangingCall, bool),
        wait: Duration,
        is_late: impl Fn() -> bool,
    ) -> Result<(), String> {
        self.with_index(journal, wait, |index, contents| index.open(contents, window, is_late))
    }

    /// The repositories in the folder and around it, as they are now. Blocks.
    fn repositories(&self) -> BTreeMap<PathBuf, GitState> {
        let all = self.index.lock().repositories();
        let mut known = self.repositories.lock();
        let state = |git: PathBuf| GitState::of(&git, known.get(&git)).map(|state| (git, state));
        let now: BTreeMap<PathBuf, GitState> = all.into_iter().filter_map(state).collect();
        known.clone_from(&now);
        now
    }

    /// Whether the contents of all these files are kept.
    fn keeps(&self, journal: &Journal, paths: &[PathBuf], wait: Duration) -> bool {
        self.with_index(journal, wait, |index, contents| index.keeps(contents, paths)).unwrap_or(false)
    }

    fn with_index<T>(
        &self,
        journal: &Journal,
        wait: Duration,
        use_it: impl FnOnce(&mut FolderIndex, &KeptContents) -> Result<T, String>,
    ) -> Result<T, String> {
        let contents = journal.contents().map_err(|error| error.to_string())?;
        if journal.folder().and_then(free_bytes).is_some_and(|free| free < MIN_FREE) {
            return Err("the disk is nearly full".to_owned());
        }
        let Some(mut index) = self.index.try_lock_for(wait) else {
            return Err("the daemon is still reading the session's folder".to_owned());
        };
        self.is_building.store(!index.is_built(), Ordering::Relaxed);
        let used = use_it(&mut index, contents);
        self.is_building.store(false, Ordering::Relaxed);
        used
    }
}

/// Changes that are being recorded.
pub(crate) struct RecordingWork(Arc<CommandChanges>);

impl Drop for RecordingWork {
    fn drop(&mut self) {
        *self.0.unrecorded.lock() -= 1;
        self.0.recorded.notify_all();
    }
}

/// The time in which a command runs. Dropped without an end, it ends.
pub(crate) struct CommandWindow {
    changes: Arc<CommandChanges>,
    call: ChangingCall,
    id: u64,
    open: Vec<Arc<IndexedFolder>>,
    before: StatesBefore,
    /// The session has gone on without a report of the end.
    is_overdue: bool,
    lost: Option<String>,
    /// Sets aside what the command makes that runs code later: before its changes are recorded.
    control: Option<ControlWatch>,
    is_in_background: bool,
    /// Another daemon ran commands when it began.
    is_beside_another: bool,
    /// The session has a folder that is never indexed.
    is_elsewhere: bool,
    /// Notes that the daemon lives.
    _alive: Option<AbortOnDropHandle<()>>,
}

impl CommandWindow {
    /// What the command makes that runs code later is set aside at its end.
    pub(crate) fn watch_control(&mut self, watch: Option<ControlWatch>) {
        self.control = watch;
    }

    /// For whoever does that before the end.
    pub(crate) fn take_control(&mut self) -> Option<ControlWatch> {
        self.control.take()
    }

    /// The command runs beside what people do, perhaps for hours: what changes meanwhile is undone only when it is named.
    pub(crate) fn set_in_background(&mut self) {
        self.is_in_background = true;
    }

    /// Whether no command in the session's folders can be undone, so that it is no news of one.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Why the changes cannot be undone, if that is known already.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Records what changed. Waits a moment at most: many changes are recorded while the caller goes on. Returns why the
    /// changes cannot be undone, if so.
    pub(crate) async fn end(mut self) -> Option<NotUndoable> {
        let wait = *self.changes.wait.lock();
        let Some(work) = self.take_work() else { return self.lost.take().map(NotUndoable::all) };
        if self.lost.is_some() {
            // What other folders have is recorded while the caller goes on.
            drop(tokio::task::spawn_blocking(work));
            return self.lost.take().map(NotUndoable::all);
        }
        match timeout(wait, tokio::task::spawn_blocking(work)).await {
            Ok(Ok(lost)) => lost,
            // They are still recorded, unless the runtime stops.
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Records what has changed until now, since the session goes on and the end may never be reported. Only if it is, by
    /// [`Self::end`], later changes count as the call's, and those of calls that end meanwhile may be.
    pub(crate) async fn record_until_now(&mut self) {
        if std::mem::replace(&mut self.is_overdue, true) || self.open.is_empty() {
            return;
        }
        let wait = *self.changes.wait.lock();
        let mut record = self.record(self.open.clone());
        record.is_last = false;
        let before = tokio::task::spawn_blocking(move || record.make().1);
        if let Ok(Ok(before)) = timeout(wait, before).await {
            self.before = before;
        }
    }

    /// The record that is to be made now of these folders.
    fn record(&mut self, folders: Vec<Arc<IndexedFolder>>) -> WindowRecord {
        let is_beside_another = self.is_beside_another || self.changes.is_beside_another.load(Ordering::Relaxed);
        let beside = [(self.is_in_background, BESIDE_THE_BACKGROUND), (is_beside_another, BESIDE_ANOTHER_DAEMON)];
        WindowRecord {
            changes: self.changes.clone(),
            call: self.call.clone(),
            id: self.id,
            beside: beside.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| (*words).to_owned()).collect(),
            folders,
            before: std::mem::take(&mut self.before),
            is_last: true,
            lost: self.lost.clone(),
            _recording: CommandChanges::recording(&self.changes),
        }
    }

    fn take_work(&mut self) -> Option<impl FnOnce() -> Option<NotUndoable> + Send + use<>> {
        let (open, control) = (std::mem::take(&mut self.open), self.control.take());
        if open.is_empty() && control.is_none() {
            return None;
        }
        let record = self.record(open);
        Some(move || {
            drop(control);
            record.make().0
        })
    }
}

impl Drop for CommandWindow {
    fn drop(&mut self) {
        if self.is_overdue {
            std::mem::take(&mut self.open).iter().for_each(|folder| folder.index.lock().forget(self.id));
        } else if let Some(work) = self.take_work()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            drop(runtime.spawn_blocking(work));
        }
    }
}

/// Notes from time to time that the daemon lives while a command runs.
async fn note_alive(folders: Vec<Arc<IndexedFolder>>) {
    loop {
        tokio::time::sleep(BEAT).await;
        for folder in &folders {
            // One that is just being brought up to date is written to.
            if let Some(index) = folder.index.try_lock() {
                index.touch();
            }
        }
    }
}

/// A record that is to be made of what happened in a window.
struct WindowRecord {
    changes: Arc<CommandChanges>,
    call: ChangingCall,
    id: u64,
    /// Names others that may have made any of the changes.
    beside: Vec<String>,
    folders: Vec<Arc<IndexedFolder>>,
    before: StatesBefore,
    /// The window ends; otherwise it stays, overdue.
    is_last: bool,
    lost: Option<String>,
    _recording: RecordingWork,
}

impl WindowRecord {
    /// Returns why the changes cannot be undone, if so, and the states that they have left. Blocks.
    fn make(self) -> (Option<NotUndoable>, StatesBefore) {
        let Self { changes, call, id, beside, folders, before, is_last, mut lost, _recording } = self;
        let journal = &changes.journal;
        let Ok(contents) = journal.contents() else { return (lost.map(NotUndoable::all), before) };
        let mut all = WindowChanges::default();
        let mut repositories = BTreeMap::new();
        for folder in &folders {
            let mut index = folder.index.lock();
            let found = if is_last { index.close(contents, id) } else { index.close_overdue(contents, id) };
            drop(index);
            repositories.extend(folder.repositories());
            all.not_kept.extend(found.not_kept);
            all.ignored.extend(found.ignored);
            all.own.extend(found.own);
            all.shared.extend(found.shared);
            all.contested.extend(found.contested);
            all.shared_with.extend(found.shared_with);
            all.ended_since.extend(found.ended_since);
            lost = lost.or(found.lost);
        }
        all.set_lost_aside();
        lost = lost.or_else(|| all.lost_for_ever());
        let WindowChanges { own, shared, contested, mut shared_with, not_kept, ignored, ended_since, .. } = all;
        shared_with.extend(beside.clone());
        let shared_with: Vec<String> = shared_with.into_iter().collect();
        let is_recorded = !own.is_empty() || !shared.is_empty() || !not_kept.is_empty();
        let beyond = UnrecordedChanges {
            not_kept: not_kept.into_iter().map(RawPath).collect(),
            ignored: ignored.into_iter().map(RawPath).collect(),
            ..before.changes(&repositories, is_recorded)
        };
        let left_out = NotUndoable::left_out(&beyond);
        let with_shared = own.is_empty() && !shared.is_empty();
        let (of_own, of_shared) = if with_shared { (Default::default(), beyond) } else { (beyond, Default::default()) };
        // A record of its own, so that the rest of the call can be undone while the other one goes on.
        let recorded =
            journal.record(&call, contested, [shared_with.clone(), vec![CHANGED_BEFORE.to_owned()]].concat());
        let recorded = recorded.and_then(|_| journal.record_with(&call, own, beside, of_own));
        let recorded = recorded.and_then(|_| journal.record_with(&call, shared, shared_with, of_shared));
        let recorded = recorded.and_then(|_| journal.note_shared(&ended_since, &call));
        for folder in &folders {
            folder.index.lock().note_recorded(id);
        }
        let lost = lost.or_else(|| recorded.err().map(|error| error.to_string())).map(NotUndoable::all);
        (lost.or(left_out), before.at(repositories))
    }
}

/// Why what a command changed cannot be undone.
pub(crate) struct NotUndoable {
    pub(crate) why: String,
    /// The rest can be undone.
    pub(crate) is_part: bool,
}

impl NotUndoable {
    fn all(why: String) -> Self {
        Self { why, is_part: false }
    }

    fn left_out(beyond: &UnrecordedChanges) -> Option<Self> {
        let UnrecordedChanges { not_kept, ignored, .. } = beyond;
        let left_out = UnrecordedChanges { not_kept: not_kept.clone(), ignored: ignored.clone(), ..Default::default() };
        let mut words = left_out.words();
        let first = words.next()?;
        let more = match words.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(Self { why: format!("{first}{more}"), is_part: true })
    }
}

/// The session's folders, without those that lie in others of them.
fn roots(session: &Session) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = session.places().into_iter().map(|place| place.into_owned()).collect();
    roots.sort();
    // A folder is before those in it.
    roots.dedup_by(|inner, outer| inner.starts_with(&*outer));
    roots
}

/// Why a folder is not indexed at all: it holds more than the work of a session.
fn is_no_place(root: &Path) -> Option<String> {
    let home = std::env::home_dir();
    let holds_home = home.is_some_and(|home| home.starts_with(root));
    let is_shared = root.parent().is_none() || root == std::env::temp_dir() || root == Path::new("/tmp");
    if holds_home || is_shared {
        return Some(format!("{} is not the folder of a project", named(root)));
    }
    // Never waited for.
    (answering::any() && answering::ask(root).is_err()).then(|| "its file system does not answer".to_owned())
}
