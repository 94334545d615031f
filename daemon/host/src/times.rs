//! The modification times and sizes of many files.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Stat, statat};

use crate::files::entry::open_to_pass;

/// Seconds since 1970 and nanoseconds, as the file system stores them. Files without a known time sort first.
pub type ModifiedTime = (i64, i64);

/// Looks files up relative to an open folder: a walk visits many files of one folder, and the system need not resolve
/// the path each time. Links on the way to a file are refused.
#[derive(Debug, Default)]
pub struct FileStats {
    folder: Option<(PathBuf, OwnedFd)>,
}

impl FileStats {
    /// When the file, or the link at the path, was last modified; `None` if that is unknown.
    pub fn modified(&mut self, file: &Path) -> Option<ModifiedTime> {
        let stat = self.of(file)?;
        // The types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        Some((stat.st_mtime as i64, stat.st_mtime_nsec as i64))
    }

    /// The size in bytes; `None` for a link, or if it is unknown.
    pub fn size(&mut self, file: &Path) -> Option<u64> {
        let stat = self.of(file).filter(|stat| !FileType::from_raw_mode(stat.st_mode).is_symlink())?;
        u64::try_from(stat.st_size).ok()
    }

    fn of(&mut self, file: &Path) -> Option<Stat> {
        let (parent, name) = file.parent().zip(file.file_name())?;
        // Compared as text: a walk always writes a folder in the same way, while comparing paths compares their
        // components.
        if self.folder.as_ref().is_none_or(|(known, _)| known.as_os_str() != parent.as_os_str()) {
            self.folder = Some((parent.to_owned(), open_to_pass(parent).ok()?));
        }
        let (_, folder) = self.folder.as_ref()?;
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, remove_dir_all, remove_file, rename};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn touch(path: &Path, seconds: u64) {
        let file = File::create(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::new(seconds, 7)).unwrap();
    }

    #[test]
    fn each_file_has_its_own_time() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (one, two) = (root.join("one"), root.join("two"));
        let mut times = FileStats::default();
        for (folder, seconds) in [(&one, 100), (&two, 200)] {
            create_dir(folder).unwrap();
            touch(&folder.join("a"), seconds);
            touch(&folder.join("b"), seconds + 1);
        }
        for _ in 0..2 {
            assert_eq!(times.modified(&one.join("a")), Some((100, 7)));
            assert_eq!(times.modified(&one.join("b")), Some((101, 7)));
            assert_eq!(times.modified(&two.join("a")), Some((200, 7)));
        }
        remove_file(two.join("a")).unwrap();
        assert_eq!(times.modified(&two.join("a")), None);
        assert_eq!(times.modified(&one.join("a")), Some((100, 7)));
        // The open folder is still the one that the walk visited.
        rename(&one, root.join("elsewhere")).unwrap();
        assert_eq!(times.modified(&one.join("b")), Some((101, 7)));
        remove_dir_all(root.join("elsewhere")).unwrap();
        assert_eq!(times.modified(&one.join("b")), None);
        assert_eq!(times.modified(Path::new("/")), None);
    }

    #[test]
    fn a_link_has_no_size_and_none_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        create_dir(root.join("folder")).unwrap();
        std::fs::write(root.join("folder/file"), "four").unwrap();
        std::os::unix::fs::symlink("file", root.join("folder/link")).unwrap();
        std::os::unix::fs::symlink("folder", root.join("other")).unwrap();
        let mut stats = FileStats::default();
        let mut size = |path: &str| stats.size(&root.join(path));
        assert_eq!((size("folder/file"), size("folder/link"), size("folder/none")), (Some(4), None, None));
        assert_eq!((size("other/file"), size("folder/file")), (None, Some(4)));
    }
}
