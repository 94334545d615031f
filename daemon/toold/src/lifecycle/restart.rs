//! Hands the socket over to the next daemon. The socket is listening all the time: clients that
//! connect meanwhile wait.
//!
//! The old daemon starts the new one with one end of a socket pair as its stdin, and sends the
//! listening socket and the locks through it. The new one reads its configuration, starts
//! everything, and reports that it is ready. Up to here either may give up, and the old one
//! continues. Then the old one stops accepting and sends `go`; the new one reads again what people
//! decided meanwhile, and serves. The other end of the pair stays open as long as the old daemon
//! lives: until it closes, the old daemon's tools may still run.
//!
//! [`HandOver`] is the old daemon's side, [`Successor`](successor::Successor) the new one's.

pub mod above;
pub mod channel;
pub mod successor;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toold_mcp::server::http::records::HttpSessionRecords;
use toold_proto::daemon::Restarted;
use toold_proto::tool::SessionId;

use crate::config::options::Options;
use crate::lifecycle::page_access::PageHandOver;
use crate::lifecycle::restart::channel::{RestartMessage, SocketOffer, Standstill, StoodStill};
use crate::lifecycle::service_manager;

/// How long the next daemon may take to be ready, and then to take over.
const READY_WITHIN: Duration = Duration::from_secs(60);
const GO_WITHIN: Duration = Duration::from_secs(20);
/// How long the previous daemon may take to stop what it runs.
const TELL_WITHIN: Duration = Duration::from_secs(5);

/// The old daemon's state for the handover.
pub struct HandOver {
    /// The resources to hand over; none for a daemon on stdio.
    offer: Mutex<Option<SocketOffer>>,
    /// The path of this program when it started: a different program may be there by now.
    program: Option<PathBuf>,
    /// Held by the restart in progress.
    pub(crate) one: tokio::sync::Mutex<()>,
    orders: mpsc::Sender<RestartOrder>,
    received: tokio::sync::Mutex<mpsc::Receiver<RestartOrder>>,
    /// The process id of the previous daemon, until it is gone; then 0.
    predecessor: AtomicU32,
    /// Reaches the previous daemon, until it is gone.
    link: Mutex<Option<mpsc::Sender<StandstillOrder>>>,
}

/// What the previous daemon is to do, and where its answer goes.
type StandstillOrder = (Standstill, oneshot::Sender<StoodStill>);

/// The orders for the previous daemon, for whoever holds the channel to it.
pub type StandstillOrders = mpsc::Receiver<StandstillOrder>;

/// A daemon that is ready to serve, for the loop that owns the socket.
pub struct RestartOrder {
    pub next: NextDaemon,
    /// How long calls in flight may continue.
    pub drain: Duration,
    pub reply: oneshot::Sender<Result<Restarted, String>>,
}

impl Default for HandOver {
    fn default() -> Self {
        let (orders, received) = mpsc::channel(1);
        Self {
            offer: Mutex::default(),
            program: std::env::current_exe().ok(),
            one: tokio::sync::Mutex::default(),
            orders,
            received: tokio::sync::Mutex::new(received),
            predecessor: AtomicU32::new(0),
            link: Mutex::default(),
        }
    }
}

impl HandOver {
    /// Sets the resources to hand over from now on.
    pub fn offer(&self, offer: SocketOffer) {
        *self.offer.lock() = Some(offer);
    }

    /// Waits for a daemon that is ready. Cancel-safe.
    pub async fn ordered(&self) -> RestartOrder {
        match self.received.lock().await.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        }
    }

    /// Lets a ready daemon take over from this one.
    ///
    /// # Errors
    /// It did not take over, and this one continues.
    pub(crate) async fn carry_out(&self, next: NextDaemon, drain: Duration) -> anyhow::Result<Restarted> {
        let (reply, done) = oneshot::channel();
        let order = RestartOrder { next, drain, reply };
        self.orders.send(order).await.ok().context("the daemon stops")?;
        done.await.context("the daemon stops")?.map_err(anyhow::Error::msg)
    }

    /// The previous daemon, while it exists. Its descendants are tools.
    pub fn predecessor(&self) -> Option<u32> {
        match self.predecessor.load(Ordering::Relaxed) {
            0 => None,
            pid => Some(pid),
        }
    }

    /// From now on, there is a previous daemon. The orders for it are to be passed on.
    pub fn set_predecessor(&self, pid: u32) -> StandstillOrders {
        self.predecessor.store(pid, Ordering::Relaxed);
        let (sender, orders) = mpsc::channel(1);
        *self.link.lock() = Some(sender);
        orders
    }

    pub fn predecessor_is_gone(&self) {
        self.predecessor.store(0, Ordering::Relaxed);
        *self.link.lock() = None;
    }

    /// Lets the previous daemon do this with what it still runs; `None` if there is none.
    ///
    /// # Errors
    /// It does not answer, as a sentence for the user.
    pub(crate) async fn tell_predecessor(&self, what: Standstill) -> Option<Result<StoodStill, String>> {
        let link = self.link.lock().clone()?;
        let (reply, done) = oneshot::channel();
        let told = async {
            link.send((what, reply)).await.ok()?;
            done.await.ok()
        };
        match timeout(TELL_WITHIN, told).await {
            Ok(done) => done.map(Ok),
            Err(_) => Some(Err(format!("it did not answer within {} s", TELL_WITHIN.as_secs()))),
        }
    }

    /// Starts the next daemon and waits until it is ready. Dropping the future ends it.
    ///
    /// # Errors
    /// It cannot be started, or reports why it will not serve; as a sentence for the user.
    pub(crate) async fn prepare(&self, program: Option<&Path>, options: &Options) -> anyhow::Result<NextDaemon> {
        let program =
            program.or(self.program.as_deref()).context("can't tell which program this daemon runs: name one")?;
        ensure!(program.is_absolute(), "the path {} is not absolute", program.display());
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().context("can't make a pair of sockets")?;
        let mut command = Command::new(program);
        command.args(arguments(options)).stdin(std::os::fd::OwnedFd::from(theirs)).current_dir("/");
        for name in service_manager::OF_ONE_PROCESS {
            command.env_remove(name);
        }
        let child = command.spawn().with_context(|| format!("can't start {}", program.display()))?;
        // The child holds the other end of the pair, so that its exit closes it.
        drop(command);
        // Fails if the program has already ended; the reason is read from its answer.
        let sent = match self.offer.lock().as_ref() {
            Some(offer) => channel::send_offer(&ours, offer),
            None => bail!("this daemon serves one client on stdin: it has no socket to hand over"),
        };
        ours.set_nonblocking(true)?;
        let channel = BufReader::new(UnixStream::from_std(ours)?);
        let mut next = NextDaemon {
            program: program.to_owned(),
            child: Some(child),
            channel,
            version: String::new(),
            protocol: 0,
        };
        match timeout(READY_WITHIN, next.hear()).await {
            Ok(Ok(_)) if sent.is_err() => sent.map(|()| next).context("can't hand the socket over"),
            Err(_) => bail!("{} was not ready after {} s", program.display(), READY_WITHIN.as_secs()),
            Ok(Ok(RestartMessage::Ready { version, protocol })) => {
                (next.version, next.protocol) = (version, protocol);
                tracing::info!(pid = next.pid(), version = next.version, "the next daemon is ready");
                Ok(next)
            }
            Ok(Ok(other)) => bail!("{} said {other:?} before it was ready", program.display()),
            Ok(Err(error)) => Err(error),
        }
    }
}

