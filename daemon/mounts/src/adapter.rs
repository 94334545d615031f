//! The interface that a kind of source implements to be mounted.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_engine::tool_filter::AllowDenyFilter;
use toold_host::stderr_log::StderrLog;
use toold_proto::tool::{SessionId, SourceKind, ToolName};

use crate::config::MountConfig;
use crate::offer_listing::{ListedOffers, OfferRequest};
use crate::program::SourceProgram;
use crate::watches::Watches;

/// A kind of source, such as MCP servers. It knows the protocol; the supervisor decides when a
/// source is started, retried, stopped and listed, and which of its tools are published.
///
/// Errors that are `String`s are shown to people in the source's status, and to models whose call
/// failed because of them.
pub trait MountAdapter: Send + Sync + Sized + 'static {
    /// Where a source is, and how it is reached.
    type Endpoint: Clone + PartialEq + Send + Sync + 'static;
    /// A tool as its source describes it.
    type Tool: ListedTool;
    /// Data stored with the known tools of a source from one run to the next.
    type Memory: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// An open channel to a source before the first message.
    type Channel: Send + 'static;
    /// The channel for calls and lists.
    type Link: Send + Sync + 'static;
    /// The future that [`run`](Self::run) drives while the source is connected.
    type Session: Send + 'static;
    /// The state of a source for clients of the daemon.
    type Status;

    const SOURCE: SourceKind;
    const START: StartPolicy;

    /// The name of a source in errors, such as `MCP server files`.
    fn label(&self, name: &str) -> String;

    /// The target of a tool in rules and grants.
    fn permission_target(&self, mount: &str, upstream_name: &str) -> String;

    /// Distinguishes endpoints: tools that one listed are never offered as another's.
    fn digest(&self, endpoint: &Self::Endpoint) -> String;

    /// The file that stores its last known tools.
    fn cache_file(&self, config: &MountConfig<Self::Endpoint>) -> PathBuf;

    /// `None` for a schema that cannot be compiled, which an accepted list does not contain.
    fn tool_spec(&self, config: &MountConfig<Self::Endpoint>, name: ToolName, tool: &Self::Tool) -> Option<ToolSpec>;

    /// See [`lane_patience`](toold_engine::callable::Callable::lane_patience).
    fn lane_patience(&self, _: &MountConfig<Self::Endpoint>) -> Option<Duration> {
        None
    }

    /// Whether a tool whose name is taken gets a name with a hash at its end; otherwise it is left
    /// out.
    fn renames_taken(&self) -> bool;

    fn status(&self, summary: MountSummary<Self>) -> Self::Status;

    /// Why a source is not there at all. While it is away it is neither opened nor called, and its tools stay listed. Never
    /// blocks; [`MountSupervisor::recheck`] asks again.
    ///
    /// [`MountSupervisor::recheck`]: crate::MountSupervisor::recheck
    fn away(&self, _config: &MountConfig<Self::Endpoint>) -> Option<AwaySource> {
        None
    }

    /// Starts the program or opens the connection. The time to start limits it.
    fn open(
        &self,
        config: &MountConfig<Self::Endpoint>,
        context: &Arc<ConnectionContext>,
    ) -> impl Future<Output = Result<OpenedChannel<Self::Channel>, String>> + Send;

    /// Introduces the daemon. `memory` is stored whether this succeeds or not.
    fn connect(
        &self,
        config: &MountConfig<Self::Endpoint>,
        channel: Self::Channel,
        context: &Arc<ConnectionContext>,
        memory: &mut Self::Memory,
    ) -> impl Future<Output = Result<(Self::Link, Self::Session), String>> + Send;

    /// Requests all tools, resources and prompts. An adapter may apply `filter` to the tools early; the supervisor does in
    /// any case.
    fn list_tools(
        &self,
        config: &MountConfig<Self::Endpoint>,
        link: &Self::Link,
        filter: &AllowDenyFilter,
    ) -> impl Future<Output = Result<ToolListing<Self::Tool, Self::Memory>, String>> + Send;

    /// Runs until the connection is over, and returns why; ends soon after `context.closing` fires.
    fn run(&self, connection: &MountConnection<Self>, session: Self::Session) -> impl Future<Output = String> + Send;

    /// Called before a connection is closed because its source is no longer mounted. It may take
    /// [`LAST_OUTPUT`].
    ///
    /// [`LAST_OUTPUT`]: crate::program::LAST_OUTPUT
    fn retire(&self, link: &Self::Link) -> impl Future<Output = ()> + Send;

    fn call(
        &self,
        config: &MountConfig<Self::Endpoint>,
        connection: &Arc<MountConnection<Self>>,
        tool: &Self::Tool,
        input: Value,
        cx: &Cx,
    ) -> impl Future<Output = Result<ToolOutput, CallFailure>> + Send;

    /// Makes a request about a resource or a prompt. The structured output is that of a reader, renderer or completer, see
    /// [`toold_engine::offers`]. Not called for a source that lists none.
    fn request(
        &self,
        _config: &MountConfig<Self::Endpoint>,
        _connection: &Arc<MountConnection<Self>>,
        _request: OfferRequest,
        _cx: &Cx,
    ) -> impl Future<Output = Result<ToolOutput, CallFailure>> + Send {
        std::future::ready(Err(ToolError::Failed("it has neither resources nor prompts".to_owned()).into()))
    }

    /// Has the source report the changes that are wanted, and no others; returns when none are wanted any more. Not called
    /// for a source that reports none.
    fn watch(
        &self,
        _config: &MountConfig<Self::Endpoint>,
        _connection: &Arc<MountConnection<Self>>,
        _watches: &Watches,
    ) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// A source that is known not to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaySource {
    /// For the caller of a tool.
    pub why: String,
    /// The last line of the descriptions of its tools. It is no part of a tool's digest: its grants stay.
    pub notice: String,
}

