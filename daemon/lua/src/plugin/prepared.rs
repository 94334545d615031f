//! What is known of a plugin, and what of it is in service.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use toold_engine::callable::Callable;
use toold_engine::hooks::Hook;
use toold_engine::offers::SourceOffer;
use toold_engine::registry::SourceKey;
use toold_proto::plugin::{Plugin as Description, PluginError, PluginStatus};

use crate::command::Command;
use crate::content::Digest;
use crate::hook::LuaHook;
use crate::keeper::How;
use crate::manifest::Manifest;
use crate::offer::offer;
use crate::plugin::{Loaded, Plugin, Subagent, Version};
use crate::registrations::Registrations;
use crate::tool::LuaTool;
use crate::unit::stem;

/// What is known of an entry.
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) digest: Option<Digest>,
    /// `None` until it was looked at.
    pub(crate) status: Option<PluginStatus>,
    pub(crate) error: Option<PluginError>,
    pub(crate) name_taken: bool,
    pub(crate) serving: Option<Serving>,
    /// The number of the newest look; older ones count for nothing.
    pub(crate) looks: u64,
    /// What the newest look is to do, while it is under way.
    pub(crate) wanted: Option<How>,
}

/// The version in service.
pub(crate) struct Serving {
    pub(crate) key: SourceKey,
    pub(crate) tools: Vec<String>,
    pub(crate) subagents: Vec<Subagent>,
    pub(crate) commands: Vec<Command>,
    pub(crate) loaded_at: SystemTime,
    pub(crate) version: Arc<Version>,
}

/// A version on its way into service.
pub(crate) struct Put {
    pub(crate) key: SourceKey,
    pub(crate) version: Arc<Version>,
    pub(crate) tools: Vec<Arc<dyn Callable>>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) subagents: Vec<Subagent>,
    pub(crate) commands: Vec<Command>,
    pub(crate) offer: SourceOffer,
}

impl Put {
    /// Without a machine, one is made for the first call.
    /// `can_do_without`: also later, when nobody has called it for long.
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        loaded: Option<Loaded>,
        registered: Registrations,
        can_do_without: bool,
    ) -> Self {
        let key = plugin.key.clone();
        let version = Version::new(plugin, loaded, can_do_without);
        let tools = registered.tools.into_iter().map(|(spec, needs)| {
            let tool: Arc<dyn Callable> = Arc::new(LuaTool { spec, version: version.clone(), needs });
            tool
        });
        let tools = tools.collect();
        let hooks = registered.hooks.into_iter().enumerate().map(|(place, spec)| {
            let hook: Arc<dyn Hook> = Arc::new(LuaHook::new(spec, place, version.clone()));
            hook
        });
        let hooks = hooks.collect();
        let commands = registered.commands.into_iter().map(|spec| Command::new(spec, &version)).collect();
        let offer = offer(registered.resources, registered.prompts, &version);
        Self { key, tools, hooks, subagents: registered.subagents, commands, offer, version }
    }
}

impl Unit {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            name: stem(path),
            manifest: None,
            digest: None,
            status: None,
            error: None,
            name_taken: false,
            serving: None,
            looks: 0,
            wanted: None,
        }
    }

    pub(crate) fn learn(&mut self, digest: Option<Digest>, manifest: Option<Manifest>) {
        self.digest = digest;
        if manifest.is_some() {
            self.manifest = manifest;
        }
    }

    /// `None` until it was looked at.
    pub(crate) fn describe(&self, path: &Path, project: Option<&Path>, bundled: bool) -> Option<Description> {
        let manifest = self.manifest.as_ref();
        Some(Description {
            name: self.name.clone(),
            path: path.display().to_string(),
            project: project.map(|project| project.display().to_string()),
            bundled,
            status: self.status?,
            version: manifest.and_then(|manifest| manifest.version.clone()),
            description: manifest.and_then(|manifest| manifest.description.clone()),
            tools: self.serving.as_ref().map(|serving| serving.tools.clone()).unwrap_or_default(),
            error: self.error.clone(),
            loaded_at: self.serving.as_ref().map(|serving| toold_engine::time::rfc3339(serving.loaded_at)),
        })
    }
}
