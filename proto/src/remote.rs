//! Other daemons that this one has mounted, as clients see them.

use serde::{Deserialize, Serialize};

use crate::tool::ToolName;

/// Answer of `remotes.list` and `remotes.reconnect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemoteList {
    /// Sorted by name.
    pub remotes: Vec<Remote>,
}

/// Params of `remotes.reconnect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReconnectRemote {
    /// The name of the daemon in the configuration.
    pub name: String,
}

/// Another daemon, whose tools are called `NAME_tool` here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Remote {
    pub name: String,
    pub state: RemoteState,
    /// `command`, `websocket`, or `none` when its configuration names no transport.
    pub transport: String,
    /// The process of the program that connects to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// RFC 3339, UTC: since when it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The version of the daemon there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The folder in which calls run there, with links resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether its asks are shown here, which requires that this daemon may decide there.
    pub relays_asks: bool,
    /// The daemons that are reached through it, itself first, each by its `instance`.
    pub instances: Vec<String>,
    /// Its tools under their names here. While it is disconnected, its last known tools.
    pub tools: Vec<ToolName>,
    /// Tools that were left out of its list, and why.
    pub problems: Vec<String>,
    /// Why it is disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the next attempt is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// Calls that have ended, and how many of them failed.
    pub calls: u64,
    pub bad_calls: u64,
    /// Calls that it is running now.
    pub running: u64,
    /// How many times it has been connected.
    pub connects: u64,
    /// The last lines that the program wrote on stderr.
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RemoteState {
    Connecting,
    Connected,
    /// It cannot be reached or has gone away; further attempts follow.
    Away,
    Disabled,
}

impl RemoteState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Away => "away",
            Self::Disabled => "disabled",
        }
    }
}
