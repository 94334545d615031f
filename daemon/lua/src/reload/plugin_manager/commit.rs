//! Putting loaded plugins into service: several at a time, as one revision.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::broadcast;
use toold_engine::events::Emitted;
use toold_engine::offers::SourceOffer;
use toold_engine::registry::{RegistryChange, SourceScope};
use toold_engine::time::rfc3339;
use toold_engine::tool::Origin;
use toold_proto::event::EventBody;
use toold_proto::plugin::{PluginError, PluginStatus};

use crate::plugin::PluginVersion;
use crate::plugin::kept_versions::VersionChange;
use crate::plugin::manifest::Capabilities;
use crate::plugin::prepared::PreparedPlugin;
use crate::plugin::timers;
use crate::reload::dirs::ResolvedDir;
use crate::reload::entry::{PluginEntry, ServingPlugin};
use crate::reload::load_entry::{LoadOutcome, LoadedVersion, WithheldReason};
use crate::reload::plugin_manager::{EntryKey, FinishedLoad, PluginManager, ReloadMode};

/// The changes of one revision.
#[derive(Default)]
pub(super) struct CommitPlan {
    pub(super) changes: Vec<RegistryChange>,
    /// Which change puts which plugin into service.
    puts: Vec<PlannedPut>,
    /// Names that other plugins may use now.
    pub(super) freed: Vec<String>,
}

struct PlannedPut {
    change: usize,
    entry: EntryKey,
    prepared: PreparedPlugin,
    /// As in [`LoadedVersion`].
    loaded_before: Option<SystemTime>,
}

impl PluginManager {
    /// Puts all that is ready into service as one revision.
    pub(super) fn commit(&mut self) {
        self.commit_at = None;
        let mut ready = std::mem::take(&mut self.ready);
        // Its file changed again since: what was read may be half of a save.
        ready.retain(|done| self.entries.get(&done.entry).is_some_and(|entry| entry.newest_load == done.number));
        for done in &ready {
            // Not earlier: if a newer load had replaced this result, that load would have had to run in the same mode.
            self.entries.entry(done.entry.clone()).and_modify(|entry| entry.pending_mode = None);
        }
        // If two plugins want the same tool name, the earlier folder gets it, then the earlier name.
        ready.sort_by(|a, b| a.entry.cmp(&b.entry));
        let finished: Vec<EntryKey> = ready.iter().map(|done| done.entry.clone()).collect();
        let mut plan = CommitPlan::default();
        for done in ready {
            self.plan(done, &mut plan);
        }
        let answers = self.shared.engine.registry.commit(plan.changes);
        for PlannedPut { change, entry, prepared, loaded_before } in plan.puts {
            let serving = self.entries.get(&entry).and_then(|entry| entry.serving.as_ref());
            if let (Err(_), Some(serving)) = (&answers[change], serving) {
                self.hold_to_manifest(&serving.states.plugin);
            }
            match (&answers[change], loaded_before) {
                (Ok(()), None) => self.serve(&entry, prepared),
                (Ok(()), Some(loaded_at)) => self.serve_kept(&entry, prepared, loaded_at),
                (Err(taken), None) => self.fail(&entry, PluginError::of(taken.to_string()), true),
                // Its entry has failed already.
                (Err(_), Some(_)) => {}
            }
        }
        for name in plan.freed {
            self.load_shadowed(&name);
        }
        self.publish();
        self.emit_events();
        self.answer_reloads(&finished);
    }

