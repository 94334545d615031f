//! The daemon as an MCP server: a facade over the engine, with no logic of its own.
//!
//! [`handler`] names the methods. A call goes [`tools`] → the engine → [`content`]; [`running_request`] asks its client
//! on the way. Streams are served by [`stream`], HTTP by [`http`].

pub mod http;
pub mod protocol_detection;
pub mod stream;

mod arrivals;
mod changes;
mod client_lines;
mod client_requests;
pub(crate) mod content;
mod forms;
mod handler;
mod logs;
mod meta_tools;
mod misfits;
mod offers;
mod open_requests;
mod outgoing;
mod profiles;
mod progress;
mod request;
mod request_session;
mod request_state;
mod running_request;
mod short_names;
mod subscriptions;
mod tasks;
pub(crate) mod tool_meta;
mod tools;

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::{CallError, Principal};
use toold_engine::client_profile::ClientProfile;
use toold_engine::sampling::SamplerRegistration;
use toold_engine::session::Session;
use toold_proto::call::ListingMode;
use toold_proto::session::{ClientInfo, ToolFilter};
use toold_proto::tool::{SessionId, ToolResult};

use crate::client_log::ConnectionLogLevel;
use crate::server::arrivals::Arrivals;
use crate::server::client_requests::RequestChannels;
use crate::server::http::records::{HttpSessionRecords, HttpSessions};
use crate::server::request_session::{ConnectionSessions, SourceSelection, StatelessSessions};
use crate::server::request_state::RequestStates;
use crate::server::subscriptions::ResourceSubscriptions;
use crate::server::tasks::McpTasks;

/// The services that the daemon provides.
pub trait McpHost: Send + Sync + 'static {
    fn engine(&self) -> &Arc<Engine>;

    /// Waits until the plugins that are loading have loaded; returns the number of the first event after that.
    fn settled(&self) -> BoxFuture<'_, u64>;

    /// Waits until mounted servers that have never run here have listed their tools, for some seconds at most.
    fn first_lists(&self) -> BoxFuture<'_, ()>;

    /// Opens a session for a client.
    ///
    /// # Errors
    /// As a sentence for the user: a path is not a folder.
    fn open_session(&self, wanted: WantedSession) -> Result<Arc<Session>, String>;

    /// Closes a session and cancels its calls.
    fn close_session(&self, id: &SessionId);

    /// The agent that the process of a connection is, as that agent's hooks have shown.
    fn agent_of(&self, connection: u64) -> Option<&'static str>;

    /// A number that no other connection of this daemon has.
    fn next_connection(&self) -> u64;

    fn meta_tools(&self) -> MetaTools;

    /// How long a call runs before it becomes a task, with clients that accept tasks; `None` is
    /// never.
    fn task_after(&self) -> Option<Duration>;

    /// The configured permissions of a client with this name.
    fn client(&self, name: &str) -> ClientRights;

    /// The profiles of these names, for a client that reports this one.
    ///
    /// # Errors
    /// As a sentence for the user: one of them does not exist.
    fn profiles(&self, names: &[String], client: Option<&str>) -> Result<Vec<ClientProfile>, String>;

    /// Fires when no new requests are accepted.
    fn stopping(&self) -> CancellationToken;

    /// Runs a call as a part of the trace that a header `traceparent` names (W3C Trace Context).
    fn in_trace_of(&self, traceparent: &str, call: CallFuture) -> CallFuture;

    /// Fires when calls that are still running are cancelled.
    fn cancelled(&self) -> CancellationToken;
}

/// A call that runs while it is polled.
pub type CallFuture = BoxFuture<'static, Result<ToolResult, CallError>>;

/// The session that a request needs.
#[derive(Clone, Debug)]
pub struct WantedSession {
    /// Absolute; absent when the client did not name a folder.
    pub cwd: Option<PathBuf>,
    pub roots: Vec<PathBuf>,
    pub client: Option<ClientInfo>,
    pub principal: Principal,
    /// The tools that it sees and can call.
    pub filter: ToolFilter,
    /// Each of them narrows it further.
    pub profiles: Vec<ClientProfile>,
    /// That of its client's token: only clients with the same may join it.
    pub token_profile: Option<String>,
    /// The number of the client's connection; the daemon finds its process by it.
    pub connection: u64,
    /// The variables that it sets.
    pub env: BTreeMap<String, String>,
    /// The name of its bridge, which is the same at the next daemon.
    pub bridge: Option<String>,
}

/// Whether `tools_search` and `tools_call` are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaTools {
    Off,
    On,
    /// For all clients except those that are configured to follow changes of the list.
    Auto,
}

/// The configured permissions of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRights {
    /// Its answers to permission prompts count, for its own calls and its session at most.
    pub approve: bool,
    /// It requests the list again when it is notified of a change.
    pub list_changed: bool,
    /// The profile that always applies to it.
    pub profile: Option<String>,
    /// The length of the names that it is listed.
    pub name_length: Option<usize>,
}

