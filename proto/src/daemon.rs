//! The daemon itself: status, stop.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::level::LevelStatus;
use crate::permission::ObservedAgents;

/// Answer of `daemon.status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DaemonStatus {
    pub pid: u32,
    pub version: String,
    pub protocol: u32,
    /// New at each start.
    pub epoch: String,
    /// The same at each start: the name by which daemons that mount each other know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    pub uptime_s: f64,
    /// Absent when the daemon serves its parent on stdio alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The database. Daemons that serve sockets have one each; a daemon on stdio shares that of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Where MCP clients are served on HTTP; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_url: Option<String>,
    /// Where native clients are served on a WebSocket; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc_url: Option<String>,
    /// Where the page is served; absent when it is not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_url: Option<String>,
    /// The configuration file that was read, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    pub plugin_dirs: Vec<String>,
    /// How the programs that tools run are confined, such as `read-only, no network`; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Why the configured sandbox is not available: then no command runs. Absent when it is, or when none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_refused: Option<String>,
    /// How commands that run without a person's word are confined here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floors: Option<FloorStatus>,
    /// The result of a trial of the sandbox mode `guard`; absent when programs are confined already or no trial was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardTrial>,
    /// How much runs without an approval, by the configuration.
    #[serde(default)]
    pub level: LevelStatus,
    /// Absent when agents are not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observing: Option<ObservedAgents>,
    /// Who paused everything, and when; absent when nothing is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    pub sessions: u64,
    pub connections: u64,
    /// Tools in the global view.
    pub tools: u64,
    pub revision: u64,
    pub calls: CallCounts,
    /// Waiting calls and messages, by what they wait for.
    #[serde(default)]
    pub queues: Queues,
    /// The tools that were called within the last `latency_window_s` seconds, by name.
    #[serde(default)]
    pub latency: Vec<ToolLatency>,
    #[serde(default)]
    pub latency_window_s: u64,
    pub plugins: PluginCounts,
    /// The Lua states that plugins run in.
    #[serde(default)]
    pub lua: LuaMachines,
    /// Resident memory of the process; absent where the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The memory that is reserved for parsed messages.
    #[serde(default)]
    pub message_memory: MessageMemory,
    /// Open file descriptors; absent where the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// The limit on open files; absent where the system sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files_limit: Option<u64>,
    /// Problems with the daemon and its environment, as sentences for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The state of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
}

/// The state of the database and of the file of refusals beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StoreStatus {
    /// Whether the database accepts writes. It does while it is only temporarily out of space.
    pub takes_writes: bool,
    /// The database is damaged: reads may not return everything that was written.
    pub damaged: bool,
    /// Refusals of the user may be lost, so the daemon asks about everything.
    pub refusals_lost: bool,
    /// Rows of the audit log that could not be written since the start.
    pub audit_rows_lost: u64,
    /// Problems and how to fix them, as sentences for the user; also in the `problems` of the status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// The memory of requests over 4 KiB until they are answered, estimated on the high side. A request that does not fit is
/// answered `overloaded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MessageMemory {
    pub taken_bytes: u64,
    pub limit_bytes: u64,
    /// Bytes of answers over 64 KiB that clients have not read yet. Beyond 256 MiB, only clients that read get answers to
    /// requests in flight.
    pub unread_bytes: u64,
}

/// Which commands that run without a person's word this system confines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FloorStatus {
    /// Those that are known only to read. Otherwise they run as `[sandbox]` says.
    pub reading: bool,
    /// Those that a level frees. Otherwise a person is asked about them.
    pub freed: bool,
    /// Why not all are, as a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why builds that are confined make no Unix sockets, as a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<String>,
}

/// Whether the sandbox mode `guard` keeps a program from changing what controls the daemon and from reading its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GuardTrial {
    pub works: bool,
    /// Why it does not work, as a sentence for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallCounts {
    pub started: u64,
    pub finished: u64,
    pub in_flight: u64,
    /// Finished ones by outcome.
    pub outcomes: BTreeMap<String, u64>,
}

