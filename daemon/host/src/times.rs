//! The modification times of many files.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, open, statat};

/// Seconds since 1970 and nanoseconds, as the file system stores them. Files without a known time sort first.
pub type ModifiedTime = (i64, i64);

/// Looks up times relative to an open folder: a walk visits many files of one folder, and the system need not resolve
/// the path each time.
#[derive(Debug, Default)]
pub struct FileTimes {
    folder: Option<(PathBuf, OwnedFd)>,
}

impl FileTimes {
    /// When the file, or the link at the path, was last modified; `None` if that is unknown.
    pub fn of(&mut self, file: &Path) -> Option<ModifiedTime> {
        let (parent, name) = file.parent().zip(file.file_name())?;
        // Compared as text: a walk always writes a folder in the same way, while comparing paths compares their
        // components.
        if self.folder.as_ref().is_none_or(|(known, _)| known.as_os_str() != parent.as_os_str()) {
            let folder = open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
            self.folder = Some((parent.to_owned(), folder));
        }
        let (_, folder) = self.folder.as_ref()?;
        let facts = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // The types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        Some((facts.st_mtime as i64, facts.st_mtime_nsec as i64))
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
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let mut times = FileTimes::default();
        for (folder, seconds) in [(&one, 100), (&two, 200)] {
            create_dir(folder).unwrap();
            touch(&folder.join("a"), seconds);
            touch(&folder.join("b"), seconds + 1);
        }
        for _ in 0..2 {
            assert_eq!(times.of(&one.join("a")), Some((100, 7)));
            assert_eq!(times.of(&one.join("b")), Some((101, 7)));
            assert_eq!(times.of(&two.join("a")), Some((200, 7)));
        }
        remove_file(two.join("a")).unwrap();
        assert_eq!(times.of(&two.join("a")), None);
        assert_eq!(times.of(&one.join("a")), Some((100, 7)));
        // The open folder is still the one that the walk visited.
        rename(&one, dir.path().join("elsewhere")).unwrap();
        assert_eq!(times.of(&one.join("b")), Some((101, 7)));
        remove_dir_all(dir.path().join("elsewhere")).unwrap();
        assert_eq!(times.of(&one.join("b")), None);
        assert_eq!(times.of(Path::new("/")), None);
    }
}
