//! The daemon as a value: what it holds, how it starts, how it stops. Two fit in one process.

pub mod serve;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use dashmap::DashMap;
use futures_util::FutureExt;
use jsonrpsee::core::server::Methods;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_engine::cache::ResultCache;
use toold_engine::lanes::CallLimits;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_host::environment::Environment;
use toold_host::replace::record;
use toold_host::stamps::Disk;
use toold_lua::reload::PluginHost;
use toold_mcp::client::McpServers;
use toold_mcp::server::Mcp;
use toold_proto::daemon::{CLOSING, Closing};
use toold_proto::event::EventBody;
use toold_proto::tool::SourceKind;
use toold_remote::Remotes;
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::config::paths::Places;
use crate::config::sandbox::GuardTrials;
use crate::config::skills::SkillTools;
use crate::config::strict_rules::StrictRules;
use crate::config::watch::ConfigWatch;
use crate::config::{self, Loaded};
use crate::lifecycle::cleaning;
use crate::lifecycle::persistence;
use crate::lifecycle::restart::HandOver;
use crate::lifecycle::spool::SpoolDir;
use crate::lifecycle::upgrade::Withheld;
use crate::peer::Peer;
use crate::peer::agent_processes::AgentProcesses;
use crate::peer::frontends::Frontends;
use crate::peer::sessions::Shares;
use crate::peer::workspaces::Workspaces;
use crate::rpc;
use crate::rpc::connection::{self, ConnectionLimits, Served, Stream};
use crate::transport::http::HttpSocket;

/// What a daemon is started with.
#[derive(Clone, Debug)]
pub struct Options {
    pub places: Places,
    /// Another configuration file than the usual one.
    pub config: Option<PathBuf>,
    /// `KEY=VALUE` flags, which stand over the file and the environment.
    pub set: Vec<String>,
    /// Plugin folders and files beside those of the configuration.
    pub plugins: Vec<PathBuf>,
    /// What `daemon.status` shows; `None` for a daemon on stdio.
    pub socket: Option<PathBuf>,
    /// The variables of the daemon's process, from which those of its children are chosen.
    pub environment: Vec<(OsString, OsString)>,
}

impl Options {
    /// The configuration file, whether or not it is there.
    pub fn config_file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.places.config_file())
    }
}

/// A running daemon. Stop it with [`Daemon::stop`]; dropping it leaves its tasks to the runtime.
#[derive(Clone)]
pub struct Daemon {
    pub state: Arc<State>,
    methods: Methods,
    pub(crate) mcp: Arc<Mcp>,
}

/// What the methods work on.
pub struct State {
    pub engine: Arc<Engine>,
    pub plugins: PluginHost,
    pub mcp_servers: Arc<McpServers>,
    pub remotes: Arc<Remotes>,
    /// What this daemon is known by to those that mount it.
    pub(crate) instance: String,
    pub store: Arc<Store>,
    pub frontends: Arc<Frontends>,
    /// What the built-in tools have in common.
    pub builtins: Arc<Toolkit>,
    pub skill_tools: SkillTools,
    pub options: Options,
    pub(crate) active_config: ActiveConfig,
    /// Processes that act for models.
    pub(crate) agent_processes: Arc<AgentProcesses>,
    /// Folders in which they may work.
    pub(crate) workspaces: Workspaces,
    /// Codes that people gave to agents.
    pub(crate) shares: Shares,
    /// MCP clients on a stream, by connection.
    pub(crate) mcp_peers: DashMap<u64, Peer>,
    /// What clients asked for since the start and did not get.
    pub(crate) withheld: Withheld,
    pub(crate) watch: ConfigWatch,
    pub(crate) guard_trials: GuardTrials,
    /// Files that no tool may read: the database and the socket's folder.
    pub(crate) own_files: Vec<PathBuf>,
    pub started: Instant,
    limits: Arc<ConnectionLimits>,
    connections: TaskTracker,
    next_connection: AtomicU64,
    /// Fires when nothing new is taken any more.
    stopping: CancellationToken,
    drain: std::sync::Mutex<Duration>,
    /// There are far more sessions that nobody uses than there should be.
    pub(crate) crowded: Notify,
    /// Where clients are served on HTTP, or why not; unset when nobody asked for it.
    pub(crate) http: OnceLock<Result<HttpUrls, String>>,
    /// To the next daemon, and from the one before.
    pub hand_over: HandOver,
}

