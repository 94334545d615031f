//! Plugins as clients see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::CommandInfo;
use crate::config::ConfigEntry;
use crate::event::Event;
use crate::hook::HookInfo;
use crate::permission::RuleInfo;
use crate::tool::Tool;

/// Params of `plugins.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListPlugins {
    /// The bundled plugins that are off, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Answer of `plugins.list` and `plugins.reload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginList {
    /// Sorted by folder order, then by name.
    pub plugins: Vec<Plugin>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plugin {
    pub name: String,
    pub path: String,
    /// The project whose sessions alone see it; absent for those that all see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// It ships with the daemon, and is off unless enabled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bundled: bool,
    pub status: PluginStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tools that it serves now; of a failed plugin, those of its last good version.
    pub tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PluginError>,
    /// RFC 3339, UTC: when the version in service was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginStatus {
    Loaded,
    /// The newest save did not load; the last good version serves on.
    Failed,
    Disabled,
    /// A project's plugin that nobody trusts as it is now; a version that was trusted before serves on.
    Untrusted,
    /// Another plugin has its name.
    Shadowed,
}

impl Plugin {
    /// Whether it is there only to be switched on.
    pub fn is_spare(&self) -> bool {
        self.bundled && self.status == PluginStatus::Disabled
    }
}

impl PluginStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Untrusted => "untrusted",
            Self::Shadowed => "shadowed",
        }
    }
}

/// Why a plugin did not load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginError {
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
}

/// Params of `plugins.reload`: one plugin, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadPlugins {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Params of `plugins.show`, `plugins.enable` and `plugins.disable`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamePlugin {
    pub name: String,
}

/// Answer of `plugins.show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginDetails {
    pub plugin: Plugin,
    /// What serves now.
    pub tools: Vec<Tool>,
    pub hooks: Vec<HookInfo>,
    pub commands: Vec<CommandInfo>,
    /// Names.
    pub subagents: Vec<String>,
    /// URIs and templates.
    pub resources: Vec<String>,
    /// Names.
    pub prompts: Vec<String>,
    /// What its manifest holds it to; absent when it holds it to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// Its files as they lie there now.
    pub files: Vec<ContentFile>,
    /// Who trusted which content of a project's plugin; absent when nobody did, and for all other plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<TrustedBy>,
}

/// Params of `plugins.logs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogsOfPlugin {
    /// Absent for all plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Answer of `plugins.logs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginLogs {
    /// Of kinds `log`, `notice`, `message` and `plugin.*`, as far as they are still held; the oldest first.
    pub events: Vec<Event>,
    /// The newest event of any kind: what comes after it comes by `events.subscribe {since}`.
    pub seq: u64,
    pub epoch: String,
}

/// A file of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentFile {
    pub path: String,
    pub bytes: u64,
}

/// Who trusted something, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedBy {
    /// What the person's client calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// RFC 3339, UTC.
    pub at: String,
    /// Of the content as it was then.
    pub digest: String,
}

/// Params of `plugins.trust`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustPlugins {
    /// A folder in a project for all of the project, its `.toold/config.toml`, or a plugin's file or folder. Absolute.
    pub path: String,
    /// Only tell what is there; nothing is trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview: bool,
    /// The digests that were looked at, by path: where another content lies there now, nothing is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<BTreeMap<String, String>>,
}

/// Answer of `plugins.trust`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustReport {
    /// The project's real path.
    pub project: String,
    pub items: Vec<TrustItem>,
}

/// Something that is trusted, or not, as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustItem {
    pub kind: TrustedKind,
    /// The configuration file, or the plugin's file or folder.
    pub path: String,
    /// Over all files of it and their names, in hexadecimal digits (BLAKE3).
    pub digest: String,
    /// Whether exactly this content is trusted.
    pub trusted: bool,
    /// Who trusted what lay there last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<TrustedBy>,
    pub files: Vec<ContentFile>,
    /// Of a configuration: the rules that allow something, which count only once they are trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allows: Vec<RuleInfo>,
    /// Of a configuration: all else that counts only once it is trusted, such as commands of hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<ConfigEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustedKind {
    Config,
    Plugin,
}
