//! Watches configuration files for changes.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind};
use notify::{Config, Event, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;
use toold_host::folders::{EMPTY, above, is_empty_file, until_still};
use toold_lua::reload::CHANGES;

/// How long a file must be quiet before it is read: editors save in several steps.
pub const QUIET: Duration = Duration::from_millis(30);
/// How often a file system without change events is polled.
const POLL: Duration = Duration::from_secs(2);

/// The watched files. Query changes with [`take_change`](Self::take_change).
pub struct ConfigWatch {
    watcher: Mutex<Box<dyn Watcher + Send>>,
    files: Arc<Mutex<HashMap<PathBuf, WatchedChange>>>,
    watched: Mutex<HashSet<PathBuf>>,
    wake: Arc<Notify>,
}

/// The changes of a file since the last query.
#[derive(Clone, Copy, Default, PartialEq)]
enum WatchedChange {
    #[default]
    None,
    /// It was created, removed or written; its writer may not be done.
    Touched,
    /// Its writer is done.
    Closed,
}

impl ConfigWatch {
    pub fn start() -> Self {
        let files = Arc::<Mutex<HashMap<PathBuf, WatchedChange>>>::default();
        let wake = Arc::<Notify>::default();
        let react = {
            let (files, wake) = (files.clone(), wake.clone());
            move |event: notify::Result<Event>| {
                let mut files = files.lock();
                let mut changed = false;
                for (file, change) in files.iter_mut() {
                    let now = event.as_ref().map_or(WatchedChange::Touched, |event| change_of(event, file));
                    if now != WatchedChange::None {
                        *change = now;
                        changed = true;
                    }
                }
                if changed {
                    wake.notify_one();
                }
            }
        };
        let watcher: Box<dyn Watcher + Send> =
            match RecommendedWatcher::new(react.clone(), Config::default().with_event_kinds(CHANGES)) {
                Ok(watcher) => Box::new(watcher),
                Err(error) => {
                    tracing::warn!(%error, "no file system events: toold checks configurations every two seconds");
                    let config = Config::default().with_poll_interval(POLL).with_compare_contents(true);
                    Box::new(PollWatcher::new(react, config).expect("a polling watcher needs nothing of the system"))
                }
            };
        Self { watcher: Mutex::new(watcher), files, watched: Mutex::default(), wake }
    }

    /// Watches a file, which need not exist, nor any folder that leads to it.
    pub fn follow(&self, file: &Path) {
        self.files.lock().entry(file.to_owned()).or_default();
        // The folder above the nearest one too: that may be replaced.
        let look = || above(file).take(2).collect::<Vec<_>>();
        let Ok(()) = until_still(look, |folders| {
            folders.iter().for_each(|folder| self.watch(folder));
            Ok::<_, Infallible>(())
        });
    }

    fn watch(&self, folder: &Path) {
        self.watched.lock().insert(folder.to_owned());
        // A folder that was watched before and has been replaced is a different one.
        if let Err(error) = self.watcher.lock().watch(folder, RecursiveMode::NonRecursive) {
            tracing::warn!(folder = %folder.display(), %error, "can't watch: changes take effect after `daemon.reload`");
        }
    }

    /// Stops watching a file of a project.
    pub fn forget(&self, file: &Path) {
        let others: Vec<PathBuf> = {
            let mut files = self.files.lock();
            files.remove(file);
            files.keys().cloned().collect()
        };
        // Not under the lock of the files: the watcher's thread takes that lock, and unwatching
        // waits for the thread.
        self.watched.lock().retain(|folder| {
            let used = others.iter().any(|other| other.starts_with(folder));
            if !used {
                // Fails when the folder is gone, and its watch with it.
                let _ = self.watcher.lock().unwatch(folder);
            }
            used
        });
    }

    /// Waits until something may have changed, and has been quiet for a moment. Not cancel-safe:
    /// the change that woke it is lost.
    pub async fn changed(&self) {
        self.wake.notified().await;
        loop {
            while tokio::time::timeout(QUIET, self.wake.notified()).await.is_ok() {}
            let wait =
                self.files.lock().iter().any(|(file, change)| *change == WatchedChange::Touched && is_empty_file(file));
            if !wait || tokio::time::timeout(EMPTY, self.wake.notified()).await.is_err() {
                break;
            }
        }
        // A newly created folder must be watched itself.
        let changed =
            |(file, change): (&PathBuf, &WatchedChange)| (*change != WatchedChange::None).then(|| file.clone());
        let files: Vec<PathBuf> = self.files.lock().iter().filter_map(changed).collect();
        files.iter().for_each(|file| self.follow(file));
    }

    /// Says that a file has changed, of which no event may have come yet.
    pub fn look_at(&self, file: &Path) {
        if let Some(change @ WatchedChange::None) = self.files.lock().get_mut(file) {
            *change = WatchedChange::Touched;
        }
        self.wake.notify_one();
    }

    /// Whether a file may have changed since the last query.
    pub fn take_change(&self, file: &Path) -> bool {
        self.files.lock().get_mut(file).is_some_and(|change| std::mem::take(change) != WatchedChange::None)
    }
}

/// The meaning of an event for the file, or for a folder that leads to it.
fn change_of(event: &Event, file: &Path) -> WatchedChange {
    if event.need_rescan() {
        return WatchedChange::Touched;
    }
    let change = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => WatchedChange::Closed,
        // Polling reports nothing more about a newer file.
        EventKind::Modify(ModifyKind::Metadata(MetadataKind::WriteTime)) => WatchedChange::Touched,
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => WatchedChange::None,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => {
            WatchedChange::Touched
        }
    };
    if event.paths.iter().any(|path| file.starts_with(path)) { change } else { WatchedChange::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_seen_whose_folders_come_with_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for n in 0..20 {
            let watch = ConfigWatch::start();
            let file = root.join(format!("{n}/home/.config/toold/config.toml"));
            watch.follow(&file);
            let seen = async {
                while !watch.take_change(&file) || !file.exists() {
                    watch.changed().await;
                }
            };
            let written = async {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, "[limits]\n").unwrap();
            };
            let both = async { tokio::join!(seen, written) };
            tokio::time::timeout(Duration::from_secs(30), both).await.expect("the file is seen");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_was_emptied_is_waited_for_until_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        std::fs::write(&file, "").unwrap();
        let watch = ConfigWatch::start();
        for (change, waits) in [(WatchedChange::Touched, true), (WatchedChange::Closed, false)] {
            watch.files.lock().insert(file.clone(), change);
            watch.wake.notify_one();
            let start = tokio::time::Instant::now();
            watch.changed().await;
            assert_eq!(start.elapsed() >= EMPTY, waits);
        }
        watch.files.lock().insert(file.clone(), WatchedChange::Touched);
        watch.wake.notify_one();
        let start = tokio::time::Instant::now();
        let fill = async {
            tokio::time::sleep(QUIET * 2).await;
            std::fs::write(&file, "[limits]\n").unwrap();
            watch.wake.notify_one();
        };
        tokio::join!(watch.changed(), fill);
        assert!(start.elapsed() < EMPTY);
    }

    #[test]
    fn folders_are_watched_as_long_as_a_file_in_them_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let watch = ConfigWatch::start();
        let (one, other) = (root.join("a/.toold/config.toml"), root.join("b/.toold/config.toml"));
        for file in [&one, &other] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            watch.follow(file);
        }
        watch.forget(&one);
        let expected = other.ancestors().skip(1).take(2).map(Path::to_path_buf).collect();
        assert_eq!(*watch.watched.lock(), expected);
    }
}
