//! From what servers list to what the registry has.

use std::collections::HashMap;
use std::sync::Arc;

use toold_engine::Engine;
use toold_engine::callable::Callable;
use toold_engine::registry::{RegistryChange, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::tool::{SourceKind, ToolName};

use super::mounted::Mounted;
use super::names;
use super::tool::MountedTool;
use super::{Key, McpServers, lock, source};

/// What the registry has of one server.
#[derive(Default)]
pub(super) struct Published {
    tools: Vec<Arc<MountedTool>>,
    /// Names that could not be had.
    pub(super) problems: Vec<String>,
}

impl Published {
    pub(super) fn names(&self) -> Vec<ToolName> {
        let mut names: Vec<ToolName> = self.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        names.sort();
        names
    }
}

impl McpServers {
    /// Brings the registry up to what the servers list now, as one revision; nothing happens when nothing changed.
    /// Names are given to the servers in the order of theirs, so that it does not matter who was there first.
    pub(super) fn publish(&self) {
        let Some(engine) = self.engine.upgrade() else { return };
        let mut published = lock(&self.published);
        let servers: Vec<(Key, Arc<Mounted>)> =
            lock(&self.servers).iter().map(|(key, server)| (key.clone(), server.clone())).collect();
        published.retain(|key, _| servers.iter().any(|(other, _)| other == key));
        let mut taken: HashMap<ToolName, Vec<SourceScope>> = HashMap::new();
        let (mut removes, mut puts) = (Vec::new(), Vec::new());
        for (key, server) in &servers {
            let before = published.entry(key.clone()).or_default();
            let now = tools_of(&engine, key, server, before, &mut taken);
            let same = now.tools.len() == before.tools.len()
                && now.tools.iter().zip(&before.tools).all(|(now, before)| Arc::ptr_eq(now, before));
            if !same {
                let tools = now.tools.iter().map(|tool| tool.clone() as Arc<dyn Callable>).collect();
                // All go before any comes: a name may wander from one server to another.
                removes.push(RegistryChange::Remove { key: source(key) });
                puts.push(RegistryChange::Put { key: source(key), origin: Origin::Mcp, tools });
            }
            *before = now;
        }
        let removed = removes.len();
        removes.append(&mut puts);
        for answer in engine.registry.commit(removes).into_iter().skip(removed) {
            if let Err(taken) = answer {
                // Somebody took a name between the look and the step; the next list tries again.
                tracing::warn!(%taken, "the tools of an MCP server are not there");
            }
        }
    }
}

fn tools_of(
    engine: &Engine,
    key: &Key,
    server: &Arc<Mounted>,
    before: &Published,
    taken: &mut HashMap<ToolName, Vec<SourceScope>>,
) -> Published {
    let known = server.offered();
    let own: Vec<&str> = known.iter().map(|tool| tool.own.as_str()).collect();
    let mut now = Published::default();
    for (tool, name) in known.iter().zip(names::assign(&server.config.name, &own)) {
        let name = match is_free(engine, key, &name, taken) {
            true => name,
            false => names::marked(&server.config.name, &tool.own),
        };
        if !is_free(engine, key, &name, taken) {
            now.problems.push(format!("{} is left out: the name {name} is taken", tool.own));
            continue;
        }
        let same = |old: &&Arc<MountedTool>| {
            old.own == tool.own && old.spec().name == name && old.digest == tool.digest() && old.is_of(server)
        };
        let made = match before.tools.iter().find(same) {
            Some(old) => Some(old.clone()),
            None => MountedTool::new(server, name.clone(), tool).map(Arc::new),
        };
        if let Some(made) = made {
            taken.entry(name).or_default().push(key.0.clone());
            now.tools.push(made);
        }
    }
    now
}

fn is_free(engine: &Engine, key: &Key, name: &ToolName, taken: &HashMap<ToolName, Vec<SourceScope>>) -> bool {
    let overlaps =
        |other: &SourceScope| *other == SourceScope::Global || key.0 == SourceScope::Global || *other == key.0;
    if taken.get(name).is_some_and(|scopes| scopes.iter().any(overlaps)) {
        return false;
    }
    // Other servers' names are given anew at the same time.
    engine.registry.holder(name, &source(key), Origin::Mcp).is_none_or(|holder| holder.kind == SourceKind::Mcp)
}
