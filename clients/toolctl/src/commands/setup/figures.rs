//! The figures at the end of setup: servers and their processes before and after, their memory, and the tokens of their lists of
//! tools.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toold_client::Client;
use toold_proto::cost::MeasureTools;
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{McpServerInstance, McpServerState, RestartMcpServer};
use toold_proto::method::{McpRestart, McpServersList, ToolsCost};

use crate::commands::setup::plan::SetupPlan;
use crate::commands::setup::record::SetupRecord;
use crate::output::{counted, one_line, plain};

pub(super) struct Figures {
    agents: usize,
    hooks: usize,
    /// Counted over this setup and earlier ones.
    entries: usize,
    servers: usize,
    /// The servers that could be started: as many as there are entries, as the agents started them, and each once.
    measured: Option<(ServerUsage, ServerUsage)>,
    /// Memory of a bridge, as this process has it.
    bridge_bytes: Option<u64>,
    tokens: Option<(u64, u64)>,
    /// Servers of this setup that did not start or were not reached, and why, such as a login that only the agent had.
    failed: Vec<(String, Option<String>)>,
    /// Servers whose calls toold asks about.
    asked: Vec<String>,
}

/// Processes and memory of servers while they run.
#[derive(Clone, Copy, Default)]
struct ServerUsage {
    processes: u64,
    /// Resident memory.
    bytes: u64,
}

impl ServerUsage {
    fn times(self, count: u64) -> Self {
        Self { processes: self.processes * count, bytes: self.bytes * count }
    }
}

impl std::iter::Sum for ServerUsage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            processes: sum.processes + next.processes,
            bytes: sum.bytes + next.bytes,
        })
    }
}

/// How long the servers may take to start; one that downloads itself takes longer, and is started by its first call.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_EACH: Duration = Duration::from_secs(10);

/// Starts the servers once, so that the first session of each agent finds their tools.
pub(super) async fn measure(plan: &SetupPlan, allowed: &[String], client: &Client) -> Figures {
    let start_all = async {
        for source in &plan.sources {
            let restarted = client.call::<McpRestart>(RestartMcpServer { name: source.name.clone() });
            // Why one does not start is in its state.
            let _ = timeout(PATIENCE_EACH, restarted).await;
        }
    };
    let _ = timeout(PATIENCE, start_all).await;
    let list = client.call::<McpServersList>(NoParams {}).await.map(|list| list.servers).unwrap_or_default();
    let usage_of = |name: &str| {
        let server = list.iter().find(|server| server.name == name)?;
        let of = |instance: &McpServerInstance| {
            Some(ServerUsage { processes: instance.processes?, bytes: instance.memory_bytes? })
        };
        Some(server.instances.iter().filter_map(of).sum::<ServerUsage>()).filter(|usage| usage.processes > 0)
    };
    // The record covers all setups: this one may have added a server to those of earlier ones.
    let record = SetupRecord::read().ok().flatten().unwrap_or_default();
    let entries: Vec<&str> =
        record.files.iter().flat_map(|file| &file.entries).map(|entry| entry.source.as_str()).collect();
    let names: BTreeSet<&str> = entries.iter().copied().collect();
    let entries_of = |name: &str| entries.iter().filter(|source| **source == name).count() as u64;
    let measured: Vec<(ServerUsage, u64)> =
        names.iter().filter_map(|name| Some((usage_of(name)?, entries_of(name)))).collect();
    let failed = plan.sources.iter().filter_map(|source| {
        let server = list.iter().find(|server| server.name == source.name);
        let runs = server.is_some_and(|server| server.state == McpServerState::Running);
        (!runs).then(|| (source.name.clone(), server.and_then(|server| server.error.clone())))
    });
    let costs = client.call::<ToolsCost>(MeasureTools::default()).await.ok();
    let tokens = costs.map(|costs| {
        let of = |name: &str| costs.sources.iter().find(|cost| cost.source.name == name).map(|cost| cost.all);
        let all = names.iter().filter_map(|name| of(name));
        all.fold((0, 0), |(tools, tokens), cost| (tools + cost.tools, tokens + cost.tokens))
    });
    Figures {
        agents: plan.places.iter().filter(|place| place.is_set_up() && !plan.leaves(place)).count(),
        hooks: record.files.iter().filter(|file| file.hooks.is_some()).count(),
        entries: entries.len(),
        servers: names.len(),
        measured: (!measured.is_empty()).then(|| {
            let before = measured.iter().map(|(usage, entries)| usage.times(*entries)).sum();
            (before, measured.iter().map(|(usage, _)| *usage).sum())
        }),
        bridge_bytes: own_bytes(),
        tokens: tokens.filter(|(tools, _)| *tools > 0),
        failed: failed.collect(),
        asked: plan.sources.iter().map(|source| source.name.clone()).filter(|name| !allowed.contains(name)).collect(),
    }
}

