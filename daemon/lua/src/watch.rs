//! Seeing that files of plugins change: which plugin, and when it is time to look.
//!
//! A closed or renamed file counts at once; what is written without being closed counts when it has
//! been quiet for a while; what is gone may come back, as editors save by deleting.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Config, Event, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// How long a file that is written and not closed must be quiet.
const QUIET: Duration = Duration::from_millis(10);
/// How long something that is gone may take to come back.
const GONE: Duration = Duration::from_millis(50);
/// How often a file system is looked at that tells nothing by itself.
const POLL: Duration = Duration::from_secs(1);

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

    fn look_when_quiet(&self, place: Place) {
        let at = Instant::now() + QUIET;
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
pub(crate) type Folders = ArcSwap<BTreeMap<usize, PathBuf>>;

/// Watches plugin folders until it is dropped.
pub(crate) struct Watch {
    watcher: Box<dyn Watcher + Send>,
    /// What is watched now, so that nothing is watched twice.
    watched: HashMap<PathBuf, RecursiveMode>,
    links: Arc<Links>,
}

/// Where entries lead that are links: events name the target.
type Links = Mutex<HashMap<Place, PathBuf>>;

impl Watch {
    /// The folders need not exist. With `poll` they are looked at so often, whatever the system tells.
    pub(crate) fn start(dirs: Arc<Folders>, changes: Arc<Changes>, poll: Option<Duration>) -> Self {
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
        let polling = |every, react| -> Box<dyn Watcher + Send> {
            let config = Config::default().with_poll_interval(every).with_compare_contents(true);
            Box::new(PollWatcher::new(react, config).expect("a polling watcher needs nothing of the system"))
        };
        let watcher: Box<dyn Watcher + Send> = match poll {
            Some(every) => polling(every, react),
            None => match RecommendedWatcher::new(react.clone(), Config::default()) {
                Ok(watcher) => Box::new(watcher),
                Err(error) => {
                    tracing::warn!(%error, "no events of the file system: plugins are looked at every second");
                    polling(POLL, react)
                }
            },
        };
        let mut watch = Self { watcher, watched: HashMap::new(), links };
        dirs.load().values().for_each(|dir| watch.follow(dir));
        watch
    }

    /// Watches a folder and what leads to it: what is there of it now.
    pub(crate) fn follow(&mut self, dir: &Path) {
        // A folder that was replaced has the same path and another identity: its old watch sees nothing.
        self.forget(dir);
        if dir.exists() {
            self.add(dir, RecursiveMode::Recursive);
        }
        if let Some(above) = dir.ancestors().skip(1).find(|above| above.is_dir()) {
            self.add(above, RecursiveMode::NonRecursive);
        }
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
        match &target {
            Some(target) if target.is_dir() => self.add(target, RecursiveMode::Recursive),
            Some(target) => {
                if let Some(folder) = target.parent() {
                    self.add(folder, RecursiveMode::NonRecursive);
                }
            }
            None => {}
        }
        let mut links = self.links.lock().expect("no code panics while it holds this lock");
        match target {
            Some(target) => links.insert(place, target.clone()) != Some(target),
            None => {
                links.remove(&place);
                false
            }
        }
    }

    /// No longer watches a folder.
    pub(crate) fn forget(&mut self, dir: &Path) {
        if self.watched.remove(dir).is_some() {
            // Fails when the folder is gone, and its watch with it.
            let _ = self.watcher.unwatch(dir);
        }
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) {
        if self.watched.get(path).is_some_and(|known| *known == mode || *known == RecursiveMode::Recursive) {
            return;
        }
        match self.watcher.watch(path, mode) {
            Ok(()) => _ = self.watched.insert(path.to_owned(), mode),
            Err(error) => tracing::warn!(path = %path.display(), %error, "can't watch"),
        }
    }
}

fn sort(event: &Event, dirs: &BTreeMap<usize, PathBuf>, links: &Links, changes: &Changes) {
    if event.need_rescan() {
        return dirs.keys().for_each(|dir| changes.look_now(Place::Dir(*dir)));
    }
    for path in &event.paths {
        for (place, target) in &*links.lock().expect("no code panics while it holds this lock") {
            let passing = path.file_name().is_some_and(|name| is_passing(&name.to_string_lossy()));
            if path.starts_with(target) && !passing {
                sort_entry(event.kind, place.clone(), changes);
            }
        }
        for (&index, dir) in dirs {
            if dir.starts_with(path) {
                // The folder itself, or one above it, came or went.
                match event.kind {
                    EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
                        changes.look_now(Place::Dir(index));
                    }
                    _ => {}
                }
            } else if let Some(entry) = entry_of(dir, path) {
                sort_entry(event.kind, Place::Entry(index, entry), changes);
            }
        }
    }
}

fn sort_entry(kind: EventKind, place: Place, changes: &Changes) {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => changes.look_now(place),
        EventKind::Remove(RemoveKind::Any | RemoveKind::File | RemoveKind::Folder | RemoveKind::Other)
        | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => changes.look_when_gone(place),
        EventKind::Create(CreateKind::Any | CreateKind::File | CreateKind::Folder | CreateKind::Other)
        | EventKind::Modify(ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Other)
        | EventKind::Modify(ModifyKind::Name(RenameMode::Any | RenameMode::Other))
        | EventKind::Any => changes.look_when_quiet(place),
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
}
