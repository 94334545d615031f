//! Which of the names that decide how its contents are treated a folder has: files of exclusions, ignore files and
//! repositories. Every call asks about each folder on the way to a path, and hardly any has one, so what was found is kept
//! for as long as the folder itself is unchanged.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use parking_lot::RwLock;
use toold_engine::dependencies::FileFacts;

use crate::file_facts::{facts, file_clock, is_settled_folder};
use crate::file_systems::answering;

/// The names, one bit for each.
const NAMES: [&str; 7] = [".aiexclude", ".toolignore", ".ignore", ".rgignore", ".gitignore", ".git", ".jj"];
/// Above this number of folders, all are forgotten.
const MAX_FOLDERS: usize = 4096;

/// By the text of the path, which takes less time to compare than its components.
static KNOWN: RwLock<Option<HashMap<OsString, (FileFacts, FolderNames)>>> = RwLock::new(None);

/// The names that a folder may have. One that is not among them was not there a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderNames(u8);

impl FolderNames {
    /// Nothing is known: each name has to be looked for.
    const UNKNOWN: Self = Self(u8::MAX);

    /// Blocks.
    pub(crate) fn of(folder: &Path) -> Self {
        Self::at(folder, file_clock())
    }

    /// A name that appears or goes changes the time of its folder. That shows only once the clock has moved on from the
    /// folder's time, so that the next change gets another one, and only on this system's own file systems.
    fn at(folder: &Path, clock: Duration) -> Self {
        let Ok(metadata) = std::fs::metadata(folder) else { return Self::UNKNOWN };
        if !metadata.is_dir() || !is_settled_folder(&metadata, clock) || !answering::is_local_path(folder) {
            return Self::UNKNOWN;
        }
        let facts = facts(&metadata);
        let known = KNOWN.read().as_ref().and_then(|known| known.get(folder.as_os_str()).copied());
        if let Some((_, names)) = known.filter(|(then, _)| *then == facts) {
            return names;
        }
        let names = Self::look(folder);
        let mut known = KNOWN.write();
        let known = known.get_or_insert_default();
        if known.len() >= MAX_FOLDERS {
            known.clear();
        }
        known.insert(folder.into(), (facts, names));
        names
    }

    fn look(folder: &Path) -> Self {
        let is_absent = |name: &str| {
            let looked = std::fs::symlink_metadata(folder.join(name));
            looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let bits = NAMES.iter().enumerate().filter(|(_, name)| !is_absent(name)).map(|(bit, _)| 1 << bit);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether the folder may have something with this name, which is one of [`NAMES`].
    pub(crate) fn may_have(self, name: &str) -> bool {
        NAMES.iter().position(|known| *known == name).is_none_or(|bit| self.0 & (1 << bit) != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// Changes the folder until that shows in its time, as it does by itself after a tick of the clock.
    fn touch(folder: &Path) {
        let before = facts(&std::fs::metadata(folder).unwrap());
        while facts(&std::fs::metadata(folder).unwrap()).ctime == before.ctime {
            std::fs::write(folder.join("other"), "").unwrap();
            std::fs::remove_file(folder.join("other")).unwrap();
        }
    }

    #[test]
    fn a_name_that_appears_or_goes_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (path, later) = (folder.path(), file_clock() + Duration::from_secs(3600));
        assert_eq!(FolderNames::at(path, later), FolderNames(0));
        touch(path);
        std::fs::write(path.join(".aiexclude"), "a").unwrap();
        let names = FolderNames::at(path, later);
        assert!(names.may_have(".aiexclude") && !names.may_have(".git"));
        touch(path);
        std::fs::remove_file(path.join(".aiexclude")).unwrap();
        assert_eq!(FolderNames::at(path, later), FolderNames(0));
        std::os::unix::fs::symlink("nowhere", path.join(".toolignore")).unwrap();
        touch(path);
        assert!(FolderNames::at(path, later).may_have(".toolignore"));
    }

    #[test]
    fn nothing_is_kept_about_a_folder_that_has_just_changed() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = std::fs::metadata(folder.path()).unwrap();
        // The clock shows the folder's own time, so that the next change may get the same.
        let clock = Duration::new(metadata.ctime() as u64, metadata.ctime_nsec() as u32);
        assert_eq!(FolderNames::at(folder.path(), clock), FolderNames::UNKNOWN);
        assert_eq!(FolderNames::of(&folder.path().join("none")), FolderNames::UNKNOWN);
        assert!(!KNOWN.read().as_ref().is_some_and(|known| known.contains_key(folder.path().as_os_str())));
    }
}
