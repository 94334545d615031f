//! One version of a plugin: its files, its manifest, and what it registered.
//!
//! Its tools, hooks, commands, resources and prompts run in the Lua states of its [`state_pool`].

pub mod command;
pub mod content;
pub(crate) mod endings;
pub mod evaluate;
pub(crate) mod failure_log;
pub(crate) mod failures;
pub(crate) mod handler;
pub(crate) mod hook;
pub(crate) mod host_resources;
pub mod kept_versions;
pub(crate) mod load_refusals;
pub(crate) mod manifest;
pub(crate) mod messages;
pub(crate) mod named_tools;
pub(crate) mod needs;
pub(crate) mod own_authority;
pub(crate) mod prepared;
pub mod registration_cache;
pub mod registrations;
pub(crate) mod resources_and_prompts;
pub(crate) mod schema_shape;
pub mod secrets;
pub(crate) mod state_content;
pub(crate) mod state_pool;
pub mod store;
pub(crate) mod timers;
pub(crate) mod tool;
pub(crate) mod tool_result;
pub(crate) mod version_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::tool::{Source, SourceKind};

use crate::plugin::content::ContentDigest;
use crate::plugin::host_resources::HostResources;
use crate::plugin::manifest::{Capabilities, Manifest};
use crate::plugin::timers::TimerBoard;
use crate::plugin::version_files::VersionFiles;
use crate::vm::diagnostics::SourceTexts;
use crate::vm::sampler::SamplerSlot;

/// One version of a plugin.
pub(crate) struct PluginVersion {
    pub(crate) manifest: Manifest,
    /// The file or the folder.
    pub(crate) path: PathBuf,
    /// Where `path` led when this version was read, unless a repository chose the link: then it is `path`.
    pub(crate) real: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) key: SourceKey,
    pub(crate) script: Arc<[u8]>,
    /// Digest of all files, also of those that it cannot run.
    pub(crate) digest: ContentDigest,
    /// Only these may run: files that were added since are not part of this version.
    pub(crate) files: VersionFiles,
    /// The texts that have run, for messages.
    pub(crate) sources: SourceTexts,
    pub(crate) timers: TimerBoard,
    pub(crate) sampler: Arc<SamplerSlot>,
    pub(crate) shared: Arc<HostResources>,
}

/// Where a plugin was found.
pub(crate) struct PluginPlace {
    /// See [`PluginVersion::path`].
    pub(crate) path: PathBuf,
    /// See [`PluginVersion::real`].
    pub(crate) real: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) scope: SourceScope,
}

impl PluginPlace {
    /// A resolved path that the user named.
    pub(crate) fn of_user(path: PathBuf) -> Self {
        Self { real: path.clone(), path, origin: Origin::UserPlugin, scope: SourceScope::Global }
    }
}

impl PluginVersion {
    /// A version whose script has not run yet.
    pub(crate) fn new(
        place: PluginPlace,
        (manifest, script): (Manifest, Arc<[u8]>),
        digest: ContentDigest,
        files: VersionFiles,
        shared: Arc<HostResources>,
    ) -> Arc<Self> {
        let PluginPlace { path, real, origin, scope } = place;
        Arc::new(Self {
            key: SourceKey { kind: SourceKind::Plugin, name: manifest.name.clone(), scope },
            manifest,
            path,
            real,
            origin,
            script,
            digest,
            files,
            sources: SourceTexts::default(),
            timers: TimerBoard::default(),
            sampler: Arc::default(),
            shared,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.manifest.name
    }

    pub(crate) fn source(&self) -> Source {
        Source {
            kind: SourceKind::Plugin,
            name: self.manifest.name.clone(),
            path: Some(self.path.display().to_string()),
        }
    }

    /// The plugin's own folder; for a single-file plugin, the folder that contains it.
    pub(crate) fn dir(&self) -> &Path {
        self.manifest.folder.as_deref().or(self.path.parent()).unwrap_or(&self.path)
    }

    /// Whether a resolved path belongs to the plugin: to its folder, or its single file.
    pub(crate) fn owns(&self, path: &Path) -> bool {
        path.starts_with(&self.real) || path.starts_with(&self.path)
    }

    /// As [`dir`](Self::dir), with links resolved.
    pub(crate) fn real_dir(&self) -> &Path {
        match self.manifest.folder {
            Some(_) => &self.real,
            None => self.real.parent().unwrap_or(&self.real),
        }
    }

    /// Its name space in the store: plugins of the same name in different projects share nothing.
    pub(crate) fn store_name(&self) -> String {
        match &self.key.scope {
            SourceScope::Global => self.name().to_owned(),
            SourceScope::Project(project) => format!("{}@{}", self.name(), project.display()),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.manifest.memory.unwrap_or(self.shared.memory)
    }

    /// Checks that the manifest declares a capability, if it declares any.
    ///
    /// # Errors
    /// The missing capability, by name.
    pub(crate) fn requires(&self, name: &str, has: impl Fn(&Capabilities) -> bool) -> Result<(), String> {
        match &self.manifest.capabilities {
            Some(capabilities) if !has(capabilities) => Err(format!(
                "the plugin does not declare the capability {name}: add it to [capabilities] in its plugin.toml"
            )),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn config(&self) -> Value {
        let tables = self.shared.tables.load();
        let table = tables.get(&self.key.scope).and_then(|tables| tables.get(self.name()));
        table.cloned().unwrap_or_else(|| Value::Object(Map::new()))
    }
}
