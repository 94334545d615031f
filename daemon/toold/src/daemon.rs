//! The daemon as a value: its state, start and stop. Two fit in one process.

mod absent_tools;
pub mod serve;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use toold_builtins::toolkit::Toolkit;
use toold_builtins::undo::{self, InterruptedUndos};
use toold_engine::Engine;
use toold_engine::cache::ResultCache;
use toold_engine::lanes::CallLimits;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_host::replace::record;
use toold_host::secrets::SecretStore;
use toold_host::stamps::Disk;
use toold_mcp::client::adapter::{McpServers, ServerAdapter};
use toold_proto::tool::SourceKind;
use toold_remote::adapter::{RemoteAdapter, Remotes};
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::config::options::Options;
use crate::config::random::random_hex;
use crate::config::watch::ConfigWatch;
use crate::config::{self, LoadedConfig, hooks, mcp_servers, plugins, remotes, secrets, skills, subagents, web};
use crate::daemon::absent_tools::AbsentSources;
use crate::lifecycle::notify::Notifier;
use crate::lifecycle::page_access::PageAddress;
use crate::lifecycle::spool::SpoolDir;
use crate::lifecycle::{HttpUrls, Lifecycle, cleaning, persistence};
use crate::peer::agent_processes::AgentProcesses;
use crate::peer::fleet::FleetParts;
use crate::peer::frontends::Frontends;
use crate::peer::sessions::SessionService;
use crate::peer::sessions::persistence::with_store;
use crate::peer::workspaces::Workspaces;
use crate::rpc::Services;
use crate::rpc::connection::ConnectionLimits;
use crate::transport::ClientServer;
use crate::transport::http::HttpSocket;

/// A running daemon. Stop it with [`Daemon::stop`]; dropping it leaves its tasks to the runtime.
#[derive(Clone)]
pub struct Daemon {
    pub services: Arc<Services>,
    /// Serves client streams.
    pub clients: ClientServer,
}

/// The listeners on HTTP that the configuration names.
struct BoundHttp {
    clients: anyhow::Result<Option<HttpSocket>>,
    page: anyhow::Result<Option<HttpSocket>>,
}

impl BoundHttp {
    fn is_any_in_use(&self) -> bool {
        [self.clients.as_ref().err(), self.page.as_ref().err()].into_iter().flatten().any(|error| {
            let io = error.downcast_ref::<std::io::Error>();
            io.is_some_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
        })
    }
}

/// How often, and at which interval, to retry a port that the previous daemon still holds.
const PORT_TRIES: usize = 50;
const PORT_WAIT: Duration = Duration::from_millis(100);

/// How long the calls that wait for a person may take to say why they end.
const LAST_ANSWERS: Duration = Duration::from_millis(250);
/// How long after the drain cancelled work may take to end.
const TO_END: Duration = Duration::from_millis(1_700);
/// How often it is tried to open a database that could not be used at the start.
const STORE_LOOK: Duration = Duration::from_secs(1);
/// How long the database may take to close.
const TO_CLOSE: Duration = Duration::from_millis(500);