/// Where clients are served on HTTP.
#[derive(Clone, Debug)]
pub(crate) struct HttpUrls {
    pub(crate) mcp: String,
    pub(crate) rpc: String,
}

/// How often, and how long after each other, a port is tried that the daemon before still holds.
const PORT_TRIES: usize = 50;
const PORT_WAIT: Duration = Duration::from_millis(100);

/// How long calls in flight may go on when the daemon stops.
pub const DRAIN: Duration = Duration::from_secs(5);
/// How long after that what was cancelled may take to end.
const TO_END: Duration = Duration::from_millis(1_700);
/// How long the database may take to close.
const TO_CLOSE: Duration = Duration::from_millis(500);

impl Options {
    /// The variables of what tools start: they find this daemon, and need no other.
    pub fn of_children(&self) -> Environment {
        let socket = self.socket.iter().map(|socket| ("TOOLD_SOCKET", socket.as_os_str()));
        Environment::inherited(self.environment.iter().cloned()).with(socket)
    }
}

impl Daemon {
    /// Starts everything but the transport. Plugins load in the background.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        let environment = options.of_children();
        let loaded = config::load(&options);
        for problem in &loaded.problems {
            tracing::error!(problem, "the configuration is not whole");
        }
        let store = Arc::new(persistence::open(&options, &loaded));
        let frontends = Arc::<Frontends>::default();
        let own_files = own_files(&options)?;
        let mut engine = new_engine(&options, &loaded, &store);
        engine.roles = Some(frontends.clone());
        let engine = Arc::new(engine);
        let source = SourceKey { kind: SourceKind::Builtin, name: "toold".into(), scope: SourceScope::Global };
        engine.hooks.replace(&crate::config::hooks::source(SourceScope::Global), loaded.hooks.clone());
        let builtins = Arc::new(Toolkit::new(environment, options.places.of_builtins()));
        builtins.sandbox.replace(loaded.sandbox.clone());
        engine
            .registry
            .put(source, Origin::Builtin, toold_builtins::all(&builtins))
            .context("the built-in tools do not go together")?;
        engine.tasks.spawn_blocking(|| match toold_host::descendants::end_leftovers() {
            0 => {}
            ended => tracing::warn!(ended, "processes in the background of a daemon that was killed are ended"),
        });
        if let Err(error) = record::keep_in(&options.places.temporary_names()) {
            tracing::warn!(%error, "a kill in the middle of a change may leave a temporary file behind");
        }
        let plugins =
            crate::config::plugins::start(&options, &loaded, &engine, &store, &builtins.sandbox, &builtins.web.http)?;
        let limits = Arc::new(ConnectionLimits {
            max_message: loaded.config.limits.message_bytes,
            max_subscriptions: loaded.config.limits.subscriptions_per_connection,
            ..ConnectionLimits::default()
        });
        let mcp_servers = McpServers::new(&engine, crate::config::mcp_servers::options(&options));
        let remote_options = crate::config::remotes::options(&options);
        let instance = remote_options.instance.clone();
        let remotes = Remotes::new(&engine, remote_options);
        let agent_processes = Arc::new(AgentProcesses::load(options.places.agent_processes()));
        let workspaces = Workspaces::new(store.load_workspaces().unwrap_or_else(|error| {
            tracing::warn!(%error, "the workspaces that people chose cannot be read");
            Vec::new()
        }));
        let strict = StrictRules::load(options.places.strict_rules());
        let state = Arc::new(State {
            engine,
            plugins,
            mcp_servers,
            remotes,
            instance,
            store,
            frontends,
            builtins,
            skill_tools: SkillTools::default(),
            options,
            active_config: ActiveConfig::new(loaded, strict),
            agent_processes,
            workspaces,
            shares: Shares::default(),
            mcp_peers: DashMap::new(),
            withheld: Withheld::default(),
            watch: ConfigWatch::start(),
            guard_trials: GuardTrials::default(),
            own_files,
            started: Instant::now(),
            limits,
            connections: TaskTracker::new(),
            next_connection: AtomicU64::new(1),
            stopping: CancellationToken::new(),
            drain: std::sync::Mutex::new(DRAIN),
            crowded: Notify::new(),
            http: OnceLock::new(),
            hand_over: HandOver::default(),
        });
        state.put_all_in_force();
        state.follow_configuration();
        crate::config::mcp_servers::follow(&state);
        crate::config::remotes::follow(&state);
        crate::config::subagents::follow(&state);
        crate::config::web::follow(&state);
        crate::config::skills::follow(&state);
        cleaning::start(&state);
        let methods = rpc::methods(state.clone())?;
        let mcp = crate::rpc::mcp_host::new(&state);
        Ok(Self { state, methods, mcp })
    }

    /// Serves a client in a task of its own.
    pub fn serve(&self, stream: impl Stream + 'static, peer: Peer) {
        self.state.connections.spawn(self.serve_here(stream, peer));
    }

    /// Serves a client; ends when it is gone or the daemon stops.
    pub fn serve_here<S: Stream + 'static>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + use<S> {
        let (state, mcp) = (self.state.clone(), self.mcp.clone());
        let id = state.next_connection.fetch_add(1, Ordering::Relaxed);
        let (limits, stop) = (state.limits.clone(), state.stopping.clone());
        // Not one `async` block: what it captures and then awaits takes its place twice. What comes after is boxed, or
        // its size would be that of each connection.
        let serving = connection::serve(stream, id, peer, self.methods.clone(), limits, stop);
        serving.then(move |Served { connection, other }| {
            Box::pin(async move {
                state.builtins.buffers.clear_connection(id);
                if let Some(session) = connection.own_session() {
                    state.close_session(session);
                    state.forget_session(session).await;
                    let session_id = session.clone();
                    state.engine.events.emit(EventBody::SessionClosed { session_id });
                }
                if let Some((stream, ahead)) = other {
                    crate::rpc::mcp_host::serve(&mcp, &state, &connection, stream, ahead).await;
                }
            })
        })
    }

    /// Serves clients on HTTP where the configuration says so. When it cannot, the socket's clients are served all
    /// the same, and `daemon.status` tells.
    pub fn listen(&self) {
        let state = &self.state;
        let bound = HttpSocket::bind(&state.loaded().config.mcp, &state.options.places);
        let told = match bound {
            Ok(None) => return,
            Ok(Some(socket)) => {
                let urls = HttpUrls { mcp: socket.mcp_url(), rpc: socket.rpc_url() };
                tracing::info!(mcp = urls.mcp, rpc = urls.rpc, "serving on HTTP");
                state.engine.tasks.spawn(socket.accept(self.clone()));
                Ok(urls)
            }
            Err(error) => {
                tracing::error!("neither MCP nor JSON-RPC is served on HTTP: {error:#}");
                Err(format!("neither MCP nor JSON-RPC is served on HTTP: {error:#}"))
            }
        };
        // It is told once: this is called once.
        let _ = state.http.set(told);
    }

    /// The same, where the daemon before this one has not let go of the port yet. Gives up after some seconds, and says so.
    pub async fn listen_soon(&self) {
        for _ in 0..PORT_TRIES {
            let state = &self.state;
            let tried = HttpSocket::bind(&state.loaded().config.mcp, &state.options.places);
            let in_use = tried.err().is_some_and(|error| {
                let io = error.downcast_ref::<std::io::Error>();
                io.is_some_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
            });
            if !in_use {
                break;
            }
            tokio::time::sleep(PORT_WAIT).await;
        }
        self.listen();
    }

    /// Fires when the daemon is told to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.state.stopping.clone()
    }

    /// How long calls in flight may go on when it stops.
    pub(crate) fn drain(&self) -> Duration {
        *self.state.drain.lock().expect("no code panics while it holds this lock")
    }

    /// Takes nothing new, lets calls in flight end, cancels those that take too long, and waits until all
    /// that runs is gone. `hurry` cuts the draining short.
    pub async fn stop(&self, hurry: impl Future<Output = ()>) {
        let state = &self.state;
        state.stopping.cancel();
        state.connections.close();
        let drained = tokio::time::Instant::now() + self.drain();
        tokio::select! {
            () = state.connections.wait() => {}
            () = tokio::time::sleep_until(drained) => {}
            () = hurry => {}
        }
        state.limits.cancel.cancel();
        state.engine.stop.cancel();
        let rest = async {
            state.connections.wait().await;
            tokio::join!(state.plugins.stop(), state.mcp_servers.stop(), state.remotes.stop());
            state.engine.tasks.close();
            state.engine.tasks.wait().await;
        };
        if tokio::time::timeout_at(drained + TO_END, rest).await.is_err() {
            tracing::warn!("some work did not end in time");
        }
        if tokio::time::timeout(TO_CLOSE, state.with_store(Store::close)).await.is_err() {
            tracing::warn!("the database does not answer: what was written last may be lost");
        }
    }
}

