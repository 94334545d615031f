//! Which entries changed, and when they can be loaded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use toold_host::folders::{EMPTY, is_empty_file};

/// How long a file that is written and not closed must be quiet.
const QUIET: Duration = Duration::from_millis(10);

/// How long a removed file may take to come back before it is looked at. That of a plugin in service may take longer:
/// [`stability`](crate::reload::stability).
const GONE: Duration = Duration::from_millis(50);

/// A part of a plugin folder that changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum WatchTarget {
    /// A plugin folder, by its number: it was made or removed, or events were lost.
    Dir(usize),
    /// A file or folder in a plugin folder.
    Entry(usize, PathBuf),
}

/// Changed targets, and the time from which they can be loaded.
#[derive(Default)]
pub(crate) struct PendingChanges {
    due: Mutex<HashMap<WatchTarget, Instant>>,
    pub(crate) wake: Notify,
}

impl PendingChanges {
    /// Takes the targets that are due now; returns when the next one is.
    pub(crate) fn take_due(&self) -> (Vec<WatchTarget>, Option<Instant>) {
        let now = Instant::now();
        let mut due = self.due.lock();
        let mut ready: Vec<WatchTarget> =
            due.iter().filter(|(_, at)| **at <= now).map(|(target, _)| target.clone()).collect();
        ready.sort();
        for target in &ready {
            due.remove(target);
        }
        (ready, due.values().min().copied())
    }

    pub(crate) fn due_now(&self, target: WatchTarget) {
        self.set(target, |_| Instant::now());
    }

    /// `path` is the file that was written, which is not always the target itself.
    pub(super) fn due_when_quiet(&self, target: WatchTarget, path: &Path) {
        let at = Instant::now() + if is_empty_file(path) { EMPTY } else { QUIET };
        // A target that is due already stays due: the file was whole a moment ago.
        self.set(target, |before| before.filter(|before| *before <= Instant::now()).unwrap_or(at));
    }

    pub(super) fn due_when_gone(&self, target: WatchTarget) {
        let at = Instant::now() + GONE;
        self.set(target, |_| at);
    }

    /// Unless it is due sooner.
    pub(crate) fn due_at(&self, target: WatchTarget, at: Instant) {
        self.set(target, |before| before.map_or(at, |before| before.min(at)));
    }

    fn set(&self, target: WatchTarget, at: impl FnOnce(Option<Instant>) -> Instant) {
        let mut due = self.due.lock();
        let before = due.get(&target).copied();
        due.insert(target, at(before));
        drop(due);
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_held_and_what_comes_back_is_looked_at_once() {
        let changes = PendingChanges::default();
        let place = WatchTarget::Entry(0, "/p/a.lua".into());
        changes.due_when_gone(place.clone());
        let (ready, next) = changes.take_due();
        assert!(ready.is_empty() && next.is_some());
        changes.due_now(place.clone());
        assert_eq!(changes.take_due(), (vec![place], None));
    }
}
