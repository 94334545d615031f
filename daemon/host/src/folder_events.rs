//! Events of folders, read when they are wanted: the system queues an event before the change that it reports returns, so
//! that reading until the queue is empty leaves out nothing that has happened.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file_systems;

#[cfg(target_os = "linux")]
use linux::FolderEvents;
#[cfg(not(target_os = "linux"))]
use others::NoFolderEvents as FolderEvents;

/// Something happened in a watched folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FolderEvent {
    /// To the entry with this name.
    Entry {
        watch: i32,
        name: OsString,
        /// What has this name may be another file or folder than before.
        is_other: bool,
        is_folder: bool,
    },
    /// To the folder itself: it may be gone.
    Folder { watch: i32 },
    /// The watch is no longer there.
    Ended { watch: i32 },
    /// Events were lost.
    Lost,
}

/// The watches that all users of one budget may have together.
#[derive(Clone, Debug)]
pub struct WatchBudget(Arc<AtomicU64>);

impl WatchBudget {
    /// At most a quarter of those that the system allows a user.
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(FolderEvents::limit() / 4)))
    }

    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn give_back(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Default for WatchBudget {
    fn default() -> Self {
        Self::new()
    }
}

/// Folders that are watched by their paths.
#[derive(Debug)]
pub struct WatchedFolders {
    events: Option<FolderEvents>,
    budget: WatchBudget,
    folders: HashMap<i32, PathBuf>,
    watches: HashMap<PathBuf, i32>,
    /// No longer watched at these paths, since the same folder was found at another one. It may be at both.
    elsewhere: Vec<PathBuf>,
}

impl WatchedFolders {
    /// None yet. There are no events if the file system of `root` does not report all changes, or if the system gives no
    /// further queue. Blocks as [`file_systems::silent`].
    pub fn new(root: &Path, budget: WatchBudget) -> Self {
        let events = file_systems::silent(root).is_none().then(|| FolderEvents::new().ok()).flatten();
        Self { events, budget, folders: HashMap::new(), watches: HashMap::new(), elsewhere: Vec::new() }
    }

    /// Whether changes are reported at all.
    pub fn reports(&self) -> bool {
        self.events.is_some()
    }

    /// Whether a folder at this path is watched, so that [`Self::take`] reports its changes.
    pub fn has(&self, folder: &Path) -> bool {
        self.watches.get(folder).is_some_and(|watch| self.folders.get(watch).is_some_and(|known| known == folder))
    }

    /// Watches a folder, not those in it. When no more can be watched, none is, and there are no events from then on.
    pub fn watch(&mut self, folder: &Path) {
        let Some(events) = self.events.as_ref().filter(|_| !self.has(folder)) else { return };
        let watched = match self.budget.take() {
            true => events.watch(folder),
            false => Err(io::ErrorKind::QuotaExceeded.into()),
        };
        match watched {
            Ok(watch) => {
                let other = self.folders.insert(watch, folder.to_owned()).filter(|other| other != folder);
                if let Some(other) = other.filter(|other| self.watches.get(other) == Some(&watch)) {
                    self.watches.remove(&other);
                    self.elsewhere.push(other);
                    self.budget.give_back(1);
                }
                if self.watches.insert(folder.to_owned(), watch).is_some() {
                    self.budget.give_back(1);
                }
            }
            // It is gone, which the watch of the folder above reports, or it may not be read.
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&error.kind()) => {
                self.budget.give_back(1);
            }
            Err(_) => self.stop(),
        }
    }

    pub fn unwatch(&mut self, folder: &Path) {
        let Some(watch) = self.watches.remove(folder) else { return };
        self.budget.give_back(1);
        // The folder may have been moved, and have the watch at its new place.
        if self.folders.get(&watch).is_some_and(|known| known == folder) {
            self.folders.remove(&watch);
            if let Some(events) = &self.events {
                events.unwatch(watch);
            }
        }
    }

    /// Ends all watches, for good.
    pub fn stop(&mut self) {
        self.budget.give_back(self.watches.len());
        self.events = None;
        self.folders.clear();
        self.watches.clear();
        self.elsewhere.clear();
    }

    /// Reports each path at which something has changed, with whether everything below a folder there may be other than
    /// before. Returns whether these are all changes in watched folders since the last time. Never waits.
    pub fn take(&mut self, mut each: impl FnMut(PathBuf, bool)) -> bool {
        let Some(events) = &self.events else { return false };
        self.elsewhere.drain(..).for_each(|path| each(path, false));
        let mut others = HashSet::new();
        let (mut is_complete, folders, watches, budget) = (true, &mut self.folders, &mut self.watches, &self.budget);
        let taken = events.take(|event| match event {
            FolderEvent::Entry { watch, name, is_other, is_folder } => {
                if let Some(folder) = folders.get(&watch) {
                    let path = folder.join(name);
                    if is_other && is_folder {
                        others.insert(path.clone());
                    }
                    each(path, is_other && is_folder);
                }
            }
            FolderEvent::Folder { watch } => {
                if let Some(folder) = folders.get(&watch) {
                    each(folder.clone(), false);
                }
            }
            FolderEvent::Ended { watch } => {
                if let Some(folder) = folders.remove(&watch)
                    && watches.get(&folder) == Some(&watch)
                {
                    watches.remove(&folder);
                    budget.give_back(1);
                    each(folder, true);
                }
            }
            FolderEvent::Lost => is_complete = false,
        });
        let is_complete = is_complete && taken.is_ok();
        // What was watched at these paths may lie elsewhere now.
        if !others.is_empty() {
            let is_moved = |path: &&PathBuf| path.ancestors().any(|above| others.contains(above));
            let moved: Vec<PathBuf> = self.watches.keys().filter(is_moved).cloned().collect();
            moved.iter().for_each(|path| self.unwatch(path));
        }
        is_complete
    }
}

