//! Putting loaded plugins into service as planned: several at a time, as one revision.

use std::collections::BTreeMap;
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
use crate::reload::load_entry::{LoadOutcome, LoadedVersion};
use crate::reload::plugin_manager::plan::{KnownPlugin, KnownPlugins, RevisionStep, plan};
use crate::reload::plugin_manager::{EntryKey, PluginManager, ReloadMode};

/// The changes of the registry that make one revision.
#[derive(Default)]
pub(super) struct Revision {
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
        let finished: Vec<EntryKey> = ready.iter().map(|done| done.entry.clone()).collect();
        let seen = ready.iter().map(|done| (done.entry.clone(), done.seen())).collect();
        let steps = plan(self.known_entries(), seen);
        let mut versions = BTreeMap::new();
        for done in ready {
            if let Some(version) = self.learn(&done.entry, done.outcome).or(done.kept) {
                versions.insert(done.entry, version);
            }
        }
        let revision = self.carry_out(steps, versions);
        self.enter(revision);
        self.publish();
        self.emit_events();
        self.answer_reloads(&finished);
    }

    fn known_entries(&self) -> KnownPlugins {
        let known = self.entries.iter().map(|(key, entry)| {
            let scope = self.dirs.get(&key.0).map_or(SourceScope::Global, ResolvedDir::scope);
            let is_withheld = matches!(entry.status, Some(PluginStatus::Disabled | PluginStatus::Untrusted));
            let name = entry.name.clone();
            (key.clone(), KnownPlugin { name, scope, serves: entry.serving.is_some(), is_withheld })
        });
        known.collect()
    }

    /// Takes over what a load found, whatever becomes of the version that it loaded, which is returned.
    fn learn(&mut self, key: &EntryKey, outcome: LoadOutcome) -> Option<LoadedVersion> {
        let entry = self.entries.get_mut(key)?;
        // Not earlier: if a newer load had replaced this result, that load would have had to run in the same mode.
        entry.pending_mode = None;
        match outcome {
            LoadOutcome::Unchanged(_) | LoadOutcome::Locked(_) | LoadOutcome::Gone => None,
            LoadOutcome::Withheld { digest, manifest, why: _, named_tools } => {
                if entry.serving.is_none() {
                    entry.name = manifest.name.clone();
                }
                entry.learn(Some(digest), Some(manifest));
                entry.error = None;
                entry.named_tools = named_tools;
                None
            }
            LoadOutcome::Failed { digest, name, manifest, error, name_taken, named_tools } => {
                entry.learn(digest, manifest);
                entry.named_tools = named_tools;
                if entry.serving.is_none() {
                    entry.name = name;
                }
                (entry.error, entry.name_taken) = (Some(error), name_taken);
                None
            }
            LoadOutcome::Loaded(version) => {
                let plugin = &version.plugin;
                entry.named_tools = version.registered.tools.iter().map(|(spec, _)| spec.name.to_string()).collect();
                plugin.name().clone_into(&mut entry.name);
                entry.learn(Some(plugin.digest), Some(plugin.manifest.clone()));
                Some(version)
            }
        }
    }

    /// Does what a plan says, but for the registry, which changes at once for all.
    fn carry_out(&mut self, steps: Vec<RevisionStep>, mut versions: BTreeMap<EntryKey, LoadedVersion>) -> Revision {
        let mut revision = Revision::default();
        for step in steps {
            match step {
                RevisionStep::Forget(key) => {
                    let Some(entry) = self.entries.remove(&key) else { continue };
                    if entry.status.is_some() {
                        self.keeping.note(VersionChange::Gone(key.1.clone()));
                    }
                    self.retire(entry.serving, &key.1, &mut revision);
                }
                RevisionStep::Disable(key) => self.take_out(&key, PluginStatus::Disabled, &mut revision),
                RevisionStep::Shadow(key) => self.take_out(&key, PluginStatus::Shadowed, &mut revision),
                RevisionStep::Distrust(key) => {
                    let Some(entry) = self.entries.get_mut(&key) else { continue };
                    entry.status = Some(PluginStatus::Untrusted);
                    let (plugin, path) = (entry.name.clone(), key.1.display().to_string());
                    self.pending_events.push(EventBody::PluginUntrusted { plugin, path });
                }
                RevisionStep::Fail(key) => {
                    let Some((error, name_taken)) =
                        self.entries.get(&key).and_then(|entry| Some((entry.error.clone()?, entry.name_taken)))
                    else {
                        continue;
                    };
                    self.fail(&key, error, name_taken);
                }
                RevisionStep::Serve(key) | RevisionStep::ServeKept(key) => {
                    let Some(version) = versions.remove(&key) else { continue };
                    self.put(key, version, &mut revision);
                }
                RevisionStep::Free(name) => revision.freed.push(name),
            }
        }
        revision
    }

    /// Changes the registry, and puts into service what it took.
    pub(super) fn enter(&mut self, revision: Revision) {
        let answers = self.shared.engine.registry.commit(revision.changes);
        for PlannedPut { change, entry, prepared, loaded_before } in revision.puts {
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
        for name in revision.freed {
            self.load_shadowed(&name);
        }
    }

    fn put(&mut self, key: EntryKey, version: LoadedVersion, revision: &mut Revision) {
        let LoadedVersion { plugin, loaded, registered, only_registered, loaded_before } = version;
        if let Some(entry) = self.entries.get_mut(&key) {
            plugin.name().clone_into(&mut entry.name);
        }
        let prepared = PreparedPlugin::new(plugin, loaded.map(|loaded| *loaded), *registered, only_registered);
        match self.entries.get(&key).and_then(|entry| entry.serving.as_ref()) {
            Some(old) if old.key != prepared.key => {
                revision.changes.push(RegistryChange::Remove { key: old.key.clone() });
            }
            // Before its first call, which may come as soon as the registry has it.
            Some(old) => prepared.states.inherit(&old.states),
            None => {}
        }
        let (key_of, origin, tools) = (prepared.key.clone(), prepared.states.plugin.origin, prepared.tools.clone());
        // Before the first call can come.
        self.hold_to_manifest(&prepared.states.plugin);
        revision.puts.push(PlannedPut { change: revision.changes.len(), entry: key, prepared, loaded_before });
        revision.changes.push(RegistryChange::Put { key: key_of, origin, tools });
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
    pub(super) fn retire(&mut self, serving: Option<ServingPlugin>, path: &Path, revision: &mut Revision) {
        let Some(serving) = serving else { return };
        self.shared.engine.hooks.replace(&serving.key, Vec::new());
        self.offers.push((serving.key.clone(), Origin::UserPlugin, SourceOffer::default()));
        tracing::info!(plugin = serving.key.name, path = %path.display(), "plugin unloaded");
        self.pending_events
            .push(EventBody::PluginUnloaded { plugin: serving.key.name.clone(), path: path.display().to_string() });
        revision.changes.push(RegistryChange::Remove { key: serving.key });
    }

    fn take_out(&mut self, key: &EntryKey, status: PluginStatus, revision: &mut Revision) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        (entry.status, entry.error) = (Some(status), None);
        let serving = entry.serving.take();
        self.retire(serving, &key.1, revision);
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