impl Daemon {
    /// Starts everything but the transport. Plugins load in the background.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        // Before the file is read, so that no change between is missed.
        let watch = ConfigWatch::start();
        watch.follow(&options.config_file());
        let loaded = config::load(&options);
        for problem in &loaded.problems {
            tracing::error!(problem, "the configuration has errors");
        }
        let store = Arc::new(persistence::open(&options, &loaded));
        let frontends = Arc::<Frontends>::default();
        let mut engine = new_engine(&options, &loaded, &store);
        engine.roles = Some(frontends.clone());
        let engine = Arc::new(engine);
        engine.hooks.replace(&hooks::source(SourceScope::Global), loaded.hooks.clone());
        let builtins = Arc::new(Toolkit::new(options.of_children(), options.paths.of_builtins()));
        builtins.sandbox.replace(loaded.sandbox.clone());
        *builtins.kept_programs.lock() = loaded.config.shell.kept_programs();
        let source = SourceKey { kind: SourceKind::Builtin, name: "toold".into(), scope: SourceScope::Global };
        engine
            .registry
            .put(source, Origin::Builtin, toold_builtins::all(&builtins))
            .context("the built-in tools conflict")?;
        clean_up_after_a_kill(&engine, &builtins, &options);
        let secrets = Arc::new(SecretStore::new(secrets::options(&options)));
        let (sandbox, http) = (&builtins.sandbox, &builtins.web.http);
        let plugins = plugins::start(&options, &loaded, &engine, &store, sandbox, http, &secrets)?;
        let plugins = Arc::new(plugins);
        let lifecycle = Arc::new(Lifecycle::new(&engine, &builtins));
        let limits = Arc::new(ConnectionLimits {
            max_message: loaded.config.limits.message_bytes,
            max_subscriptions: loaded.config.limits.subscriptions_per_connection,
            farewell: lifecycle.farewell().clone(),
            cancel: lifecycle.cancel().clone(),
            ..ConnectionLimits::default()
        });
        let mcp_servers = McpServers::new(&engine, ServerAdapter::new(mcp_servers::options(&options, &secrets)));
        let remote_options = remotes::options(&options);
        let instance = remote_options.instance.clone();
        let remotes = Remotes::new(&engine, RemoteAdapter::new(remote_options));
        let fleet_parts = FleetParts::new(&engine, &options);
        let absent = Arc::new(AbsentSources::new(&plugins, &mcp_servers, &remotes, &fleet_parts.mounts));
        // It is set once: this is a new engine.
        let _ = engine.absent_tools.set(absent);
        let agent_processes = Arc::new(AgentProcesses::load(options.paths.agent_processes()));
        let config = ActiveConfig::new(options, loaded, &engine, &plugins, &store, &builtins, watch)?;
        let workspaces = Arc::new(Workspaces::load(&engine, &store, &config));
        let sessions = Arc::new(SessionService::new(&engine, &store, &builtins, &config, &workspaces));
        config.apply_all();
        // As above.
        let _ = engine.rule_files.set(config.clone());
        config.follow_files(lifecycle.stopping());
        mcp_servers::follow(&config, &mcp_servers);
        remotes::follow(&config, &remotes);
        let fleet = fleet_parts.start(&engine, &config, &sessions, &store, &plugins);
        subagents::follow(&config, &builtins, &plugins);
        web::follow(&config, &builtins);
        skills::follow(&engine, &builtins);
        let notifier = Notifier::start(&engine, &config, &secrets, lifecycle.stopping().clone());
        cleaning::start(&engine, &config, &sessions, &lifecycle, &store, &builtins);
        let services = Arc::new(Services {
            engine,
            store,
            plugins,
            mcp_servers,
            secrets,
            remotes,
            fleet,
            fleet_mounts: fleet_parts.mounts,
            frontends,
            builtins,
            config,
            workspaces,
            conversations: Default::default(),
            open_requests: Default::default(),
            command_approvals: Default::default(),
            sessions,
            agent_processes,
            lifecycle,
            notifier,
            limits,
            instance,
        });
        let daemon = Self { clients: ClientServer::new(&services)?, services };
        daemon.services.engine.tasks.spawn(daemon.clone().serve_page_when_asked());
        daemon.services.engine.tasks.spawn(daemon.clone().sign_out_when_turned_off());
        daemon.services.engine.tasks.spawn(daemon.clone().follow_store());
        let (agents, stopping) = (daemon.services.agent_processes.clone(), daemon.services.lifecycle.stopping());
        daemon.services.engine.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stopping.cancelled() => {}
                () = agents.note_ends() => {}
            }
        });
        Ok(daemon)
    }

    /// Serves clients on HTTP if configured. If that fails, the socket's clients are served all the
    /// same, and `daemon.status` reports the error.
    pub fn listen(&self) {
        self.serve_http(self.bind_http());
    }

    /// The same, while the previous daemon has not released the ports yet. Gives up after some
    /// seconds, and reports it.
    pub async fn listen_soon(&self) {
        for _ in 0..PORT_TRIES {
            let bound = self.bind_http();
            if !bound.is_any_in_use() {
                return self.serve_http(bound);
            }
            drop(bound);
            tokio::time::sleep(PORT_WAIT).await;
        }
        self.listen();
    }

    fn bind_http(&self) -> BoundHttp {
        let active = &self.services.config;
        let (loaded, paths) = (active.loaded(), &active.options.paths);
        let page = HttpSocket::bind_page(&loaded.config, paths).and_then(|bound| {
            match (bound, self.services.lifecycle.page.local_port()) {
                // Open pages of the previous daemon reconnect there.
                (None, Some(port)) if loaded.config.page.enabled => HttpSocket::bind_page_locally(port).map(Some),
                (bound, _) => Ok(bound),
            }
        });
        BoundHttp { clients: HttpSocket::bind(&loaded.config, paths), page }
    }

    fn serve_http(&self, bound: BoundHttp) {
        let lifecycle = &self.services.lifecycle;
        let address_or_error = match bound.clients {
            Ok(None) => None,
            Ok(Some(socket)) => {
                let urls = HttpUrls { mcp: socket.mcp_url(), rpc: socket.rpc_url() };
                tracing::info!(mcp = urls.mcp, rpc = urls.rpc, "serving on HTTP");
                self.accept_http(socket);
                Some(Ok(urls))
            }
            Err(error) => {
                tracing::error!("can't serve MCP and JSON-RPC on HTTP: {error:#}");
                Some(Err(format!("can't serve MCP and JSON-RPC on HTTP: {error:#}")))
            }
        };
        if let Some(address_or_error) = address_or_error {
            // It is set once: this is called once.
            let _ = lifecycle.http.set(address_or_error);
        }
        self.serve_page(bound.page);
    }

    /// Serves the page at its own address, if it has one.
    fn serve_page(&self, bound: anyhow::Result<Option<HttpSocket>>) {
        match bound {
            Ok(None) => {}
            Ok(Some(socket)) => self.accept_http(socket),
            Err(error) => {
                tracing::error!("can't serve the page: {error:#}");
                self.services.lifecycle.page.set_served(Err(format!("can't serve the page: {error:#}")));
            }
        }
    }

    fn accept_http(&self, socket: HttpSocket) {
        let services = &self.services;
        if let Some(page) = socket.page_address() {
            tracing::info!(address = %page.address, tls = page.tls, "serving the page");
            if !page.tls && !page.address.ip().is_loopback() {
                tracing::warn!(address = %page.address, "the page is served to other machines without TLS (page.allow_remote)");
            }
            services.lifecycle.page.set_served(Ok(page));
            services.notifier.set_page(page);
        }
        services.engine.tasks.spawn(socket.accept(self.clients.clone()));
    }

    /// Serves the page where nothing is configured, or where it could not be served before, once somebody wants to open
    /// it. Ends when the daemon stops.
    async fn serve_page_when_asked(self) {
        let (page, stop) = (&self.services.lifecycle.page, self.services.lifecycle.stopping());
        loop {
            let order = tokio::select! {
                () = stop.cancelled() => return,
                order = page.ordered() => order,
            };
            // The requester may be gone.
            let _ = order.send(self.page_address());
        }
    }

    /// Signs all browsers out when the configuration turns the page off: those of before do not come back with it. Ends
    /// when the daemon stops.
    async fn sign_out_when_turned_off(self) {
        let lifecycle = &self.services.lifecycle;
        let (stop, mut changes) = (lifecycle.stopping(), self.services.config.loaded_changes());
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            if !changes.borrow_and_update().config.page.enabled {
                lifecycle.page.sign_ins.revoke(None);
            }
        }
    }

    /// Takes up the database once it can be used, if that was not possible at the start, and looks again for sessions that could
    /// not be looked for. Ends when the daemon stops.
    async fn follow_store(self) {
        let Services { store, sessions, lifecycle, .. } = self.services.as_ref();
        let stop = lifecycle.stopping();
        loop {
            let has_all = !store.may_open_later() && !sessions.has_unread();
            tokio::select! {
                () = stop.cancelled() => return,
                () = sessions.unread_came.notified(), if has_all => {}
                () = tokio::time::sleep(STORE_LOOK), if !has_all => {}
            }
            if with_store(store, Store::open_again).await {
                // First: what is granted to a session counts only for the one that had its id.
                sessions.save_all().await;
                self.read_decisions().await;
            } else if store.takes_writes() {
                sessions.settle_unread().await;
            }
        }
    }

    /// Adds the decisions of people that are in the store to those that were made while it could not be read.
    async fn read_decisions(&self) {
        let services = self.services.clone();
        let read = self.services.engine.tasks.spawn_blocking(move || {
            services.engine.grants.add_stored(|| services.store.load_grants());
            services.workspaces.reload();
            services.config.decisions_changed();
        });
        if let Err(error) = read.await {
            tracing::error!(%error, "the decisions of people could not be read");
        }
    }

    fn page_address(&self) -> Result<PageAddress, String> {
        let active = &self.services.config;
        let (loaded, paths) = (active.loaded(), &active.options.paths);
        if !loaded.config.page.enabled {
            return Err("the page is turned off: remove page.enabled = false from the configuration".to_owned());
        }
        let page = &self.services.lifecycle.page;
        if let Some(Ok(address)) = page.served() {
            return Ok(address);
        }
        let bound = HttpSocket::bind_page(&loaded.config, paths).and_then(|bound| match bound {
            Some(bound) => Ok(bound),
            None => HttpSocket::bind_page_locally(0).inspect(|bound| page.set_local_port(bound.port())),
        });
        self.serve_page(bound.map(Some));
        page.served().unwrap_or_else(|| Err("the page is not served".to_owned()))
    }

    /// Accepts nothing new, lets calls in flight end, cancels those that take too long, and waits
    /// until all work has ended. `hurry` cuts the draining short.
    pub async fn stop(&self, hurry: impl Future<Output = ()>) {
        let Services { engine, plugins, mcp_servers, remotes, fleet, fleet_mounts, store, lifecycle, .. } =
            self.services.as_ref();
        let connections = lifecycle.tracker();
        lifecycle.stopping().cancel();
        connections.close();
        let drained = tokio::time::Instant::now() + lifecycle.drain();
        tokio::select! {
            () = connections.wait() => {}
            () = tokio::time::sleep_until(drained) => {}
            () = hurry => {}
        }
        // Prompts first: their calls say that the daemon ends, where others are only cancelled.
        engine.stop.cancel();
        let _ = tokio::time::timeout(LAST_ANSWERS, connections.wait()).await;
        lifecycle.cancel().cancel();
        let rest = async {
            connections.wait().await;
            tokio::join!(plugins.stop(), mcp_servers.stop(), remotes.stop(), fleet_mounts.stop(), fleet.stop());
            engine.tasks.close();
            engine.tasks.wait().await;
        };
        if tokio::time::timeout_at(drained + TO_END, rest).await.is_err() {
            tracing::warn!("some work did not end in time");
        }
        if tokio::time::timeout(TO_CLOSE, with_store(store, Store::close)).await.is_err() {
            tracing::warn!("the database does not answer: what was written last may be lost");
        }
    }
}

