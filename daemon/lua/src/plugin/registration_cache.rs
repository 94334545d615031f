//! Files that cache the registrations of plugins across restarts of the daemon.
//!
//! A plugin whose script only registered needs no Lua state before its first call: see [`crate::reload::load`] for what
//! counts as more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toold_engine::offers::ResourceAddress;
use toold_engine::offers::template::Template;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolSpec;
use toold_host::state_file;
use toold_proto::tool::{Annotations, ToolGrammar, ToolName};

use crate::plugin::PluginVersion;
use crate::plugin::content::ContentDigest;
use crate::plugin::registrations::{CommandRegistration, HookRegistration, NeedsSource, Registrations, SubagentSpec};
use crate::plugin::resources_and_prompts::{About, PromptRegistration, ResourceRegistration};
use crate::plugin::timers::TimerRegistration;

/// A folder with a file for each plugin in each of its states.
#[derive(Clone, Debug)]
pub struct RegistrationCache {
    /// Created on first use. Only the daemon's user should be able to write there.
    pub dir: PathBuf,
    /// Identifies the build of the host: a build does not use what another one cached.
    pub build: String,
}

/// Files that were not used for this long are removed.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// States of one plugin that are kept, since authors go back and forth between a few.
const MAX_STATES: usize = 4;

/// How often the time of a file's last use is updated.
const TOUCH: Duration = Duration::from_secs(24 * 3_600);

