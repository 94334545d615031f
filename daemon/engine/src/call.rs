//! A call and its caller: the values that the pipeline in [`crate::execute`] works on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toold_proto::argument_names::in_one_text;
use toold_proto::error::ArgumentError;
use toold_proto::tool::CallId;

use crate::progress::ProgressSink;
use crate::session::Session;

/// A call, ready to run.
pub struct Call {
    pub name: String,
    /// An object, or null for none.
    pub arguments: Value,
    pub call_id: Option<CallId>,
    pub session: Arc<Session>,
    /// Resolved, and within the session's `cwd` or roots; its `cwd` when `None`.
    pub cwd: Option<PathBuf>,
    pub timeout: Option<Duration>,
    pub no_cache: bool,
    pub caller: Arc<Caller>,
    pub progress: Vec<Arc<dyn ProgressSink>>,
    /// Fires when the caller gives up. It belongs to this call: it also fires when the call's time
    /// is over.
    pub cancel: CancellationToken,
    /// The plugins between the caller and this call, the outermost first.
    pub chain: Arc<[String]>,
    /// How many calls this one is inside of; 0 for a frontend's own.
    pub depth: u32,
    /// An outer call already holds the session's lane.
    pub holds_lane: bool,
}

/// The caller of a call.
#[derive(Debug)]
pub struct Caller {
    pub connection: u64,
    pub principal: Principal,
    /// The agent that its process is, as that agent's hooks have shown.
    pub agent: Option<&'static str>,
    /// Calls of the connection in flight.
    pub in_flight: Arc<AtomicUsize>,
}

impl Caller {
    /// One of which no agent is known, without calls in flight.
    pub fn new(connection: u64, principal: Principal) -> Self {
        Self { connection, principal, agent: None, in_flight: Arc::default() }
    }
}

/// The permissions of a caller, by how it is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A frontend operated by a person.
    Person,
    /// A frontend that acts for a model.
    Agent,
    /// A process started by one of our tools, directly or indirectly.
    ToolDescendant,
    /// WebSocket or HTTP, with a token that permits calls.
    TokenCall,
    /// WebSocket or HTTP, with a token that permits everything a person may do.
    TokenAdmin,
    /// The daemon's page in a browser of a person.
    Page,
}

impl Principal {
    /// Whether it may decide for a person: answer asks, make grants, set modes.
    pub fn may_decide(self) -> bool {
        match self {
            Self::Person | Self::TokenAdmin | Self::Page => true,
            Self::Agent | Self::ToolDescendant | Self::TokenCall => false,
        }
    }
}

/// A call that could not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    #[error("invalid arguments for {tool}: {}", list(.errors))]
    InvalidArgs { tool: String, errors: Vec<ArgumentError> },
    #[error("there is no tool {name}{}", explanation(.reason.as_deref(), .suggestions))]
    UnknownTool { name: String, reason: Option<String>, suggestions: Vec<String> },
    #[error("the call id {0} is used by a call in flight: use another id, or leave it out")]
    DuplicateCallId(CallId),
    #[error("{0}")]
    PermissionEngine(String),
    #[error("{0}")]
    Failed(String),
    #[error("{0}; the call did not run, try again when other calls have finished")]
    Overloaded(String),
    #[error("the call was cancelled")]
    Cancelled,
    /// The tool ran, and was cancelled because the daemon ends.
    #[error(
        "the daemon was restarted or stopped before the call ended, and cancelled it: look at what it changed before you \
         repeat it"
    )]
    Ended,
}

pub(crate) fn list(errors: &[ArgumentError]) -> String {
    let lines = errors.iter().map(|error| match error.path.as_str() {
        "" => error.message.clone(),
        path => format!("{path}: {}", error.message),
    });
    in_one_text(lines)
}

fn explanation(reason: Option<&str>, suggestions: &[String]) -> String {
    match (reason, suggestions) {
        (Some(reason), _) => format!(": {reason}"),
        (None, []) => String::new(),
        (None, names) => format!("; did you mean {}?", names.join(" or ")),
    }
}
