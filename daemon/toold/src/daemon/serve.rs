//! The life of a daemon's process: it finds its socket, serves until it is stopped or replaced by
//! another daemon, and ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toold_host::process::reaper;
use toold_proto::daemon::{CLOSING_IDLE, CLOSING_SIGNAL};

use crate::config::options::Options;
use crate::daemon::Daemon;
use crate::lifecycle::idle::idle;
use crate::lifecycle::logging::Logging;
use crate::lifecycle::restart::channel::Standstill;
use crate::lifecycle::restart::successor::{FailureReporter, Successor};
use crate::lifecycle::restart::{NextDaemon, RestartOrder};
use crate::lifecycle::service_manager;
use crate::lifecycle::stop_deadline;
use crate::peer::Peer;
use crate::rpc::Services;
use crate::rpc::pause::stand_still;
use crate::transport::stdio::Stdio;
use crate::transport::unix::records::system;
use crate::transport::unix::{BindError, Owner, Socket};

/// The source of the socket.
pub enum SocketSource {
    Bind(PathBuf),
    /// From a service manager, which is already listening on it.
    Given(std::os::unix::net::UnixListener),
    /// From the previous daemon.
    HandedOver(Successor),
}

impl SocketSource {
    /// A socket that was passed in takes precedence over all paths.
    pub fn find(given: Option<std::os::unix::net::UnixListener>, named: Option<PathBuf>) -> anyhow::Result<Self> {
        if let Some(listener) = given {
            return Ok(Self::Given(listener));
        }
        let path = match named {
            Some(path) => path,
            None => system().find()?,
        };
        Ok(Self::Bind(std::path::absolute(path)?))
    }

    /// Reports to the previous daemon why it must go on serving; `None` when there is none.
    pub fn failure_reporter(&self) -> anyhow::Result<Option<FailureReporter>> {
        match self {
            Self::Bind(_) | Self::Given(_) => Ok(None),
            Self::HandedOver(successor) => successor.failure_reporter().map(Some),
        }
    }
}

