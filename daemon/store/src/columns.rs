//! Conversion of our values to and from columns.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Milliseconds since 1970; times before that, and past the year 292 million, are clamped.
pub(crate) fn from_time(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn to_time(ms: i64) -> SystemTime {
    let since = Duration::from_millis(u64::try_from(ms).unwrap_or_default());
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A path's own bytes: not every path is text.
pub(crate) fn from_path(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

pub(crate) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Paths one after another, each followed by a NUL, which no path contains.
pub(crate) fn from_paths(paths: &[PathBuf]) -> Vec<u8> {
    paths.iter().flat_map(|path| from_path(path).iter().copied().chain([0])).collect()
}

pub(crate) fn to_paths(bytes: &[u8]) -> Vec<PathBuf> {
    bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(to_path).collect()
}

/// A count for a column: SQLite has no unsigned integers.
pub(crate) fn from_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn to_count(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_as_they_were() {
        let paths = vec![PathBuf::from("/a b"), to_path(b"/not\xfftext")];
        assert_eq!(to_paths(&from_paths(&paths)), paths);
        assert_eq!(to_paths(&from_paths(&[])), Vec::<PathBuf>::new());
    }

    #[test]
    fn times_come_back_to_the_millisecond() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_123);
        assert_eq!(to_time(from_time(time)), time);
    }
}
