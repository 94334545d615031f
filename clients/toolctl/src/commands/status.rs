//! `toolctl status`: the state of the daemon.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use comfy_table::{Cell, CellAlignment, Color};
use toold_client::Client;
use toold_proto::daemon::{DaemonStatus, NoParams, Queues, ToolLatency};
use toold_proto::level::{Level, LevelStatus};
use toold_proto::method::{DaemonGetMetrics, DaemonGetStatus, McpServersList, PluginsList};
use toold_proto::plugin::{ListPlugins, PluginStatus};

use crate::clock::with_times;
use crate::commands::hook_health;
use crate::commands::mcp::server_health;
use crate::commands::permissions::observe;
use crate::exit::OK;
use crate::finding::Severity;
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, GOOD, TerminalControl, WARN, one_line, print_json};
use crate::{connection, table, version_check};

/// Show the state of the daemon
///
/// Shows calls and what they wait for, messages that clients have not read, memory, open files, and how long each
/// tool took recently.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print all metrics in the Prometheus text format
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    prometheus: bool,
    /// Refresh every so many seconds (default 1) until you press Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", require_equals = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    watch: Option<u32>,
}

pub(crate) async fn run(args: StatusArgs, globals: &Globals) -> anyhow::Result<u8> {
    let mut client = connection::open(globals).await?;
    if args.prometheus {
        output::print_unfolded(&client.call::<DaemonGetMetrics>(NoParams {}).await?.text)?;
        return Ok(OK);
    }
    let Some(every) = args.watch else {
        let status = ask(&client).await?;
        version_check::note(&status)?;
        match args.json {
            true => print_json(&status)?,
            false => output::print(&render(&status, &failing(&client).await, output::terminal_width()))?,
        }
        return Ok(OK);
    };
    let mut ticks = tokio::time::interval(Duration::from_secs(every.into()));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let on_screen = output::overwrites_stdout() && !args.json;
    if on_screen {
        output::stdout().control(TerminalControl::ClearScreen)?;
    }
    loop {
        // Noticed at once: which daemon is the next one shows only until it serves.
        let is_lost = tokio::select! {
            _ = ticks.tick() => false,
            _ = client.closed() => true,
        };
        let status = match is_lost {
            true => None,
            false => match ask(&client).await {
                Err(error) if connection::is_lost(&error) => None,
                status => Some(status?),
            },
        };
        let Some(status) = status else {
            client = connection::next(&client).await?;
            continue;
        };
        match (args.json, on_screen) {
            (true, _) => output::print_json_line(&status)?,
            (false, true) => overwrite(&render(&status, &failing(&client).await, output::terminal_width()))?,
            (false, false) => output::print(&format!("{}\n", render(&status, &failing(&client).await, None)))?,
        }
    }
}

async fn ask(client: &Client) -> anyhow::Result<DaemonStatus> {
    Ok(client.call::<DaemonGetStatus>(NoParams {}).await?)
}

/// The MCP servers, plugins and hooks that do not work, each with its reason; none where the daemon does not tell them.
async fn failing(client: &Client) -> Vec<String> {
    let mut failing = Vec::new();
    if let Ok(list) = client.call::<McpServersList>(NoParams {}).await {
        let bad = server_health::findings(&list).into_iter().filter(|finding| finding.health == Severity::Bad);
        failing.extend(bad.map(|finding| format!("{} {}", finding.about, finding.message)));
    }
    if let Ok(list) = client.call::<PluginsList>(ListPlugins::default()).await {
        let failed = list.plugins.into_iter().filter(|plugin| plugin.status == PluginStatus::Failed);
        failing.extend(failed.map(|plugin| {
            let why = plugin.error.map_or_else(|| "it does not load".to_owned(), |error| error.message);
            format!("plugin {}: {why}", plugin.name)
        }));
    }
    let hooks = hook_health::findings(client).await;
    failing.extend(hooks.into_iter().map(|finding| format!("{} {}", finding.about, finding.message)));
    failing
}

/// Overwrites the screen line by line, so that it does not flicker.
fn overwrite(text: &str) -> anyhow::Result<()> {
    let mut out = output::stdout();
    out.control(TerminalControl::Home)?;
    for line in text.lines() {
        write!(out, "{line}")?;
        out.control(TerminalControl::EraseLineEnd)?;
        writeln!(out)?;
    }
    out.control(TerminalControl::EraseBelow)?;
    Ok(out.flush()?)
}

