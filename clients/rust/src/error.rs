//! Errors between a client and the daemon.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jsonrpsee::core::ClientError as Jsonrpsee;
use jsonrpsee::types::ErrorObjectOwned;
use toold_proto::error::ErrorData;

use crate::holder::Holder;

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon answered with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    #[error("no daemon is running at {}", socket.display())]
    NotRunning { socket: PathBuf },
    #[error("can't connect to {}", socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    #[error("found no toold beside {} or in PATH", beside.display())]
    NoProgram { beside: PathBuf },
    #[error("can't start {}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("can't write the daemon's log {}", path.display())]
    Log { path: PathBuf, source: io::Error },
    /// The daemon exited with a failure before it served; `output` is what it wrote.
    #[error("{} did not start: {status}{}", program.display(), quoted(output))]
    StartFailed { program: PathBuf, status: std::process::ExitStatus, output: String },
    /// A started daemon does not listen, or the listening one does not answer.
    #[error("the daemon at {} {reason} after {} s{}{}", socket.display(), waited.as_secs(), held_by(holder.as_deref()), quoted(output))]
    NoAnswer { socket: PathBuf, reason: NoAnswerReason, waited: Duration, holder: Option<Box<Holder>>, output: String },
    /// Another program listens at the socket.
    #[error("{} is not the socket of a daemon: {} answered {said:?}; stop that program, or set TOOLD_SOCKET to another path", socket.display(), program(holder.as_deref()))]
    NotADaemon { socket: PathBuf, holder: Option<Box<Holder>>, said: String },
    #[error("{} is not a socket: move it away, and toold makes its own there", socket.display())]
    NotASocket { socket: PathBuf },
    /// The connection ended while a request was in flight, or before it was sent. It is not sent again, because the
    /// daemon may have carried it out.
    #[error("lost the connection to the daemon: {0}")]
    Disconnected(String),
    /// Another daemon took over before this request was read, so it may be sent again there. See
    /// [`crate::Client::successor`].
    #[error("another daemon has taken over, and the request was not carried out")]
    Replaced,
    /// Refused before it was sent, because the daemon would refuse it.
    #[error("the request has {bytes} bytes, but the daemon accepts at most {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a call with the id {0} is already running on this connection")]
    CallIdInUse(String),
    /// A subscription's items came faster than they were read; it has ended.
    #[error("the subscription ended, because its items were not read in time")]
    Lagged,
    #[error("can't parse the daemon's message")]
    BadAnswer(#[source] serde_json::Error),
}

/// How a daemon fails to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswerReason {
    /// It accepts connections but sends nothing, or it does not listen yet.
    Silence,
    /// It closes each connection before its first answer.
    Hangup,
    /// It accepts no connections, and its queue of waiting ones is full.
    FullQueue,
    /// It answers new connections, but not this request.
    Request(&'static str),
}

impl fmt::Display for NoAnswerReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence => f.write_str("does not answer"),
            Self::Hangup => f.write_str("closes each connection before it answers; given up"),
            Self::FullQueue => f.write_str("accepts no connections; given up"),
            Self::Request(method) => write!(f, "answers pings, but not {method}; given up"),
        }
    }
}

impl ClientError {
    /// Whether no daemon could be reached, or the connection to it was lost.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NotRunning { .. }
            | Self::Connect { .. }
            | Self::NoProgram { .. }
            | Self::Start { .. }
            | Self::Log { .. }
            | Self::StartFailed { .. }
            | Self::NoAnswer { .. }
            | Self::NotADaemon { .. }
            | Self::NotASocket { .. }
            | Self::Disconnected(_)
            | Self::Replaced => true,
            Self::Rpc(_) | Self::TooLarge { .. } | Self::CallIdInUse(_) | Self::Lagged | Self::BadAnswer(_) => false,
        }
    }
}

/// The error object of a response. Codes are those of [`toold_proto::error`].
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i32,
    /// For people.
    pub message: String,
    /// For programs; `None` when the peer sent none, or something else.
    pub data: Option<Box<ErrorData>>,
}

impl RpcError {
    /// `data.kind`, or the empty string.
    pub fn kind(&self) -> &str {
        self.data.as_ref().map_or("", |data| &data.kind)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}

impl From<ErrorObjectOwned> for RpcError {
    fn from(error: ErrorObjectOwned) -> Self {
        let data = error.data().and_then(|data| serde_json::from_str(data.get()).ok()).map(Box::new);
        Self { code: error.code(), message: error.message().to_owned(), data }
    }
}

impl From<Jsonrpsee> for ClientError {
    fn from(error: Jsonrpsee) -> Self {
        match error {
            Jsonrpsee::Call(object) => Self::Rpc(object.into()),
            Jsonrpsee::ParseError(source) => Self::BadAnswer(source),
            Jsonrpsee::RestartNeeded(reason) => Self::Disconnected(reason.to_string()),
            other => Self::Disconnected(other.to_string()),
        }
    }
}

/// Which process listens on the socket, and what to do about it.
fn held_by(holder: Option<&Holder>) -> String {
    let Some(holder) = holder else { return String::new() };
    let Holder { pid, name, state, .. } = holder;
    let state = if holder.is_stopped() { "stopped" } else { state };
    let advice = match holder.is_stopped() {
        true => format!("`kill -CONT {pid}` resumes it, `kill -KILL {pid}` ends it"),
        false => format!("try again, or end it with `kill {pid}`; if that does not help, with `kill -KILL {pid}`"),
    };
    format!(": process {pid} ({name}) listens on the socket and is {state}; {advice}")
}

fn program(holder: Option<&Holder>) -> String {
    match holder {
        Some(Holder { pid, name, .. }) => format!("process {pid} ({name}) listens there and"),
        None => "the program that listens there".to_owned(),
    }
}

/// The daemon's output, after a phrase that introduces it.
fn quoted(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("; its output:\n{output}") }
}