impl State {
    /// Reads configurations anew when their files change, until the daemon stops.
    fn follow_configuration(self: &Arc<Self>) {
        self.watch.follow(&self.options.config_file());
        let (state, stop) = (self.clone(), self.stopping.clone());
        let tasks = self.engine.tasks.clone();
        self.engine.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = state.watch.changed() => {}
                }
                let state = state.clone();
                let read = tasks.spawn_blocking(move || state.reload_changed());
                if let Err(error) = read.await {
                    tracing::error!(%error, "a configuration could not be read anew");
                }
            }
        });
    }

    /// Tells the daemon to stop, with so much time for calls in flight.
    pub fn shut_down(&self, drain: Duration) {
        *self.drain.lock().expect("no code panics while it holds this lock") = drain;
        self.stopping.cancel();
    }

    /// The same, when another daemon serves from now on: clients are told so last.
    pub fn be_replaced(&self, drain: Duration) {
        let closing = Closing { reason: "restart".into() };
        let farewell = serde_json::json!({"jsonrpc": "2.0", "method": CLOSING, "params": closing});
        let farewell = serde_json::value::to_raw_value(&farewell).expect("a JSON value can be written");
        // It is set already when this is the second time.
        let _ = self.limits.farewell.set(farewell);
        self.shut_down(drain);
    }

    /// A token that fires when what still runs is cut short.
    pub fn cancelled(&self) -> CancellationToken {
        self.limits.cancel.child_token()
    }

    /// Fires when nothing new is taken any more.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// A number that no other connection has.
    pub(crate) fn next_connection(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.connections
    }

    /// How many connections there ever were, on whatever transport.
    pub fn connections_so_far(&self) -> u64 {
        self.next_connection.load(Ordering::Relaxed)
    }

    pub fn connections(&self) -> u64 {
        self.connections.len() as u64
    }

    /// Where plugins are looked for, first to last.
    pub fn plugin_dirs(&self) -> Vec<PathBuf> {
        crate::config::plugins::dirs(&self.options, &self.loaded())
    }
}