/// Calls by what they wait for, and messages on their way to clients. A call that waits inside its tool also counts as
/// running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Queues {
    /// Calls whose tool is running.
    pub running: u64,
    /// Calls that wait for the lane of their session.
    pub waiting_for_lane: u64,
    /// Calls that wait for their turn in a plugin or for an identical call that is running.
    pub waiting_for_place: u64,
    /// Calls that wait for permission or for the answer to a question.
    pub waiting_for_person: u64,
    pub outboxes: OutboxesFill,
    pub events: EventsFill,
}

/// Notifications that clients have not read yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OutboxesFill {
    /// Notifications of all connections.
    pub messages: u64,
    /// Notifications of the connection that has the most.
    pub most: u64,
    /// The limit of each connection; beyond it progress is dropped and subscriptions wait.
    pub capacity: u64,
    /// Connections that are at `capacity`.
    pub full: u64,
    /// Bytes of all connections in notifications of 4 KiB and more. A connection has at most 1 MiB, or one notification that is longer.
    pub long_bytes: u64,
}

/// Events and their subscribers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EventsFill {
    /// Since the start.
    pub emitted: u64,
    /// Subscribers inside and outside of the daemon.
    pub subscribers: u64,
    /// How many events the slowest of them is behind.
    pub lag: u64,
    /// Events that slow subscribers have lost since the start, each counted for each of them.
    pub lost: u64,
}

/// Recent calls of a tool. Times cover its runs only, not waiting for permission or for a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolLatency {
    /// `(others)` stands for all tools beyond the first 512.
    pub tool: String,
    /// Calls that ended.
    pub calls: u64,
    /// Calls with another outcome than `ok`.
    pub errors: u64,
    /// Calls that ran; the others were refused or answered from the cache.
    pub runs: u64,
    /// Half of the runs took no longer than so many microseconds, to one part in sixteen. 0 when there were none.
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

/// Lua states of all plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LuaMachines {
    pub machines: u64,
    /// Memory that scripts have allocated in them, measured at the end of the last call in each.
    pub memory_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PluginCounts {
    pub loaded: u64,
    pub failed: u64,
    pub other: u64,
}

/// Answer of `daemon.metrics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metrics {
    /// The media type of `text`, for an HTTP header.
    pub content_type: String,
    pub text: String,
}

/// Params of `daemon.shutdown`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shutdown {
    /// How long calls in flight may go on before they are cancelled; 5,000 by default, at most 600,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
}

/// Params of `daemon.restart`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Restart {
    /// The absolute path of the program of the new daemon; by default the daemon's own program as it is on disk now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Wait until no call and no background command runs.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Restarted {
    pub pid: u32,
    pub version: String,
    pub protocol: u32,
    pub epoch: String,
    pub previous_pid: u32,
    pub previous_version: String,
}

/// The last message on a connection whose daemon ends in order. Requests without an answer by then were not read: send
/// them again, to the daemon that listens then.
pub const CLOSING: &str = "daemon.closing";

/// Params of [`CLOSING`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Closing {
    /// `restart`: another daemon takes over; `stop`: a person stopped the daemon; `signal`: the system or a program did;
    /// `idle`: nobody used it. Others may follow.
    pub reason: String,
    /// Another daemon listens already.
    #[serde(default)]
    pub restart: bool,
}

/// The reason of a daemon that hands over to another one.
pub const CLOSING_RESTART: &str = "restart";
/// The reason of a daemon that a person stopped.
pub const CLOSING_STOP: &str = "stop";
/// The reason of a daemon that a signal ends.
pub const CLOSING_SIGNAL: &str = "signal";
/// The reason of a daemon that nobody uses.
pub const CLOSING_IDLE: &str = "idle";

/// Answer of methods that return nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Done {}

/// Params of methods that take none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoParams {}

/// Params of `daemon.pause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PauseDaemon {
    /// End what can be ended instead of stopping it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
}

/// Answer of `daemon.pause` and `daemon.resume`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PausedDaemon {
    /// How many processes were stopped, ended, or go on.
    pub processes: u64,
    /// Tools of agents that still run: toold cannot stop them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_running: Vec<String>,
    /// Who paused everything, and when; absent when nothing is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// In the answer of `daemon.resume`, who had paused everything, and when; absent when nothing was paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<String>,
}