fn render(status: &DaemonStatus, failing: &[String], width: Option<u16>) -> String {
    let uptime = output::duration((status.uptime_s * 1000.0) as u64);
    let version = one_line(&status.version);
    let mut text = format!("{GOOD}toold {version}{GOOD:#} up {uptime}, pid {}\n", status.pid);
    for (name, value) in facts(status) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{DIM}{name:<12}{DIM:#} {}", one_line(&value));
    }
    if let Some(waiting) = waiting(&status.queues) {
        let _ = writeln!(text, "{DIM}{:<12}{DIM:#} {WARN}{waiting}{WARN:#}", "waiting");
    }
    for problem in &status.problems {
        let _ = writeln!(text, "{WARN}problem{WARN:#}      {}", with_times(&one_line(problem)));
    }
    for what in failing {
        let _ = writeln!(text, "{BAD}failing{BAD:#}      {}", one_line(what));
    }
    if !failing.is_empty() {
        let _ = writeln!(text, "{DIM}{:<12}{DIM:#} `toolctl doctor` says what to do about each", "");
    }
    if !status.latency.is_empty() {
        let minutes = status.latency_window_s / 60;
        let _ = write!(text, "\n{DIM}the last {minutes} minutes{DIM:#}\n{}", latencies(&status.latency, width));
    }
    text
}

/// The level, and what it does not free where commands cannot be confined.
pub(crate) fn level(status: &LevelStatus) -> String {
    match &status.unconfined {
        Some(why) if status.level > Level::Read => {
            format!("{}; commands cannot be confined here, so they ask as at read: {why}", status.level)
        }
        Some(_) | None => status.level.to_string(),
    }
}

fn facts(status: &DaemonStatus) -> Vec<(&'static str, String)> {
    let outcomes: Vec<String> = status.calls.outcomes.iter().map(|(outcome, n)| format!("{n} {outcome}")).collect();
    let outcomes = if outcomes.is_empty() { String::new() } else { format!(" ({})", outcomes.join(", ")) };
    let plugins = &status.plugins;
    let others = [(plugins.failed, "failed"), (plugins.other, "not in use")];
    let others: String = others.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!(", {n} {word}")).collect();
    let mut facts = vec![
        ("socket", status.socket.clone().unwrap_or_default()),
        ("config", status.config.clone().unwrap_or_else(|| "none".to_owned())),
        ("page", status.page_url.clone().unwrap_or_default()),
        ("level", level(&status.level)),
        ("observing", status.observing.as_ref().map(observe::words).unwrap_or_default()),
        ("plugins in", status.plugin_dirs.join(", ")),
        ("tools", format!("{} (revision {})", status.tools, status.revision)),
        ("plugins", format!("{} loaded{others}", plugins.loaded)),
        ("sessions", format!("{}, over {}", status.sessions, output::counted(status.connections, "connection"))),
        ("calls", format!("{} in flight, {} finished{outcomes}", status.calls.in_flight, status.calls.finished)),
        ("events", events(&status.queues)),
        ("outboxes", outboxes(&status.queues)),
        ("memory", memory(status)),
        ("files", files(status)),
        ("protocol", status.protocol.to_string()),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn waiting(queues: &Queues) -> Option<String> {
    let waits = [
        (queues.waiting_for_person, "for an answer from you"),
        (queues.waiting_for_lane, "for another call of their session"),
        (queues.waiting_for_place, "for another call of their tool"),
    ];
    let waits: Vec<String> = waits.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!waits.is_empty()).then(|| waits.join(", "))
}

fn events(queues: &Queues) -> String {
    let events = &queues.events;
    let behind = if events.lag > 0 { format!(", the slowest reader is {} behind", events.lag) } else { String::new() };
    let lost = if events.lost > 0 { format!(", {} lost by slow readers", events.lost) } else { String::new() };
    format!("{}{behind}{lost}", events.emitted)
}

/// Empty when nothing waits.
fn outboxes(queues: &Queues) -> String {
    let boxes = &queues.outboxes;
    let full = if boxes.full > 0 { format!(", {} full", boxes.full) } else { String::new() };
    match boxes.messages {
        0 => String::new(),
        messages => {
            format!("{messages} unread messages, at most {} of {} for one client{full}", boxes.most, boxes.capacity)
        }
    }
}

