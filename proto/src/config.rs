//! The configuration as clients see it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Answer of `daemon.config`: the active configuration, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShownConfig {
    /// The user's configuration file, whether or not it exists.
    pub file: String,
    /// Every key, in the order of the schema; keys with secret-sounding names are left out.
    pub entries: Vec<ConfigEntry>,
    /// The project of the caller's session, when it has a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectConfig>,
    /// Problems with the user's file, as sentences for the user. While there are any, the previous configuration stays
    /// active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// One key of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigEntry {
    /// Such as `limits.calls` or `permission.rules[0]`.
    pub key: String,
    pub value: Value,
    /// `default`, a file with the line, an environment variable, or a flag.
    pub origin: String,
}

/// The configuration of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProjectConfig {
    pub file: String,
    /// Whether a person trusts the file as it is now. Its rules that deny or ask count in any case.
    pub trusted: bool,
    pub entries: Vec<ConfigEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Answer of `daemon.reload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReloadedConfig {
    /// Whether the current file is active.
    pub applied: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Keys that changed and take effect only after a restart of the daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}
