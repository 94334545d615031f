//! Other daemons: their tools as our own.
//!
//! [`Remotes`] holds those that are mounted; [`mounted`] is the life of one, [`connect`] how it is reached,
//! [`websocket`] how two daemons talk over HTTP, [`listing`] what is taken of its tools, [`tool`] what a call does,
//! [`session`] where calls work there and how its asks come here.
//!
//! A daemon there sees neither the folder nor the environment of any frontend here: it gets the arguments of calls,
//! and the folder that the configuration names.

pub mod config;
mod connect;
mod kept;
mod listing;
mod mounted;
mod session;
mod tool;
pub mod websocket;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_engine::Engine;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_host::environment::Environment;
use toold_proto::remote::Remote;
use toold_proto::tool::SourceKind;

use crate::config::RemoteConfig;
use crate::mounted::Mounted;

/// The mounted daemons of one daemon. Stop it with [`Remotes::stop`].
pub struct Remotes {
    engine: Weak<Engine>,
    options: RemoteOptions,
    mounted: Mutex<BTreeMap<String, Arc<Mounted>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What all have in common.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// What this daemon is known by: one that is mounted and is this one is refused.
    pub instance: String,
    /// Where the last known tools of each are kept.
    pub kept: PathBuf,
    /// What a program that reaches one gets beside its own `env`.
    pub environment: Environment,
    /// Where such a program works.
    pub home: PathBuf,
    /// What sessions there are named with, so that nobody else can name them.
    pub secret: [u8; 32],
}

/// No daemon of this name is mounted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no remote {0}")]
pub struct UnknownRemote(pub String);

impl Remotes {
    pub fn new(engine: &Arc<Engine>, options: RemoteOptions) -> Arc<Self> {
        Arc::new(Self {
            engine: Arc::downgrade(engine),
            options,
            mounted: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Mounts exactly these from now on: those that are new or changed begin anew, those that are gone are left.
    /// Their last known tools are there at once, and each is connected to in the background. Reads a small file for
    /// each.
    pub fn configure(self: &Arc<Self>, configs: Vec<RemoteConfig>) {
        let mut mounted = lock(&self.mounted);
        let gone: Vec<String> = mounted
            .iter()
            .filter(|(_, before)| !configs.contains(&before.config))
            .map(|(name, _)| name.clone())
            .collect();
        for name in &gone {
            if let Some(before) = mounted.remove(name) {
                before.retire();
            }
        }
        for config in configs {
            if !mounted.contains_key(&config.name) {
                let name = config.name.clone();
                let new = Mounted::new(self, config);
                new.publish(self);
                if new.config.enabled {
                    self.tasks.spawn(new.clone().keep(self.clone()));
                }
                mounted.insert(name, new);
            }
        }
        if let Some(engine) = self.engine.upgrade() {
            for name in gone.iter().filter(|name| !mounted.contains_key(*name)) {
                engine.registry.remove(source(name));
            }
        }
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Remote> {
        lock(&self.mounted).values().map(|mounted| mounted.status()).collect()
    }

    /// Connects anew, whatever it does and however often it failed; waits until it is connected or has failed. Calls
    /// that it was working on end with bad news.
    ///
    /// # Errors
    /// A name that nobody has.
    pub async fn reconnect(&self, name: &str) -> Result<Vec<Remote>, UnknownRemote> {
        let named = lock(&self.mounted).get(name).cloned();
        let named = named.ok_or_else(|| UnknownRemote(name.to_owned()))?;
        named.reconnect().await;
        Ok(vec![named.status()])
    }

    /// Leaves all, and waits until nothing of them is left.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn source(name: &str) -> SourceKey {
    SourceKey { kind: SourceKind::Remote, name: name.to_owned(), scope: SourceScope::Global }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}