/// Resident memory of this process that it does not share, as a bridge has it.
fn own_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

/// The most servers that one thing is said of by name.
const MAX_NAMED: usize = 8;

impl Figures {
    pub(super) fn render(&self) -> String {
        let count = |count: usize, name: &str| counted(count as u64, name);
        let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let processes = |usage: ServerUsage| match usage.processes {
            1 => "1 process".to_owned(),
            count => format!("{count} processes"),
        };
        let mut text = format!("\nDone: {}, hooks in {}.\n", count(self.agents, "agent"), self.hooks);
        if self.entries > 0 {
            text.push_str(&format!(
                "MCP servers: {} that each agent used for itself are {} now, once for all.\n",
                count(self.entries, "server"),
                count(self.servers, "server")
            ));
        }
        if let Some((before, after)) = self.measured {
            let bridge = self.bridge_bytes.map(|bytes| format!(" of {}", megabytes(bytes))).unwrap_or_default();
            text.push_str(&format!(
                "Measured, with all agents open: {} of {} before, {} of {} now, and a bridge{bridge} for each entry in use.\n",
                processes(before),
                megabytes(before.bytes),
                processes(after),
                megabytes(after.bytes),
            ));
        }
        if let Some((tools, tokens)) = self.tokens {
            text.push_str(&format!("Their {tools} tools take about {tokens} tokens of a model, as before.\n"));
        }
        for (name, why) in self.failed.iter().take(MAX_NAMED) {
            let why = why.as_deref().and_then(|why| why.lines().next()).unwrap_or("toolctl mcp servers shows why");
            text.push_str(&format!("not started yet: {}: {}\n", one_line(name), one_line(why)));
        }
        if self.failed.len() > MAX_NAMED {
            let more = self.failed.len() - MAX_NAMED;
            text.push_str(&format!("not started yet: {more} more: toolctl mcp servers shows why\n"));
        }
        if !self.asked.is_empty() {
            let more = self.asked.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named: Vec<&str> = self.asked.iter().take(MAX_NAMED).map(String::as_str).collect();
            text.push_str(&format!(
                "toold asks you about calls of {}{more}; to leave that to the agents: toolctl setup --allow SERVER\n",
                plain(&named.join(", "))
            ));
        }
        text.push_str("Start your agents again. Take everything back with: toolctl setup --undo\n");
        text
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "agents": self.agents,
            "hooks": self.hooks,
            "entries": self.entries,
            "servers": self.servers,
            "processes_before": self.measured.map(|(before, _)| before.processes),
            "processes_after": self.measured.map(|(_, after)| after.processes),
            "memory_before": self.measured.map(|(before, _)| before.bytes),
            "memory_after": self.measured.map(|(_, after)| after.bytes),
            "bridge_bytes": self.bridge_bytes,
            "tools": self.tokens.map(|(tools, _)| tools),
            "tokens": self.tokens.map(|(_, tokens)| tokens),
            "not_started": self.failed.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        })
    }
}
