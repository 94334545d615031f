//! `toolctl mcp list`, `restart`, `test`, `logs` and `remove`: the MCP servers that the daemon mounts.

use std::io::Write;

use clap::Args;
use comfy_table::Cell;
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{McpServer, McpServerInstance, McpServerList, McpServerState, RestartMcpServer, TestMcpServer};
use toold_proto::method::{McpRestart, McpServersList, McpTest};
use toold_proto::nearest::did_you_mean;

use crate::commands::call::{self, CallArgs};
use crate::commands::mcp::add::ConfigScope;
use crate::commands::mcp::server_entry::{self, server_names, without_server};
use crate::commands::mcp::server_health;
use crate::commands::secrets;
use crate::config_file::{difference, read};
use crate::exit::{NOT_RUN, OK, not_found};
use crate::finding::{Severity, any_bad, good, show as show_findings};
use crate::globals::Globals;
use crate::live::waiting;
use crate::output::{self, BAD, DIM, NAME, counted, one_line, print_answer, print_json};
use crate::person::PersonWrites;
use crate::views::sources::server_state;
use crate::{connection, table};

/// List the mounted MCP servers, with the errors of those that do not run and the tools that are left out
#[derive(Debug, Args)]
pub(crate) struct McpListArgs {
    /// Only this server
    name: Option<String>,
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

/// Try a mounted MCP server: start it if it does not run, list its tools, and call one
///
/// On a terminal, it asks for the secrets that the server's configuration names and that are not set.
///
/// The exit status is 3 if the server does not start or does not list its tools, and that of `toolctl call` when a tool is
/// called.
#[derive(Debug, Args)]
pub(crate) struct McpTestArgs {
    /// The name of the server
    name: String,
    /// Call this tool too, by its name in the server or here
    #[arg(long, short, value_name = "TOOL")]
    tool: Option<String>,
    /// The arguments of the tool, as for `toolctl call`
    #[arg(value_name = "KEY=VALUE", requires = "tool")]
    arguments: Vec<String>,
    /// Print the state of the server as JSON
    #[arg(long, conflicts_with = "tool")]
    json: bool,
}

/// Show the last lines that mounted MCP servers wrote to stderr or sent as log messages, and what of their answers was
/// discarded
#[derive(Debug, Args)]
pub(crate) struct McpLogsArgs {
    /// The name of the server; all servers without it
    name: Option<String>,
    /// Show at most this many lines per server
    #[arg(long, short = 'n', value_name = "LINES")]
    lines: Option<usize>,
}

/// Remove a server from your configuration, or from that of the current project
#[derive(Debug, Args)]
pub(crate) struct McpRemoveArgs {
    /// The name of the server
    name: String,
    /// Whose configuration is changed
    #[arg(long, short, value_enum, default_value_t)]
    scope: ConfigScope,
}

pub(crate) async fn list(args: &McpListArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let list = servers(&client, args.name.as_deref()).await?;
    print_answer(args.json, &list, render)?;
    if list.servers.is_empty() && !args.json {
        writeln!(
            output::stderr(),
            "no MCP servers are mounted; to mount one: toolctl mcp add NAME -- COMMAND ARGS..."
        )?;
    }
    Ok(OK)
}

/// All servers, or those of this name.
///
/// # Errors
/// None has the name.
async fn servers(client: &Client, name: Option<&str>) -> anyhow::Result<McpServerList> {
    let mut list = client.call::<McpServersList>(NoParams {}).await?;
    if let Some(name) = name {
        let near = did_you_mean(name, list.servers.iter().map(|server| server.name.as_str()));
        list.servers.retain(|server| server.name == name);
        if list.servers.is_empty() {
            return Err(not_found(format!("there is no MCP server {name}{near}; `toolctl mcp list` lists them")));
        }
    }
    Ok(list)
}

pub(crate) async fn restart(args: &McpRestartArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let restarted = client.call::<McpRestart>(RestartMcpServer { name: args.name.clone() });
    let list = waiting(&format!("waiting until {} has started", args.name), restarted).await?;
    print_answer(args.json, &list, render)?;
    let runs = |server: &McpServer| server.state == McpServerState::Running;
    Ok(if list.servers.iter().all(runs) { OK } else { NOT_RUN })
}

pub(crate) async fn test(args: McpTestArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let list = tested(&client, &args.name).await?;
    let mut findings = server_health::diagnosed(&client, &list).await;
    findings.retain(|finding| finding.health != Severity::Good);
    let works = !any_bad(&findings);
    if args.json {
        print_json(&list)?;
        return Ok(if works { OK } else { NOT_RUN });
    }
    let working = list.servers.iter().filter(|server| server.error.is_none());
    let mut shown: Vec<_> = working
        .map(|server| {
            let tools: Vec<&str> = server.tools.iter().map(|tool| tool.as_str()).collect();
            let names = if tools.is_empty() { String::new() } else { format!(": {}", tools.join(", ")) };
            let revision =
                server.protocol.as_ref().map(|revision| format!(", revision {revision}")).unwrap_or_default();
            good("mcp server", format!("{}{revision}, {}{names}", server.name, counted(tools.len() as u64, "tool")))
        })
        .collect();
    shown.extend(findings);
    let mut out = output::stdout();
    show_findings(&shown, &mut out)?;
    out.flush()?;
    if !works {
        for server in &list.servers {
            log_lines(server, None, &mut output::stderr())?;
        }
        return Ok(NOT_RUN);
    }
    let Some(tool) = &args.tool else { return Ok(OK) };
    let tool = find_tool(&list, tool)?;
    call::run(CallArgs::of(tool, args.arguments), globals).await
}

/// Starts the servers of a name, and has them list their tools. A person on the terminal is asked for the secrets that they
/// want and that are not set.
pub(crate) async fn tested(client: &Client, name: &str) -> anyhow::Result<McpServerList> {
    let about = format!("waiting for the tools of {name}");
    let test = || waiting(&about, client.call::<McpTest>(TestMcpServer { name: name.to_owned() }));
    let mut list = test().await?;
    let failed = list.servers.iter().filter(|server| server.error.is_some());
    let wanted: Vec<String> = failed.flat_map(|server| server.secrets.iter().cloned()).collect();
    // Each secret that is set has the servers that use it started again, which ends a test that runs meanwhile.
    let set = secrets::ask_for_missing(client, &wanted, name).await?;
    let mut tries = if set > 0 { set + 2 } else { 0 };
    while tries > 0 && list.servers.iter().any(|server| server.error.is_some()) {
        list = test().await?;
        tries -= 1;
    }
    Ok(list)
}

/// A tool of the servers, by its name here or in the server.
fn find_tool(list: &McpServerList, wanted: &str) -> anyhow::Result<String> {
    let all = || list.servers.iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool.as_str())));
    let own = |server: &McpServer, tool: &str| tool.strip_prefix(&format!("{}_", server.name)) == Some(wanted);
    let found = all().find(|(_, tool)| *tool == wanted).or_else(|| all().find(|(server, tool)| own(server, tool)));
    match found {
        Some((_, tool)) => Ok(tool.to_owned()),
        None => Err(not_found(format!(
            "the server lists no tool {wanted}{}",
            did_you_mean(wanted, all().map(|(_, tool)| tool))
        ))),
    }
}

