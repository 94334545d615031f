//! The daemon as an MCP client: one copy of each mounted server for all frontends.
//!
//! [`McpServers`] holds them all; [`mounted`] is the life of one, [`connect`] how it is reached, [`listing`] what is
//! taken of the tools that it lists, [`tool`] what a call does. A server sees neither the folder nor the roots nor
//! the environment of any frontend: what it gets is its configuration, and the arguments of its calls.

pub mod config;
mod connect;
mod elicit;
mod kept;
mod listing;
mod mounted;
mod names;
mod publish;
mod result;
mod tap;
mod tool;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_engine::Engine;
use toold_engine::registry::{RegistryChange, SourceKey, SourceScope};
use toold_host::environment::Environment;
use toold_proto::mcp::McpServer;
use toold_proto::tool::SourceKind;

use crate::client::config::ServerConfig;
use crate::client::mounted::Mounted;
use crate::client::publish::Published;

/// The mounted servers of one daemon. Stop it with [`McpServers::stop`].
pub struct McpServers {
    engine: Weak<Engine>,
    options: McpOptions,
    servers: Mutex<BTreeMap<Key, Arc<Mounted>>>,
    /// What the registry has of each; also serialises who changes it.
    published: Mutex<HashMap<Key, Published>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What all servers have in common.
#[derive(Clone, Debug)]
pub struct McpOptions {
    /// Where the last known tools of each are kept.
    pub kept: PathBuf,
    /// What a server's program gets beside its own `env`.
    pub environment: Environment,
    /// Where a program works whose configuration names no folder.
    pub home: PathBuf,
}

/// A server's identity: one name may stand for different servers in different projects.
pub(crate) type Key = (SourceScope, String);

/// There is no server of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no MCP server {0}")]
pub struct UnknownServer(pub String);

impl McpServers {
    pub fn new(engine: &Arc<Engine>, options: McpOptions) -> Arc<Self> {
        Arc::new(Self {
            engine: Arc::downgrade(engine),
            options,
            servers: Mutex::default(),
            published: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Mounts exactly these from now on: those that are new or changed begin anew, those that are gone are stopped.
    /// Their last known tools are there at once; a server of which none are known is started in the background to
    /// learn them, the others start with their first call. Reads a small file for each.
    pub fn configure(self: &Arc<Self>, configs: Vec<ServerConfig>) {
        let mut wanted: BTreeMap<Key, ServerConfig> = BTreeMap::new();
        for config in configs {
            wanted.entry(config.key()).or_insert(config);
        }
        let mut begun = Vec::new();
        let mut servers = lock(&self.servers);
        let gone: Vec<Key> = servers
            .iter()
            .filter(|(key, server)| wanted.get(key) != Some(&server.config))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &gone {
            if let Some(server) = servers.remove(key) {
                server.retire();
            }
        }
        for (key, config) in wanted {
            servers.entry(key).or_insert_with(|| {
                let server = Mounted::new(self, config);
                begun.push(server.clone());
                server
            });
        }
        let removed = gone
            .iter()
            .filter(|key| !servers.contains_key(*key))
            .map(|key| RegistryChange::Remove { key: source(key) });
        let removed: Vec<RegistryChange> = removed.collect();
        drop(servers);
        if let Some(engine) = self.engine.upgrade() {
            engine.registry.commit(removed);
        }
        self.publish();
        for server in begun.into_iter().filter(|server| server.wants_to_learn()) {
            self.tasks.spawn(server.learn());
        }
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<McpServer> {
        let mut all: Vec<McpServer> = self.all().iter().map(|server| self.status(server)).collect();
        all.sort_by(|a, b| (&a.name, &a.project).cmp(&(&b.name, &b.project)));
        all
    }

    /// Ends a server and starts it again, whatever it did and however often it failed; waits until it runs or
    /// has failed. Calls that it was working on end with bad news.
    ///
    /// # Errors
    /// A name that nobody has.
    pub async fn restart(&self, name: &str) -> Result<Vec<McpServer>, UnknownServer> {
        let named: Vec<Arc<Mounted>> = self.all().into_iter().filter(|server| server.config.name == name).collect();
        if named.is_empty() {
            return Err(UnknownServer(name.to_owned()));
        }
        for server in &named {
            server.restart().await;
        }
        Ok(named.iter().map(|server| self.status(server)).collect())
    }

    /// Ends all servers, and waits until nothing of them is left.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn status(&self, server: &Mounted) -> McpServer {
        let key = server.config.key();
        let published = lock(&self.published);
        let tools = published.get(&key).map(Published::names).unwrap_or_default();
        let problems = published.get(&key).map(|published| published.problems.clone()).unwrap_or_default();
        drop(published);
        server.status(tools, problems)
    }

    fn all(&self) -> Vec<Arc<Mounted>> {
        lock(&self.servers).values().cloned().collect()
    }
}

fn source(key: &Key) -> SourceKey {
    SourceKey { kind: SourceKind::Mcp, name: key.1.clone(), scope: key.0.clone() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}