/// When a source is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPolicy {
    /// By the first call, or in the background when its tools are not known yet; after a failure,
    /// by the next call after a delay.
    OnDemand,
    /// At once. It is kept connected, and retried after a failure without a call.
    Always,
}

/// A tool as its source describes it.
pub trait ListedTool: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name in the source.
    fn upstream_name(&self) -> &str;

    /// Changes with every part that a person saw when allowing its use.
    fn digest(&self) -> String;

    /// Its statements for certain clients, see [`Callable::listing_meta`](toold_engine::callable::Callable::listing_meta).
    fn meta(&self) -> Option<&Map<String, Value>> {
        None
    }
}

/// Everything that a source offers.
pub struct ToolListing<T, M> {
    pub tools: Vec<T>,
    pub offers: ListedOffers,
    /// The omissions, as sentences for the user.
    pub problems: Vec<String>,
    /// The tools that are left out, by the source's own names for them, each with its problem.
    pub left_out: Vec<(String, String)>,
    pub memory: M,
}

pub struct OpenedChannel<C> {
    pub channel: C,
    /// `None` for a connection to a program that somebody else runs.
    pub program: Option<SourceProgram>,
}

/// The state shared by a connection and its supervisor.
pub struct ConnectionContext {
    /// The number of starts of the source, including this one.
    pub attempt: u64,
    pub engine: Weak<Engine>,
    /// The sessions that it serves; `None` for all.
    pub owner: Option<InstanceOwner>,
    pub stderr_log: Arc<StderrLog>,
    /// Fires when the connection no longer takes calls.
    pub closing: CancellationToken,
    /// The resources whose changes clients want to hear of.
    pub watches: Arc<Watches>,
    pub(crate) restart: CancellationToken,
    pub(crate) lists_changed: Notify,
    pub(crate) lost: watch::Sender<Option<String>>,
}

impl ConnectionContext {
    pub(crate) fn new(
        attempt: u64,
        engine: Weak<Engine>,
        owner: Option<InstanceOwner>,
        stderr_log: Arc<StderrLog>,
        closing: CancellationToken,
        watches: Arc<Watches>,
    ) -> Self {
        Self {
            attempt,
            engine,
            owner,
            stderr_log,
            closing,
            watches,
            restart: CancellationToken::new(),
            lists_changed: Notify::new(),
            lost: watch::Sender::new(None),
        }
    }

    /// The source's tools, resources or prompts have changed: they are listed again soon.
    pub fn report_changed_lists(&self) {
        self.lists_changed.notify_one();
    }

    /// The source is unreachable: the connection is closed.
    pub fn report_lost(&self, why: String) {
        self.lost.send_replace(Some(why));
    }
}

/// A connection whose tools are known.
pub struct MountConnection<A: MountAdapter> {
    pub link: Arc<A::Link>,
    pub context: Arc<ConnectionContext>,
    pub pid: Option<u32>,
    pub since: SystemTime,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallFailure {
    Tool(ToolError),
    /// The connection was closed during the call. The supervisor learns the reason a moment later.
    Disconnected,
}

impl From<ToolError> for CallFailure {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountState {
    Disabled,
    Stopped,
    Starting,
    Running,
    Failed,
}

/// The sessions that an instance serves, unless it serves all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceOwner {
    Project(PathBuf),
    Session(SessionId),
}

/// One process of a source, or one connection to it.
pub struct InstanceSummary<A: MountAdapter> {
    /// `None` for the one that serves all sessions.
    pub owner: Option<InstanceOwner>,
    pub state: MountState,
    pub connection: Option<Arc<MountConnection<A>>>,
    /// Why it is not running, and how long it is not retried.
    pub error: Option<String>,
    pub retry_ms: Option<u64>,
    /// Calls that are running now.
    pub running: u64,
}

/// Everything known about a mount, from which an adapter makes its status.
pub struct MountSummary<A: MountAdapter> {
    pub config: MountConfig<A::Endpoint>,
    /// The one that serves all sessions. With other scopes it only lists the tools, while they are not known.
    pub shared: InstanceSummary<A>,
    /// The others: those that are starting, running or have failed.
    pub instances: Vec<InstanceSummary<A>>,
    pub memory: A::Memory,
    /// Under their names here, sorted.
    pub tools: Vec<ToolName>,
    pub problems: Vec<String>,
    /// Calls that have ended, and how many of them failed.
    pub calls: u64,
    pub failed_calls: u64,
    /// The number of starts, and of those that led to a connection.
    pub attempts: u64,
    pub connects: u64,
    /// The last lines of its log output.
    pub stderr: Vec<String>,
}