/// Who a client is served as.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpIdentity {
    pub principal: Principal,
    /// The profile of its token, whatever the client says.
    pub profile: Option<String>,
}

/// The shared state of all MCP clients of a daemon.
pub struct McpFacade {
    pub(crate) host: Arc<dyn McpHost>,
    pub(crate) request_states: RequestStates,
    pub(crate) tasks: McpTasks,
    pub(crate) channels: Arc<RequestChannels>,
    /// Sessions of clients without a connection.
    pub(crate) stateless_sessions: StatelessSessions,
    /// Sessions of the older revisions on HTTP.
    pub(crate) http_sessions: Arc<HttpSessions>,
}

impl McpFacade {
    /// `key`: 32 random bytes, with which the state that clients keep is sealed.
    pub fn new(host: Arc<dyn McpHost>, key: [u8; 32]) -> Arc<Self> {
        // Each use has its own key, so that the output of one reveals nothing about the other.
        let ids = blake3::derive_key("toold MCP task ids", &key);
        Arc::new(Self {
            host,
            request_states: RequestStates::new(key),
            tasks: McpTasks::new(ids),
            channels: Arc::default(),
            stateless_sessions: StatelessSessions::default(),
            http_sessions: Arc::default(),
        })
    }

    /// The sessions on HTTP that the next daemon takes over.
    pub fn hand_over(&self) -> HttpSessionRecords {
        self.http_sessions.hand_over()
    }

    /// Takes over the sessions of the previous daemon.
    pub fn take_over(&self, sessions: HttpSessionRecords) {
        self.http_sessions.restore(sessions);
    }

    /// A server for one client. `default_cwd`: its working folder if it names none.
    pub fn server(
        self: &Arc<Self>,
        kind: ConnectionKind,
        id: u64,
        identity: McpIdentity,
        default_cwd: Option<PathBuf>,
    ) -> McpClientServer {
        let connection = McpConnection {
            id,
            kind,
            identity,
            in_flight: Arc::default(),
            arrivals: Arrivals::default(),
            default_cwd: Mutex::new(default_cwd),
            env: Mutex::default(),
            bridge: OnceLock::new(),
            sources: Mutex::default(),
            listing: Mutex::default(),
            profiles: Mutex::default(),
            sampler: OnceLock::new(),
            log_level: ConnectionLogLevel::default(),
            subscriptions: Arc::default(),
            half_closed: self.host.stopping().child_token(),
            gone: self.host.cancelled().child_token(),
        };
        McpClientServer {
            mcp: self.clone(),
            connection: Arc::new(connection),
            sessions: ConnectionSessions::new(self.host.clone()),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.host.engine()
    }
}

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// A byte stream: its calls and sessions end with it.
    Stream,
    /// HTTP: a session of the older revisions, or one request.
    Http,
}

/// The connection of one client.
pub(crate) struct McpConnection {
    pub(crate) id: u64,
    pub(crate) kind: ConnectionKind,
    pub(crate) identity: McpIdentity,
    /// The number of calls in flight, which the engine limits.
    pub(crate) in_flight: Arc<AtomicUsize>,
    pub(crate) arrivals: Arrivals,
    pub(crate) default_cwd: Mutex<Option<PathBuf>>,
    /// Variables that its bridge passes on.
    pub(crate) env: Mutex<BTreeMap<String, String>>,
    /// The name of its bridge.
    pub(crate) bridge: OnceLock<String>,
    /// The sources that its bridge selected.
    pub(crate) sources: Mutex<Option<SourceSelection>>,
    /// The list that its bridge chose.
    pub(crate) listing: Mutex<Option<ListingMode>>,
    /// The names of the profiles that its messages named.
    pub(crate) profiles: Mutex<Vec<String>>,
    /// Registered for the life of the connection, once its client has declared sampling.
    pub(crate) sampler: OnceLock<SamplerRegistration>,
    /// The level of log messages that a client of the older revisions set.
    pub(crate) log_level: ConnectionLogLevel,
    /// The subscriptions of a client of the older revisions.
    pub(crate) subscriptions: Arc<ResourceSubscriptions>,
    /// Fires when the client sends no more, or the daemon stops.
    pub(crate) half_closed: CancellationToken,
    /// Fires when the client is gone.
    pub(crate) gone: CancellationToken,
}

/// Serves one client. Made by [`McpFacade::server`].
pub struct McpClientServer {
    pub(crate) mcp: Arc<McpFacade>,
    pub(crate) connection: Arc<McpConnection>,
    pub(crate) sessions: ConnectionSessions,
}

impl Drop for McpClientServer {
    fn drop(&mut self) {
        self.connection.subscriptions.clear();
        if self.connection.kind == ConnectionKind::Stream {
            self.connection.gone.cancel();
        }
    }
}

/// By the address of the [`Caller`](toold_engine::call::Caller), of which each call has its own.
pub(crate) type ByCaller<T> = Mutex<HashMap<usize, T>>;
