//! Polling for changes where the system does not report them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::plugin::content::files_of;
use crate::reload::dirs::ResolvedDir;

/// A file written more recently than this may change again without its times showing it, where clocks are coarse.
const FRESH: Duration = Duration::from_secs(3);

/// An entry of a folder, by the folder's number.
type PollKey = (usize, PathBuf);

/// The state at the last poll.
#[derive(Default)]
pub(crate) struct Poller {
    seen: BTreeMap<PollKey, PolledEntry>,
}

struct PolledEntry {
    /// `None` if nothing is there.
    stamp: Option<PollStamp>,
    state: PollState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PollState {
    /// It changed since the poll before: it may be half of a save.
    Moving,
    /// It was reported, and is reported once more when its times are reliable.
    Fresh,
    Still,
}

struct PollStamp {
    digest: u64,
    newest: Option<SystemTime>,
}

/// The result of a poll.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PollResult {
    /// Entries that changed, and are stable since the last poll.
    pub(crate) changed: Vec<PollKey>,
    /// Something else changed: polling again soon shows whether it is complete.
    pub(crate) moving: bool,
}

impl Poller {
    /// Checks all entries of folders, and some of others. An entry that was never seen counts as changed. Blocks.
    pub(crate) fn poll(&mut self, dirs: &[(usize, ResolvedDir)], others: &[PollKey], now: SystemTime) -> PollResult {
        let in_dirs = dirs.iter().flat_map(|(number, dir)| dir.entries().into_iter().map(|path| (*number, path)));
        let found: BTreeSet<PollKey> = in_dirs.chain(others.iter().cloned()).collect();
        self.seen.retain(|key, _| dirs.iter().any(|(number, _)| *number == key.0) || others.contains(key));
        let mut keys: Vec<PollKey> = self.seen.keys().filter(|key| !found.contains(*key)).cloned().collect();
        keys.extend(found.iter().cloned());
        let mut polled = PollResult::default();
        for key in keys {
            let stamp = found.contains(&key).then(|| PollStamp::of(&key.1)).flatten();
            let is_fresh = stamp.as_ref().is_some_and(|stamp| stamp.is_fresh(now));
            let digest = stamp.as_ref().map(|stamp| stamp.digest);
            let before = self.seen.get(&key).filter(|seen| seen.stamp.as_ref().map(|stamp| stamp.digest) == digest);
            let state = match before.map(|seen| seen.state) {
                None => PollState::Moving,
                Some(PollState::Moving) if is_fresh => PollState::Fresh,
                Some(PollState::Fresh) if is_fresh => continue,
                Some(PollState::Moving | PollState::Fresh) => PollState::Still,
                Some(PollState::Still) => continue,
            };
            self.seen.insert(key.clone(), PolledEntry { stamp, state });
            match state {
                PollState::Moving => polled.moving = true,
                PollState::Fresh | PollState::Still => polled.changed.push(key),
            }
        }
        self.seen.retain(|_, seen| seen.stamp.is_some() || seen.state == PollState::Moving);
        polled
    }
}

impl PollStamp {
    /// Made from sizes and times; polled file systems need not have stable inode numbers.
    fn of(path: &Path) -> Option<Self> {
        if !path.exists() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        let mut newest = None;
        match files_of(path) {
            Ok(files) => {
                for file in files {
                    file.hash(&mut hasher);
                    let Ok(facts) = file.metadata() else { continue };
                    let times = (facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec());
                    (facts.len(), times).hash(&mut hasher);
                    newest = newest.max(facts.modified().ok());
                }
            }
            Err(error) => error.kind().hash(&mut hasher),
        }
        Some(Self { digest: hasher.finish(), newest })
    }

    fn is_fresh(&self, now: SystemTime) -> bool {
        let age = |then| now.duration_since(then).unwrap_or_else(|error| error.duration());
        self.newest.is_some_and(|then| age(then) < FRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reload::options::{DirKind, PluginDir};

    struct PollWorld {
        root: tempfile::TempDir,
        poller: Poller,
        now: SystemTime,
    }

    impl PollWorld {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap(), poller: Poller::default(), now: SystemTime::now() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            std::fs::write(self.path(name), text).unwrap();
        }

        #[track_caller]
        fn check(&mut self, changed: &[&str], moving: bool) {
            let dir = ResolvedDir::new(PluginDir { path: self.path(""), kind: DirKind::User });
            let polled = self.poller.poll(&[(0, dir)], &[], self.now);
            let changed = changed.iter().map(|name| (0, self.path(name))).collect();
            assert_eq!(polled, PollResult { changed, moving });
        }
    }

    #[test]
    fn a_change_is_reported_once_it_is_stable() {
        let mut world = PollWorld::new();
        world.write("a.lua", "1");
        world.now += FRESH * 2;
        world.check(&[], true);
        world.check(&["a.lua"], false);
        world.check(&[], false);
        world.write("a.lua", "half");
        world.check(&[], true);
        world.write("a.lua", "half, and whole");
        world.check(&[], true);
        world.check(&["a.lua"], false);
        std::fs::remove_file(world.path("a.lua")).unwrap();
        world.check(&[], true);
        world.check(&["a.lua"], false);
        world.check(&[], false);
    }

    #[test]
    fn a_fresh_change_is_reported_once_more() {
        let mut world = PollWorld::new();
        world.write("f/plugin.lua", "1");
        world.check(&[], true);
        world.check(&["f"], false);
        world.check(&[], false);
        world.now += FRESH * 2;
        world.check(&["f"], false);
        world.check(&[], false);
    }

    #[test]
    fn a_file_as_old_as_the_one_before_is_a_change() {
        let mut world = PollWorld::new();
        world.write("a.lua", "old");
        world.now += FRESH * 2;
        world.check(&[], true);
        world.check(&["a.lua"], false);
        let times = std::fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        let file = std::fs::File::create(world.path("b.tmp")).unwrap();
        file.set_times(times).unwrap();
        std::fs::rename(world.path("b.tmp"), world.path("a.lua")).unwrap();
        world.check(&[], true);
        world.check(&["a.lua"], false);
    }
}
