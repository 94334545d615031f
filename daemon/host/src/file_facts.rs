//! The metadata by which a file or a folder is known to be unchanged.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use toold_engine::dependencies::FileFacts;

/// Two changes further apart than this get different times on every file system we know.
const SETTLED: Duration = Duration::from_secs(2);

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
    let at = |seconds: i64, nanos: i64| {
        let since = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
        SystemTime::UNIX_EPOCH + since
    };
    let old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age >= SETTLED);
    old(at(metadata.mtime(), metadata.mtime_nsec())) && old(at(metadata.ctime(), metadata.ctime_nsec()))
}
