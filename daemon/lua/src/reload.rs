//! The plugins of a daemon: found, loaded while older versions serve, replaced as a whole, watched.
//!
//! This is the daemon's view; the task behind it is in [`crate::reload::plugin_manager`].

mod absent;
pub mod check;
pub mod coverage;
mod dirs;
mod entry;
pub mod faked_prompt;
mod git_lock;
pub(crate) mod load;
mod load_entry;
mod memory_store;
pub mod options;
mod plugin_manager;
pub mod plugin_tests;
pub mod profile;
mod source_check;
mod stability;
pub(crate) mod standalone;
mod test_functions;
mod watch;

pub use watch::CHANGES;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch as latest;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toold_engine::callable::Callable;
use toold_engine::registry::SourceScope;
use toold_proto::daemon::LuaMachines;
use toold_proto::plugin::{Plugin as Description, PluginTimer};

use crate::plugin::command::SlashCommand;
use crate::plugin::evaluate::Evaluator;
use crate::plugin::host_resources::HostResources;
use crate::plugin::load_refusals::LoadRefusals;
use crate::plugin::registrations::SubagentSpec;
use crate::reload::options::{PluginHostOptions, PluginSettings};
use crate::reload::plugin_manager::PluginManager;
use crate::reload::plugin_manager::publish::{PublishedState, ServingVersion};
use crate::vm::create::HostChunks;
use crate::vm::lua_state::LuaUsage;
use crate::vm::watchdog::Watchdog;

/// The plugins of a daemon. Dropping it stops it, without waiting.
pub struct PluginHost {
    published: Arc<PublishedState>,
    orders: mpsc::Sender<ManagerRequest>,
    settings: latest::Sender<PluginSettings>,
    usage: Arc<LuaUsage>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// A request of the host to its task.
pub(crate) enum ManagerRequest {
    Reload { name: Option<String>, answer: oneshot::Sender<Reloaded> },
}

/// The result of `reload`: the plugins afterwards, or that there is none of that name.
pub type Reloaded = Result<Vec<Description>, UnknownPlugin>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no plugin {0}")]
pub struct UnknownPlugin(pub String);

impl PluginHost {
    /// Returns at once; plugins are found and loaded in the background. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The system has no thread for the watchdog.
    pub fn start(options: PluginHostOptions) -> std::io::Result<Self> {
        let stop = CancellationToken::new();
        let (orders, inbox) = mpsc::channel(16);
        let usage = Arc::<LuaUsage>::default();
        let shared = Arc::new(HostResources {
            engine: options.engine,
            watchdog: Watchdog::start()?,
            host_chunks: HostChunks::default(),
            memory: options.memory,
            load_limit: options.load_limit,
            lua_states: options.lua_states.max(1),
            release_after: options.release_after,
            tables: ArcSwap::default(),
            profile_dir: options.profile_dir,
            store: options.store,
            environment: options.environment,
            values: options.values,
            http: options.http,
            sandbox: options.sandbox,
            registration_cache: options.registrations,
            load_refusals: LoadRefusals::default(),
            usage: usage.clone(),
            load: load::load_again,
            stop: stop.clone(),
        });
        let disabled = options.disabled.into_iter().map(|name| (SourceScope::Global, name));
        let (settings, newest_settings) = latest::channel(PluginSettings {
            dirs: options.dirs,
            tables: HashMap::from([(SourceScope::Global, options.config)]),
            disabled: disabled.collect(),
            enabled: options.enabled,
        });
        let published = Arc::new(PublishedState::new(options.settle_patience));
        let manager = PluginManager::new(
            newest_settings,
            options.trust,
            options.poll,
            options.patience,
            options.kept_versions,
            shared,
            published.clone(),
        );
        let task = tokio::spawn(manager.run(inbox, stop.clone()));
        let task = Mutex::new(Some(task));
        Ok(Self { published, orders, settings, usage, stop, task })
    }

    /// All known plugins, in the order of their folders, then by name. Never waits.
    pub fn list(&self) -> Arc<Vec<Description>> {
        self.published.described.load_full()
    }

