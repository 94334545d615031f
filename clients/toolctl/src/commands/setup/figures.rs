//! What setup brought: servers and processes before and after, their memory, and the tokens of their lists of tools.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toold_client::Client;
use toold_proto::cost::MeasureTools;
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{McpServerState, RestartMcpServer};
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
    /// Resident memory of the servers that could be started, and of as many processes as there are entries.
    memory: Option<(u64, u64)>,
    /// Memory of a bridge, as this process has it.
    bridge_bytes: Option<u64>,
    tokens: Option<(u64, u64)>,
    /// Servers of this setup that did not start or were not reached, and why, such as a login that only the agent had.
    failed: Vec<(String, Option<String>)>,
    /// Servers whose calls toold asks about.
    asked: Vec<String>,
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
    let memory_of = |name: &str| {
        let server = list.iter().find(|server| server.name == name)?;
        Some(server.instances.iter().filter_map(|instance| instance.memory_bytes).sum::<u64>())
            .filter(|bytes| *bytes > 0)
    };
    // The record covers all setups: this one may have added a server to those of earlier ones.
    let record = SetupRecord::read().ok().flatten().unwrap_or_default();
    let entries: Vec<&str> =
        record.files.iter().flat_map(|file| &file.entries).map(|entry| entry.source.as_str()).collect();
    let names: BTreeSet<&str> = entries.iter().copied().collect();
    let entries_of = |name: &str| entries.iter().filter(|source| **source == name).count() as u64;
    let measured: Vec<(u64, u64)> =
        names.iter().filter_map(|name| memory_of(name).map(|bytes| (bytes * entries_of(name), bytes))).collect();
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
        memory: (!measured.is_empty())
            .then(|| measured.iter().fold((0, 0), |(before, after), (all, one)| (before + all, after + one))),
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

impl Figures {
    pub(super) fn render(&self) -> String {
        let count = |count: usize, name: &str| counted(count as u64, name);
        let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let mut text = format!("\nDone: {}, hooks in {}.\n", count(self.agents, "agent"), self.hooks);
        if self.entries > 0 {
            text.push_str(&format!(
                "MCP servers: {} that each agent used for itself are {} now, once for all.\n",
                count(self.entries, "server"),
                count(self.servers, "server")
            ));
        }
        if let Some((before, after)) = self.memory {
            let bridge =
                self.bridge_bytes.map(|bytes| format!(", beside {} for each entry that is in use", megabytes(bytes)));
            text.push_str(&format!(
                "Memory of the servers, measured: {} with all agents open before, {} now{}.\n",
                megabytes(before),
                megabytes(after),
                bridge.unwrap_or_default()
            ));
        }
        if let Some((tools, tokens)) = self.tokens {
            text.push_str(&format!("Their {tools} tools take about {tokens} tokens of a model, as before.\n"));
        }
        for (name, why) in &self.failed {
            let why = why.as_deref().and_then(|why| why.lines().next()).unwrap_or("toolctl mcp servers shows why");
            text.push_str(&format!("not started yet: {}: {}\n", one_line(name), one_line(why)));
        }
        if !self.asked.is_empty() {
            text.push_str(&format!(
                "toold asks you about calls of {}; to leave that to the agents: toolctl setup --allow SERVER\n",
                plain(&self.asked.join(", "))
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
            "memory_before": self.memory.map(|(before, _)| before),
            "memory_after": self.memory.map(|(_, after)| after),
            "bridge_bytes": self.bridge_bytes,
            "tools": self.tokens.map(|(tools, _)| tools),
            "tokens": self.tokens.map(|(_, tokens)| tokens),
            "not_started": self.failed.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        })
    }
}