fn memory(status: &DaemonStatus) -> String {
    let lua = &status.lua;
    let lua = match lua.machines {
        0 => String::new(),
        n => format!("{} in {n} Lua states", output::bytes(lua.memory_bytes)),
    };
    let parts = [status.memory_bytes.map(output::bytes).unwrap_or_default(), lua];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}

fn files(status: &DaemonStatus) -> String {
    let limit = status.open_files_limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    status.open_files.map(|open| format!("{open}{limit} open")).unwrap_or_default()
}

fn latencies(tools: &[ToolLatency], width: Option<u16>) -> String {
    let mut rows = table::new(width);
    rows.set_header(table::header(&["TOOL", "CALLS", "ERRORS", "P50", "P90", "P99", "MAX"]));
    for tool in tools {
        let number = |n: u64| Cell::new(n).set_alignment(CellAlignment::Right);
        let errors = number(tool.errors);
        let time = |us| {
            let text = if tool.runs == 0 { "-".to_owned() } else { micros(us) };
            Cell::new(text).set_alignment(CellAlignment::Right)
        };
        rows.add_row([
            table::name(&one_line(&tool.tool)),
            number(tool.calls),
            if tool.errors > 0 { errors.fg(Color::Red) } else { errors },
            time(tool.p50_us),
            time(tool.p90_us),
            time(tool.p99_us),
            time(tool.max_us),
        ]);
    }
    table::render(&rows)
}

fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => output::duration(us / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(status: serde_json::Value) -> String {
        let mut whole = json!({"pid": 7, "version": "0.1.0", "protocol": 1, "epoch": "e", "uptime_s": 61.0,
            "plugin_dirs": [], "sessions": 1, "connections": 2, "tools": 3, "revision": 4,
            "calls": {"started": 5, "finished": 4, "in_flight": 1, "outcomes": {"ok": 4}},
            "plugins": {"loaded": 1, "failed": 0, "other": 0}});
        whole.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        let status: DaemonStatus = serde_json::from_value(whole).unwrap();
        anstream::adapter::strip_str(&render(&status, &[], None)).to_string()
    }

    #[test]
    fn a_minimal_status_is_shown() {
        insta::assert_snapshot!(shown(json!({})), @r"
        toold 0.1.0 up 1 min 1 s, pid 7
        config       none
        level        read
        tools        3 (revision 4)
        plugins      1 loaded
        sessions     1, over 2 connections
        calls        1 in flight, 4 finished (4 ok)
        events       0
        protocol     1
        ");
    }

    #[test]
    fn waiting_and_slow_calls_are_shown() {
        let status = json!({
            "queues": {"running": 1, "waiting_for_lane": 2, "waiting_for_person": 1,
                "outboxes": {"messages": 300, "most": 256, "capacity": 256, "full": 1},
                "events": {"emitted": 90, "subscribers": 2, "lag": 12, "lost": 3}},
            "latency_window_s": 300,
            "latency": [
                {"tool": "bash", "calls": 3, "errors": 1, "runs": 3, "p50_us": 1500, "p90_us": 61000, "p99_us": 61000,
                    "max_us": 2_500_000},
                {"tool": "read", "calls": 1, "errors": 1, "runs": 0}],
            "lua": {"machines": 2, "memory_bytes": 3 << 20}, "memory_bytes": 20 << 20,
            "open_files": 30, "open_files_limit": 1024, "problems": ["the disk is full"],
        });
        insta::assert_snapshot!(shown(status), @r"
        toold 0.1.0 up 1 min 1 s, pid 7
        config       none
        level        read
        tools        3 (revision 4)
        plugins      1 loaded
        sessions     1, over 2 connections
        calls        1 in flight, 4 finished (4 ok)
        events       90, the slowest reader is 12 behind, 3 lost by slow readers
        outboxes     300 unread messages, at most 256 of 256 for one client, 1 full
        memory       20.0 MiB, 3.0 MiB in 2 Lua states
        files        30 of 1024 open
        protocol     1
        waiting      1 for an answer from you, 2 for another call of their session
        problem      the disk is full

        the last 5 minutes
         TOOL  CALLS  ERRORS  P50     P90    P99    MAX
         bash      3       1  1.5 ms  61 ms  61 ms  2.5 s
         read      1       1       -      -      -      -
        ");
    }
}
