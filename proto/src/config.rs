//! The configuration as clients see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Answer of `daemon.config`: what is in force, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownConfig {
    /// The user's configuration file, whether or not it is there.
    pub file: String,
    /// Every key, in the order of the schema; what is secret by its name is left out.
    pub entries: Vec<ConfigEntry>,
    /// The project of the caller's session, when it has a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectConfig>,
    /// What is wrong with the user's file, in words for people. While there is anything, what was read before stays in
    /// force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// One key of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEntry {
    /// As `limits.calls` or `permission.rules[0]`.
    pub key: String,
    pub value: Value,
    /// `default`, a file with the line, a variable of the environment, or a flag.
    pub origin: String,
}

/// What a project configures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectConfig {
    pub file: String,
    /// Whether a person trusts the file as it is now. What it denies and asks counts in any case.
    pub trusted: bool,
    pub entries: Vec<ConfigEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Answer of `daemon.reload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadedConfig {
    /// Whether the file as it is now is in force.
    pub applied: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Keys that changed and count only once the daemon is restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}