/// Removes files that a killed daemon left behind, and those of this one.
fn clean_up_after_a_kill(engine: &Engine, builtins: &Arc<Toolkit>, options: &Options) {
    let undos = undo::take_up(builtins);
    engine.tasks.spawn(async move {
        let InterruptedUndos { ended, stuck } = undos.await;
        if ended > 0 {
            tracing::info!(ended, "went on with undos of a daemon that was killed");
        }
        for error in stuck {
            tracing::warn!(%error, "can't go on with an undo of a daemon that was killed");
        }
    });
    engine.tasks.spawn_blocking(|| match toold_host::descendants::end_leftovers() {
        0 => {}
        ended => tracing::warn!(ended, "ended background processes of a daemon that was killed"),
    });
    if let Err(error) = record::keep_in(&options.paths.temporary_names()) {
        tracing::warn!(%error, "a kill in the middle of a change may leave a temporary file behind");
    }
}

fn new_engine(options: &Options, loaded: &LoadedConfig, store: &Arc<Store>) -> Engine {
    let mut engine = Engine::new(&random_hex(8));
    engine.limits = CallLimits::new(loaded.config.limits.calls_per_connection, loaded.config.limits.calls);
    engine.settings.store(Arc::new(loaded.config.settings()));
    engine.spool = Some(Arc::new(SpoolDir::new(options.paths.spool())));
    engine.cache = ResultCache::new(loaded.config.cache.max_mib << 20, Some(Arc::new(Disk)));
    persistence::provide(store, &mut engine);
    engine
}