/// Serves every client of this user. If another daemon serves already and this one is `detached`,
/// that is a success.
pub async fn serve(
    source: SocketSource,
    mut options: Options,
    detached: bool,
    log: Logging,
) -> anyhow::Result<ExitCode> {
    // Before a socket exists that an early signal could leave behind.
    let mut signals = Signals::install()?;
    let state = &options.paths.state.clone();
    let mut before = None;
    let mut tool_mark = None;
    let bound = match source {
        SocketSource::Bind(path) => Socket::bind(&path, state),
        SocketSource::Given(listener) => Socket::given(listener, state),
        SocketSource::HandedOver(successor) => {
            let (offer, from, channel) = successor.into_parts();
            before = Some((offer.bound_by_daemon, from, channel));
            tool_mark = offer.tool_mark;
            Socket::of_another(offer, state)
        }
    };
    let mut socket = match bound {
        Ok(socket) => socket,
        Err(BindError::Running(_)) if detached => return Ok(ExitCode::SUCCESS),
        Err(BindError::Running(path)) => {
            anyhow::bail!("a daemon serves {} already: stop it with `toolctl stop`", path.display())
        }
        Err(BindError::InUse(in_use)) => return Err(in_use.into()),
        Err(BindError::Other(error)) => return Err(error),
    };
    options.socket = Some(socket.path().to_owned());
    log.open_file(&toold_proto::socket::log_file(state), detached);
    become_shared(tool_mark)?;
    let daemon = Daemon::start(options)?;
    log.clone().follow(&daemon.services.config);
    match before {
        None => daemon.listen(),
        Some((bound_by_daemon, from, channel)) => {
            let taken = tokio::select! {
                taken = take_over(&daemon, from, channel) => taken,
                signal = signals.next() => Err(anyhow::anyhow!("{signal} arrived before the new daemon could take over")),
            };
            if let Err(error) = taken {
                daemon.stop(std::future::ready(())).await;
                return Err(error);
            }
            reaper::take_over();
            socket.own(if bound_by_daemon { Owner::Daemon } else { Owner::Another });
        }
    }
    daemon.services.lifecycle.hand_over.offer(socket.offer()?);
    tracing::info!(socket = %socket.path().display(), pid = std::process::id(), "serving");
    daemon.services.engine.tasks.spawn(service_manager::watchdog(daemon.services.lifecycle.stopping()));
    service_manager::ready(&serving(socket.path()));
    let (why, next) = serve_until_stopped(&mut socket, &daemon, &mut signals).await;
    // One that a client ended, or that hands over, has given its reason already.
    daemon.services.lifecycle.say_why(if why == UNUSED { CLOSING_IDLE } else { CLOSING_SIGNAL });
    tracing::info!("stopping: {why}");
    if next.is_none() {
        service_manager::stopping(why);
    }
    let following = next.map(|next| tokio::spawn(follow(next, daemon.services.clone())));
    stop_deadline::end_within(daemon.services.lifecycle.drain());
    // A second signal: do not wait for calls in flight.
    daemon.stop(async { _ = signals.next().await }).await;
    drop(socket);
    log.end().await;
    tracing::info!("stopped");
    // Until now the next daemon saw that this one's tools may still run.
    if let Some(following) = following {
        following.abort();
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves the parent on stdin and stdout, until it disconnects.
pub async fn serve_stdio(options: Options, log: Logging) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::install()?;
    let peer = Peer::parent();
    adopt_orphans(None);
    let daemon = Daemon::start(options)?;
    log.clone().follow(&daemon.services.config);
    tokio::select! {
        () = daemon.clients.serve_here(Stdio::open()?, peer) => {}
        signal = signals.stop(&daemon, "serves stdin") => tracing::info!(signal, "stopping"),
    }
    daemon.stop(std::future::ready(())).await;
    log.end().await;
    Ok(ExitCode::SUCCESS)
}

/// Waits until the previous daemon has stopped accepting.
async fn take_over(daemon: &Daemon, from: u32, channel: std::os::unix::net::UnixStream) -> anyhow::Result<()> {
    // The previous daemon has a valid configuration. An invalid one here would close the policy to
    // everything.
    if let Some(problem) = daemon.services.config.user_config_problems().first() {
        anyhow::bail!("the configuration has errors: {problem}");
    }
    let mut turn = Successor::wait_for_turn(channel).await?;
    let services = &daemon.services;
    reload_decisions(daemon).await?;
    let orders = services.lifecycle.hand_over.set_predecessor(from);
    services.lifecycle.page.restore(turn.take_page());
    let busy_sessions = turn.take_busy_sessions();
    services.builtins.set_beside_another_daemon(!busy_sessions.is_empty());
    services.engine.sessions.set_busy_elsewhere(busy_sessions);
    daemon.clients.mcp.mcp.take_over(turn.take_http_sessions());
    if turn.frontends {
        services.engine.asks.expect_frontends();
        services.engine.questions.expect_frontends();
    }
    if !services.config.loaded().config.page.enabled {
        services.lifecycle.page.sign_ins.revoke(None);
    }
    turn.serving(services.engine.events.epoch()).await?;
    let (daemon, stop) = (daemon.clone(), daemon.services.lifecycle.stopping());
    services.engine.tasks.spawn(async move {
        let both = async { tokio::join!(daemon.listen_soon(), turn.attend(orders)) };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = both => {
                // Requests that the previous daemon had read before the handover may have changed something. If the database
                // takes no writes, they have not, and this daemon may hold decisions that are only in memory.
                if daemon.services.store.takes_writes()
                    && let Err(error) = reload_decisions(&daemon).await
                {
                    tracing::error!(%error, "permissions may be those of an earlier moment");
                }
                daemon.services.lifecycle.hand_over.predecessor_is_gone();
                daemon.services.builtins.set_beside_another_daemon(false);
                daemon.services.engine.sessions.end_busy_elsewhere();
                tracing::info!(pid = from, "the previous daemon is gone");
            }
        }
    });
    Ok(())
}

/// Reads again what the previous daemon may have stored after this one had started: decisions of people, secrets, and which
/// processes are agents.
async fn reload_decisions(daemon: &Daemon) -> anyhow::Result<()> {
    let services = daemon.services.clone();
    services.secrets.expect_changes();
    let reloaded = daemon.services.engine.tasks.spawn_blocking(move || {
        services.engine.grants.reload(|| services.store.load_grants());
        services.agent_processes.reload();
        services.workspaces.reload();
        services.config.decisions_changed();
    });
    reloaded.await.context("the decisions of people could not be read again")
}

/// Sends the status to the service manager, for its users.
fn serving(socket: &Path) -> String {
    format!("serves {}", socket.display())
}

/// Why a daemon ends by itself.
const UNUSED: &str = "nobody uses it";

