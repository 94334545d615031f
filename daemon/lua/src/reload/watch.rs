//! Seeing that files of plugins change: which plugin, and when it is time to look.
//!
//! A closed or renamed file counts at once; what is written without being closed counts when it has
//! been quiet for a while, and for longer when it is empty, as what is written follows what empties the file; what is
//! gone may come back, as editors save by deleting. Where the system tells nothing, [`poll`] looks.

pub(crate) mod poll;
pub(crate) mod silence;

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Config, ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use toold_host::folders::{EMPTY, above, is_empty_file, until_still};

use crate::dirs::Dir;
use crate::watch::silence::{Silence, Silent};

/// How long a file that is written and not closed must be quiet.
const QUIET: Duration = Duration::from_millis(10);
/// How long something that is gone may take to come back.
const GONE: Duration = Duration::from_millis(50);

/// What there is to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A plugin folder, by its number: it came, went, or events of it were lost.
    Dir(usize),
    /// A file or folder in a plugin folder.
    Entry(usize, PathBuf),
}

/// What changed, and since when it can be looked at.
#[derive(Default)]
pub(crate) struct Changes {
    due: Mutex<HashMap<Place, Instant>>,
    pub(crate) wake: Notify,
}

impl Changes {
    /// Takes what is due now, and tells when the next is.
    pub(crate) fn take_due(&self) -> (Vec<Place>, Option<Instant>) {
        let now = Instant::now();
        let mut due = self.lock();
        let mut ready: Vec<Place> = due.iter().filter(|(_, at)| **at <= now).map(|(place, _)| place.clone()).collect();
        ready.sort();
        for place in &ready {
            due.remove(place);
        }
        (ready, due.values().min().copied())
    }

    pub(crate) fn look_now(&self, place: Place) {
        self.set(place, |_| Instant::now());
    }

    /// `path` is the file that was written, not always the place itself.
    fn look_when_quiet(&self, place: Place, path: &Path) {
        let at = Instant::now() + if is_empty_file(path) { EMPTY } else { QUIET };
        // What is due already stays so: the file was whole a moment ago.
        self.set(place, |before| before.filter(|before| *before <= Instant::now()).unwrap_or(at));
    }

    fn look_when_gone(&self, place: Place) {
        let at = Instant::now() + GONE;
        self.set(place, |_| at);
    }

    fn set(&self, place: Place, at: impl FnOnce(Option<Instant>) -> Instant) {
        let mut due = self.lock();
        let before = due.get(&place).copied();
        due.insert(place, at(before));
        drop(due);
        self.wake.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Place, Instant>> {
        self.due.lock().expect("no code panics while it holds this lock")
    }
}

/// The folders to watch, by their numbers. Replaced as a whole.
pub(crate) type Folders = ArcSwap<BTreeMap<usize, Dir>>;

/// Watches plugin folders until it is dropped.
pub(crate) struct Watch {
    watcher: Result<Box<dyn Watcher + Send>, Silence>,
    dirs: Arc<Folders>,
    /// What is watched now, so that nothing is watched twice.
    watched: HashMap<PathBuf, Watched>,
    links: Arc<Links>,
    /// Everything is to be looked at, whatever the system tells.
    looks: bool,
    silent: Arc<Silent>,
}

struct Watched {
    mode: RecursiveMode,
    /// A folder that was replaced has the same path and another identity: its old watch sees nothing.
    identity: Option<(u64, u64)>,
}

/// Device and number.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Where entries lead that are links: events name the target.
type Links = Mutex<HashMap<Place, PathBuf>>;

impl Watch {
    /// The folders need not exist, and are [followed](Self::follow) one by one. With `looks` they are all to be
    /// looked at, whatever the system tells.
    pub(crate) fn start(dirs: Arc<Folders>, changes: Arc<Changes>, looks: bool) -> Self {
        let links = Arc::<Links>::default();
        let react = {
            let (dirs, links) = (dirs.clone(), links.clone());
            move |event: notify::Result<Event>| match event {
                Ok(event) => sort(&event, &dirs.load(), &links, &changes),
                Err(error) => {
                    tracing::warn!(%error, "watching plugins: events may be lost, looking at all of them");
                    dirs.load().keys().for_each(|dir| changes.look_now(Place::Dir(*dir)));
                }
            }
        };
        let watcher: Result<Box<dyn Watcher + Send>, Silence> = match RecommendedWatcher::new(react, Config::default())
        {
            Ok(watcher) => Ok(Box::new(watcher)),
            Err(error) => Err(Silence::NoEvents(error.to_string())),
        };
        Self::new(watcher, dirs, links, looks)
    }

