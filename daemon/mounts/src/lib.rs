//! Mounted sources: programs and daemons elsewhere whose tools appear in the registry as our own.
//!
//! [`MountSupervisor`] holds all mounts of one kind, such as MCP servers; [`adapter`] is the
//! interface of a kind, [`mount`] the life of one mount, [`publish`] brings its lists into the
//! registry, [`tool`] calls one of its tools, [`offers`] reads and renders its resources and prompts, and
//! [`watches`] reports their changes.

mod absent;
pub mod adapter;
mod backoff;
pub mod config;
mod grants;
mod mount;
pub mod names;
pub mod offer_listing;
pub mod offers;
pub mod program;
mod publish;
mod request;
mod tool;
mod tool_cache;
pub mod watches;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_engine::Engine;
use toold_engine::registry::SourceKey;

use crate::adapter::MountAdapter;
use crate::config::{MountConfig, MountKey};
use crate::mount::MountedSource;
use crate::publish::PublishedTools;

/// All mounts of one kind. Stop it with [`MountSupervisor::stop`].
pub struct MountSupervisor<A: MountAdapter> {
    engine: Weak<Engine>,
    adapter: Arc<A>,
    mounts: Mutex<BTreeMap<MountKey, Arc<MountedSource<A>>>>,
    /// The tools of each mount that are in the registry. Its lock also serialises the writers.
    published: Mutex<HashMap<MountKey, PublishedTools<A>>>,
    /// Fires when [`MountAdapter::away`] is asked again.
    rechecks: watch::Sender<()>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Nothing of this kind is mounted under this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is mounted as {0}")]
pub struct UnknownMount(pub String);

impl<A: MountAdapter> MountSupervisor<A> {
    pub fn new(engine: &Arc<Engine>, adapter: A) -> Arc<Self> {
        Arc::new(Self {
            engine: Arc::downgrade(engine),
            adapter: Arc::new(adapter),
            mounts: Mutex::default(),
            published: Mutex::default(),
            rechecks: watch::Sender::new(()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Replaces the set of mounts: new and changed ones are restarted, the others are stopped. The
    /// last known tools of each are available at once. Reads a small file for each.
    pub fn configure(self: &Arc<Self>, configs: Vec<MountConfig<A::Endpoint>>) {
        let mut configured: BTreeMap<MountKey, MountConfig<A::Endpoint>> = BTreeMap::new();
        for config in configs {
            configured.entry(config.key()).or_insert(config);
        }
        let mut mounts = self.mounts.lock();
        let outdated: Vec<MountKey> = mounts
            .iter()
            .filter(|(key, mount)| configured.get(key) != Some(&mount.config))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &outdated {
            if let Some(mount) = mounts.remove(key) {
                mount.retire();
            }
        }
        let mut added = Vec::new();
        for (key, config) in configured {
            mounts.entry(key).or_insert_with(|| {
                let mount = MountedSource::new(self, config);
                added.push(mount.clone());
                mount
            });
        }
        drop(mounts);
        self.publish();
        for mount in added {
            mount.start(&self.tasks);
        }
    }

    /// Asks again which sources are away: those that are back are opened at once, however often that failed.
    pub fn recheck(&self) {
        self.publish();
        for mount in self.all() {
            mount.retry_now();
        }
        self.rechecks.send_replace(());
    }

    /// The kind of these mounts, with what it shares among them.
    pub fn adapter(&self) -> &A {
        &self.adapter
    }

    /// How the mounts of this name are configured: that of all sessions first.
    pub fn configs(&self, name: &str) -> Vec<MountConfig<A::Endpoint>> {
        let mut named: Vec<_> = self.all().iter().map(|mount| mount.config.clone()).collect();
        named.retain(|config| config.name == name);
        named.sort_by(|a, b| a.scope.cmp(&b.scope));
        named
    }

    /// The status of all, sorted by name.
    pub fn list(&self) -> Vec<A::Status> {
        let mut all = self.all();
        all.sort_by(|a, b| (&a.config.name, &a.config.scope).cmp(&(&b.config.name, &b.config.scope)));
        all.iter().map(|mount| self.status(mount)).collect()
    }

    /// Stops and starts every mount of this name, whatever its state and however often it failed;
    /// returns when each is connected or has failed. Calls that are running on it fail.
    ///
    /// # Errors
    /// When nothing has this name.
    pub async fn restart(&self, name: &str) -> Result<Vec<A::Status>, UnknownMount> {
        let named: Vec<Arc<MountedSource<A>>> =
            self.all().into_iter().filter(|mount| mount.config.name == name).collect();
        if named.is_empty() {
            return Err(UnknownMount(name.to_owned()));
        }
        for mount in &named {
            mount.restart().await;
        }
        Ok(named.iter().map(|mount| self.status(mount)).collect())
    }

    /// Starts every enabled mount of this name that does not run, however often it failed, and lists its tools again. With
    /// each, why that failed.
    ///
    /// # Errors
    /// When nothing has this name.
    pub async fn list_again(
        self: &Arc<Self>,
        name: &str,
    ) -> Result<Vec<(A::Status, Result<(), String>)>, UnknownMount> {
        let named: Vec<Arc<MountedSource<A>>> =
            self.all().into_iter().filter(|mount| mount.config.name == name).collect();
        if named.is_empty() {
            return Err(UnknownMount(name.to_owned()));
        }
        let mut listed = Vec::with_capacity(named.len());
        for mount in &named {
            let outcome = if mount.config.enabled { mount.list_again(self).await } else { Ok(()) };
            listed.push((self.status(mount), outcome));
        }
        Ok(listed)
    }

    /// Waits until all sources that are new have listed their tools or failed, at most for `limit` after each was mounted.
    pub async fn first_lists(&self, limit: Duration) {
        for mount in self.all() {
            mount.first_list(limit).await;
        }
    }

    /// Stops all mounts; returns when they have ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn status(&self, mount: &MountedSource<A>) -> A::Status {
        let (tools, problems) = self.published_tools(&mount.config.key());
        self.adapter.status(mount.summary(tools, problems))
    }

    fn all(&self) -> Vec<Arc<MountedSource<A>>> {
        self.mounts.lock().values().cloned().collect()
    }
}

fn source_key<A: MountAdapter>(key: &MountKey) -> SourceKey {
    let (scope, name) = key.clone();
    SourceKey { kind: A::SOURCE, name, scope }
}
