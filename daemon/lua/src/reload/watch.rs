//! Watching plugin folders: which plugin changed, and when it can be loaded.
//!
//! A closed or renamed file counts at once. A file that is written without being closed counts when it has been quiet
//! for a while; an empty one later, since the write that follows emptied it. A removed file may come back, as some
//! editors save by deleting. Where events are incomplete, [`poll`] checks instead.

pub(crate) mod changes;
mod events;
pub(crate) mod poll;
pub(crate) mod poll_reason;

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use notify::{Config, ErrorKind, Event, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use toold_host::folders::{above, until_still};

use crate::reload::dirs::ResolvedDir;
use crate::reload::watch::changes::{PendingChanges, WatchTarget};
use crate::reload::watch::events::sort;
use crate::reload::watch::poll_reason::{PollReason, PollReasons};

/// Everything that may change a file or a folder. Opening a file is left out: the folders that lead to a plugin are those
/// in which people and agents read all the time, and each event wakes the watcher's thread.
pub const CHANGES: EventKindMask = EventKindMask::CREATE
    .union(EventKindMask::REMOVE)
    .union(EventKindMask::MODIFY_DATA)
    .union(EventKindMask::MODIFY_NAME)
    .union(EventKindMask::ACCESS_CLOSE);

/// The folders to watch, by their numbers. Replaced as a whole.
pub(crate) type Folders = ArcSwap<BTreeMap<usize, ResolvedDir>>;

/// Watches plugin folders until it is dropped.
pub(crate) struct FolderWatcher {
    watcher: Result<Box<dyn Watcher + Send>, PollReason>,
    dirs: Arc<Folders>,
    /// The paths that are watched, so that none is watched twice.
    watched: HashMap<PathBuf, ActiveWatch>,
    links: Arc<LinkTargets>,
    /// Everything is polled, even if events are reliable.
    poll_all: bool,
    polled: Arc<PollReasons>,
}

struct ActiveWatch {
    mode: RecursiveMode,
    /// A folder that was replaced has the same path and another identity: the old watch sees nothing.
    identity: Option<(u64, u64)>,
}

/// Device and inode number.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

/// The targets of entries that are links: events name the target.
type LinkTargets = Mutex<HashMap<WatchTarget, PathBuf>>;

impl FolderWatcher {
    /// The folders need not exist, and are [followed](Self::follow) one by one. With `poll_all` they are all to be
    /// polled.
    pub(crate) fn start(dirs: Arc<Folders>, changes: Arc<PendingChanges>, poll_all: bool) -> Self {
        let links = Arc::<LinkTargets>::default();
        let react = {
            let (dirs, links) = (dirs.clone(), links.clone());
            move |event: notify::Result<Event>| match event {
                Ok(event) => sort(&event, &dirs.load(), &links, &changes),
                Err(error) => {
                    tracing::warn!(%error, "watching plugins: events may be lost, checking all plugins");
                    dirs.load().keys().for_each(|dir| changes.due_now(WatchTarget::Dir(*dir)));
                }
            }
        };
        let watcher: Result<Box<dyn Watcher + Send>, PollReason> =
            match RecommendedWatcher::new(react, Config::default().with_event_kinds(CHANGES)) {
                Ok(watcher) => Ok(Box::new(watcher)),
                Err(error) => Err(PollReason::NoEvents(error.to_string())),
            };
        Self::new(watcher, dirs, links, poll_all)
    }

    fn new(
        watcher: Result<Box<dyn Watcher + Send>, PollReason>,
        dirs: Arc<Folders>,
        links: Arc<LinkTargets>,
        poll_all: bool,
    ) -> Self {
        Self { watcher, dirs, watched: HashMap::new(), links, poll_all, polled: Arc::default() }
    }

    /// Where the system does not report all changes. A new `Arc` whenever that changes.
    pub(crate) fn polled(&self) -> &Arc<PollReasons> {
        &self.polled
    }

    /// Watches a folder and the folders above it, as far as they exist now.
    pub(crate) fn follow(&mut self, number: usize, dir: &ResolvedDir) {
        let reason = match self.poll_all {
            true => Some(PollReason::Asked),
            false => PollReason::of_file_system(&dir.path),
        };
        // On a network file system, events report changes made by this computer, and are faster than polling.
        let listened = self.listen(dir);
        self.set_reason(WatchTarget::Dir(number), reason.or(listened.err()));
    }

    fn listen(&mut self, dir: &ResolvedDir) -> Result<(), PollReason> {
        // Watched again, or replaced folders below it would be missed.
        self.unwatch(&dir.path);
        let folder = dir.folder();
        if dir.single {
            self.unwatch(folder);
            // This may be a whole home folder: what is further below is not a plugin.
            let shared = self.dirs.load().values().any(|other| !other.single && other.path == folder);
            let mode = if shared { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            if folder.is_dir() {
                self.add(folder, mode)?;
            }
        }
        let state = || (dir.path.is_dir(), above(folder).next());
        until_still(state, |(is_there, above)| {
            if *is_there {
                self.add(&dir.path, RecursiveMode::Recursive)?;
            }
            match above {
                Some(above) => self.add(above, RecursiveMode::NonRecursive),
                None => Ok(()),
            }
        })
    }

    /// Watches the target of an entry that is a link. True if it was not watched before: earlier changes there were
    /// missed.
    pub(crate) fn follow_link(&mut self, dir: usize, entry: &Path) -> bool {
        let place = WatchTarget::Entry(dir, entry.to_owned());
        let target = match entry.symlink_metadata() {
            Ok(facts) if facts.is_symlink() => entry.canonicalize().ok(),
            Ok(_) | Err(_) => None,
        };
        // Not under the lock of the links: the watcher's thread takes it, and adding a watch waits for that thread.
        let listened = match &target {
            Some(target) if target.is_dir() => self.add(target, RecursiveMode::Recursive),
            Some(target) => match target.parent() {
                Some(folder) => self.add(folder, RecursiveMode::NonRecursive),
                None => Ok(()),
            },
            None => Ok(()),
        };
        // Polling a folder includes its links.
        let is_seen = self.polled.contains_key(&WatchTarget::Dir(dir));
        let reason = target.as_deref().filter(|_| !is_seen).and_then(|target| {
            let reason = PollReason::of_file_system(target);
            reason.or(listened.err())
        });
        self.set_reason(place.clone(), reason);
        let mut links = self.links.lock();
        match target {
            Some(target) => links.insert(place, target.clone()) != Some(target),
            None => {
                links.remove(&place);
                false
            }
        }
    }

    /// Stops watching a folder that is no longer one of the folders.
    pub(crate) fn forget(&mut self, number: usize, dir: &ResolvedDir) {
        for path in [&dir.path, dir.folder()] {
            if !self.dirs.load().values().any(|used| path.starts_with(used.folder()) || used.folder() == path) {
                self.unwatch(path);
            }
        }
        let is_of =
            |place: &WatchTarget| matches!(place, WatchTarget::Dir(of) | WatchTarget::Entry(of, _) if *of == number);
        if self.polled.keys().any(is_of) {
            Arc::make_mut(&mut self.polled).retain(|place, _| !is_of(place));
        }
        self.links.lock().retain(|place, _| !is_of(place));
    }

    fn unwatch(&mut self, path: &Path) {
        if self.watched.remove(path).is_some()
            && let Ok(watcher) = &mut self.watcher
        {
            // Fails when the folder is gone, and its watch with it.
            let _ = watcher.unwatch(path);
        }
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) -> Result<(), PollReason> {
        let watcher = self.watcher.as_mut().map_err(|reason| reason.clone())?;
        let identity = identity(path);
        if let Some(known) = self.watched.get(path) {
            if known.identity == identity && (known.mode == mode || known.mode == RecursiveMode::Recursive) {
                return Ok(());
            }
            // Fails when the folder is gone, and its watch with it.
            let _ = watcher.unwatch(path);
            self.watched.remove(path);
        }
        match watcher.watch(path, mode) {
            Ok(()) => {
                self.watched.insert(path.to_owned(), ActiveWatch { mode, identity });
                Ok(())
            }
            // It was removed since it was seen, which the watch above it reports.
            Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => Ok(()),
            Err(error) => Err(match error.kind {
                ErrorKind::MaxFilesWatch => PollReason::Limit,
                _ => PollReason::Refused(error.to_string()),
            }),
        }
    }

    fn set_reason(&mut self, place: WatchTarget, reason: Option<PollReason>) {
        if self.polled.get(&place) == reason.as_ref() {
            return;
        }
        let polled = Arc::make_mut(&mut self.polled);
        match reason {
            Some(reason) => _ = polled.insert(place, reason),
            None => _ = polled.remove(&place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reload::options::{DirKind, PluginDir};

    /// A system that allows a few watches and no more.
    struct Stingy(usize);

    impl Watcher for Stingy {
        fn new<F: notify::EventHandler>(_: F, _: Config) -> notify::Result<Self> {
            Ok(Self(0))
        }

        fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| notify::Error::new(ErrorKind::MaxFilesWatch))?;
            Ok(())
        }

        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            self.0 += 1;
            Ok(())
        }

        fn kind() -> notify::WatcherKind {
            notify::WatcherKind::NullWatcher
        }
    }

    /// Folders are made just before each watch: the next level, and then the next.
    struct MeanwhileMade {
        folders: Vec<PathBuf>,
        watched: Arc<Mutex<Vec<PathBuf>>>,
    }

    impl Watcher for MeanwhileMade {
        fn new<F: notify::EventHandler>(_: F, _: Config) -> notify::Result<Self> {
            Ok(Self { folders: Vec::new(), watched: Arc::default() })
        }

        fn watch(&mut self, path: &Path, _: RecursiveMode) -> notify::Result<()> {
            if let Some(folder) = self.folders.pop() {
                std::fs::create_dir(folder).unwrap();
            }
            self.watched.lock().push(path.to_owned());
            Ok(())
        }

        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            Ok(())
        }

        fn kind() -> notify::WatcherKind {
            notify::WatcherKind::NullWatcher
        }
    }

    #[test]
    fn folders_that_are_made_while_those_above_are_looked_for_are_watched() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (config, own, plugins) =
            (root.join("config"), root.join("config/toold"), root.join("config/toold/plugins"));
        let dir = ResolvedDir::new(PluginDir { path: plugins.clone(), kind: DirKind::User });
        let dirs: Arc<Folders> = Arc::new(ArcSwap::from_pointee(BTreeMap::from([(1, dir.clone())])));
        let watched = Arc::<Mutex<Vec<PathBuf>>>::default();
        let folders = vec![plugins.clone(), own.clone(), config.clone()];
        let watcher = MeanwhileMade { folders, watched: watched.clone() };
        let mut watch = FolderWatcher::new(Ok(Box::new(watcher)), dirs, Arc::default(), false);
        watch.follow(1, &dir);
        assert_eq!(*watched.lock(), [root, config, own.clone(), plugins.clone()]);
        // The same path, but another folder.
        watched.lock().clear();
        std::fs::rename(&own, own.with_extension("old")).unwrap();
        std::fs::create_dir_all(&plugins).unwrap();
        watch.follow(1, &dir);
        assert_eq!(*watched.lock(), [plugins, own]);
    }

    #[test]
    fn places_beyond_the_limit_of_watches_are_polled_until_there_is_room() {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| {
            std::fs::create_dir(root.path().join(name)).unwrap();
            ResolvedDir::new(PluginDir { path: root.path().join(name), kind: DirKind::User })
        };
        let (first, second) = (dir("first"), dir("second"));
        let dirs: Arc<Folders> =
            Arc::new(ArcSwap::from_pointee(BTreeMap::from([(1, first.clone()), (2, second.clone())])));
        // One for each, and the folder above both.
        let mut watch = FolderWatcher::new(Ok(Box::new(Stingy(2))), dirs.clone(), Arc::default(), false);
        watch.follow(1, &first);
        assert!(watch.polled().is_empty());
        watch.follow(2, &second);
        assert_eq!(**watch.polled(), BTreeMap::from([(WatchTarget::Dir(2), PollReason::Limit)]));
        dirs.store(Arc::new(BTreeMap::from([(2, second.clone())])));
        watch.forget(1, &first);
        watch.follow(2, &second);
        assert!(watch.polled().is_empty());
        let mut deaf = FolderWatcher::new(Err(PollReason::NoEvents("none".into())), dirs, Arc::default(), false);
        deaf.follow(2, &second);
        assert_eq!(**deaf.polled(), BTreeMap::from([(WatchTarget::Dir(2), PollReason::NoEvents("none".into()))]));
        assert!(!deaf.follow_link(2, &second.path));
    }
}
