//! `toolctl status`: how the daemon is.

use std::io::Write;

use clap::Args;
use toold_proto::daemon::{DaemonStatus, NoParams};
use toold_proto::method::DaemonGetStatus;

use crate::cli::Globals;
use crate::connection;
use crate::exit::OK;
use crate::output::{self, DIM, GOOD, WARN, one_line, print_json};

/// Show how the daemon is
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Status, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    if args.json {
        print_json(&status)?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    let uptime = output::duration((status.uptime_s * 1000.0) as u64);
    writeln!(out, "{GOOD}toold {}{GOOD:#} runs for {uptime}, pid {}", one_line(&status.version), status.pid)?;
    for (name, value) in facts(&status) {
        writeln!(out, "{DIM}{name:<12}{DIM:#} {}", one_line(&value))?;
    }
    for problem in &status.problems {
        writeln!(out, "{WARN}problem{WARN:#}      {}", one_line(problem))?;
    }
    out.flush()?;
    Ok(OK)
}

fn facts(status: &DaemonStatus) -> Vec<(&'static str, String)> {
    let outcomes: Vec<String> = status.calls.outcomes.iter().map(|(outcome, n)| format!("{n} {outcome}")).collect();
    let outcomes = if outcomes.is_empty() { String::new() } else { format!(" ({})", outcomes.join(", ")) };
    let plugins = &status.plugins;
    let others = [(plugins.failed, "failed"), (plugins.other, "not in use")];
    let others: String = others.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!(", {n} {word}")).collect();
    let process = [status.memory_bytes.map(output::bytes), status.open_files.map(|n| format!("{n} open files"))];
    let process: Vec<String> = process.into_iter().flatten().collect();
    let mut facts = vec![
        ("socket", status.socket.clone().unwrap_or_default()),
        ("config", status.config.clone().unwrap_or_else(|| "none".to_owned())),
        ("plugins in", status.plugin_dirs.join(", ")),
        ("tools", format!("{} (revision {})", status.tools, status.revision)),
        ("plugins", format!("{} loaded{others}", plugins.loaded)),
        ("sessions", format!("{}, over {} connections", status.sessions, status.connections)),
        ("calls", format!("{} in flight, {} finished{outcomes}", status.calls.in_flight, status.calls.finished)),
        ("process", process.join(", ")),
        ("protocol", status.protocol.to_string()),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}
