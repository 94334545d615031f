//! `toolctl mcp servers` and `toolctl mcp restart`: the MCP servers that the daemon mounts.

use std::io::Write;

use clap::Args;
use comfy_table::{Cell, Color};
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{McpServer, McpServerInstance, McpServerList, McpServerState, RestartMcpServer};
use toold_proto::method::{McpRestart, McpServersList};

use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, one_line, print_json};
use crate::{connection, table};

/// List the mounted MCP servers, with the errors of those that are not running
#[derive(Debug, Args)]
pub(crate) struct McpServersArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Restart a mounted MCP server, however often it failed; exit status 3 if it does not start
#[derive(Debug, Args)]
pub(crate) struct McpRestartArgs {
    /// The name of the server
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn list(args: &McpServersArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let list = client.call::<McpServersList>(NoParams {}).await?;
    show(&list, args.json)?;
    if list.servers.is_empty() && !args.json {
        writeln!(output::stderr(), "no MCP servers are mounted; add one as [mcp.servers.NAME] in the configuration")?;
    }
    Ok(OK)
}

pub(crate) async fn restart(args: &McpRestartArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let list = client.call::<McpRestart>(RestartMcpServer { name: args.name.clone() }).await?;
    show(&list, args.json)?;
    let runs = |server: &McpServer| server.state == McpServerState::Running;
    Ok(if list.servers.iter().all(runs) { OK } else { NOT_RUN })
}

fn show(list: &McpServerList, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return print_json(list);
    }
    output::print(&render(list, output::terminal_width()))?;
    Ok(())
}

fn render(list: &McpServerList, width: Option<u16>) -> String {
    if list.servers.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["SERVER", "STATE", "PID", "TOOLS", "CALLS", "FAILED", "UP", "VIA"]));
    for server in &list.servers {
        let color = match server.state {
            McpServerState::Running => Color::Green,
            McpServerState::Failed => Color::Red,
            McpServerState::Starting => Color::Yellow,
            McpServerState::Stopped | McpServerState::Disabled => Color::Reset,
        };
        rows.add_row([
            table::name(&one_line(&server.name)),
            Cell::new(server.state.as_str()).fg(color),
            Cell::new(server.pid.map(|pid| pid.to_string()).unwrap_or_default()),
            Cell::new(server.tools.len()),
            Cell::new(server.calls),
            Cell::new(server.bad_calls),
            Cell::new(server.uptime_s.map(span).unwrap_or_default()),
            Cell::new(one_line(&server.transport)),
        ]);
    }
    let mut text = table::render(&rows);
    for server in &list.servers {
        let name = one_line(&server.name);
        let own = server.instances.iter().filter(|instance| instance.session.is_some() || instance.project.is_some());
        for instance in own {
            text.push_str(&format!("{DIM}{name}:{DIM:#} {}\n", one_line(&describe(instance))));
        }
        if let Some(error) = &server.error {
            text.push_str(&format!("{BAD}{name}{BAD:#}: {}\n", one_line(error)));
        }
        for problem in &server.problems {
            text.push_str(&format!("{DIM}{name}: {}{DIM:#}\n", one_line(problem)));
        }
    }
    text
}

/// An instance that not all sessions share.
fn describe(instance: &McpServerInstance) -> String {
    let owner = match (&instance.session, &instance.project) {
        (Some(id), _) => format!("session {id}"),
        (None, Some(root)) => format!("project {root}"),
        (None, None) => "all sessions".to_owned(),
    };
    let pid = instance.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let age = instance.uptime_s.map(|age| format!(", up {}", span(age))).unwrap_or_default();
    let memory = instance.memory_bytes.map(|bytes| format!(", {} MiB", bytes >> 20)).unwrap_or_default();
    let error = instance.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{} for {owner}{pid}{age}{memory}, {} running{error}", instance.state.as_str(), instance.running)
}

/// In its largest whole unit.
fn span(seconds: f64) -> String {
    let seconds = seconds as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_server_shows_its_error() {
        let nothing = json!({"problems": [], "running": 0, "starts": 1, "stderr": [], "calls": 0, "bad_calls": 0});
        let server = |own: serde_json::Value| {
            let mut server = nothing.clone();
            server.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            server
        };
        let list = serde_json::from_value(json!({"servers": [
            server(json!({"name": "files", "state": "running", "transport": "stdio", "pid": 4321, "uptime_s": 4000.0,
                "calls": 12, "bad_calls": 1, "tools": ["files_read", "files_write"], "problems": ["a\nb is left out"]})),
            server(json!({"name": "web", "state": "failed", "transport": "http", "tools": [], "error": "no such host"})),
        ]}))
        .unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&render(&list, None)).to_string(), @r"
         SERVER  STATE    PID   TOOLS  CALLS  FAILED  UP   VIA
         files   running  4321  2      12     1       1 h  stdio
         web     failed         0      0      0            http
        files: a b is left out
        web: no such host
        ");
    }
}
