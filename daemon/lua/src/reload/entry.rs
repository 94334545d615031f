//! What is known about an entry of a plugin folder, and which version of it is in service.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio_util::sync::DropGuard;
use toold_engine::registry::SourceKey;
use toold_proto::plugin::{Plugin as Description, PluginError, PluginStatus};

use crate::plugin::PluginVersion;
use crate::plugin::command::SlashCommand;
use crate::plugin::content::{ContentDigest, stem};
use crate::plugin::manifest::Manifest;
use crate::plugin::registrations::SubagentSpec;
use crate::plugin::state_pool::StatePool;
use crate::plugin::timers::TimerRegistration;
use crate::reload::absent::AbsentPlugin;
use crate::reload::load_entry::{LoadOutcome, LoadedVersion};
use crate::reload::options::SavePatience;
use crate::reload::plugin_manager::ReloadMode;

/// What is known about an entry.
pub(crate) struct PluginEntry {
    pub(crate) name: String,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) digest: Option<ContentDigest>,
    /// When files with this digest were first seen.
    pub(crate) digest_since: Instant,
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
    /// A loaded version that offers less than the one in service, and may be half of a save.
    pub(crate) held: Option<HeldVersion>,
    /// Since when all versions were such versions.
    pub(crate) lesser_since: Option<Instant>,
}

/// A version that is not yet in service.
pub(crate) struct HeldVersion {
    pub(crate) version: LoadedVersion,
    /// When its files were first seen.
    pub(crate) since: Instant,
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

impl PluginEntry {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            name: stem(path),
            manifest: None,
            digest: None,
            digest_since: Instant::now(),
            status: None,
            error: None,
            named_tools: BTreeSet::new(),
            warnings: Vec::new(),
            name_taken: false,
            serving: None,
            newest_load: 0,
            pending_mode: None,
            held: None,
            lesser_since: None,
        }
    }

    pub(crate) fn learn(&mut self, digest: Option<ContentDigest>, manifest: Option<Manifest>) {
        if self.digest != digest {
            self.digest_since = Instant::now();
        }
        self.digest = digest;
        if manifest.is_some() {
            self.manifest = manifest;
        }
    }

    /// Keeps a version that offers less than the one in service until its files have not changed for a while. Files are
    /// known by their content and clocks by this process, since the times of files may be those of another computer or of
    /// the original.
    ///
    /// # Errors
    /// The version is kept. The entry is to be loaded again at this time: if its files are still the same, the version is
    /// returned.
    pub(crate) fn hold_back(&mut self, outcome: LoadOutcome, patience: &SavePatience) -> Result<LoadOutcome, Instant> {
        let now = Instant::now();
        let (version, since) = match (outcome, self.held.take()) {
            (LoadOutcome::Unchanged(digest), Some(held)) if held.version.plugin.digest == digest => {
                (held.version, held.since)
            }
            (LoadOutcome::Loaded(version), held) => {
                let digest = version.plugin.digest;
                let since = match held {
                    Some(held) if held.version.plugin.digest == digest => held.since,
                    _ if self.digest == Some(digest) => self.digest_since,
                    _ => now,
                };
                (version, since)
            }
            (outcome, _) => return Ok(outcome),
        };
        if !self.serving.as_ref().is_some_and(|serving| serving.offers_more_than(&version)) {
            self.lesser_since = None;
            return Ok(LoadOutcome::Loaded(version));
        }
        let first = *self.lesser_since.get_or_insert(since);
        let until = (since + patience.lesser).min(first + patience.lesser_at_most);
        if until <= now {
            self.lesser_since = None;
            return Ok(LoadOutcome::Loaded(version));
        }
        self.held = Some(HeldVersion { version, since });
        Err(until)
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
