//! Whether what was read of a plugin is whole. Only whole versions are planned for service.
//!
//! Three things tear a read: git that is replacing files ([`git_waits`]), a save that goes on after the read (a newer
//! load replaces this one: [`PluginManager`](crate::reload::plugin_manager::PluginManager) counts them), and a save whose
//! parts come one after the other ([`EntryStability`]: a version that offers less than the one in service must stay
//! unchanged for a while, and files that are gone must stay away).

mod git_waits;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::plugin::PluginVersion;
use crate::plugin::content::ContentDigest;
use crate::reload::entry::{PluginEntry, ServingPlugin};
use crate::reload::git_lock::IndexLock;
use crate::reload::load_entry::{LoadOutcome, LoadedVersion};
use crate::reload::options::SavePatience;
use crate::reload::plugin_manager::EntryKey;
use crate::reload::stability::git_waits::GitWaits;

/// How long finished loads wait for others of the same scan, so that they become one revision.
const BATCH: Duration = Duration::from_millis(20);
/// The same for files that git has replaced: all of them are changed by then.
const CHECKOUT: Duration = Duration::from_secs(1);

/// What is to be done with the result of a load.
pub(crate) enum StabilityVerdict {
    /// It is whole.
    Stable(Box<LoadOutcome>),
    /// The entry is to be loaded again at this time; if its files are still the same, the version is stable.
    Again(Instant),
    /// [`Stability::looked`] returns the entry once git is done.
    GitIsReplacing,
}

/// What all entries wait for.
pub(crate) struct Stability {
    patience: SavePatience,
    git: GitWaits,
    /// Until then, finished loads wait for all others.
    batch_until: Instant,
}

impl Stability {
    pub(crate) fn new(patience: SavePatience) -> Self {
        Self { git: GitWaits::new(patience.git), patience, batch_until: Instant::now() }
    }

    /// Judges the newest result of an entry.
    pub(crate) fn judge(&mut self, key: &EntryKey, entry: &mut PluginEntry, outcome: LoadOutcome) -> StabilityVerdict {
        match outcome {
            LoadOutcome::Locked(lock) => {
                let waits = self.git.wait(lock, key.clone());
                if waits { StabilityVerdict::GitIsReplacing } else { StabilityVerdict::Again(Instant::now()) }
            }
            outcome => {
                // A checkout has removed for good what is not there after it.
                let is_after_git = self.batch_until > Instant::now();
                let away = if is_after_git { Duration::ZERO } else { self.patience.lesser };
                entry.judge_version(outcome, &self.patience, away)
            }
        }
    }

    /// When results that are stable now should be in service.
    pub(crate) fn commit_at(&self) -> Instant {
        self.batch_until.max(Instant::now() + BATCH)
    }

    /// Whether entries wait for git.
    pub(crate) fn waits_for_git(&self) -> bool {
        self.git.is_waiting()
    }

    /// Locks of git that loads ignore.
    pub(crate) fn stale_locks(&self) -> Arc<BTreeSet<IndexLock>> {
        self.git.stale()
    }

    /// Lets an entry that changed wait for a lock that is known to be held, if there is one for it.
    pub(crate) fn waits_again(&mut self, dir: usize, path: &Path) -> bool {
        self.git.wait_again(dir, path)
    }

    /// When the locks are looked at next.
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.git.look_at
    }

    /// The locks to look at now, if it is time to. [`looked`](Self::looked) is next.
    pub(crate) fn locks_to_look_at(&mut self) -> Option<Vec<IndexLock>> {
        self.git.due()
    }

    /// Returns the folders whose entries are to be looked at again, since git is done with them.
    pub(crate) fn looked(&mut self, held: &[IndexLock]) -> Vec<usize> {
        let ready: BTreeSet<usize> = self.git.looked(held).into_iter().map(|(dir, _)| dir).collect();
        if !ready.is_empty() {
            // One look at everything, and one revision.
            self.batch_until = Instant::now() + CHECKOUT;
        }
        ready.into_iter().collect()
    }
}

/// How long the files of an entry have been as they are.
///
/// Files are known by their content and clocks by this process, since the times of files may be those of another computer
/// or of the original.
pub(crate) struct EntryStability {
    /// When files with the entry's digest were first seen.
    digest_since: Instant,
    /// A loaded version that offers less than the one in service, and may be half of a save.
    held: Option<HeldVersion>,
    /// Since when all versions were such versions.
    lesser_since: Option<Instant>,
    /// Since when there are no files.
    gone_since: Option<Instant>,
}

struct HeldVersion {
    version: LoadedVersion,
    /// When its files were first seen.
    since: Instant,
}

impl EntryStability {
    pub(crate) fn new() -> Self {
        Self { digest_since: Instant::now(), held: None, lesser_since: None, gone_since: None }
    }

    pub(crate) fn digest_changed(&mut self) {
        self.digest_since = Instant::now();
    }

    /// The digest of a version that is held back.
    pub(crate) fn held(&self) -> Option<ContentDigest> {
        self.held.as_ref().map(|held| held.version.plugin.digest)
    }
}

impl PluginEntry {
    /// Holds back a version that offers less than the one in service until its files have not changed for a while, and keeps
    /// the one in service until its files have been `away` for so long.
    fn judge_version(&mut self, outcome: LoadOutcome, patience: &SavePatience, away: Duration) -> StabilityVerdict {
        let now = Instant::now();
        let state = &mut self.stability;
        if matches!(outcome, LoadOutcome::Gone) && self.serving.is_some() {
            let until = *state.gone_since.get_or_insert(now) + away;
            if until > now {
                self.pending_mode = None;
                return StabilityVerdict::Again(until);
            }
        }
        state.gone_since = None;
        let (version, since) = match (outcome, state.held.take()) {
            (LoadOutcome::Unchanged(digest), Some(held)) if held.version.plugin.digest == digest => {
                (held.version, held.since)
            }
            (LoadOutcome::Loaded(version), held) => {
                let digest = version.plugin.digest;
                let since = match held {
                    Some(held) if held.version.plugin.digest == digest => held.since,
                    _ if self.digest == Some(digest) => state.digest_since,
                    _ => now,
                };
                (version, since)
            }
            (outcome, _) => return StabilityVerdict::Stable(Box::new(outcome)),
        };
        if self.serving.as_ref().is_some_and(|serving| serving.offers_more_than(&version)) {
            let first = *state.lesser_since.get_or_insert(since);
            let until = (since + patience.lesser).min(first + patience.lesser_at_most);
            if until > now {
                state.held = Some(HeldVersion { version, since });
                self.pending_mode = None;
                return StabilityVerdict::Again(until);
            }
        }
        state.lesser_since = None;
        StabilityVerdict::Stable(Box::new(LoadOutcome::Loaded(version)))
    }
}

impl ServingPlugin {
    /// Whether something that this version offers, or limits, is missing in another one.
    fn offers_more_than(&self, other: &LoadedVersion) -> bool {
        let plugin = &self.states.plugin;
        let is_restricted = |plugin: &PluginVersion| plugin.manifest.capabilities.is_some();
        plugin.digest != other.plugin.digest
            && (!self.names.is_subset(&other.registered.names())
                || (is_restricted(plugin) && !is_restricted(&other.plugin)))
    }
}
