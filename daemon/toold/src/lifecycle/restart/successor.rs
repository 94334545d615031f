//! The daemon that takes over.

use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::oneshot;
use toold_mcp::server::http::records::HttpSessionRecords;
use toold_proto::tool::SessionId;

use super::StandstillOrders;
use super::channel::{self, RestartMessage, SocketOffer, StoodStill};
use crate::lifecycle::page_access::PageHandOver;

/// The resources from the old daemon, and the channel to it.
pub struct Successor {
    pub offer: SocketOffer,
    /// The old daemon's process id.
    pub from: u32,
    channel: UnixStream,
}

/// Reports to the old daemon why this one will not serve.
pub struct FailureReporter(UnixStream);

impl Successor {
    /// Receives the handover from the parent on stdin. Blocks for some seconds at most; call it
    /// before there are threads.
    ///
    /// # Errors
    /// Stdin is not a socket that the parent created, the parent was started by a tool, or nothing
    /// arrived.
    pub fn receive() -> anyhow::Result<Self> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().context("can't use stdin")?;
        let from = of_parent(&stdin)?;
        ensure!(!super::above::is_below_a_daemon(from), "a process that a tool started can't hand over a socket");
        let channel = UnixStream::from(stdin);
        channel.set_read_timeout(Some(Duration::from_secs(20)))?;
        let offer = channel::receive_offer(&channel)?;
        channel.set_read_timeout(None)?;
        Ok(Self { offer, from, channel })
    }

    pub fn failure_reporter(&self) -> anyhow::Result<FailureReporter> {
        Ok(FailureReporter(self.channel.try_clone()?))
    }

    /// Reports that this daemon is ready, and waits for its turn. The returned value observes the
    /// old daemon.
    ///
    /// # Errors
    /// The old daemon continues to serve.
    pub async fn wait_for_turn(channel: UnixStream) -> anyhow::Result<TakeOverTurn> {
        channel.set_nonblocking(true)?;
        let mut channel = BufReader::new(tokio::net::UnixStream::from_std(channel)?);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        channel::say(channel.get_mut(), &RestartMessage::Ready { version, protocol: toold_proto::PROTOCOL }).await?;
        let mut line = String::new();
        channel.read_line(&mut line).await.context("the old daemon is gone")?;
        ensure!(!line.is_empty(), "the old daemon keeps serving");
        match serde_json::from_str(&line).context("can't read the old daemon's message")? {
            RestartMessage::Go { page, http_sessions, busy_sessions, frontends } => {
                Ok(TakeOverTurn { channel, page, http_sessions, busy_sessions, frontends })
            }
            other => bail!("the old daemon said {other:?}"),
        }
    }

    /// The offer, and the channel to answer it.
    pub fn into_parts(self) -> (SocketOffer, u32, UnixStream) {
        (self.offer, self.from, self.channel)
    }
}

impl FailureReporter {
    /// Nobody receives it when the old daemon is gone.
    pub fn fail(mut self, error: &anyhow::Error) {
        let word = RestartMessage::Failed { words: format!("{error:#}") };
        let line = serde_json::to_string(&word).unwrap_or_default();
        let _ = self.0.write_all(format!("{line}\n").as_bytes());
    }
}

/// It is this daemon's turn.
pub struct TakeOverTurn {
    channel: BufReader<tokio::net::UnixStream>,
    page: PageHandOver,
    http_sessions: HttpSessionRecords,
    busy_sessions: Vec<SessionId>,
    /// Whether the old daemon had frontends that answer prompts.
    pub(crate) frontends: bool,
}

impl TakeOverTurn {
    /// Reports that this daemon serves.
    pub async fn serving(&mut self, epoch: &str) -> anyhow::Result<()> {
        channel::say(self.channel.get_mut(), &RestartMessage::Serving { epoch: epoch.to_owned() }).await
    }

    /// The old daemon's page.
    pub(crate) fn take_page(&mut self) -> PageHandOver {
        std::mem::take(&mut self.page)
    }

    /// The old daemon's MCP sessions on HTTP.
    pub(crate) fn take_http_sessions(&mut self) -> HttpSessionRecords {
        std::mem::take(&mut self.http_sessions)
    }

    /// The sessions of which the old daemon still runs serial calls.
    pub(crate) fn take_busy_sessions(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.busy_sessions)
    }

    /// Tells the old daemon what people do to everything that runs, until it is gone.
    pub async fn attend(self, mut orders: StandstillOrders) {
        let (read, mut write) = self.channel.into_inner().into_split();
        let mut lines = BufReader::new(read).lines();
        let mut waiting = VecDeque::new();
        loop {
            tokio::select! {
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { return };
                    if let Ok(RestartMessage::StoodStill(done)) = serde_json::from_str(&line)
                        && let Some(reply) = waiting.pop_front()
                    {
                        // Whoever ordered it may be gone.
                        let _: Result<(), StoodStill> = oneshot::Sender::send(reply, done);
                    }
                }
                Some((what, reply)) = orders.recv() => {
                    waiting.push_back(reply);
                    // When it is gone, there is nothing to read either.
                    let _ = channel::say(&mut write, &RestartMessage::Standstill(what)).await;
                }
            }
        }
    }
}

/// The parent's process id, if it created this socket: a pair has its creator's credentials.
#[cfg(target_os = "linux")]
fn of_parent(stdin: &impl AsFd) -> anyhow::Result<u32> {
    let maker = rustix::net::sockopt::socket_peercred(stdin).context("stdin is not a daemon's socket")?.pid;
    ensure!(
        rustix::process::getppid() == Some(maker),
        "only a daemon passes --take-over, to its successor: use toolctl restart"
    );
    Ok(maker.as_raw_nonzero().get().unsigned_abs())
}

/// Elsewhere the system does not report who created a socket; there toold cannot tell tools from
/// people either.
#[cfg(not(target_os = "linux"))]
fn of_parent(_stdin: &impl AsFd) -> anyhow::Result<u32> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).context("the old daemon is gone")
}