    fn new(
        watcher: Result<Box<dyn Watcher + Send>, Silence>,
        dirs: Arc<Folders>,
        links: Arc<Links>,
        looks: bool,
    ) -> Self {
        Self { watcher, dirs, watched: HashMap::new(), links, looks, silent: Arc::default() }
    }

    /// Where the system does not tell what changes. Another one whenever that is another.
    pub(crate) fn silent(&self) -> &Arc<Silent> {
        &self.silent
    }

    /// Watches a folder and what leads to it: what is there of it now.
    pub(crate) fn follow(&mut self, number: usize, dir: &Dir) {
        let silence = match self.looks {
            true => Some(Silence::Asked),
            false => Silence::of_file_system(&dir.path),
        };
        // Events of a network's file system tell of what this system does there, and come sooner than a look.
        let listened = self.listen(dir);
        self.note(Place::Dir(number), silence.or(listened.err()));
    }

    fn listen(&mut self, dir: &Dir) -> Result<(), Silence> {
        // Anew, or what was replaced below it would not be seen.
        self.unwatch(&dir.path);
        let folder = dir.folder();
        if dir.single {
            self.unwatch(folder);
            // Perhaps somebody's whole home: what lies further below it is nobody's plugin.
            let shared = self.dirs.load().values().any(|other| !other.single && other.path == folder);
            let mode = if shared { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            if folder.is_dir() {
                self.add(folder, mode)?;
            }
        }
        let look = || (dir.path.is_dir(), above(folder).next());
        until_still(look, |(is_there, above)| {
            if *is_there {
                self.add(&dir.path, RecursiveMode::Recursive)?;
            }
            match above {
                Some(above) => self.add(above, RecursiveMode::NonRecursive),
                None => Ok(()),
            }
        })
    }

    /// Watches what an entry leads to, when it is a link. True when that was not watched before: what changed
    /// there until now was told to nobody.
    pub(crate) fn follow_link(&mut self, dir: usize, entry: &Path) -> bool {
        let place = Place::Entry(dir, entry.to_owned());
        let target = match entry.symlink_metadata() {
            Ok(facts) if facts.is_symlink() => entry.canonicalize().ok(),
            Ok(_) | Err(_) => None,
        };
        // Not under the lock of the links: the watcher's thread takes that, and adding waits for the thread.
        let listened = match &target {
            Some(target) if target.is_dir() => self.add(target, RecursiveMode::Recursive),
            Some(target) => match target.parent() {
                Some(folder) => self.add(folder, RecursiveMode::NonRecursive),
                None => Ok(()),
            },
            None => Ok(()),
        };
        // Of a folder that is looked at its links are, too.
        let is_seen = self.silent.contains_key(&Place::Dir(dir));
        let silence = target.as_deref().filter(|_| !is_seen).and_then(|target| {
            let silence = Silence::of_file_system(target);
            silence.or(listened.err())
        });
        self.note(place.clone(), silence);
        let mut links = self.links.lock().expect("no code panics while it holds this lock");
        match target {
            Some(target) => links.insert(place, target.clone()) != Some(target),
            None => {
                links.remove(&place);
                false
            }
        }
    }

    /// No longer watches a folder that is none of the folders any more.
    pub(crate) fn forget(&mut self, number: usize, dir: &Dir) {
        for path in [&dir.path, dir.folder()] {
            if !self.dirs.load().values().any(|used| path.starts_with(used.folder()) || used.folder() == path) {
                self.unwatch(path);
            }
        }
        let is_of = |place: &Place| matches!(place, Place::Dir(of) | Place::Entry(of, _) if *of == number);
        if self.silent.keys().any(is_of) {
            Arc::make_mut(&mut self.silent).retain(|place, _| !is_of(place));
        }
        self.links.lock().expect("no code panics while it holds this lock").retain(|place, _| !is_of(place));
    }

    fn unwatch(&mut self, path: &Path) {
        if self.watched.remove(path).is_some()
            && let Ok(watcher) = &mut self.watcher
        {
            // Fails when the folder is gone, and its watch with it.
            let _ = watcher.unwatch(path);
        }
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) -> Result<(), Silence> {
        let watcher = self.watcher.as_mut().map_err(|silence| silence.clone())?;
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
                self.watched.insert(path.to_owned(), Watched { mode, identity });
                Ok(())
            }
            // It went since it was seen there, which is told by what is watched above it.
            Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => Ok(()),
            Err(error) => Err(match error.kind {
                ErrorKind::MaxFilesWatch => Silence::Limit,
                _ => Silence::Refused(error.to_string()),
            }),
        }
    }

