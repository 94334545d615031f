//! Sessions: the state of a conversation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::tool::{InvalidId, SessionId};

/// How the ids of the sessions of terminals begin, which only people's clients open.
pub const TERMINAL_SESSION: &str = "terminal-";

/// The id of the session of a terminal, such as `pts/5`, for what a shell does in a folder. `of_shell`: digits and letters
/// that tell shells and folders apart.
///
/// # Errors
/// The text has other characters, or is too long.
pub fn terminal_session(terminal: &str, of_shell: &str) -> Result<SessionId, InvalidId> {
    SessionId::parse(&format!("{TERMINAL_SESSION}{}-{of_shell}", terminal.replace('/', "_")))
}

/// The terminal in the id of its session, such as `pts/5`; empty if the id does not tell it. `None` for other sessions.
pub fn terminal_of(id: &SessionId) -> Option<String> {
    let rest = id.as_str().strip_prefix(TERMINAL_SESSION)?;
    let named = rest
        .split_once('-')
        .map(|(terminal, _)| terminal)
        .filter(|name| !name.starts_with(|c: char| c.is_ascii_digit()));
    Some(named.unwrap_or_default().replace('_', "/"))
}

/// The shell in the id of a terminal's session: its process id, and when it started, in ticks since the system did. `None` for
/// other sessions.
pub fn shell_of(id: &SessionId) -> Option<(u32, u64)> {
    let mut parts = id.as_str().strip_prefix(TERMINAL_SESSION)?.rsplit('-').skip(1);
    let (start, pid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((pid, start))
}

/// Params of `session.open`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenSession {
    /// An absolute path of a folder. On resuming it may be left out; another one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// An unknown id creates the session; absent makes a new one with 128 random bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Folders beside `cwd` that the session works in; absolute paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// The program that opens it, for people, rules and settings by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// The model that the frontend talks to, for tools that ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The protocol revision that the client speaks: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// `agent` for a frontend that acts for a model: it cannot answer permission asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ClientRole>,
    /// Variables for the session's processes. A person's frontend may set any. All other clients may set those that
    /// `[agents] env` names, and those whose value equals that of the client's own process; the others are ignored and
    /// named in the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Limits which tools the session sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClientRole {
    Person,
    Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientInfo {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Limits a view. Without `enable` and `sources` all tools are included; `disable` and `without_sources` exclude.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolFilter {
    /// Globs over tool names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<Vec<String>>,
    /// Globs over tool names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable: Option<Vec<String>>,
    /// Kinds or names of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<String>>,
    /// Kinds or names of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_sources: Option<Vec<String>>,
}

/// Answer of `session.open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenedSession {
    pub session_id: SessionId,
    /// With links resolved.
    pub cwd: String,
    /// Whether the session was there before.
    pub resumed: bool,
    /// Whether its tools may work in the folder.
    pub workspace: WorkspaceState,
    /// Names in `env` that this client may not set; they have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_ignored: Vec<String>,
    /// Why the session, or its new state, ends with the daemon; absent when it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    pub server: ServerInfo,
}

/// Whether the tools of a session may work in its folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    #[default]
    Open,
    /// The first call that needs the folder asks a person for it.
    Pending,
    /// The client named no folder that it may work in: only tools that need no folder work.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    pub protocol: u32,
}

/// Answer of `session.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionList {
    /// The oldest first.
    pub sessions: Vec<SessionInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionInfo {
    pub session_id: SessionId,
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// The real path of the project; see the security document.
    pub project: String,
    pub mode: Mode,
    /// How much runs without an approval in it.
    #[serde(default)]
    pub level: Level,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// How many connections are bound to it now.
    pub connections: u64,
    /// RFC 3339, UTC.
    pub opened_at: String,
    /// How many of its calls are in flight.
    pub calls: u64,
}

/// The permission mode of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Read only.
    Plan,
    #[default]
    Default,
    /// Writes within `cwd` and roots need no ask.
    AcceptEdits,
    /// Everything but hard denies and explicit deny rules.
    Yolo,
}

/// Params of `session.close`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CloseSession {
    pub session_id: SessionId,
}

/// Answer of `session.close`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClosedSession {
    /// How many calls in flight were cancelled.
    pub cancelled: u64,
    /// Why the session can be resumed after the daemon ends; absent when it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}