    /// Why sessions of a project have no tool of this name, and what to do, if a plugin that they may see has it: it did
    /// not load, is not trusted, disabled, shadowed, or still loading. A sentence without a full stop. Never waits.
    pub fn absence(&self, tool: &str, project: &Path) -> Option<String> {
        absent::reason(&self.published.absent.load(), tool, project)
    }

    /// The sub-agents that plugins in service describe.
    pub fn subagents(&self) -> Arc<Vec<SubagentSpec>> {
        self.published.subagents.load_full()
    }

    /// The slash commands of plugins in service. If two have the same name, the first one counts.
    pub fn commands(&self) -> Arc<Vec<SlashCommand>> {
        self.published.commands.load_full()
    }

    /// The timers of the plugin with this path, as they are now. Empty for a plugin that is not in service.
    pub fn timers(&self, path: &str) -> Vec<PluginTimer> {
        self.serving(path, |serving| serving.states.plugin.timers.describe(&serving.timers)).unwrap_or_default()
    }

    fn serving<T>(&self, path: &str, read: impl FnOnce(&ServingVersion) -> T) -> Option<T> {
        self.published.serving.load().iter().find(|serving| serving.path == path).map(read)
    }

    /// Runs Lua, given as `source`, in the main Lua state of the plugin with this path, if it is in service. For
    /// `toold_engine::execute::execute_tool`, since it is in no registry.
    pub fn evaluator(&self, path: &str) -> Option<Arc<dyn Callable>> {
        self.serving(path, |serving| -> Arc<dyn Callable> { Arc::new(Evaluator::new(serving.states.clone())) })
    }

    /// How many Lua states there are, and how much memory they use. Never waits.
    pub fn lua_usage(&self) -> LuaMachines {
        LuaMachines {
            machines: self.usage.states.load(Ordering::Relaxed) as u64,
            memory_bytes: self.usage.memory.load(Ordering::Relaxed) as u64,
        }
    }

    /// The folders that are polled because the system does not report all changes, with the reason, as messages for
    /// users. Never waits.
    pub fn poll_notices(&self) -> Arc<Vec<String>> {
        self.published.poll_notices.load_full()
    }

    /// Changes what is loaded, and checks withheld plugins again. Everything that stays keeps serving; the plugins are
    /// up to date when [`settled`](Self::settled) returns. Never waits.
    pub fn update_settings(&self, change: impl FnOnce(&mut PluginSettings)) {
        self.settings.send_modify(|settings| {
            self.published.settled.send_replace(None);
            change(settings);
        });
    }

    /// Waits until the plugins that were there at the start, or at the last [`update_settings`](Self::update_settings),
    /// serve or have failed; returns the number of the first event after that. Does not wait for plugins that the
    /// system holds up for longer than a load may take. Cancel-safe.
    pub async fn settled(&self) -> u64 {
        let mut settled = self.published.settled.subscribe();
        tokio::select! {
            // Fails when the host is dropped, and then nothing more comes.
            at = settled.wait_for(Option::is_some) => at.ok().and_then(|at| *at).unwrap_or_default(),
            () = self.stop.cancelled() => 0,
        }
    }

    /// Whether [`settled`](Self::settled) would return at once.
    pub fn is_settled(&self) -> bool {
        self.published.settled.borrow().is_some()
    }

    /// Reloads one plugin, or all of them, whether their files changed or not; waits until the new versions serve or
    /// have failed.
    ///
    /// # Errors
    /// There is no plugin of that name.
    pub async fn reload(&self, name: Option<&str>) -> Reloaded {
        let (answer, answered) = oneshot::channel();
        let order = ManagerRequest::Reload { name: name.map(str::to_owned), answer };
        let current_list = || Ok(self.list().to_vec());
        match self.orders.send(order).await {
            Ok(()) => answered.await.unwrap_or_else(|_| current_list()),
            Err(_) => current_list(),
        }
    }

    /// Takes all plugins out of service and waits until only calls in flight still run.
    pub async fn stop(&self) {
        self.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            // Fails when the task panicked, which was reported already.
            let _ = task.await;
        }
    }
}

impl Drop for PluginHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
