//! The plugins of a daemon: found, loaded beside what serves, swapped whole, watched.
//!
//! This is what the daemon sees; the task behind it is in [`crate::keeper`].

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::registry::SourceScope;
use toold_host::environment::Environment;
use toold_host::http::Http;
use toold_host::http::guard::Guard;
use toold_host::sandbox::Sandbox;
use toold_proto::daemon::LuaMachines;
use toold_proto::plugin::Plugin as Description;

use crate::brake::Watchdog;
use crate::command::Command;
use crate::content::{Digest, Trust};
use crate::keeper::{Keeper, Shown};
use crate::plugin::{Shared, Subagent};
use crate::registrations::KeptRegistrations;
use crate::store::Store;
use crate::vm::{OwnChunks, Usage};

/// A folder of plugins, or one plugin's file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDir {
    /// Absolute. It need not exist: it is watched for.
    pub path: PathBuf,
    pub kind: DirKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirKind {
    /// The user's own folder.
    User,
    /// Named in the user's configuration.
    Configured,
    /// Of a project, by its real path. A plugin in it runs only while a person trusts its content.
    Project { project: PathBuf },
    /// Shipped with the daemon; off unless enabled.
    Bundled,
}

/// What a host loads, and with what. It may change while the host runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrangement {
    /// In order of precedence: of two plugins of one name, that of the earlier folder serves.
    pub dirs: Vec<PluginDir>,
    /// The `[plugins.<name>]` tables of the configurations: the user's are for plugins that all see, a
    /// project's for its own.
    pub tables: HashMap<SourceScope, Map<String, Value>>,
    /// Plugins that are not to run, by who sees them and their names.
    pub disabled: HashSet<(SourceScope, String)>,
    /// Names of bundled plugins that are to run.
    pub enabled: HashSet<String>,
}

/// How a host runs.
pub struct PluginHostOptions {
    /// In order of precedence: of two plugins of one name, that of the earlier folder serves.
    pub dirs: Vec<PluginDir>,
    pub engine: Arc<Engine>,
    /// Bytes that a machine of a plugin may use, unless its manifest says otherwise.
    pub memory: usize,
    /// How long a script may take to load.
    pub load_limit: Duration,
    /// How long [`PluginHost::settled`] waits when no further plugin finishes. More than a load may take, so that no
    /// call slips past the hooks of a plugin that is slow, and it is only the system that is not waited for.
    pub settle_patience: Duration,
    /// How many machines a plugin with parallelizable tools may have.
    pub machines: usize,
    /// After so long without a call the machine of a plugin is released that did nothing but register: its globals are new
    /// at the next call. `None`: it is kept.
    pub release_after: Option<Duration>,
    /// The `[plugins.<name>]` tables of the configuration.
    pub config: Map<String, Value>,
    pub profile_dir: PathBuf,
    pub store: Option<Arc<dyn Store>>,
    /// What programs that plugins run inherit, and all that `os.getenv` tells.
    pub environment: Environment,
    /// What `hygge.http` makes requests with.
    pub http: Arc<Http>,
    /// What confines the programs that plugins run.
    pub sandbox: Arc<Sandbox>,
    /// Where it is kept what plugins registered, so that those that did not change need no machine before their
    /// first call; `None` when it is not kept.
    pub registrations: Option<KeptRegistrations>,
    /// Names of plugins that are not to run.
    pub disabled: HashSet<String>,
    /// Names of bundled plugins that are to run.
    pub enabled: HashSet<String>,
    /// How often plugin folders are looked at, whatever the system tells. `None` listens to the system's events,
    /// and looks every second only where they do not tell all, as on a network's file system.
    pub poll: Option<Duration>,
    /// Who tells what of projects is trusted; without it nothing is.
    pub trust: Arc<dyn Trust>,
}

/// Trusts nothing.
struct Nobody;

impl Trust for Nobody {
    fn is_trusted(&self, _: &Path, _: &Digest) -> bool {
        false
    }
}

impl PluginHostOptions {
    /// 64 MiB a machine, 5 s to load and 10 to settle, a machine for each core, released after half an hour, public
    /// addresses only, nothing configured.
    pub fn new(engine: Arc<Engine>, dirs: Vec<PluginDir>) -> Self {
        Self {
            dirs,
            engine,
            memory: 64 << 20,
            load_limit: Duration::from_secs(5),
            settle_patience: Duration::from_secs(10),
            machines: std::thread::available_parallelism().map_or(1, usize::from),
            release_after: Some(Duration::from_secs(1_800)),
            config: Map::new(),
            profile_dir: PathBuf::new(),
            store: None,
            environment: Environment::default(),
            http: Arc::new(Http::new(Guard::default())),
            sandbox: Arc::default(),
            registrations: None,
            disabled: HashSet::new(),
            enabled: HashSet::new(),
            poll: None,
            trust: Arc::new(Nobody),
        }
    }
}