    fn plan(&mut self, done: FinishedLoad, plan: &mut CommitPlan) {
        let FinishedLoad { entry: key, outcome, kept, .. } = done;
        match outcome {
            LoadOutcome::Unchanged(_) | LoadOutcome::Locked(_) => {}
            LoadOutcome::Gone => {
                if let Some(entry) = self.entries.remove(&key) {
                    if entry.status.is_some() {
                        self.keeping.note(VersionChange::Gone(key.1.clone()));
                    }
                    self.retire(entry.serving, &key.1, plan);
                    plan.freed.push(entry.name);
                }
            }
            LoadOutcome::Withheld { digest, manifest, why, named_tools } => {
                let Some(entry) = self.entries.get_mut(&key) else { return };
                if entry.serving.is_none() {
                    entry.name = manifest.name.clone();
                }
                entry.learn(Some(digest), Some(manifest));
                entry.error = None;
                entry.named_tools = named_tools;
                match why {
                    WithheldReason::Disabled => {
                        entry.status = Some(PluginStatus::Disabled);
                        let serving = entry.serving.take();
                        plan.freed.push(entry.name.clone());
                        self.retire(serving, &key.1, plan);
                    }
                    // The last trusted version keeps serving.
                    WithheldReason::Untrusted => {
                        entry.status = Some(PluginStatus::Untrusted);
                        let (plugin, path) = (entry.name.clone(), key.1.display().to_string());
                        self.pending_events.push(EventBody::PluginUntrusted { plugin, path });
                    }
                }
            }
            LoadOutcome::Failed { digest, name, manifest, error, name_taken, named_tools } => {
                let Some(entry) = self.entries.get_mut(&key) else { return };
                entry.learn(digest, manifest);
                entry.named_tools = named_tools;
                if entry.serving.is_none() {
                    entry.name = name;
                }
                self.fail(&key, error, name_taken);
            }
            LoadOutcome::Loaded(version) => {
                let Some(entry) = self.entries.get_mut(&key) else { return };
                let plugin = &version.plugin;
                entry.named_tools = version.registered.tools.iter().map(|(spec, _)| spec.name.to_string()).collect();
                let name_before = std::mem::replace(&mut entry.name, plugin.name().to_owned());
                entry.learn(Some(plugin.digest), Some(plugin.manifest.clone()));
                if name_before != plugin.name() {
                    plan.freed.push(name_before);
                }
                if self.is_shadowed(&key) {
                    return self.shadow(&key, plan);
                }
                return self.put(key, version, plan);
            }
        }
        let Some(kept) = kept else { return };
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.serving.is_none()) else { return };
        entry.name = kept.plugin.name().to_owned();
        if !self.is_shadowed(&key) {
            self.put(key, kept, plan);
        }
    }

    fn put(&mut self, key: EntryKey, version: LoadedVersion, plan: &mut CommitPlan) {
        let LoadedVersion { plugin, loaded, registered, only_registered, loaded_before } = version;
        let prepared = PreparedPlugin::new(plugin, loaded.map(|loaded| *loaded), *registered, only_registered);
        match self.entries.get(&key).and_then(|entry| entry.serving.as_ref()) {
            Some(old) if old.key != prepared.key => {
                plan.changes.push(RegistryChange::Remove { key: old.key.clone() });
            }
            // Before its first call, which may come as soon as the registry has it.
            Some(old) => prepared.states.inherit(&old.states),
            None => {}
        }
        let later: Vec<EntryKey> = self.rivals(&key).filter(|rival| **rival > key).cloned().collect();
        later.iter().for_each(|rival| self.shadow(rival, plan));
        let (key_of, origin, tools) = (prepared.key.clone(), prepared.states.plugin.origin, prepared.tools.clone());
        // Before the first call can come.
        self.hold_to_manifest(&prepared.states.plugin);
        plan.puts.push(PlannedPut { change: plan.changes.len(), entry: key, prepared, loaded_before });
        plan.changes.push(RegistryChange::Put { key: key_of, origin, tools });
    }

    fn hold_to_manifest(&self, plugin: &PluginVersion) {
        let declared = plugin.manifest.capabilities.as_ref().map(Capabilities::names);
        self.shared.engine.plugin_limits.set(&plugin.key, declared.as_deref());
    }

    fn serve(&mut self, key: &EntryKey, prepared: PreparedPlugin) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        (entry.status, entry.error, entry.name_taken) = (Some(PluginStatus::Loaded), None, false);
        let plugin = prepared.states.plugin.clone();
        let loaded_at = SystemTime::now();
        let tools = self.enter_service(key, prepared, loaded_at);
        tracing::info!(plugin = plugin.name(), path = %plugin.path.display(), tools = tools.len(), "plugin loaded");
        self.pending_events.push(EventBody::PluginLoaded {
            plugin: plugin.name().to_owned(),
            path: plugin.path.display().to_string(),
            tools,
        });
        self.keeping.note(VersionChange::Serves(plugin, loaded_at));
    }

    /// The status and the error stay those of the newest version.
    fn serve_kept(&mut self, key: &EntryKey, prepared: PreparedPlugin, loaded_at: SystemTime) {
        let plugin = prepared.states.plugin.clone();
        let tools = self.enter_service(key, prepared, loaded_at);
        tracing::info!(
            plugin = plugin.name(), path = %plugin.path.display(), tools = tools.len(),
            "the version that was loaded at {} serves", rfc3339(loaded_at)
        );
    }

    /// Everything that the registry does not have. Returns the names of the tools.
    fn enter_service(&mut self, key: &EntryKey, prepared: PreparedPlugin, loaded_at: SystemTime) -> Vec<String> {
        let tools: Vec<String> = prepared.tools.iter().map(|tool| tool.spec().name.to_string()).collect();
        self.shared.engine.hooks.replace(&prepared.key, prepared.hooks);
        self.offers.push((prepared.key.clone(), prepared.states.plugin.origin, prepared.offer));
        prepared.states.copy_inherited();
        if let Some(entry) = self.entries.get_mut(key) {
            entry.serving = Some(ServingPlugin {
                key: prepared.key,
                tools: tools.clone(),
                subagents: prepared.subagents,
                commands: prepared.commands,
                loaded_at,
                _running_timers: timers::start(&prepared.states, &prepared.timers),
                timers: prepared.timers,
                states: prepared.states,
                names: prepared.names,
            });
        }
        tools
    }

    /// The version in service keeps serving.
    fn fail(&mut self, key: &EntryKey, error: PluginError, name_taken: bool) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        tracing::warn!(
            plugin = entry.name, path = %key.1.display(), file = error.file, line = error.line,
            source_line = error.source_line, "plugin failed to load: {}", error.message
        );
        self.pending_events.push(EventBody::PluginFailed {
            plugin: entry.name.clone(),
            path: key.1.display().to_string(),
            error: error.clone(),
        });
        (entry.status, entry.error, entry.name_taken) = (Some(PluginStatus::Failed), Some(error), name_taken);
    }

    /// Takes a version out of service.
    pub(super) fn retire(&mut self, serving: Option<ServingPlugin>, path: &Path, plan: &mut CommitPlan) {
        let Some(serving) = serving else { return };
        self.shared.engine.hooks.replace(&serving.key, Vec::new());
        self.offers.push((serving.key.clone(), Origin::UserPlugin, SourceOffer::default()));
        tracing::info!(plugin = serving.key.name, path = %path.display(), "plugin unloaded");
        self.pending_events
            .push(EventBody::PluginUnloaded { plugin: serving.key.name.clone(), path: path.display().to_string() });
        plan.changes.push(RegistryChange::Remove { key: serving.key });
    }

    fn shadow(&mut self, key: &EntryKey, plan: &mut CommitPlan) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        (entry.status, entry.error) = (Some(PluginStatus::Shadowed), None);
        let serving = entry.serving.take();
        self.retire(serving, &key.1, plan);
    }

    fn is_shadowed(&self, key: &EntryKey) -> bool {
        self.rivals(key).any(|rival| rival < key)
    }

    /// Other entries that some session would see under the same name, and that may run.
    fn rivals<'a>(&'a self, key: &'a EntryKey) -> impl Iterator<Item = &'a EntryKey> {
        let name = self.entries.get(key).map(|entry| entry.name.as_str());
        let scope_of = |key: &EntryKey| self.dirs.get(&key.0).map_or(SourceScope::Global, ResolvedDir::scope);
        let scope = scope_of(key);
        self.entries.iter().filter_map(move |(other, entry)| {
            let others = scope_of(other);
            let overlaps = others == SourceScope::Global || scope == SourceScope::Global || others == scope;
            let withheld = matches!(entry.status, Some(PluginStatus::Disabled | PluginStatus::Untrusted));
            let runs = entry.serving.is_some() || !withheld;
            (other != key && Some(entry.name.as_str()) == name && overlaps && runs).then_some(other)
        })
    }

    /// A name is free: loads the plugins that were shadowed by it.
    pub(super) fn load_shadowed(&mut self, name: &str) {
        let waiting = |entry: &PluginEntry| entry.status == Some(PluginStatus::Shadowed) && entry.name == name;
        let keys: Vec<EntryKey> =
            self.entries.iter().filter(|(_, entry)| waiting(entry)).map(|(key, _)| key.clone()).collect();
        keys.into_iter().for_each(|key| self.start_load(key, ReloadMode::Always));
    }

    /// Plugins that failed because a tool name was taken are loaded again when names become free.
    pub(super) fn on_event(&mut self, event: Result<Arc<Emitted>, broadcast::error::RecvError>) {
        let freed = match event {
            Ok(emitted) => matches!(&emitted.body, EventBody::ToolsChanged { removed, .. } if !removed.is_empty()),
            Err(_) => true,
        };
        if freed {
            let keys: Vec<EntryKey> =
                self.entries.iter().filter(|(_, entry)| entry.name_taken).map(|(key, _)| key.clone()).collect();
            keys.into_iter().for_each(|key| self.start_load(key, ReloadMode::Always));
        }
    }
}
