//! Profiles of plugins.

use serde::{Deserialize, Serialize};

/// Params of `plugins.profile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfilePlugin {
    /// The name of the plugin.
    pub name: String,
    /// For how long, 600 at most.
    #[serde(default = "ten")]
    #[cfg_attr(test, schemars(range(min = 1, max = 600)))]
    pub seconds: u32,
}

fn ten() -> u32 {
    10
}

/// Answer of `plugins.profile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PluginProfile {
    /// How long the plugin's Lua ran, in microseconds; waiting does not count.
    pub total_us: u64,
    /// The longest first.
    pub stacks: Vec<ProfiledStack>,
}

/// Functions that called each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfiledStack {
    /// The outermost first: its name, and the file and line where it begins.
    pub frames: Vec<String>,
    /// How long the innermost one ran, in microseconds.
    pub us: u64,
}
