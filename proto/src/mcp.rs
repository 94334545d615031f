//! Mounted MCP servers as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::ToolName;

/// Answer of `mcp.servers` and `mcp.restart`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerList {
    /// Sorted by name.
    pub servers: Vec<McpServer>,
}

/// Params of `mcp.restart`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestartMcpServer {
    pub name: String,
}

/// A server whose tools everybody shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    pub name: String,
    /// Whose sessions see it; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub state: McpServerState,
    /// `stdio`, `socket`, `http`, or `none` when its configuration names no way.
    pub transport: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// RFC 3339, UTC: since when it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<f64>,
    /// The revision of MCP that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Its tools as they are called here. A server that does not run keeps those that were known last.
    pub tools: Vec<ToolName>,
    /// What was left out of its list, and why.
    pub problems: Vec<String>,
    /// Why it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long calls are refused at once; 0 when the next one tries to start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// Calls that have ended, and those of them that ended badly.
    pub calls: u64,
    pub bad_calls: u64,
    /// Calls that it works on now.
    pub running: u64,
    pub starts: u64,
    /// The last lines that it wrote on stderr or sent to be logged.
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// It is started by the first call.
    Stopped,
    Starting,
    Running,
    /// It could not be started, or has died.
    Failed,
    Disabled,
}

impl McpServerState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
        }
    }
}
