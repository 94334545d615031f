//! Plugins as clients see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::call::CallProgress;
use crate::command::CommandInfo;
use crate::config::ConfigEntry;
use crate::hook::HookInfo;
use crate::permission::RuleInfo;
use crate::tool::{CallId, Category, SessionId, Tool, ToolResult};

/// Params of `plugins.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListPlugins {
    /// Include the bundled plugins that are disabled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Answer of `plugins.list` and `plugins.reload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PluginList {
    /// Sorted by folder order, then by name.
    pub plugins: Vec<Plugin>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plugin {
    pub name: String,
    pub path: String,
    /// The only project whose sessions see it; absent when all sessions do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// It ships with the daemon and is disabled until you enable it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bundled: bool,
    pub status: PluginStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tools that it serves now; for a failed plugin, those of its last good version.
    pub tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PluginError>,
    /// Problems that do not keep it from serving, as sentences for its author: a command that is not used because another
    /// plugin has one of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// RFC 3339, UTC: when the version in service was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PluginStatus {
    Loaded,
    /// The newest version did not load; the last good version still serves.
    Failed,
    Disabled,
    /// A project's plugin whose current content is not trusted; a version that was trusted before still serves.
    Untrusted,
    /// Another plugin has the same name.
    Shadowed,
}

impl Plugin {
    /// Whether it is only available to be enabled.
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

/// An error of a plugin: why it did not load, or why one of its functions failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

impl PluginError {
    /// An error that belongs to no line.
    pub fn of(message: impl Into<String>) -> Self {
        Self { message: message.into(), file: None, line: None, source_line: None, traceback: None }
    }
}

/// Params of `plugins.reload`: one plugin, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReloadPlugins {
    /// The name of the plugin; all plugins when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Params of `plugins.show`, `plugins.enable` and `plugins.disable`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamePlugin {
    /// The name of the plugin.
    pub name: String,
}

/// Params of `plugins.evaluate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EvaluateInPlugin {
    /// The plugin's name.
    pub name: String,
    /// Lua: an expression, whose values are the result, or statements. `ctx` is the call's.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The timeout, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Send `tools.progress` notifications before the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// Answer of `plugins.evaluate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// The source is the beginning of something, such as of a function: nothing ran, and more lines are expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The values as text, one a line, or the error. Absent when the source is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
}

/// A line that `toold plugin repl` writes. It reads inputs, each as a JSON string on a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptLine {
    Progress(CallProgress),
    Answer(Box<Evaluation>),
    /// The input was interrupted, or ran longer than it may.
    Cancelled(String),
}

/// Answer of `plugins.show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PluginDetails {
    pub plugin: Plugin,
    /// The registrations that serve now.
    pub tools: Vec<Tool>,
    pub hooks: Vec<HookInfo>,
    pub commands: Vec<CommandInfo>,
    /// Names.
    pub subagents: Vec<String>,
    /// URIs and templates.
    pub resources: Vec<String>,
    /// Names.
    pub prompts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<PluginTimer>,
    /// The limits of its manifest; absent when it sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// Its files as they are on disk now.
    pub files: Vec<ContentFile>,
    /// Who trusted which content of a project's plugin; absent when nobody did, and for plugins outside of projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<TrustedBy>,
    /// Permissions that it asked for and was refused since the daemon started, the newest first, 100 at most. People
    /// see all of them, others those of their own session and those of its load, without the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedNeed>,
}

/// A timer of the version in service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PluginTimer {
    pub name: String,
    /// After errors it is longer, up to an hour.
    pub interval_ms: u64,
    /// Runs that have ended.
    pub runs: u64,
    /// RFC 3339, UTC: when the last of these began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// Its error; absent when it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The plugin stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// A permission that a plugin asked for and was refused. A grant that allows it removes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefusedNeed {
    pub category: Category,
    /// As in an ask; shortened if it is longer than 2,000 bytes.
    pub target: String,
    /// Why the plugin asked for it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rule that decided.
    pub rule: String,
    /// `permissions.grant` with this pattern and `chain` allows exactly this, or the nearest that a pattern can say; absent
    /// when no grant allows it: a rule denies it, its manifest does not declare it, or it is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The plugins that the call passed through, the outermost first; the last is this one.
    pub chain: Vec<String>,
    /// While it was loading; else in a call.
    pub at_load: bool,
    pub times: u64,
    /// RFC 3339, UTC.
    pub first_at: String,
    /// RFC 3339, UTC.
    pub last_at: String,
}

/// A file of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentFile {
    pub path: String,
    pub bytes: u64,
}

/// Who trusted something, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustedBy {
    /// The name of the person's client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// RFC 3339, UTC.
    pub at: String,
    /// The digest of the content at that time.
    pub digest: String,
}

/// Params of `plugins.trust`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustPlugins {
    /// A folder in a project for all of the project, its `.toold/config.toml`, or a plugin's file or folder. Absolute.
    pub path: String,
    /// Only report what is there; nothing is trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview: bool,
    /// The digests that were reviewed, by path: if the content of any path has changed, nothing is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<BTreeMap<String, String>>,
}

/// Answer of `plugins.trust`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustReport {
    /// The project's real path.
    pub project: String,
    pub items: Vec<TrustItem>,
}

/// A unit of trust: it is trusted as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustItem {
    pub kind: TrustedKind,
    /// The configuration file, or the plugin's file or folder.
    pub path: String,
    /// The BLAKE3 digest of all its files and their names, in hexadecimal digits.
    pub digest: String,
    /// Whether exactly this content is trusted.
    pub trusted: bool,
    /// Who trusted its content last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<TrustedBy>,
    pub files: Vec<ContentFile>,
    /// For a configuration: its rules that allow something; they count only once they are trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allows: Vec<RuleInfo>,
    /// For a configuration: everything else that counts only once it is trusted, such as commands of hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<ConfigEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrustedKind {
    Config,
    Plugin,
}
