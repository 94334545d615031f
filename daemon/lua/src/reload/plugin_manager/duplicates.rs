//! Warnings about names that two plugins registered: one of them serves, and the other one's author should know.

use std::collections::HashMap;

use toold_engine::registry::SourceScope;
use toold_proto::event::EventBody;
use toold_proto::tool::Source;

use crate::plugin::PluginVersion;
use crate::reload::entry::{PluginEntry, ServingPlugin};
use crate::reload::plugin_manager::{EntryKey, PluginManager};

impl PluginManager {
    /// Updates the warnings of all entries, and logs the new ones.
    ///
    /// Only the plugin whose registration is not used gets a warning. The other one is a plugin of all sessions or of the
    /// same project, so that no other project learns its name.
    pub(super) fn update_warnings(&mut self) {
        let mut keys: Vec<(usize, String, EntryKey)> =
            self.entries.iter().map(|(key, entry)| (key.0, entry.name.clone(), key.clone())).collect();
        keys.sort();
        let mut first: HashMap<(&'static str, String), Vec<(SourceScope, Source)>> = HashMap::new();
        for (_, _, key) in keys {
            let Some(entry) = self.entries.get(&key) else { continue };
            let warnings = match &entry.serving {
                Some(serving) => self.warnings_of(serving, &mut first),
                None => Vec::new(),
            };
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            for message in warnings.iter().filter(|warning| !entry.warnings.contains(warning)) {
                self.pending_events.push(warning_event(entry, message));
            }
            entry.warnings = warnings;
        }
    }

    fn warnings_of(
        &self,
        serving: &ServingPlugin,
        first: &mut HashMap<(&'static str, String), Vec<(SourceScope, Source)>>,
    ) -> Vec<String> {
        let plugin: &PluginVersion = &serving.states.plugin;
        let scope = &serving.key.scope;
        let commands = serving.commands.iter().map(|command| ("command", command.name.clone()));
        let subagents = serving.subagents.iter().map(|subagent| ("sub-agent", subagent.name.clone()));
        let mut warnings = Vec::new();
        for name in commands.chain(subagents) {
            let holders = first.entry(name.clone()).or_default();
            match holders.iter().find(|(other, _)| *other == SourceScope::Global || other == scope) {
                Some((_, holder)) => warnings.push(warning(name.0, &name.1, holder)),
                None => holders.push((scope.clone(), plugin.source())),
            }
        }
        let hidden = self.shared.engine.offers.hidden(&serving.key);
        // Commands and sub-agents are prompts too, and have their warnings already.
        let is_part = |name: &str| {
            serving.commands.iter().any(|command| command.name == name)
                || serving.subagents.iter().any(|subagent| subagent.name == name)
        };
        let hidden = hidden.iter().filter(|hidden| hidden.kind != "prompt" || !is_part(&hidden.name));
        warnings.extend(hidden.map(|hidden| warning(hidden.kind, &hidden.name, &hidden.holder)));
        warnings
    }
}

fn warning(kind: &str, name: &str, holder: &Source) -> String {
    let at = holder.path.as_ref().map(|path| format!(" ({path})")).unwrap_or_default();
    let holder = format!("{} {}{at}", holder.kind.as_str(), holder.name);
    format!("its {kind} {name} is not used: {holder} has one of the same name and comes first; rename one of them")
}

fn warning_event(entry: &PluginEntry, message: &str) -> EventBody {
    tracing::warn!(plugin = entry.name, "{message}");
    EventBody::Log {
        call_id: None,
        session_id: None,
        plugin: entry.name.clone(),
        level: "warn".to_owned(),
        message: message.to_owned(),
        fields: None,
    }
}
