//! The daemon's state in sentences, for a screen reader or a pipe.

use std::io::Write;

use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::{DaemonGetStatus, PermissionsPending, PluginsList, SessionsList};
use toold_proto::plugin::{ListPlugins, PluginStatus};

use crate::output::{self, counted, one_line};

pub(super) async fn print(client: &Client) -> anyhow::Result<()> {
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    let plugins = client.call::<PluginsList>(ListPlugins::default()).await?.plugins;
    let sessions = client.call::<SessionsList>(NoParams {}).await?.sessions;
    let asks = client.call::<PermissionsPending>(NoParams {}).await?.asks;
    let mut out = output::stdout();
    let uptime = output::duration((status.uptime_s * 1000.0) as u64);
    writeln!(out, "toold {} has been running for {uptime}.", one_line(&status.version))?;
    writeln!(
        out,
        "{} running, {} finished; {}, {}.",
        counted(status.calls.in_flight, "call"),
        status.calls.finished,
        counted(status.tools, "tool"),
        counted(sessions.len() as u64, "session"),
    )?;
    for ask in &asks {
        let (tool, target) = (one_line(&ask.tool), one_line(&ask.target));
        writeln!(out, "{tool} asks for permission: {} {target}. Answer with: toolctl approve", ask.category)?;
    }
    for plugin in plugins.iter().filter(|plugin| plugin.status == PluginStatus::Failed) {
        let why = plugin.error.as_ref().map(|error| one_line(&error.message)).unwrap_or_default();
        writeln!(out, "The plugin {} failed: {why}", one_line(&plugin.name))?;
    }
    for problem in &status.problems {
        writeln!(out, "Problem: {}", one_line(problem))?;
    }
    out.flush()?;
    Ok(())
}
