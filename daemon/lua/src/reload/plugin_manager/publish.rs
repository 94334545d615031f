//! Publishing the state of the plugins, and whether all of them are loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use toold_proto::plugin::Plugin as Description;

use crate::plugin::command::SlashCommand;
use crate::plugin::registrations::SubagentSpec;
use crate::plugin::state_pool::StatePool;
use crate::plugin::timers::TimerRegistration;
use crate::reload::absent::AbsentPlugin;
use crate::reload::entry::PluginEntry;
use crate::reload::options::DirKind;
use crate::reload::plugin_manager::{EntryKey, PluginManager};

/// A version in service, for those who watch it run.
pub(crate) struct ServingVersion {
    pub(crate) path: String,
    pub(crate) states: Arc<StatePool>,
    pub(crate) timers: Vec<TimerRegistration>,
}

/// What others can see of the plugins.
pub(crate) struct PublishedState {
    pub(crate) described: ArcSwap<Vec<Description>>,
    pub(crate) absent: ArcSwap<Vec<AbsentPlugin>>,
    pub(crate) subagents: ArcSwap<Vec<SubagentSpec>>,
    pub(crate) commands: ArcSwap<Vec<SlashCommand>>,
    pub(crate) serving: ArcSwap<Vec<ServingVersion>>,
    /// Folders and entries that are polled although polling is not configured, as messages for users.
    pub(crate) poll_notices: ArcSwap<Vec<String>>,
    /// The number of the first event after the first load was complete; `None` until then.
    pub(crate) settled: watch::Sender<Option<u64>>,
    settle_patience: Duration,
}

impl PublishedState {
    /// Loads count as complete when none has ended for `settle_patience`.
    pub(crate) fn new(settle_patience: Duration) -> Self {
        Self {
            described: ArcSwap::default(),
            absent: ArcSwap::default(),
            subagents: ArcSwap::default(),
            commands: ArcSwap::default(),
            serving: ArcSwap::default(),
            poll_notices: ArcSwap::default(),
            settled: watch::Sender::new(None),
            settle_patience,
        }
    }
}

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
            let waits =
                self.stability.waits_for_git() || self.entries.values().any(|entry| entry.stability.held().is_some());
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