impl RegistrationCache {
    /// What the plugin registered when this build last loaded it with these files and this configuration. A file that
    /// cannot be read counts as absent.
    pub(crate) fn find(&self, plugin: &PluginVersion, digest: &ContentDigest) -> Option<Registrations> {
        let path = self.path(plugin, digest);
        let kept: SavedRegistrations = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        if let Ok(file) = std::fs::File::open(&path)
            && file
                .metadata()
                .and_then(|facts| facts.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago > TOUCH))
        {
            // Fails on a file system that is full or read-only; then the file is removed too early, and made again.
            let _ = file.set_modified(SystemTime::now());
        }
        kept.registrations(plugin)
    }

    /// Caches what a plugin registered. A file that cannot be written is skipped.
    pub(crate) fn keep(&self, plugin: &PluginVersion, digest: &ContentDigest, registrations: &Registrations) {
        let path = self.path(plugin, digest);
        if let Err(error) = state_file::save(&path, &SavedRegistrations::of(registrations)) {
            tracing::debug!(plugin = plugin.name(), %error, "registrations are not kept");
        }
        self.clean();
    }

    /// Removes files that were not used for a month, and all but the most recently used states of each plugin. Blocks.
    pub(crate) fn clean(&self) {
        let mut of_plugins: HashMap<String, Vec<(SystemTime, PathBuf)>> = HashMap::new();
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A name without a plugin is from a version that named files in another way.
            let plugin = name.split_once('-').map(|(plugin, _)| plugin.to_owned()).unwrap_or_default();
            let used = entry.metadata().and_then(|facts| facts.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            of_plugins.entry(plugin).or_default().push((used, entry.path()));
        }
        let oldest = SystemTime::now().checked_sub(MAX_AGE).unwrap_or(SystemTime::UNIX_EPOCH);
        for mut files in of_plugins.into_values() {
            files.sort_by(|a, b| b.cmp(a));
            let unused = files.iter().enumerate().filter(|(place, (used, _))| *place >= MAX_STATES || *used < oldest);
            for (_, (_, path)) in unused {
                // Another process may have removed it.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn path(&self, plugin: &PluginVersion, digest: &ContentDigest) -> PathBuf {
        let bytes = |path: &'_ Path| path.as_os_str().as_encoded_bytes().to_vec();
        let whose = blake3::hash(&bytes(&plugin.path)).to_hex();
        let mut hasher = blake3::Hasher::new();
        let scope = format!("{:?}", plugin.key.scope);
        let config = plugin.config().to_string();
        let parts = [
            self.build.as_bytes(),
            digest.as_bytes(),
            plugin.name().as_bytes(),
            scope.as_bytes(),
            config.as_bytes(),
            &bytes(&plugin.path),
            &bytes(&plugin.shared.profile_dir),
        ];
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        self.dir.join(format!("{}-{}.json", &whose[..16], &hasher.finalize().to_hex()[..32]))
    }
}

/// The content of a file: everything that does not follow from the plugin itself.
#[derive(Serialize, Deserialize)]
struct SavedRegistrations {
    tools: Vec<SavedTool>,
    hooks: Vec<HookRegistration>,
    commands: Vec<CommandRegistration>,
    subagents: Vec<SavedSubagent>,
    resources: Vec<SavedResource>,
    prompts: Vec<PromptRegistration>,
    timers: Vec<TimerRegistration>,
}

#[derive(Serialize, Deserialize)]
struct SavedTool {
    name: ToolName,
    label: String,
    description: String,
    input: Value,
    output: Option<Value>,
    parallelizable: bool,
    cache_ttl: Option<Duration>,
    timeout: Option<Duration>,
    annotations: Annotations,
    grammar: Option<ToolGrammar>,
    needs: NeedsSource,
}

#[derive(Serialize, Deserialize)]
struct SavedSubagent {
    name: String,
    description: String,
    system_prompt: String,
    tools: Option<Vec<String>>,
    model: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedResource {
    address: String,
    is_template: bool,
    about: About,
    mime_type: Option<String>,
    completes: bool,
}

impl SavedRegistrations {
    fn of(registrations: &Registrations) -> Self {
        let tools = registrations.tools.iter().map(|(spec, needs)| SavedTool {
            name: spec.name.clone(),
            label: spec.label.clone(),
            description: spec.description.clone(),
            input: spec.input.as_value().clone(),
            output: spec.output.as_ref().map(|schema| schema.as_value().clone()),
            parallelizable: spec.parallelizable,
            cache_ttl: spec.cache_ttl,
            timeout: spec.timeout,
            annotations: spec.annotations,
            grammar: spec.grammar.clone(),
            needs: *needs,
        });
        let subagents = registrations.subagents.iter().map(|subagent| SavedSubagent {
            name: subagent.name.clone(),
            description: subagent.description.clone(),
            system_prompt: subagent.system_prompt.clone(),
            tools: subagent.tools.clone(),
            model: subagent.model.clone(),
        });
        let resources = registrations.resources.iter().map(|resource| SavedResource {
            address: resource.address.as_str().to_owned(),
            is_template: matches!(resource.address, ResourceAddress::Template(_)),
            about: resource.about.clone(),
            mime_type: resource.mime_type.clone(),
            completes: resource.completes,
        });
        Self {
            tools: tools.collect(),
            hooks: registrations.hooks.clone(),
            commands: registrations.commands.clone(),
            subagents: subagents.collect(),
            resources: resources.collect(),
            prompts: registrations.prompts.clone(),
            timers: registrations.timers.clone(),
        }
    }

    fn registrations(self, plugin: &PluginVersion) -> Option<Registrations> {
        let tools = self.tools.into_iter().map(|tool| tool.spec(plugin)).collect();
        let subagents = self.subagents.into_iter().map(|subagent| SubagentSpec {
            name: subagent.name,
            plugin: plugin.name().to_owned(),
            scope: plugin.key.scope.clone(),
            description: subagent.description,
            system_prompt: subagent.system_prompt,
            tools: subagent.tools,
            model: subagent.model,
        });
        let resources = self.resources.into_iter().map(|resource| {
            let address = match resource.is_template {
                true => ResourceAddress::Template(Template::parse(&resource.address).ok()?),
                false => ResourceAddress::Uri(resource.address),
            };
            let SavedResource { about, mime_type, completes, .. } = resource;
            Some(ResourceRegistration { address, about, mime_type, completes })
        });
        Some(Registrations {
            tools,
            hooks: self.hooks,
            commands: self.commands,
            subagents: subagents.collect(),
            resources: resources.collect::<Option<_>>()?,
            prompts: self.prompts,
            timers: self.timers,
        })
    }
}

impl SavedTool {
    fn spec(self, plugin: &PluginVersion) -> (ToolSpec, NeedsSource) {
        let spec = ToolSpec {
            name: self.name,
            label: self.label,
            description: self.description,
            input: Schema::compiled_before(self.input),
            output: self.output.map(Schema::compiled_before),
            source: plugin.source(),
            origin: plugin.origin,
            parallelizable: self.parallelizable,
            permissions: self.needs.categories(),
            cache_ttl: self.cache_ttl,
            timeout: self.timeout,
            annotations: self.annotations,
            version: plugin.manifest.version.clone(),
            grammar: self.grammar,
        };
        (spec, self.needs)
    }
}
