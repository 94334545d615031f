//! Files that decide what agents may do are written for people alone: a process that an agent or a tool started is refused
//! here, whether or not a daemon could refuse it.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;
use toold_client::{Client, place};
use toold_proto::daemon::NoParams;
use toold_proto::method::WorkspacesList;

use crate::connection;
use crate::globals::Globals;
use crate::keys::has_terminal;

/// Shows that a person writes. The functions that write a configuration take it.
#[derive(Debug)]
pub(crate) struct PersonWrites(());

const REFUSED: &str = "configurations are written by people, and an agent or a tool started this process: type the \
                       command in a terminal of your own";

impl PersonWrites {
    /// # Errors
    /// An agent or a tool started this process.
    pub(crate) async fn of(globals: &Globals) -> anyhow::Result<Self> {
        let client = connection::open_running(globals).await?;
        Self::with(client.as_ref()).await
    }

    /// The same, with the daemon that runs; `None` when none does.
    pub(crate) async fn with(client: Option<&Client>) -> anyhow::Result<Self> {
        if is_below_agent_or_tool(&place::state_folder()) {
            bail!(REFUSED);
        }
        if let Some(client) = client {
            // The daemon also knows those that have left the tree of their agent's processes.
            client.call::<WorkspacesList>(NoParams {}).await.context(REFUSED)?;
        }
        Ok(Self(()))
    }
}

/// A process. Its id alone may be reused later.
#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
struct AncestorId {
    pid: u32,
    /// In ticks since the system started.
    started: u64,
}

/// The agents that daemons have stored, for a boot of the system and a namespace of process ids.
#[derive(Deserialize)]
struct StoredAgents {
    boot: String,
    agents: Vec<(AncestorId, Vec<AncestorId>)>,
}

fn is_below_agent_or_tool(state: &Option<std::path::PathBuf>) -> bool {
    if is_marked() {
        return true;
    }
    let Some(stored) = state.as_deref().and_then(stored_agents) else { return false };
    let agents: HashSet<AncestorId> = stored.agents.into_iter().map(|(agent, _)| agent).collect();
    !agents.is_empty() && ancestors().iter().any(|process| agents.contains(process))
}

fn stored_agents(state: &Path) -> Option<StoredAgents> {
    let stored: StoredAgents = serde_json::from_slice(&std::fs::read(state.join("agent-processes")).ok()?).ok()?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // Process ids mean something else in another namespace.
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    (stored.boot == format!("{} {namespace}", boot.trim())).then_some(stored)
}

/// The highest hard limit of message queues, in bytes, that a daemon gives to the processes of its tools; the system's own
/// is higher.
const HIGHEST_MARK: u64 = 0xB_FFFF;

/// Whether this process carries the mark of tools, which stays when their daemon has ended.
fn is_marked() -> bool {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max msgqueue size"));
    let hard = line.and_then(|line| line.split_ascii_whitespace().nth(1)).and_then(|limit| limit.parse::<u64>().ok());
    hard.is_some_and(|limit| limit <= HIGHEST_MARK)
}

/// Whether a shell that is process 1 started this process, as in a container: what an agent leaves behind looks the same.
pub(crate) fn is_below_first_shell() -> bool {
    std::os::unix::process::parent_id() == 1 && has_terminal()
}

/// More ancestors are not looked at.
const MAX_DEPTH: usize = 64;

/// The processes above this one, the nearest first; fewer where they cannot be read.
fn ancestors() -> Vec<AncestorId> {
    let mut found = Vec::new();
    let mut next = std::os::unix::process::parent_id();
    while next > 1 && found.len() < MAX_DEPTH {
        let Some((parent, id)) = read_process(next) else { break };
        found.push(id);
        next = parent;
    }
    found
}

/// The parent of a process, and its own identity: fields 4 and 22 of `/proc/PID/stat`. The name in field 2 may contain
/// blanks and parentheses, so it is cut off first.
fn read_process(pid: u32) -> Option<(u32, AncestorId)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some((fields.get(1)?.parse().ok()?, AncestorId { pid, started: fields.get(19)?.parse().ok()? }))
}
