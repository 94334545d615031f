//! Plugins as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
