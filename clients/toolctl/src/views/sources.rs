//! Plugins, MCP servers, other daemons, and the daemons of the fleet: their states and tools.

use toold_proto::fleet::{FleetDaemon, FleetDaemonState};
use toold_proto::mcp::{McpServer, McpServerState};
use toold_proto::plugin::{Plugin, PluginStatus};
use toold_proto::remote::{Remote, RemoteState};
use toold_proto::tool::ToolName;

use super::{Tone, ViewCell};

pub(crate) fn plugin_state(plugin: &Plugin) -> ViewCell {
    let tone = match plugin.status {
        PluginStatus::Loaded => Tone::Good,
        PluginStatus::Failed => Tone::Bad,
        PluginStatus::Disabled | PluginStatus::Untrusted | PluginStatus::Shadowed => Tone::Warn,
    };
    ViewCell::new(tone, plugin.status.as_str())
}

pub(crate) fn server_state(server: &McpServer) -> ViewCell {
    let tone = match server.state {
        McpServerState::Running => Tone::Good,
        McpServerState::Failed => Tone::Bad,
        McpServerState::Starting => Tone::Warn,
        McpServerState::Stopped | McpServerState::Disabled => Tone::Dim,
    };
    ViewCell::new(tone, server.state.as_str())
}

pub(crate) fn remote_state(remote: &Remote) -> ViewCell {
    let tone = match remote.state {
        RemoteState::Connected => Tone::Good,
        RemoteState::Away => Tone::Bad,
        RemoteState::Connecting => Tone::Warn,
        RemoteState::Disabled => Tone::Dim,
    };
    ViewCell::new(tone, remote.state.as_str())
}

pub(crate) fn daemon_state(daemon: &FleetDaemon) -> ViewCell {
    let tone = match daemon.state {
        FleetDaemonState::Online => Tone::Good,
        FleetDaemonState::Away => Tone::Bad,
        FleetDaemonState::Unknown => Tone::Warn,
        FleetDaemonState::Disabled => Tone::Dim,
    };
    ViewCell::new(tone, daemon.state.as_str())
}

pub(crate) fn labels(daemon: &FleetDaemon) -> String {
    daemon.labels.join(" ")
}

pub(crate) fn tool_names(tools: &[ToolName]) -> String {
    tools.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
}