    fn note(&mut self, place: Place, silence: Option<Silence>) {
        if self.silent.get(&place) == silence.as_ref() {
            return;
        }
        let silent = Arc::make_mut(&mut self.silent);
        match silence {
            Some(silence) => _ = silent.insert(place, silence),
            None => _ = silent.remove(&place),
        }
    }
}

fn sort(event: &Event, dirs: &BTreeMap<usize, Dir>, links: &Links, changes: &Changes) {
    if event.need_rescan() {
        return dirs.keys().for_each(|dir| changes.look_now(Place::Dir(*dir)));
    }
    for path in &event.paths {
        for (place, target) in &*links.lock().expect("no code panics while it holds this lock") {
            let passing = path.file_name().is_some_and(|name| is_passing(&name.to_string_lossy()));
            if path.starts_with(target) && !passing {
                sort_entry(event.kind, path, place.clone(), changes);
            }
        }
        for (&index, dir) in dirs {
            let dir = dir.folder();
            if dir.starts_with(path) {
                // The folder itself, or one above it, came or went.
                match event.kind {
                    EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
                        changes.look_now(Place::Dir(index));
                    }
                    _ => {}
                }
            } else if let Some(entry) = entry_of(dir, path) {
                sort_entry(event.kind, path, Place::Entry(index, entry), changes);
            }
        }
    }
}

fn sort_entry(kind: EventKind, path: &Path, place: Place, changes: &Changes) {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => changes.look_now(place),
        EventKind::Remove(RemoveKind::Any | RemoveKind::File | RemoveKind::Folder | RemoveKind::Other)
        | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => changes.look_when_gone(place),
        EventKind::Create(CreateKind::Any | CreateKind::File | CreateKind::Folder | CreateKind::Other)
        | EventKind::Modify(ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Other)
        | EventKind::Modify(ModifyKind::Name(RenameMode::Any | RenameMode::Other))
        | EventKind::Any => changes.look_when_quiet(place, path),
        // `Both` repeats what `From` and `To` said; reading is no change, a new mode or time neither.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both) | ModifyKind::Metadata(_))
        | EventKind::Access(_)
        | EventKind::Other => {}
    }
}

/// Which entry of a plugin folder a path belongs to; `None` for what editors leave for a moment.
fn entry_of(dir: &Path, path: &Path) -> Option<PathBuf> {
    let within = path.strip_prefix(dir).ok()?;
    let mut parts = within.components();
    let Component::Normal(first) = parts.next()? else { return None };
    let passing = within.components().any(|part| is_passing(&part.as_os_str().to_string_lossy()));
    (!passing).then(|| dir.join(first))
}

