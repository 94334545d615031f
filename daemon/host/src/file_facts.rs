//! The metadata by which a file or a folder is known to be unchanged.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use toold_engine::dependencies::FileFacts;

/// Two changes further apart than this get different times on every file system we know.
const SETTLED: Duration = Duration::from_secs(2);
/// The same on file systems whose times are finer than this: they take them from the clock of [`file_clock`].
const FINE: Duration = Duration::from_millis(1);

pub(crate) fn facts(metadata: &Metadata) -> FileFacts {
    FileFacts {
        device: metadata.dev(),
        inode: metadata.ino(),
        mode: metadata.mode(),
        size: metadata.size(),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        ctime: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// Whether the next change will get another time. Future times count as now: the clock was set back.
pub(crate) fn is_settled(metadata: &Metadata, now: SystemTime) -> bool {
    let at = |seconds: i64, nanos: i64| SystemTime::UNIX_EPOCH + since_epoch(seconds, nanos);
    let old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age >= SETTLED);
    old(at(metadata.mtime(), metadata.mtime_nsec())) && old(at(metadata.ctime(), metadata.ctime_nsec()))
}

/// The clock from which the system takes the times of files, since 1970. It only moves a few hundred times a second.
pub fn file_clock() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        since_epoch(time.tv_sec, time.tv_nsec)
    }
    #[cfg(not(target_os = "linux"))]
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Whether the next change of a folder's entries will get another time than the last one, if `clock` is what [`file_clock`]
/// showed before the metadata was read.
pub(crate) fn is_settled_folder(metadata: &Metadata, clock: Duration) -> bool {
    let changed = since_epoch(metadata.ctime(), metadata.ctime_nsec());
    let last = changed.max(since_epoch(metadata.mtime(), metadata.mtime_nsec()));
    let is_fine = cfg!(target_os = "linux") && !changed.subsec_nanos().is_multiple_of(FINE.subsec_nanos());
    clock.checked_sub(last).is_some_and(|age| age >= if is_fine { FINE } else { SETTLED })
}

fn since_epoch(seconds: i64, nanos: i64) -> Duration {
    Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0))
}
