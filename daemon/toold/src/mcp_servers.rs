//! `[mcp]` of the configuration, and the MCP servers that it mounts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mcp::{McpClientConfig, MetaToolsConfig};

/// `[mcp]`: the Model Context Protocol, both sides.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// `mcp.json` files of other programs whose servers are mounted too; `~/` is the home folder. One that is
    /// not there is passed over. A name in `servers`, or in an earlier file, wins.
    pub import: Vec<String>,
    /// Servers whose tools everybody shares, by name: their tools are called `NAME_tool`.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// Serve MCP clients on Streamable HTTP here too, such as `127.0.0.1:7345`: the path is `/mcp`, and a token is
    /// needed, which `toolctl mcp token` shows.
    pub listen: Option<String>,
    /// Let `listen` be an address that other machines reach. Whoever has the token can run tools as you.
    pub allow_remote: bool,
    /// Names by which clients may call this host beside `localhost` and its loopback addresses.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, such as `http://localhost:*`. None when empty.
    pub origins: Vec<String>,
    /// Whether clients get `tools_search` and `tools_call`, which reach tools that were added after they read the
    /// list. `auto`: all but those with `list_changed = true`.
    pub meta_tools: MetaToolsConfig,
    /// What clients may do, by the name that they give of themselves.
    pub clients: BTreeMap<String, McpClientConfig>,
}

/// One `[mcp.servers.NAME]`. Exactly one of `command`, `url` and `socket` says how it is reached. In all texts
/// `${env:NAME}` stands for a variable of the daemon's environment, and `${env:NAME:-text}` has a default.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServerConfig {
    /// The program, spoken to on its stdin and stdout; no shell.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// Adds to the environment, which holds little beside `PATH` and `HOME`.
    pub env: BTreeMap<String, String>,
    /// The folder that the program works in; the home folder when absent. Never that of a client.
    pub cwd: Option<String>,
    /// The address of a server on Streamable HTTP.
    pub url: Option<String>,
    /// Sent with each request to `url`.
    pub headers: BTreeMap<String, String>,
    /// The path of a Unix socket that speaks one message a line.
    pub socket: Option<String>,
    /// The server is stopped when nobody has called it for so long; 0 is never.
    pub idle_timeout_ms: u64,
    /// How long a call may take; when absent, as long as other tools.
    pub timeout_ms: Option<u64>,
    /// How long it may take to start and to list its tools.
    pub start_timeout_ms: u64,
    pub enabled: bool,
    pub tools: McpToolFilter,
}

/// Which of a server's tools are taken, by globs over its own names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpToolFilter {
    /// All when absent.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

impl Default for McpServerConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            socket: None,
            idle_timeout_ms: 15 * 60 * 1000,
            timeout_ms: None,
            start_timeout_ms: 60 * 1000,
            enabled: true,
            tools: McpToolFilter::default(),
        }
    }
}