/// The plugins of a daemon. Dropping it stops it, without waiting.
pub struct PluginHost {
    described: Arc<ArcSwap<Vec<Description>>>,
    subagents: Arc<ArcSwap<Vec<Subagent>>>,
    commands: Arc<ArcSwap<Vec<Command>>>,
    unheard: Arc<ArcSwap<Vec<String>>>,
    orders: mpsc::Sender<Order>,
    arrangement: watch::Sender<Arrangement>,
    /// The first event after what was to be loaded had been; `None` until then.
    settled: Arc<watch::Sender<Option<u64>>>,
    usage: Arc<Usage>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What the host tells its task.
pub(crate) enum Order {
    Reload { name: Option<String>, answer: oneshot::Sender<Reloaded> },
}

/// What `reload` answers: the plugins as they are then, or that there is none of that name.
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
        let settled = Arc::new(watch::Sender::new(None));
        let described = Arc::<ArcSwap<Vec<Description>>>::default();
        let subagents = Arc::<ArcSwap<Vec<Subagent>>>::default();
        let commands = Arc::<ArcSwap<Vec<Command>>>::default();
        let usage = Arc::<Usage>::default();
        let unheard = Arc::<ArcSwap<Vec<String>>>::default();
        let shared = Arc::new(Shared {
            engine: options.engine,
            watchdog: Watchdog::start()?,
            own: OwnChunks::default(),
            memory: options.memory,
            load_limit: options.load_limit,
            machines: options.machines.max(1),
            release_after: options.release_after,
            tables: ArcSwap::default(),
            profile_dir: options.profile_dir,
            store: options.store,
            environment: options.environment,
            http: options.http,
            sandbox: options.sandbox,
            kept: options.registrations,
            usage: usage.clone(),
            stop: stop.clone(),
        });
        let disabled = options.disabled.into_iter().map(|name| (SourceScope::Global, name));
        let (arrangement, arranged) = watch::channel(Arrangement {
            dirs: options.dirs,
            tables: HashMap::from([(SourceScope::Global, options.config)]),
            disabled: disabled.collect(),
            enabled: options.enabled,
        });
        let shown = Shown {
            described: described.clone(),
            subagents: subagents.clone(),
            commands: commands.clone(),
            unheard: unheard.clone(),
            settled: settled.clone(),
            settle_patience: options.settle_patience,
        };
        let keeper = Keeper::new(arranged, options.trust, options.poll, shared, shown);
        let task = tokio::spawn(keeper.keep(inbox, stop.clone()));
        let task = Mutex::new(Some(task));
        Ok(Self { described, subagents, commands, unheard, orders, arrangement, settled, usage, stop, task })
    }

    /// All plugins that are known, in the order of their folders, then by name. Never waits.
    pub fn list(&self) -> Arc<Vec<Description>> {
        self.described.load_full()
    }

    /// The sub-agents that plugins in service describe.
    pub fn subagents(&self) -> Arc<Vec<Subagent>> {
        self.subagents.load_full()
    }

    /// The slash commands of plugins in service. Where two have one name, the first counts.
    pub fn commands(&self) -> Arc<Vec<Command>> {
        self.commands.load_full()
    }

    /// How many machines there are, and what they use. Never waits.
    pub fn machines(&self) -> LuaMachines {
        LuaMachines {
            machines: self.usage.machines.load(Ordering::Relaxed) as u64,
            memory_bytes: self.usage.memory.load(Ordering::Relaxed) as u64,
        }
    }

    /// Where changes of plugins are looked for again and again, since the system does not tell of them, and why: in
    /// words for people. Never waits.
    pub fn unheard(&self) -> Arc<Vec<String>> {
        self.unheard.load_full()
    }

    /// Changes what is loaded, and looks again at what was withheld. What stays serves on meanwhile; the plugins
    /// are as they should be once [`settled`](Self::settled) returns. Never waits.
    pub fn arrange(&self, change: impl FnOnce(&mut Arrangement)) {
        self.arrangement.send_modify(|arrangement| {
            self.settled.send_replace(None);
            change(arrangement);
        });
    }

    /// Waits until the plugins that were there at the start, or at the last [`arrange`](Self::arrange), serve or
    /// have failed; gives the number of the first event that came after that. What the system holds up for longer
    /// than a load may take is not waited for. Cancel-safe.
    pub async fn settled(&self) -> u64 {
        let mut settled = self.settled.subscribe();
        tokio::select! {
            // Fails when the host is dropped, and then nothing more comes.
            at = settled.wait_for(Option::is_some) => at.ok().and_then(|at| *at).unwrap_or_default(),
            () = self.stop.cancelled() => 0,
        }
    }

    /// Whether [`settled`](Self::settled) would return at once.
    pub fn is_settled(&self) -> bool {
        self.settled.borrow().is_some()
    }

    /// Loads one plugin anew, or all of them, whether their files changed or not; waits until the new
    /// versions serve, or have failed.
    ///
    /// # Errors
    /// There is no plugin of that name.
    pub async fn reload(&self, name: Option<&str>) -> Reloaded {
        let (answer, answered) = oneshot::channel();
        let order = Order::Reload { name: name.map(str::to_owned), answer };
        let gone = || Ok(self.list().to_vec());
        match self.orders.send(order).await {
            Ok(()) => answered.await.unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        }
    }

    /// Takes all plugins out of service and waits until nothing of them runs but calls in flight.
    pub async fn stop(&self) {
        self.stop.cancel();
        let task = self.task.lock().expect("no code panics while it holds this lock").take();
        if let Some(task) = task {
            // Fails when the task panicked, which it has told already.
            let _ = task.await;
        }
    }
}

impl Drop for PluginHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