impl Drop for WatchedFolders {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{FolderEvent, Path, io};

    /// Room for a hundred events and more, on the stack: usually there is none.
    const BUFFER: usize = 8 * 1024;

    /// A queue of events. The system bounds it, and says when events were lost.
    #[derive(Debug)]
    pub(super) struct FolderEvents(OwnedFd);

    impl FolderEvents {
        /// # Errors
        /// The system gives no queue: it has a limit for each user.
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
        }

        /// How many watches a user may have.
        pub(super) fn limit() -> u64 {
            let limit = crate::files::read_named(Path::new("/proc/sys/fs/inotify/max_user_watches"), 64);
            let text = limit.ok().and_then(|text| String::from_utf8(text).ok());
            text.and_then(|text| text.trim().parse().ok()).unwrap_or(8192)
        }

        /// Watches a folder, not those in it. The same folder has the same number.
        ///
        /// # Errors
        /// There is no such folder, or the limit is reached.
        pub(super) fn watch(&self, folder: &Path) -> io::Result<i32> {
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::DELETE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW
                | WatchFlags::EXCL_UNLINK;
            Ok(inotify::add_watch(&self.0, folder, flags)?)
        }

        pub(super) fn unwatch(&self, watch: i32) {
            // Fails when the folder is gone, and its watch with it.
            let _ = inotify::remove_watch(&self.0, watch);
        }

        /// Takes all events that are queued. Never waits.
        ///
        /// # Errors
        /// The queue cannot be read.
        pub(super) fn take(&self, mut each: impl FnMut(FolderEvent)) -> io::Result<()> {
            let mut buffer = [MaybeUninit::uninit(); BUFFER];
            let mut reader = Reader::new(&self.0, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                let (watch, flags) = (event.wd(), event.events());
                if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                    each(FolderEvent::Lost);
                } else if flags.contains(ReadFlags::IGNORED) {
                    each(FolderEvent::Ended { watch });
                } else if let Some(name) = event.file_name() {
                    let others = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
                    each(FolderEvent::Entry {
                        watch,
                        name: OsStr::from_bytes(name.to_bytes()).to_owned(),
                        is_other: flags.intersects(others),
                        is_folder: flags.contains(ReadFlags::ISDIR),
                    });
                } else {
                    each(FolderEvent::Folder { watch });
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use super::{FolderEvent, Path, io};

    /// A system without such events.
    #[derive(Debug)]
    pub struct NoFolderEvents;

    impl NoFolderEvents {
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn limit() -> u64 {
            0
        }

        pub fn watch(&self, _: &Path) -> io::Result<i32> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn unwatch(&self, _: i32) {}

        pub fn take(&self, _: impl FnMut(FolderEvent)) -> io::Result<()> {
            Ok(())
        }
    }
}
