//! Keeping the last good versions of plugins on disk: one job at a time, in the order in which things happened.

use crate::plugin::kept_versions::{KeptVersions, VersionChange};
use crate::reload::plugin_manager::{ManagerJob, PluginManager};
use toold_engine::blocking::run_elsewhere;

/// Changes that are not on disk yet.
pub(super) struct Keeping {
    pub(super) versions: Option<KeptVersions>,
    changes: Vec<VersionChange>,
    pub(super) is_running: bool,
}

impl Keeping {
    pub(super) fn new(versions: Option<KeptVersions>) -> Self {
        Self { versions, changes: Vec::new(), is_running: false }
    }

    pub(super) fn note(&mut self, change: VersionChange) {
        if self.versions.is_some() {
            self.changes.push(change);
        }
    }
}

impl PluginManager {
    /// Starts writing the changes that were noted, unless a job is writing older ones.
    pub(super) fn keep_versions(&mut self) {
        if self.keeping.is_running || self.keeping.changes.is_empty() {
            return;
        }
        let Some(versions) = self.keeping.versions.clone() else { return };
        let changes = std::mem::take(&mut self.keeping.changes);
        self.keeping.is_running = true;
        let stop = self.shared.stop.clone();
        self.jobs.spawn(run_elsewhere(move || {
            versions.apply(changes, &stop);
            ManagerJob::Kept
        }));
    }
}