/// Serves clients; returns why it ends, and which daemon serves from then on.
async fn serve_until_stopped(
    socket: &mut Socket,
    daemon: &Daemon,
    signals: &mut Signals,
) -> (&'static str, Option<NextDaemon>) {
    enum Happened {
        Told(&'static str),
        Idle,
        Lost,
        Ordered(Box<RestartOrder>),
    }
    let status = serving(socket.path());
    loop {
        // Dropping any of these futures loses nothing: it is started again.
        let happened = tokio::select! {
            () = socket.accept(&daemon.clients) => Happened::Told("told to"),
            signal = signals.stop(daemon, &status) => Happened::Told(signal),
            () = idle(&daemon.services.lifecycle, &daemon.services.config) => Happened::Idle,
            () = socket.lost() => Happened::Lost,
            order = daemon.services.lifecycle.hand_over.ordered() => Happened::Ordered(Box::new(order)),
        };
        let came = match happened {
            Happened::Told(why) => return (why, None),
            Happened::Idle => match socket.close() {
                none if none.is_empty() => return (UNUSED, None),
                mut came => {
                    came.extend(bind_again(socket, daemon));
                    came
                }
            },
            Happened::Lost => {
                tracing::warn!(socket = %socket.path().display(), "the socket was deleted: binding it again");
                bind_again(socket, daemon)
            }
            Happened::Ordered(order) => match hand_over(socket, daemon, *order).await {
                Some(next) => return ("another daemon serves", Some(next)),
                None => Vec::new(),
            },
        };
        for stream in came {
            socket.serve(&daemon.clients, stream);
        }
    }
}

/// Lets the next daemon serve; `None` when it does not.
async fn hand_over(socket: &mut Socket, daemon: &Daemon, order: RestartOrder) -> Option<NextDaemon> {
    let RestartOrder { mut next, drain, reply } = order;
    service_manager::main_process(next.pid());
    let http_sessions = daemon.clients.mcp.mcp.hand_over();
    let engine = &daemon.services.engine;
    let frontends = engine.asks.can_all_be_answered() || engine.questions.can_all_be_answered();
    let busy_sessions = engine.sessions.busy();
    match next.go(daemon.services.lifecycle.page.hand_over(), http_sessions, busy_sessions, frontends).await {
        Ok(restarted) => {
            daemon.services.builtins.set_beside_another_daemon(true);
            tracing::info!(pid = restarted.pid, version = restarted.version, "handed over");
            socket.leave();
            reaper::hand_over();
            daemon.services.lifecycle.be_replaced(drain);
            // The requester may be gone.
            let _ = reply.send(Ok(restarted));
            Some(next)
        }
        Err(error) => {
            tracing::error!("not handed over: {error:#}");
            service_manager::main_process(std::process::id());
            let _ = reply.send(Err(format!("{error:#}")));
            None
        }
    }
}

/// Does what people tell the next daemon to do with everything that runs.
async fn follow(mut next: NextDaemon, services: Arc<Services>) {
    while let Some(what) = next.order().await {
        let services = services.clone();
        let done = tokio::task::spawn_blocking(move || {
            let paused = match &what {
                Standstill::Pause { by, .. } => Some(by.clone()),
                Standstill::Resume => None,
            };
            // The next daemon keeps it.
            services.config.hold_paused(paused);
            stand_still(&services, &what)
        });
        let Ok(done) = done.await else { return };
        if let Err(error) = next.report(done).await {
            tracing::debug!(%error, "the next daemon is gone");
        }
    }
}

/// Errors are logged, and the next check of the socket retries.
fn bind_again(socket: &mut Socket, daemon: &Daemon) -> Vec<UnixStream> {
    let bound = socket.bind_again().and_then(|came| {
        daemon.services.lifecycle.hand_over.offer(socket.offer()?);
        Ok(came)
    });
    bound.unwrap_or_else(|error| {
        tracing::error!("clients can't find the daemon: {error:#}");
        Vec::new()
    })
}

/// The environment of the process that started the daemon must not leak into other people's calls.
fn become_shared(tool_mark: Option<u64>) -> anyhow::Result<()> {
    std::env::set_current_dir("/").context("can't change to /")?;
    adopt_orphans(tool_mark);
    Ok(())
}

/// Orphans of our tools stay our descendants, where they are found and distinguished from people;
/// and when we are killed, they end. `tool_mark`: that of the previous daemon.
fn adopt_orphans(tool_mark: Option<u64>) {
    reaper::allow(tool_mark);
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)) {
        tracing::warn!(%error, "can't become a subreaper: toold can't find processes that tools leave behind");
    }
}

/// The signals that stop the daemon or reload its configuration.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
    /// Never received from: while it is handled, a write beyond the limit of file sizes fails instead of ending the daemon.
    _file_size: Signal,
}

impl Signals {
    fn install() -> anyhow::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Reloads the configuration at each SIGHUP; returns the name of the first other signal.
    /// Dropping the future does not stop a reload that has begun.
    async fn stop(&mut self, daemon: &Daemon, status: &str) -> &'static str {
        loop {
            tokio::select! {
                _ = self.term.recv() => return "SIGTERM",
                _ = self.int.recv() => return "SIGINT",
                _ = self.hup.recv() => {
                    let (config, status) = (daemon.services.config.clone(), status.to_owned());
                    daemon.services.engine.tasks.spawn_blocking(move || {
                        service_manager::reloading();
                        config.reload_all();
                        service_manager::ready(&status);
                    });
                }
            }
        }
    }

    /// The name of the next signal.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}
