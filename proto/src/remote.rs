//! Other daemons that this one has mounted, as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::ToolName;

/// Answer of `remotes.list` and `remotes.reconnect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteList {
    /// Sorted by name.
    pub remotes: Vec<Remote>,
}

/// Params of `remotes.reconnect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReconnectRemote {
    pub name: String,
}

/// Another daemon, whose tools are called `NAME_tool` here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remote {
    pub name: String,
    pub state: RemoteState,
    /// `command`, `websocket`, or `none` when its configuration names no way.
    pub transport: String,
    /// Of the program that it is reached by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// RFC 3339, UTC: since when it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Of the daemon there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The folder that calls work in there, with links resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether what it asks a person is shown here. It is where this daemon may decide there.
    pub relays_asks: bool,
    /// The daemons that are reached through it, itself first, by what each calls its own `instance`.
    pub instances: Vec<String>,
    /// Its tools as they are called here. While it is away these are those that were known last.
    pub tools: Vec<ToolName>,
    /// What was left out of its list, and why.
    pub problems: Vec<String>,
    /// Why it is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// Calls that have ended, and those of them that ended badly.
    pub calls: u64,
    pub bad_calls: u64,
    /// Calls that it works on now.
    pub running: u64,
    /// How often it was connected.
    pub connects: u64,
    /// The last lines that the program wrote on stderr.
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemoteState {
    Connecting,
    Connected,
    /// It could not be reached, or is gone; it is tried again.
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
