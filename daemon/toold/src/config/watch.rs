//! Seeing that configuration files change.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind};
use notify::{Config, Event, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// How long a file must be quiet before it is read: editors save in several steps.
pub const QUIET: Duration = Duration::from_millis(30);
/// How often a file system is looked at that tells nothing by itself.
const POLL: Duration = Duration::from_secs(2);

/// The files that are followed. What changes is asked for with [`take_change`](Self::take_change).
pub struct ConfigWatch {
    watcher: Mutex<Box<dyn Watcher + Send>>,
    files: Arc<Mutex<HashMap<PathBuf, bool>>>,
    wake: Arc<Notify>,
}

impl ConfigWatch {
    pub fn start() -> Self {
        let files = Arc::<Mutex<HashMap<PathBuf, bool>>>::default();
        let wake = Arc::<Notify>::default();
        let react = {
            let (files, wake) = (files.clone(), wake.clone());
            move |event: notify::Result<Event>| {
                let mut files = lock(&files);
                let mut changed = false;
                for (file, changes) in files.iter_mut() {
                    let hit = event.as_ref().map_or(true, |event| concerns(event, file));
                    *changes |= hit;
                    changed |= hit;
                }
                if changed {
                    wake.notify_one();
                }
            }
        };
        let watcher: Box<dyn Watcher + Send> = match RecommendedWatcher::new(react.clone(), Config::default()) {
            Ok(watcher) => Box::new(watcher),
            Err(error) => {
                tracing::warn!(%error, "no events of the file system: configurations are looked at every two seconds");
                let config = Config::default().with_poll_interval(POLL).with_compare_contents(true);
                Box::new(PollWatcher::new(react, config).expect("a polling watcher needs nothing of the system"))
            }
        };
        Self { watcher: Mutex::new(watcher), files, wake }
    }

    /// Follows a file, which need not exist, nor its folder.
    pub fn follow(&self, file: &Path) {
        lock(&self.files).entry(file.to_owned()).or_insert(false);
        let folders = file.ancestors().skip(1).take(2).filter(|folder| folder.is_dir());
        let mut watcher = lock(&self.watcher);
        for folder in folders {
            // A folder that was watched before and replaced since is another one.
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::warn!(folder = %folder.display(), %error, "can't watch: changes count after `daemon.reload`");
            }
        }
    }

    /// No longer follows a file of a project.
    pub fn forget(&self, file: &Path) {
        lock(&self.files).remove(file);
        let mut watcher = lock(&self.watcher);
        for folder in file.ancestors().skip(1).take(2) {
            let used =
                lock(&self.files).keys().any(|other| other.ancestors().skip(1).take(2).any(|used| used == folder));
            if !used {
                // Fails when the folder is gone, and its watch with it.
                let _ = watcher.unwatch(folder);
            }
        }
    }

    /// Waits until something may have changed, and has been quiet for a moment. Cancel-safe.
    pub async fn changed(&self) {
        self.wake.notified().await;
        while tokio::time::timeout(QUIET, self.wake.notified()).await.is_ok() {}
        // A folder that came is to be watched itself.
        let files: Vec<PathBuf> =
            lock(&self.files).iter().filter(|(_, changed)| **changed).map(|(file, _)| file.clone()).collect();
        files.iter().for_each(|file| self.follow(file));
    }

    /// Whether a file may have changed since this was asked last.
    pub fn take_change(&self, file: &Path) -> bool {
        lock(&self.files).get_mut(file).is_some_and(std::mem::take)
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}

/// Whether an event may be about the file, or about the folder that it lies in.
fn concerns(event: &Event, file: &Path) -> bool {
    let is_change = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        // All that is told of a newer file where files are looked at.
        EventKind::Modify(ModifyKind::Metadata(MetadataKind::WriteTime)) => true,
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    };
    let folder = file.parent().and_then(Path::file_name);
    let named = |path: &PathBuf| {
        let name: Option<&OsStr> = path.file_name();
        path == file || (name == folder && Some(path.as_path()) == file.parent())
    };
    event.need_rescan() || (is_change && event.paths.iter().any(named))
}
