//! The daemon itself: status, stop.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `daemon.status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    pub pid: u32,
    pub version: String,
    pub protocol: u32,
    /// New at each start.
    pub epoch: String,
    pub uptime_s: f64,
    /// Absent when the daemon serves its parent on stdio alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Where MCP clients are served on HTTP; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_url: Option<String>,
    /// The configuration file that was read, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    pub plugin_dirs: Vec<String>,
    /// What confines the programs that tools run, such as `read-only, no network`; absent when nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    pub sessions: u64,
    pub connections: u64,
    /// Tools in the global view.
    pub tools: u64,
    pub revision: u64,
    pub calls: CallCounts,
    pub plugins: PluginCounts,
    /// Resident memory of the process; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Open file descriptors; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// What works less well than it should, in words for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    pub started: u64,
    pub finished: u64,
    pub in_flight: u64,
    /// Finished ones by outcome.
    pub outcomes: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginCounts {
    pub loaded: u64,
    pub failed: u64,
    pub other: u64,
}

/// Params of `daemon.shutdown`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shutdown {
    /// How long calls in flight may go on before they are cancelled; 5,000 by default, at most 600,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
}

/// Answer of methods that have nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// Params of methods that take none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}
