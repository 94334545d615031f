//! The daemon itself: status, stop.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `daemon.status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    pub pid: u32,
    pub version: String,
    pub protocol: u32,
    /// New at each start.
    pub epoch: String,
    /// The same at each start: what it is known by to daemons that mount each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    pub uptime_s: f64,
    /// Absent when the daemon serves its parent on stdio alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Where MCP clients are served on HTTP; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_url: Option<String>,
    /// Where native clients are served on a WebSocket; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc_url: Option<String>,
    /// The configuration file that was read, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    pub plugin_dirs: Vec<String>,
    /// What confines the programs that tools run, such as `read-only, no network`; absent when nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// What a trial of the sandbox mode `guard` gave; absent when programs are confined already, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardTrial>,
    pub sessions: u64,
    pub connections: u64,
    /// Tools in the global view.
    pub tools: u64,
    pub revision: u64,
    pub calls: CallCounts,
    /// What waits, and where.
    #[serde(default)]
    pub queues: Queues,
    /// The tools that were called within the last `latency_window_s` seconds, by name.
    #[serde(default)]
    pub latency: Vec<ToolLatency>,
    #[serde(default)]
    pub latency_window_s: u64,
    pub plugins: PluginCounts,
    /// The machines that plugins run in.
    #[serde(default)]
    pub lua: LuaMachines,
    /// Resident memory of the process; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The memory that is set aside for parsed messages.
    #[serde(default)]
    pub message_memory: MessageMemory,
    /// Open file descriptors; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// How many there may be; absent where the system sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files_limit: Option<u64>,
    /// What works less well than it should, in words for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What is stored, and what is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
}

/// The database, and the file of refusals beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StoreStatus {
    /// Whether the database takes anything. One that has no room for the moment does.
    pub takes_writes: bool,
    /// What is read from it may not be all that was written.
    pub damaged: bool,
    /// What people refused may be lost, so everything is asked about.
    pub refusals_lost: bool,
    /// Rows of the audit log that could not be written since the start.
    pub audit_rows_lost: u64,
    /// What is wrong and what to do, in words for people; also among the `problems` of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// What requests of more than 4 KiB take until they are answered, by an estimate that is too high. A request that finds no
/// room is answered `overloaded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessageMemory {
    pub taken_bytes: u64,
    pub limit_bytes: u64,
    /// Answers of more than 64 KiB that clients have not read yet. Beyond 256 MiB requests in flight are answered only to
    /// clients that read.
    pub unread_bytes: u64,
}

/// Whether a program in the sandbox mode `guard` could neither change what controls the daemon nor read its own files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuardTrial {
    pub works: bool,
    /// Why it does not, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    pub started: u64,
    pub finished: u64,
    pub in_flight: u64,
    /// Finished ones by outcome.
    pub outcomes: BTreeMap<String, u64>,
}

/// Calls by what they are at, and messages that are on their way to clients. A call that waits within its tool counts
/// as running, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queues {
    /// Calls that are in their tools.
    pub running: u64,
    /// Calls that wait for the lane of their session.
    pub waiting_for_lane: u64,
    /// Calls that wait for their turn in a plugin, or for an identical call that runs already.
    pub waiting_for_place: u64,
    /// Calls that wait for a person: for leave, or for an answer.
    pub waiting_for_person: u64,
    pub outboxes: OutboxesFill,
    pub events: EventsFill,
}

/// Notifications that wait until their clients read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutboxesFill {
    /// Of all connections.
    pub messages: u64,
    /// Of the connection with the most.
    pub most: u64,
    /// Of each at most; progress beyond is dropped, and subscriptions wait.
    pub capacity: u64,
    /// Connections that are at `capacity`.
    pub full: u64,
    /// Of all connections, in notifications of 4 KiB and more. Of each at most 1 MiB, or one notification that is longer.
    pub long_bytes: u64,
}

/// Events, and who hears them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EventsFill {
    /// Since the start.
    pub emitted: u64,
    /// Those that listen, within the daemon and without.
    pub subscribers: u64,
    /// How many events the slowest of them is behind.
    pub lag: u64,
    /// Events that slow subscribers have lost since the start, each counted for each of them.
    pub lost: u64,
}

/// How a tool did lately. Times are those of its runs alone: waiting for leave, or for a turn, is not in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolLatency {
    /// `(others)` stands for all tools beyond the first 512.
    pub tool: String,
    /// Calls that ended.
    pub calls: u64,
    /// Those of them with another outcome than `ok`.
    pub errors: u64,
    /// Those that ran; the others were refused, or answered from the cache.
    pub runs: u64,
    /// Half of the runs took no longer than so many microseconds, to one part in sixteen. 0 when there were none.
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

/// Lua machines, of all plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LuaMachines {
    pub machines: u64,
    /// What scripts have allocated in them, as of the end of the last call in each.
    pub memory_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginCounts {
    pub loaded: u64,
    pub failed: u64,
    pub other: u64,
}

/// Answer of `daemon.metrics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// What `text` is, for an HTTP header.
    pub content_type: String,
    pub text: String,
}

/// Params of `daemon.shutdown`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shutdown {
    /// How long calls in flight may go on before they are cancelled; 5,000 by default, at most 600,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
}

/// Params of `daemon.restart`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restart {
    /// The program that serves from then on, as an absolute path; the daemon's own by default, as it is on disk now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Wait until no call and no command in the background runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub when_idle: bool,
    /// How long to wait for that; 600,000 by default, at most 86,400,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long calls in flight may go on beside the new daemon before they are cancelled; at most 600,000, which is
    /// the default with `when_idle`, else 5,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
}

/// Answer of `daemon.restart`: the daemon that serves now. This connection ends with this answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restarted {
    pub pid: u32,
    pub version: String,
    pub protocol: u32,
    pub epoch: String,
    pub previous_pid: u32,
    pub previous_version: String,
}

/// The notification that is the last message of a connection whose daemon is being replaced. Requests that were not
/// answered by then were not read: they may be sent again, to the daemon that listens now.
pub const CLOSING: &str = "daemon.closing";

/// Params of [`CLOSING`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Closing {
    /// `restart`; others may follow.
    pub reason: String,
}

/// Answer of methods that have nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// Params of methods that take none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}