/// The next daemon gets the command line of this one; it inherits the environment.
fn arguments(options: &Options) -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> = vec!["serve".into(), "--take-over".into()];
    let mut flag = |name: &str, value: std::ffi::OsString| arguments.extend([name.into(), value]);
    if let Some(config) = &options.config {
        flag("--config", config.into());
    }
    options.set.iter().for_each(|set| flag("--set", set.into()));
    options.plugins.iter().for_each(|plugins| flag("--plugins", plugins.into()));
    arguments
}

/// A process started as the next daemon. Killed if it is dropped before it serves.
pub struct NextDaemon {
    program: PathBuf,
    /// `None` once it serves.
    child: Option<Child>,
    channel: BufReader<UnixStream>,
    version: String,
    protocol: u32,
}

impl NextDaemon {
    pub fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).unwrap_or_default()
    }

    /// Lets it serve. Called when nobody else accepts clients.
    ///
    /// # Errors
    /// It does not serve, and is then killed.
    pub(crate) async fn go(
        &mut self,
        page: PageHandOver,
        http_sessions: HttpSessionRecords,
        busy_sessions: Vec<SessionId>,
        frontends: bool,
    ) -> anyhow::Result<Restarted> {
        let pid = self.pid();
        let go = RestartMessage::Go { page, http_sessions, busy_sessions, frontends };
        channel::say(self.channel.get_mut(), &go).await?;
        match timeout(GO_WITHIN, self.hear()).await.context("it did not start to serve in time")?? {
            RestartMessage::Serving { epoch } => {
                self.child = None;
                Ok(Restarted {
                    pid,
                    version: self.version.clone(),
                    protocol: self.protocol,
                    epoch,
                    previous_pid: std::process::id(),
                    previous_version: env!("CARGO_PKG_VERSION").to_owned(),
                })
            }
            other => bail!("it said {other:?} instead of serving"),
        }
    }

    /// What it tells this daemon to do with what still runs; `None` once it is gone.
    pub(crate) async fn order(&mut self) -> Option<Standstill> {
        loop {
            if let RestartMessage::Standstill(what) = self.hear().await.ok()? {
                return Some(what);
            }
        }
    }

    /// Tells it that this was done.
    pub(crate) async fn report(&mut self, done: StoodStill) -> anyhow::Result<()> {
        channel::say(self.channel.get_mut(), &RestartMessage::StoodStill(done)).await
    }

    /// The next message.
    async fn hear(&mut self) -> anyhow::Result<RestartMessage> {
        let mut line = String::new();
        let read = self.channel.read_line(&mut line).await;
        if matches!(read, Ok(1..)) {
            let word =
                serde_json::from_str(&line).with_context(|| format!("{} said {line:?}", self.program.display()))?;
            return match word {
                RestartMessage::Failed { words } => bail!("{} does not take over: {words}", self.program.display()),
                word => Ok(word),
            };
        }
        let status = match &mut self.child {
            Some(child) => timeout(Duration::from_secs(2), child.wait()).await.ok().and_then(Result::ok),
            None => None,
        };
        let ended = status.map_or("closed its end".to_owned(), |status: ExitStatus| format!("ended with {status}"));
        bail!("{} {ended} before it served: see the log", self.program.display())
    }
}

impl Drop for NextDaemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && let Err(error) = child.start_kill()
        {
            tracing::debug!(%error, "the next daemon is gone already");
        }
    }
}
