//! Events of folders, read when they are wanted: the system queues an event before the change that it reports returns, so
//! that reading until the queue is empty leaves out nothing that has happened.

use std::ffi::OsString;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
pub use linux::FolderEvents;
#[cfg(not(target_os = "linux"))]
pub use others::NoFolderEvents as FolderEvents;

/// Something happened in a watched folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderEvent {
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

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{FolderEvent, Path, io};

    const BUFFER: usize = 64 * 1024;

    /// A queue of events. The system bounds it, and says when events were lost.
    pub struct FolderEvents(OwnedFd);

    impl FolderEvents {
        /// # Errors
        /// The system gives no queue: it has a limit for each user.
        pub fn new() -> io::Result<Self> {
            Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
        }

        /// How many watches a user may have.
        pub fn limit() -> u64 {
            let limit = crate::files::read_named(Path::new("/proc/sys/fs/inotify/max_user_watches"), 64);
            let text = limit.ok().and_then(|text| String::from_utf8(text).ok());
            text.and_then(|text| text.trim().parse().ok()).unwrap_or(8192)
        }

        /// Watches a folder, not those in it. The same folder has the same number.
        ///
        /// # Errors
        /// There is no such folder, or the limit is reached.
        pub fn watch(&self, folder: &Path) -> io::Result<i32> {
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

        pub fn unwatch(&self, watch: i32) {
            // Fails when the folder is gone, and its watch with it.
            let _ = inotify::remove_watch(&self.0, watch);
        }

        /// Takes all events that are queued. Never waits.
        ///
        /// # Errors
        /// The queue cannot be read.
        pub fn take(&self, mut each: impl FnMut(FolderEvent)) -> io::Result<()> {
            let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
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