pub(crate) async fn logs(args: &McpLogsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let list = servers(&client, args.name.as_deref()).await?;
    let mut out = output::stdout();
    for server in &list.servers {
        log_lines(server, args.lines, &mut out)?;
    }
    out.flush()?;
    if list.servers.iter().all(|server| server.stderr.is_empty()) {
        writeln!(output::stderr(), "no lines were written since the last start")?;
    }
    Ok(OK)
}

fn log_lines(server: &McpServer, most: Option<usize>, out: &mut impl Write) -> std::io::Result<()> {
    let skipped = server.stderr.len().saturating_sub(most.unwrap_or(usize::MAX));
    for line in &server.stderr[skipped..] {
        writeln!(out, "{DIM}{}:{DIM:#} {}", one_line(&server.name), one_line(line))?;
    }
    Ok(())
}

pub(crate) async fn remove(args: &McpRemoveArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let right = PersonWrites::with(Some(&client)).await?;
    let file = args.scope.file().await?;
    let before = read(&file)?.unwrap_or_default();
    let name = one_line(&args.name);
    let Some(after) = without_server(&before, &args.name, &file)? else {
        let near = did_you_mean(&args.name, server_names(&before).iter().map(String::as_str));
        let list = client.call::<McpServersList>(NoParams {}).await?;
        let elsewhere = match list.servers.iter().any(|server| server.name == args.name) {
            true => "; it is mounted from a file that [mcp] import names, or from a project (--scope project)",
            false => "",
        };
        return Err(not_found(format!("{} has no server {name}{near}{elsewhere}", file.display())));
    };
    output::print(&difference(&file, &before, &after))?;
    let exit = server_entry::write(&file, &after, &client, &right).await?;
    writeln!(output::stderr(), "{NAME}{name}{NAME:#} is removed")?;
    Ok(exit)
}

fn render(list: &McpServerList, width: Option<u16>) -> String {
    if list.servers.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&[
        "SERVER", "STATE", "PID", "MEMORY", "TOOLS", "LEFT OUT", "CALLS", "FAILED", "UP", "VIA",
    ]));
    for server in &list.servers {
        rows.add_row([
            table::name(&one_line(&server.name)),
            server_state(server).into(),
            Cell::new(pids(server)),
            Cell::new(memory(server)),
            Cell::new(server.tools.len()),
            Cell::new(if server.problems.is_empty() { String::new() } else { server.problems.len().to_string() }),
            Cell::new(server.calls),
            Cell::new(server.bad_calls),
            Cell::new(server.uptime_s.map(span).unwrap_or_default()),
            Cell::new(one_line(&server.transport)),
        ]);
    }
    let mut text = table::render_without(&rows, &["VIA", "UP", "FAILED", "CALLS"]);
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

/// The ids of its processes.
fn pids(server: &McpServer) -> String {
    let all = server.pid.into_iter().chain(server.instances.iter().filter_map(|instance| instance.pid));
    let mut pids: Vec<u32> = all.collect();
    pids.sort_unstable();
    pids.dedup();
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// The memory of all its processes.
fn memory(server: &McpServer) -> String {
    let known: Vec<u64> = server.instances.iter().filter_map(|instance| instance.memory_bytes).collect();
    if known.is_empty() { String::new() } else { output::bytes(known.iter().sum()) }
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
         SERVER  STATE    PID   MEMORY  TOOLS  LEFT OUT  CALLS  FAILED  UP   VIA
         files   running  4321          2      1         12     1       1 h  stdio
         web     failed                 0                0      0            http
        files: a b is left out
        web: no such host
        ");
    }
}