/// `bytes` random bytes, as hexadecimal digits.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    fill_random(&mut buffer);
    buffer.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// For keys.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut buffer = [0; 32];
    fill_random(&mut buffer);
    buffer
}

fn fill_random(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the system gives no random bytes: {error}"),
        }
    }
}

fn new_engine(options: &Options, loaded: &Loaded, store: &Arc<Store>) -> Engine {
    let mut engine = Engine::new(&random_hex(8));
    engine.limits = CallLimits::new(loaded.config.limits.calls_per_connection, loaded.config.limits.calls);
    engine.settings.store(Arc::new(loaded.config.settings()));
    engine.spool = Some(Arc::new(SpoolDir::new(options.places.spool())));
    engine.cache = ResultCache::new(loaded.config.cache.max_mib << 20, Some(Arc::new(Disk)));
    persistence::lend(store, &mut engine);
    engine
}

/// What no tool may read: the database with what SQLite keeps beside it, and the folder of the socket.
fn own_files(options: &Options) -> anyhow::Result<Vec<PathBuf>> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let state = real(&options.places.state);
    let mut own: Vec<PathBuf> = [
        "toold.db",
        "toold.db-wal",
        "toold.db-shm",
        "refusals.jsonl",
        "refusals.new",
        "strict-rules.json",
        "strict-rules.new",
        "registrations",
        "mcp-token",
        "admin-token",
        "instance",
        "agent-processes",
        "remotes",
        "undo",
        "temporary-names",
        "sessions",
        "log",
    ]
    .map(|name| state.join(name))
    .into();
    if let Some(socket) = &options.socket {
        own.push(real(socket.parent().context("the socket's path has no folder")?));
    }
    Ok(own)
}
