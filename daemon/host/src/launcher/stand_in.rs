//! Files and folders that a program might make, and that must stay as they are: while it runs, each has a stand-in, which can
//! be mounted read-only like one that exists.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

type HeldStandIns = BTreeMap<PathBuf, Weak<StandIn>>;

/// Those of this process: commands that run at the same time share them, since a stand-in that is removed is no longer
/// mounted anywhere.
static HELD: Mutex<HeldStandIns> = Mutex::new(BTreeMap::new());

/// What a stand-in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandInContent {
    Folder,
    File(&'static str),
}

/// Exists until the last one for the same path is dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct StandIn {
    path: PathBuf,
    content: StandInContent,
}

fn all_held() -> MutexGuard<'static, HeldStandIns> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StandIn {
    /// Whether what is at a path is a stand-in.
    pub fn is_held(path: &Path) -> bool {
        all_held().get(path).is_some_and(|held| held.strong_count() > 0)
    }

    /// `None` if something else is there, or if it cannot be made. A file that a daemon left behind when it was killed counts
    /// as made; a folder may be anybody's.
    pub fn hold(path: &Path, content: StandInContent) -> Option<Arc<Self>> {
        let mut held = all_held();
        if let Some(found) = held.get(path).and_then(Weak::upgrade) {
            return Some(found);
        }
        if !content.make(path) {
            return None;
        }
        let stand_in = Arc::new(Self { path: path.to_owned(), content });
        held.insert(path.to_owned(), Arc::downgrade(&stand_in));
        Some(stand_in)
    }
}

impl StandInContent {
    fn make(self, path: &Path) -> bool {
        let made = match self {
            Self::Folder => fs::create_dir(path),
            Self::File(text) => OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
                .and_then(|mut file| file.write_all(text.as_bytes())),
        };
        match made {
            Ok(()) => true,
            Err(error) => self != Self::Folder && error.kind() == ErrorKind::AlreadyExists && self.is_at(path),
        }
    }

    /// Whether exactly this is at the path.
    fn is_at(self, path: &Path) -> bool {
        let Ok(found) = path.symlink_metadata() else { return false };
        match self {
            Self::Folder => found.is_dir() && fs::read_dir(path).is_ok_and(|mut all| all.next().is_none()),
            Self::File(text) => {
                let is_same = || fs::read(path).is_ok_and(|content| content == text.as_bytes());
                found.is_file() && found.len() == text.len() as u64 && is_same()
            }
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let mut held = all_held();
        // Another one may have been made for the path since.
        if held.get(&self.path).is_some_and(|held| held.strong_count() > 0) {
            return;
        }
        held.remove(&self.path);
        if self.content.is_at(&self.path) {
            // Nothing depends on it: a later one takes its place.
            let _ = match self.content {
                StandInContent::Folder => fs::remove_dir(&self.path),
                StandInContent::File(_) => fs::remove_file(&self.path),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_exists_until_the_last_one_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("file", StandInContent::File(".\n")), ("folder", StandInContent::Folder)] {
            let path = folder.path().join(name);
            let one = StandIn::hold(&path, content).unwrap();
            let two = StandIn::hold(&path, content).unwrap();
            drop(one);
            assert!(path.exists(), "{name}");
            drop(two);
            assert!(!path.exists(), "{name}");
        }
    }

    #[test]
    fn what_is_there_already_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "mine").unwrap();
        assert!(StandIn::hold(&path, StandInContent::File(".\n")).is_none());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        // One that was left behind.
        fs::write(&path, ".\n").unwrap();
        drop(StandIn::hold(&path, StandInContent::File(".\n")).unwrap());
        assert!(!path.exists());
        let own = folder.path().join("folder");
        fs::create_dir(&own).unwrap();
        assert!(StandIn::hold(&own, StandInContent::Folder).is_none() && own.exists());
        // One that was changed since.
        let held = StandIn::hold(&path, StandInContent::File(".\n")).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(held);
        assert!(path.exists());
    }
}
