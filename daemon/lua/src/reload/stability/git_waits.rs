//! Loads that wait until git has replaced all files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::reload::git_lock::{IndexLock, OLDEST};
use crate::reload::plugin_manager::EntryKey;

/// How often a lock is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The locks that are held, and the entries that wait for each.
pub(super) struct GitWaits {
    patience: Duration,
    waits: BTreeMap<IndexLock, GitWait>,
    /// Locks that were waited for in vain.
    stale: Arc<BTreeSet<IndexLock>>,
    /// When the locks are looked at next; `None` while nothing waits, or while they are looked at.
    pub(super) look_at: Option<Instant>,
}

struct GitWait {
    entries: BTreeSet<EntryKey>,
    first: Instant,
    /// The last change of an entry.
    newest: Instant,
}

impl GitWaits {
    /// A lock is waited for until nothing has changed for `patience`, and for a minute at most.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, waits: BTreeMap::new(), stale: Arc::default(), look_at: None }
    }

    /// Locks that loads ignore.
    pub(super) fn stale(&self) -> Arc<BTreeSet<IndexLock>> {
        self.stale.clone()
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Lets an entry wait. False if the lock is known to be stale.
    pub(super) fn wait(&mut self, lock: IndexLock, entry: EntryKey) -> bool {
        if self.stale.contains(&lock) {
            return false;
        }
        let now = Instant::now();
        let wait =
            self.waits.entry(lock).or_insert_with(|| GitWait { entries: BTreeSet::new(), first: now, newest: now });
        wait.entries.insert(entry);
        self.look_at.get_or_insert(now + LOOK);
        true
    }

    /// Lets an entry that changed wait for a lock that is known to be held, if there is one for it.
    pub(super) fn wait_again(&mut self, dir: usize, path: &Path) -> bool {
        let key = (dir, path.to_owned());
        let known =
            self.waits.iter_mut().find(|(lock, wait)| path.starts_with(&lock.tree) || wait.entries.contains(&key));
        let Some((_, wait)) = known else { return false };
        wait.newest = Instant::now();
        wait.entries.insert(key);
        true
    }

    /// The locks to look at now, if it is time to. [`looked`](Self::looked) is next.
    pub(super) fn due(&mut self) -> Option<Vec<IndexLock>> {
        self.look_at.take_if(|at| *at <= Instant::now())?;
        Some(self.waits.keys().cloned().collect())
    }

    /// Returns the entries whose locks are gone, or were waited for in vain.
    pub(super) fn looked(&mut self, held: &[IndexLock]) -> BTreeSet<EntryKey> {
        let now = Instant::now();
        let mut ready = BTreeSet::new();
        let waits = std::mem::take(&mut self.waits);
        for (lock, wait) in waits {
            let is_held = held.contains(&lock);
            let in_vain = now >= (wait.newest + self.patience).min(wait.first + OLDEST);
            if is_held && !in_vain {
                self.waits.insert(lock, wait);
                continue;
            }
            if is_held {
                tracing::warn!(
                    repository = %lock.tree.display(),
                    "git holds the lock of this repository and changes nothing: plugins are loaded as they are"
                );
                Arc::make_mut(&mut self.stale).insert(lock);
            }
            ready.extend(wait.entries);
        }
        self.look_at = (!self.waits.is_empty()).then(|| now + LOOK);
        ready
    }
}
