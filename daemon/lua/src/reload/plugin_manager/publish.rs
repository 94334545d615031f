//! Publishing the state of the plugins, and whether all of them are loaded.

use std::sync::Arc;
use std::time::Instant;

use crate::reload::entry::PluginEntry;
use crate::reload::options::DirKind;
use crate::reload::plugin_manager::{EntryKey, PluginManager, ServingVersion};

impl PluginManager {
    pub(super) fn publish(&mut self) {
        self.shared.engine.offers.commit(std::mem::take(&mut self.offers));
        self.update_warnings();
        let mut entries: Vec<(&EntryKey, &PluginEntry)> = self.entries.iter().collect();
        entries.sort_by(|(a, x), (b, y)| (a.0, &x.name, &a.1).cmp(&(b.0, &y.name, &b.1)));
        let place = |key: &EntryKey| match self.dirs.get(&key.0).map(|dir| &dir.kind) {
            Some(DirKind::Project { project }) => (Some(project.clone()), false),
            Some(DirKind::Bundled) => (None, true),
            Some(DirKind::User | DirKind::Configured) | None => (None, false),
        };
        let described = entries.iter().filter_map(|(key, entry)| {
            let (project, bundled) = place(key);
            entry.describe(&key.1, project.as_deref(), bundled)
        });
        let described = described.collect();
        let absent = entries.iter().filter_map(|(key, entry)| {
            let (project, bundled) = place(key);
            entry.absent(&key.1, project.as_deref(), bundled)
        });
        self.published.absent.store(Arc::new(absent.collect()));
        self.published.described.store(Arc::new(described));
        let serving = || entries.iter().filter_map(|(_, entry)| entry.serving.as_ref());
        let versions = entries.iter().filter_map(|(key, entry)| {
            let serving = entry.serving.as_ref()?;
            Some(ServingVersion {
                path: key.1.display().to_string(),
                states: serving.states.clone(),
                timers: serving.timers.clone(),
            })
        });
        self.published.serving.store(Arc::new(versions.collect()));
        self.published.subagents.store(Arc::new(serving().flat_map(|serving| serving.subagents.clone()).collect()));
        self.published.commands.store(Arc::new(serving().flat_map(|serving| serving.commands.clone()).collect()));
    }

    pub(super) fn emit_events(&mut self) {
        self.pending_events.drain(..).for_each(|body| self.shared.engine.events.emit(body));
    }

    pub(super) fn settles_at(&self) -> Option<Instant> {
        (self.running_scans == 0 && self.published.settled.borrow().is_none())
            .then(|| self.last_progress + self.published.settle_patience)
    }

    pub(super) fn settle_if_done(&self) {
        let is_done = || {
            let waits = self.git_waits.is_waiting() || self.entries.values().any(|entry| entry.held.is_some());
            self.running_loads == 0 && self.ready.is_empty() && !waits
        };
        if self.settles_at().is_some_and(|at| is_done() || at <= Instant::now()) {
            // `update_settings` holds the other side of this lock, so that its change is not missed.
            let newest = self.newest_settings.borrow();
            if !newest.has_changed() {
                self.published.settled.send_replace(Some(self.shared.engine.events.next()));
            }
        }
    }
}
