//! What is known about an entry of a plugin folder, and which version of it is in service.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use toold_engine::registry::SourceKey;
use toold_proto::plugin::{Plugin as Description, PluginError, PluginStatus};

use crate::plugin::command::SlashCommand;
use crate::plugin::content::{ContentDigest, stem};
use crate::plugin::manifest::Manifest;
use crate::plugin::registrations::SubagentSpec;
use crate::plugin::state_pool::StatePool;
use crate::reload::plugin_manager::ReloadMode;

/// What is known about an entry.
pub(crate) struct PluginEntry {
    pub(crate) name: String,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) digest: Option<ContentDigest>,
    /// `None` until it was loaded for the first time.
    pub(crate) status: Option<PluginStatus>,
    pub(crate) error: Option<PluginError>,
    pub(crate) name_taken: bool,
    pub(crate) serving: Option<ServingPlugin>,
    /// The number of the newest load; results of older ones are ignored.
    pub(crate) newest_load: u64,
    /// What the newest load does, while it is running.
    pub(crate) pending_mode: Option<ReloadMode>,
}

/// The version in service.
pub(crate) struct ServingPlugin {
    pub(crate) key: SourceKey,
    pub(crate) tools: Vec<String>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) commands: Vec<SlashCommand>,
    pub(crate) loaded_at: SystemTime,
    pub(crate) states: Arc<StatePool>,
}

impl PluginEntry {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            name: stem(path),
            manifest: None,
            digest: None,
            status: None,
            error: None,
            name_taken: false,
            serving: None,
            newest_load: 0,
            pending_mode: None,
        }
    }

    pub(crate) fn learn(&mut self, digest: Option<ContentDigest>, manifest: Option<Manifest>) {
        self.digest = digest;
        if manifest.is_some() {
            self.manifest = manifest;
        }
    }

    /// `None` until it was loaded for the first time.
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
