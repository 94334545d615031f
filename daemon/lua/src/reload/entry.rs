//! What is known about an entry of a plugin folder, and which version of it is in service.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::DropGuard;
use toold_engine::registry::SourceKey;
use toold_proto::plugin::{Plugin as Description, PluginError, PluginStatus};

use crate::plugin::command::SlashCommand;
use crate::plugin::content::{ContentDigest, stem};
use crate::plugin::manifest::Manifest;
use crate::plugin::registrations::SubagentSpec;
use crate::plugin::state_pool::StatePool;
use crate::plugin::timers::TimerRegistration;
use crate::reload::absent::AbsentPlugin;
use crate::reload::plugin_manager::ReloadMode;
use crate::reload::stability::EntryStability;

/// What is known about an entry.
pub(crate) struct PluginEntry {
    pub(crate) name: String,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) digest: Option<ContentDigest>,
    /// `None` until it was loaded for the first time.
    pub(crate) status: Option<PluginStatus>,
    pub(crate) error: Option<PluginError>,
    /// The tools that the newest version registers, or that its text names if it does not run.
    pub(crate) named_tools: BTreeSet<String>,
    /// Problems of the version in service.
    pub(crate) warnings: Vec<String>,
    pub(crate) name_taken: bool,
    pub(crate) serving: Option<ServingPlugin>,
    /// The number of the newest load; results of older ones are ignored.
    pub(crate) newest_load: u64,
    /// How the newest load was started. `None` once its result has been committed, or is held back because it may be half
    /// of a save.
    pub(crate) pending_mode: Option<ReloadMode>,
    pub(crate) stability: EntryStability,
}

/// The version in service.
pub(crate) struct ServingPlugin {
    pub(crate) key: SourceKey,
    pub(crate) tools: Vec<String>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) commands: Vec<SlashCommand>,
    pub(crate) loaded_at: SystemTime,
    pub(crate) timers: Vec<TimerRegistration>,
    /// Stops the timers when it is dropped.
    pub(crate) _running_timers: DropGuard,
    pub(crate) states: Arc<StatePool>,
    /// The names of everything that it offers.
    pub(crate) names: BTreeSet<String>,
}

impl PluginEntry {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            name: stem(path),
            manifest: None,
            digest: None,
            status: None,
            error: None,
            named_tools: BTreeSet::new(),
            warnings: Vec::new(),
            name_taken: false,
            serving: None,
            newest_load: 0,
            pending_mode: None,
            stability: EntryStability::new(),
        }
    }

    pub(crate) fn learn(&mut self, digest: Option<ContentDigest>, manifest: Option<Manifest>) {
        if self.digest != digest {
            self.stability.digest_changed();
        }
        self.digest = digest;
        if manifest.is_some() {
            self.manifest = manifest;
        }
    }

    /// Its tools that are not in service, with the reason, for sessions of its project.
    pub(crate) fn absent(&self, path: &Path, project: Option<&Path>, bundled: bool) -> Option<AbsentPlugin> {
        let serves = |name: &String| self.serving.as_ref().is_some_and(|serving| serving.tools.contains(name));
        let tools: BTreeSet<String> = self.named_tools.iter().filter(|name| !serves(name)).cloned().collect();
        let is_loading = self.status.is_none();
        (is_loading || !tools.is_empty()).then(|| AbsentPlugin {
            name: self.name.clone(),
            path: path.display().to_string(),
            project: project.map(Path::to_owned),
            bundled,
            status: self.status,
            error: self.error.as_ref().map(|error| error.message.clone()),
            tools,
        })
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
            warnings: self.warnings.clone(),
            loaded_at: self.serving.as_ref().map(|serving| toold_engine::time::rfc3339(serving.loaded_at)),
        })
    }
}
