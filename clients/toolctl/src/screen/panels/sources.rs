//! Where tools come from: plugins, MCP servers, other daemons, and the daemons and labels of the fleet.

use toold_proto::fleet::{FleetDaemon, FleetLabel};
use toold_proto::mcp::{McpLoginState, McpServer};
use toold_proto::plugin::{Plugin, PluginError};
use toold_proto::remote::Remote;

use crate::output;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, DetailsQuery, field, heading};
use crate::screen::panel::PanelRow;
use crate::screen::text::{PaneLine, text_lines};
use crate::views::sources::{self, labels, tool_names};
use crate::views::{Column, FILL, Tone, ViewCell, column};

pub(in crate::screen) const COLUMNS: &[Column] = &[
    column("SOURCE", 8, 28, 0),
    column("KIND", 6, 8, 2),
    column("STATE", 8, 10, 1),
    column("PROBLEM", 12, 60, 3),
    column("TOOLS", 10, 40, 4),
    column("WHERE", 10, FILL, 5),
];

/// An item of this panel.
#[derive(Clone, Copy)]
pub(in crate::screen) enum ToolSource<'a> {
    Plugin(&'a Plugin),
    Server(&'a McpServer),
    Remote(&'a Remote),
    FleetDaemon(&'a FleetDaemon),
    /// One whose tools are listed here.
    FleetLabel(&'a FleetLabel),
}

pub(in crate::screen) fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<ToolSource<'a>> {
    all(data).find(|source| source.key() == wanted)
}

fn all(data: &DaemonData) -> impl Iterator<Item = ToolSource<'_>> {
    let plugins = data.plugins.iter().map(ToolSource::Plugin);
    let servers = data.servers.iter().map(ToolSource::Server);
    let remotes = data.remotes.iter().map(ToolSource::Remote);
    let daemons = data.fleet.daemons.iter().map(ToolSource::FleetDaemon);
    let labels = data.fleet.label_groups.iter().filter(|label| label.mounted).map(ToolSource::FleetLabel);
    plugins.chain(servers).chain(remotes).chain(daemons).chain(labels)
}

pub(in crate::screen) fn count(data: &DaemonData) -> usize {
    all(data).count()
}

impl ToolSource<'_> {
    fn key(self) -> String {
        match self {
            // A project may have a plugin of the same name.
            Self::Plugin(plugin) => format!("plugin {}", plugin.path),
            Self::Server(server) => format!("mcp {} {}", server.name, server.project.as_deref().unwrap_or_default()),
            Self::Remote(remote) => format!("remote {}", remote.name),
            Self::FleetDaemon(daemon) => format!("fleet {}", daemon.name),
            Self::FleetLabel(label) => format!("label {}", label.name),
        }
    }
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    all(data).map(row).collect()
}

fn row(source: ToolSource<'_>) -> PanelRow {
    let (name, kind, state, problem, tools, place) = match source {
        ToolSource::Plugin(plugin) => {
            let error = plugin.error.as_ref().map(|error| error.message.clone());
            let problem = error.or_else(|| plugin.warnings.first().cloned());
            (
                &plugin.name,
                "plugin",
                sources::plugin_state(plugin),
                problem,
                plugin.tools.join(" "),
                plugin.path.clone(),
            )
        }
        ToolSource::Server(server) => {
            let problem = server.error.clone().or_else(|| server.problems.first().cloned());
            (
                &server.name,
                "mcp",
                sources::server_state(server),
                problem,
                tool_names(&server.tools),
                server.transport.clone(),
            )
        }
        ToolSource::Remote(remote) => {
            let problem = remote.error.clone().or_else(|| remote.problems.first().cloned());
            (
                &remote.name,
                "remote",
                sources::remote_state(remote),
                problem,
                tool_names(&remote.tools),
                remote.transport.clone(),
            )
        }
        ToolSource::FleetDaemon(daemon) => {
            let problem = daemon.error.clone().or_else(|| daemon.problems.first().cloned());
            (&daemon.name, "fleet", sources::daemon_state(daemon), problem, tool_names(&daemon.tools), labels(daemon))
        }
        ToolSource::FleetLabel(label) => {
            let (tone, state) = match label.online.len() {
                0 => (Tone::Bad, "away".to_owned()),
                online => (Tone::Good, format!("{online} online")),
            };
            let place = format!("any of {}", [label.online.as_slice(), &label.away].concat().join(", "));
            (&label.name, "label", ViewCell::new(tone, state), None, tool_names(&label.tools), place)
        }
    };
    PanelRow {
        key: source.key(),
        cells: vec![
            ViewCell::name(name),
            ViewCell::plain(kind),
            state,
            ViewCell::new(Tone::Bad, problem.unwrap_or_default()),
            ViewCell::plain(tools),
            ViewCell::plain(place),
        ],
    }
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    Some(match find(data, wanted)? {
        ToolSource::Plugin(plugin) => {
            let mut lines = plugin.description.as_deref().map(|text| text_lines(Tone::Plain, text)).unwrap_or_default();
            lines.push(field("state", plugin.status.as_str()));
            lines.push(field("file", &plugin.path));
            lines.extend(plugin.project.as_deref().map(|project| field("project", project)));
            lines.extend(plugin.version.as_deref().map(|version| field("version", version)));
            lines.push(field("tools", &plugin.tools.join(" ")));
            lines.extend(plugin.error.iter().flat_map(error_lines));
            lines.extend(plugin.warnings.iter().map(|warning| PaneLine::new(Tone::Warn, warning)));
            let query = DetailsQuery::Plugin(plugin.name.clone(), data.zone);
            Details { title: format!("plugin {}", plugin.name), lines, query: Some(query) }
        }
        ToolSource::Server(server) => {
            let mut lines = vec![
                field("state", server.state.as_str()),
                field("transport", &server.transport),
                field("scope", server.scope.as_str()),
                field("calls", &format!("{}, {} failed, {} running", server.calls, server.bad_calls, server.running)),
                field("starts", &server.starts.to_string()),
            ];
            lines.extend(server.project.as_deref().map(|project| field("project", project)));
            lines.extend(server.pid.map(|pid| field("process", &pid.to_string())));
            lines.extend(server.protocol.as_deref().map(|protocol| field("protocol", protocol)));
            lines.extend(server.retry_ms.map(|ms| field("next try in", &output::duration(ms))));
            if let Some(login) = &server.login {
                let text = match login.state {
                    McpLoginState::LoggedIn => "logged in".to_owned(),
                    McpLoginState::Required => format!("required: toolctl mcp login {}", server.name),
                    McpLoginState::Locked => "the secrets are locked: toolctl secrets unlock".to_owned(),
                };
                lines.push(field("login", &text));
            }
            lines.push(field("tools", &tool_names(&server.tools)));
            lines.extend(mount_lines(server.error.as_deref(), &server.problems, &server.stderr));
            Details { title: format!("MCP server {}", server.name), lines, query: None }
        }
        ToolSource::Remote(remote) => {
            let mut lines = vec![
                field("state", remote.state.as_str()),
                field("transport", &remote.transport),
                field("calls", &format!("{}, {} failed, {} running", remote.calls, remote.bad_calls, remote.running)),
                field("connects", &remote.connects.to_string()),
            ];
            lines.extend(remote.version.as_deref().map(|version| field("version", version)));
            lines.extend(remote.cwd.as_deref().map(|cwd| field("folder", cwd)));
            lines.extend(remote.retry_ms.map(|ms| field("next try in", &output::duration(ms))));
            lines.push(field("tools", &tool_names(&remote.tools)));
            lines.extend(mount_lines(remote.error.as_deref(), &remote.problems, &remote.stderr));
            Details { title: format!("remote {}", remote.name), lines, query: None }
        }
        ToolSource::FleetDaemon(daemon) => {
            let mut lines = vec![
                field("state", daemon.state.as_str()),
                field("labels", &labels(daemon)),
                field("load", &format!("{} of {} calls", daemon.running, daemon.max_calls)),
                field("calls", &format!("{} from here, {} failed", daemon.calls, daemon.bad_calls)),
                field("may call here", if daemon.may_call { "yes" } else { "no" }),
                field("key", &daemon.key),
            ];
            lines.extend(daemon.version.as_deref().map(|version| field("version", version)));
            lines.extend(daemon.heard_ms.map(|ms| field("heard of", &format!("{} ago", output::duration(ms)))));
            lines.push(field("audit rows not sent", &daemon.audit_waiting.to_string()));
            lines.push(field("can be asked there", &daemon.people.join(", ")));
            lines.push(field("tools", &tool_names(&daemon.tools)));
            lines.extend(mount_lines(daemon.error.as_deref(), &daemon.problems, &[]));
            Details { title: format!("daemon {} of the fleet", daemon.name), lines, query: None }
        }
        ToolSource::FleetLabel(label) => {
            let lines = vec![
                field("online", &label.online.join(", ")),
                field("away", &label.away.join(", ")),
                field("load", &format!("{} of {} calls", label.running, label.max_calls)),
                field("tools", &tool_names(&label.tools)),
            ];
            Details { title: format!("label {} of the fleet", label.name), lines, query: None }
        }
    })
}

fn error_lines(error: &PluginError) -> Vec<PaneLine> {
    let mut lines = vec![heading("Error")];
    lines.extend(text_lines(Tone::Bad, &error.message));
    if let Some(file) = &error.file {
        let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        lines.push(PaneLine::new(Tone::Plain, format!("{file}{line}")));
    }
    lines.extend(error.source_line.as_deref().map(|source| PaneLine::new(Tone::Warn, format!("    {source}"))));
    lines.extend(error.traceback.iter().flat_map(|traceback| text_lines(Tone::Dim, traceback)));
    lines
}

fn mount_lines(error: Option<&str>, problems: &[String], stderr: &[String]) -> Vec<PaneLine> {
    let mut lines: Vec<PaneLine> = error.map(|error| text_lines(Tone::Bad, error)).unwrap_or_default();
    lines.extend(problems.iter().map(|problem| PaneLine::new(Tone::Warn, problem)));
    if !stderr.is_empty() {
        lines.push(heading("Its stderr"));
        lines.extend(stderr.iter().map(|line| PaneLine::new(Tone::Dim, line)));
    }
    lines
}