/// Names of backup, swap and hidden files.
pub(crate) fn is_passing(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || [".swp", ".swo", ".swx", ".tmp", ".bak", ".orig"].iter().any(|end| name.ends_with(end))
        || name == "4913"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{DirKind, PluginDir};

    #[test]
    fn files_of_editors_are_no_plugins() {
        for name in [".a.lua.swp", "a.lua~", "#a.lua#", ".#a.lua", "4913", "a.lua.tmp", ".git"] {
            assert!(is_passing(name), "{name}");
        }
        assert!(!is_passing("weather.lua"));
    }

    #[test]
    fn a_path_belongs_to_its_first_entry() {
        let dir = Path::new("/p");
        assert_eq!(entry_of(dir, Path::new("/p/a.lua")), Some("/p/a.lua".into()));
        assert_eq!(entry_of(dir, Path::new("/p/git/lib/x.lua")), Some("/p/git".into()));
        assert_eq!(entry_of(dir, Path::new("/p/git/.git/index")), None);
        assert_eq!(entry_of(dir, Path::new("/q/a.lua")), None);
    }

    #[test]
    fn what_is_gone_is_held_and_what_comes_back_is_looked_at_once() {
        let changes = Changes::default();
        let place = Place::Entry(0, "/p/a.lua".into());
        changes.look_when_gone(place.clone());
        let (ready, next) = changes.take_due();
        assert!(ready.is_empty() && next.is_some());
        changes.look_now(place.clone());
        assert_eq!(changes.take_due(), (vec![place], None));
    }

    #[test]
    fn a_file_that_was_emptied_is_waited_for_until_it_is_written_or_closed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = folder.join("a.lua");
        let dirs = BTreeMap::from([(0, Dir::new(PluginDir { path: folder, kind: DirKind::User }))]);
        let (links, changes) = (Links::default(), Changes::default());
        let told = |kind| sort(&Event::new(kind).add_path(path.clone()), &dirs, &links, &changes);
        let written = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Any));
        std::fs::write(&path, "").unwrap();
        let before = Instant::now();
        told(written);
        let (ready, next) = changes.take_due();
        assert!(ready.is_empty() && next.unwrap() >= before + EMPTY);
        std::fs::write(&path, "return 1").unwrap();
        told(written);
        let due = changes.lock()[&Place::Entry(0, path.clone())];
        assert!(due <= Instant::now() + QUIET);
        std::fs::write(&path, "").unwrap();
        told(EventKind::Access(AccessKind::Close(AccessMode::Write)));
        assert_eq!(changes.take_due().0, [Place::Entry(0, path.clone())]);
    }

    /// A system that lets some places be watched, and no more.
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

    /// Somebody makes folders just before each place is watched: the next level, and then the next.
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
            self.watched.lock().unwrap().push(path.to_owned());
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
        let dir = Dir::new(PluginDir { path: plugins.clone(), kind: DirKind::User });
        let dirs: Arc<Folders> = Arc::new(ArcSwap::from_pointee(BTreeMap::from([(1, dir.clone())])));
        let watched = Arc::<Mutex<Vec<PathBuf>>>::default();
        let folders = vec![plugins.clone(), own.clone(), config.clone()];
        let watcher = MeanwhileMade { folders, watched: watched.clone() };
        let mut watch = Watch::new(Ok(Box::new(watcher)), dirs, Arc::default(), false);
        watch.follow(1, &dir);
        assert_eq!(*watched.lock().unwrap(), [root, config, own.clone(), plugins.clone()]);
        // The same path, another folder.
        watched.lock().unwrap().clear();
        std::fs::rename(&own, own.with_extension("old")).unwrap();
        std::fs::create_dir_all(&plugins).unwrap();
        watch.follow(1, &dir);
        assert_eq!(*watched.lock().unwrap(), [plugins, own]);
    }

    #[test]
    fn what_the_system_lets_nobody_watch_is_to_be_looked_at_until_it_does() {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| {
            std::fs::create_dir(root.path().join(name)).unwrap();
            Dir::new(PluginDir { path: root.path().join(name), kind: DirKind::User })
        };
        let (first, second) = (dir("first"), dir("second"));
        let dirs: Arc<Folders> =
            Arc::new(ArcSwap::from_pointee(BTreeMap::from([(1, first.clone()), (2, second.clone())])));
        // One for each, and the folder above both.
        let mut watch = Watch::new(Ok(Box::new(Stingy(2))), dirs.clone(), Arc::default(), false);
        watch.follow(1, &first);
        assert!(watch.silent().is_empty());
        watch.follow(2, &second);
        assert_eq!(**watch.silent(), BTreeMap::from([(Place::Dir(2), Silence::Limit)]));
        dirs.store(Arc::new(BTreeMap::from([(2, second.clone())])));
        watch.forget(1, &first);
        watch.follow(2, &second);
        assert!(watch.silent().is_empty());
        let mut deaf = Watch::new(Err(Silence::NoEvents("none".into())), dirs, Arc::default(), false);
        deaf.follow(2, &second);
        assert_eq!(**deaf.silent(), BTreeMap::from([(Place::Dir(2), Silence::NoEvents("none".into()))]));
        assert!(!deaf.follow_link(2, &second.path));
    }
}
