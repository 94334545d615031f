//! Mounted MCP servers as clients see them.

use serde::{Deserialize, Serialize};

use crate::secret::SecretValue;
use crate::tool::{SessionId, ToolName};

/// Answer of `mcp.servers`, `mcp.restart` and `mcp.test`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpServerList {
    /// Sorted by name.
    pub servers: Vec<McpServer>,
}

/// Params of `mcp.restart`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RestartMcpServer {
    /// The name of the server in the configuration.
    pub name: String,
}

/// Params of `mcp.test`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestMcpServer {
    /// The name of the server in the configuration.
    pub name: String,
}

/// Which sessions share a process of a mounted server. The tools are the same for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InstanceScope {
    /// One process for all.
    #[default]
    Shared,
    /// One for the sessions of each project.
    Project,
    /// One for each session, which ends with it.
    Session,
}

impl InstanceScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Project => "project",
            Self::Session => "session",
        }
    }
}

/// A process of a mounted server, or a connection to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpServerInstance {
    /// The session that it serves, with the scope `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The root of the project whose sessions it serves, with the scope `project`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub state: McpServerState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// RFC 3339, UTC: since when it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<f64>,
    /// Resident memory of the process and of those that it started; absent where the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The number of these processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Calls that it is running now.
    pub running: u64,
    /// Why it is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Params of `mcp.login.begin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BeginMcpLogin {
    /// The server; that of all sessions, if a project has one of the same name.
    pub name: String,
    /// Where the page sends the person's browser: `http://127.0.0.1:PORT/PATH`.
    pub redirect_uri: String,
}

/// Answer of `mcp.login.begin`. The login waits for 15 minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpLoginBegun {
    /// The page on which a person logs in.
    pub url: String,
    /// The scopes that the page asks for.
    pub scopes: Vec<String>,
    /// The authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

/// Params of `mcp.login.finish`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FinishMcpLogin {
    /// The URL that the page redirected to, with its `code` and `state`; the state tells the login.
    pub redirected_to: SecretValue,
}

/// Answer of `mcp.login.finish`. The server starts again with the login.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FinishedMcpLogin {
    pub name: String,
}

/// Params of `mcp.logout`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NameMcpLogin {
    /// The name of the server in the configuration.
    pub name: String,
}

/// Answer of `mcp.logout`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpLoggedOut {
    pub servers: Vec<McpServer>,
    /// Why the authorization server has not revoked all tokens: they stay valid there until they expire. Absent when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_revoked: Option<String>,
}

/// The login at a remote server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpLogin {
    pub state: McpLoginState,
    /// The authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The daemon's identity there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The scopes that the login has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// RFC 3339, UTC: when the access token expires. It is refreshed then, if the server allows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpLoginState {
    LoggedIn,
    /// The server refused a request for want of a login, or of a wider one.
    Required,
    /// The secrets are locked.
    Locked,
}

/// A mounted server; all clients share its tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpServer {
    pub name: String,
    /// The project whose sessions see it; all sessions when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub state: McpServerState,
    #[serde(default)]
    pub scope: InstanceScope,
    /// The processes that are starting, running or have failed. Those of scopes other than `shared` count only here: `pid`,
    /// `since` and `uptime_s` of the server are those of the shared process.
    #[serde(default)]
    pub instances: Vec<McpServerInstance>,
    /// So many run at most.
    #[serde(default)]
    pub max_instances: u64,
    /// `stdio`, `socket`, `http`, or `none` when its configuration names no transport.
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
    /// Its tools under their names here. A server that does not run keeps its last known tools.
    pub tools: Vec<ToolName>,
    /// Tools that were left out of its list, and why.
    pub problems: Vec<String>,
    /// Why it is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For how long calls are refused immediately; 0 when the next call tries to start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// The secrets that its configuration names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The login, for a remote server that has asked for one; shown to people only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<McpLogin>,
    /// Where a login's page sends the browser back to, if its configuration says so: `HOST`, `HOST:PORT` or `HOST:PORT/PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_redirect: Option<String>,
    /// Calls that have ended, and how many of them failed.
    pub calls: u64,
    pub bad_calls: u64,
    /// Calls that it is running now.
    pub running: u64,
    pub starts: u64,
    /// The last lines that it wrote to stderr or sent as log messages.
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// The first call starts it.
    Stopped,
    Starting,
    Running,
    /// It failed to start or has crashed.
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

/// The built-in profile of MCP clients that leaves nothing out.
pub const ALL_TOOLS: &str = "all";
/// The built-in profile for MCP clients that read, write and search files and run commands with tools of their own.
pub const WITHOUT_FILES_AND_SHELL: &str = "without-files-and-shell";

/// Whether a profile of MCP clients can have this name, which is also that of its token's file.
pub fn is_profile_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
}
