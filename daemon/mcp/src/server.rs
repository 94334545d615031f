//! The daemon as an MCP server: a facade over the engine, with no logic of its own.
//!
//! [`handler`] names the methods. A call goes [`tools`] → the engine → [`content`]; what it asks its client
//! meanwhile is [`work`]'s. Streams come in by [`stream`], HTTP by [`http`].

pub mod http;
pub mod opening;
pub mod stream;

mod changes;
mod content;
mod desk;
mod forms;
mod handler;
mod logs;
mod meta_tools;
mod offers;
mod progress;
mod request;
mod rounds;
mod tasks;
mod tools;
mod view;
mod weighed;
mod work;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::{CallError, Principal};
use toold_engine::sampling::SamplerRegistration;
use toold_engine::session::Session;
use toold_proto::session::{ClientInfo, ToolFilter};
use toold_proto::tool::{SessionId, ToolResult};

use crate::server::desk::Desks;
use crate::server::logs::Level;
use crate::server::rounds::Rounds;
use crate::server::tasks::Tasks;
use crate::server::view::{Narrowed, Views, Visits};

/// What only the daemon knows.
pub trait Host: Send + Sync + 'static {
    fn engine(&self) -> &Arc<Engine>;

    /// Waits until the plugins that are loading have loaded; gives the number of the first event that came after that.
    fn settled(&self) -> BoxFuture<'_, u64>;

    /// Opens a session for a client.
    ///
    /// # Errors
    /// In words for people: a path that is no folder.
    fn open_session(&self, wanted: Wanted) -> Result<Arc<Session>, String>;

    /// Closes a session and cancels its calls.
    fn close_session(&self, id: &SessionId);

    /// A number that no other connection of this daemon has.
    fn next_connection(&self) -> u64;

    fn meta_tools(&self) -> MetaTools;

    /// After how long a call becomes a task, with clients that take tasks; never when none.
    fn task_after(&self) -> Option<Duration>;

    /// What the configuration says of a client of this name.
    fn client(&self, name: &str) -> ClientRights;

    /// Fires when nothing new is taken any more.
    fn stopping(&self) -> CancellationToken;

    /// Runs a call as a part of a trace, that of a header `traceparent` as the W3C's Trace Context has it.
    fn in_trace_of(&self, traceparent: &str, call: Called) -> Called;

    /// Fires when what still runs is cut short.
    fn cancelled(&self) -> CancellationToken;
}

/// A call that runs while it is polled.
pub type Called = BoxFuture<'static, Result<ToolResult, CallError>>;

/// What a session is to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Absolute; absent when the client did not say where it works.
    pub cwd: Option<PathBuf>,
    pub roots: Vec<PathBuf>,
    pub client: Option<ClientInfo>,
    pub principal: Principal,
    /// Which tools it sees and can call.
    pub filter: ToolFilter,
    /// Of the client; the daemon knows its process by it.
    pub connection: u64,
    /// Variables that it wants to set.
    pub env: BTreeMap<String, String>,
}

/// Whether `tools_search` and `tools_call` are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaTools {
    Off,
    On,
    /// To all but clients that are configured as ones that follow changes of the list.
    Auto,
}

/// What the configuration lets a client do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientRights {
    /// Its answers to permission prompts count, for its own calls and its session at most.
    pub approve: bool,
    /// It asks for the list anew when it is told that the list changed.
    pub list_changed: bool,
}

/// What all MCP clients of a daemon have in common.
pub struct Mcp {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) rounds: Rounds,
    pub(crate) tasks: Tasks,
    pub(crate) desks: Arc<Desks>,
    /// Sessions of clients that have no connection to hold theirs.
    pub(crate) visits: Visits,
}

impl Mcp {
    /// `key`: 32 random bytes, with which what clients keep for us is sealed.
    pub fn new(host: Arc<dyn Host>, key: [u8; 32]) -> Arc<Self> {
        // Two uses, two keys: what a client is shown of one tells nothing of the other.
        let ids = blake3::derive_key("toold MCP task ids", &key);
        let (rounds, tasks) = (Rounds::new(key), Tasks::new(ids));
        Arc::new(Self { host, rounds, tasks, desks: Arc::default(), visits: Visits::default() })
    }

    /// A server for one client. `default_cwd`: where it works if it does not say.
    pub fn server(self: &Arc<Self>, kind: Kind, id: u64, principal: Principal, default_cwd: Option<PathBuf>) -> Server {
        let connection = Connection {
            id,
            kind,
            principal,
            in_flight: Arc::default(),
            default_cwd: Mutex::new(default_cwd),
            env: Mutex::default(),
            narrowed: Mutex::default(),
            sampler: OnceLock::new(),
            log_level: Level::default(),
            watched: Mutex::default(),
            half_closed: self.host.stopping().child_token(),
            gone: self.host.cancelled().child_token(),
        };
        Server { mcp: self.clone(), connection: Arc::new(connection), views: Views::new(self.host.clone()) }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.host.engine()
    }
}

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A byte stream: what it holds ends with it.
    Stream,
    /// HTTP: of a session of the older revisions, or of one request.
    Http,
}

/// One client's way in.
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) principal: Principal,
    /// Calls in flight, which the engine bounds.
    pub(crate) in_flight: Arc<AtomicUsize>,
    pub(crate) default_cwd: Mutex<Option<PathBuf>>,
    /// Variables that its bridge passes on.
    pub(crate) env: Mutex<BTreeMap<String, String>>,
    /// What its bridge was told to show.
    pub(crate) narrowed: Mutex<Option<Narrowed>>,
    /// Lent while the connection lives, once its client has said that it can ask a model.
    pub(crate) sampler: OnceLock<SamplerRegistration>,
    pub(crate) log_level: Level,
    /// Resources that a client of the older revisions wants to hear of.
    pub(crate) watched: Mutex<HashSet<String>>,
    /// Fires when the client sends no more, or the daemon stops.
    pub(crate) half_closed: CancellationToken,
    /// Fires when the client is gone.
    pub(crate) gone: CancellationToken,
}

/// Serves one client. Made by [`Mcp::server`].
pub struct Server {
    pub(crate) mcp: Arc<Mcp>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) views: Views,
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.connection.kind == Kind::Stream {
            self.connection.gone.cancel();
        }
    }
}

/// By address of the [`Caller`](toold_engine::call::Caller) that each call has to itself.
pub(crate) type ByCaller<T> = Mutex<HashMap<usize, T>>;
