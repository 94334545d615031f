//! Events: what happens in the daemon, in order, for subscribers.

use serde::{Deserialize, Serialize};

use crate::call::Progress;
use crate::permission::{Ask, Resolved};
use crate::plugin::PluginError;
use crate::question::{Question, QuestionResolved};
use crate::session::Mode;
use crate::todo::TodoItem;
use crate::tool::{CallId, Category, SessionId, ToolName};

/// Params of `events.subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubscribeEvents {
    /// Names of kinds, as in `kind`; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// Only events of this session, and events of no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Replay the buffered events after this `seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// The epoch that `since` belongs to; if it is another one, all buffered events are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
}

/// An item of `events.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    /// Grows by one with every event of the daemon, including those that a filter leaves out.
    pub seq: u64,
    /// New at each start of the daemon.
    pub epoch: String,
    /// RFC 3339, UTC.
    pub at: String,
    #[serde(flatten)]
    pub body: EventBody,
}

/// The kind of an event, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind")]
pub enum EventBody {
    #[serde(rename = "tools.changed")]
    ToolsChanged {
        revision: u64,
        /// Names, sorted.
        added: Vec<ToolName>,
        removed: Vec<ToolName>,
        changed: Vec<ToolName>,
    },
    /// Resources or templates were added, removed or replaced, or folders of a session were opened, which then sees those of
    /// their project.
    #[serde(rename = "resources.changed")]
    ResourcesChanged {},
    #[serde(rename = "prompts.changed")]
    PromptsChanged {},
    #[serde(rename = "call.started")]
    CallStarted {
        call_id: CallId,
        session_id: SessionId,
        tool: ToolName,
        /// The agent, when it uses a tool of its own. `tool` is then the built-in tool that does the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The frontend that opened the session, as it named itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        /// The folder that the call works in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// The arguments on one line of at most 256 bytes, such as `path=src/a.rs limit=20`. Long values are shortened,
        /// and secrets are replaced by `[redacted]`. Absent without arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
    },
    #[serde(rename = "call.progress")]
    CallProgress { call_id: CallId, session_id: SessionId, progress: Progress },
    #[serde(rename = "call.finished")]
    CallFinished {
        call_id: CallId,
        session_id: SessionId,
        tool: ToolName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        outcome: Outcome,
        duration_ms: u64,
    },
    #[serde(rename = "permission.asked")]
    PermissionAsked { session_id: SessionId, request: Box<Ask> },
    #[serde(rename = "permission.resolved")]
    PermissionResolved { session_id: SessionId, resolved: Resolved },
    #[serde(rename = "question.asked")]
    QuestionAsked { session_id: SessionId, request: Box<Question> },
    #[serde(rename = "question.answered")]
    QuestionAnswered { session_id: SessionId, resolved: QuestionResolved },
    #[serde(rename = "plugin.loaded")]
    PluginLoaded { plugin: String, path: String, tools: Vec<String> },
    #[serde(rename = "plugin.failed")]
    PluginFailed { plugin: String, path: String, error: PluginError },
    /// A project's plugin waits for a person to trust it.
    #[serde(rename = "plugin.untrusted")]
    PluginUntrusted { plugin: String, path: String },
    #[serde(rename = "plugin.unloaded")]
    PluginUnloaded { plugin: String, path: String },
    /// A function of a plugin failed while it ran: it raised an error, reached its time limit, or returned something that
    /// is not valid. A plugin that fails often is not reported each time.
    #[serde(rename = "plugin.error")]
    PluginHandlerFailed {
        plugin: String,
        /// The function: `tool greet`, `hook NAME`, `command hi`, `resource NAME`, `prompt NAME`, `completion NAME`,
        /// `permission of NAME`, or `script` for a script that loaded before and fails now.
        handler: String,
        error: PluginError,
        /// Absent outside of calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// How many failures of the plugin before this one were not reported.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: u64,
    },
    /// A plugin was refused a permission outside of any call, such as while it loads.
    #[serde(rename = "plugin.refused")]
    PluginRefused { plugin: String, category: Category, target: String, message: String },
    /// A daemon of the fleet came, went, or has other labels or another load, or this daemon joined or left. At most one
    /// each second; `fleet.status` has the facts.
    #[serde(rename = "fleet.changed")]
    FleetChanged {},
    /// A configuration file was reloaded, or a person trusted that of a project.
    #[serde(rename = "config.changed")]
    ConfigChanged {
        file: String,
        /// The project that it belongs to; absent for the user's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        /// Problems with it, as sentences for the user. While there are any, the previous configuration stays active.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
    },
    #[serde(rename = "session.opened")]
    SessionOpened { session_id: SessionId, cwd: String },
    #[serde(rename = "session.closed")]
    SessionClosed { session_id: SessionId },
    /// The mode of a session was changed, or its level.
    #[serde(rename = "session.mode")]
    SessionMode { session_id: SessionId, mode: Mode },
    #[serde(rename = "todo.changed")]
    TodoChanged {
        session_id: SessionId,
        /// The whole list, in its author's order.
        items: Vec<TodoItem>,
    },
    #[serde(rename = "shell.started")]
    ShellStarted { session_id: SessionId, shell_id: String, command: String },
    #[serde(rename = "shell.exited")]
    ShellExited {
        session_id: SessionId,
        shell_id: String,
        /// How it ended, as text.
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    #[serde(rename = "notice")]
    Notice {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// The plugin that notifies; absent for the daemon itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plugin: Option<String>,
        level: String,
        message: String,
    },
    /// A log line of a plugin: the first lines of each call, hook and load are sent.
    #[serde(rename = "log")]
    Log {
        /// Absent outside of calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        plugin: String,
        /// `debug`, `info`, `warn` or `error`.
        level: String,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fields: Option<serde_json::Value>,
    },
    #[serde(rename = "message")]
    Message { session_id: SessionId, plugin: String, role: String, content: String },
    /// Events of this subscription were lost: it read too slowly, or `since` is too old.
    #[serde(rename = "lagged")]
    Lagged {
        /// How many; absent when that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<u64>,
    },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EventBody {
    /// The name on the wire, which is what `kinds` filters by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ToolsChanged { .. } => "tools.changed",
            Self::ResourcesChanged {} => "resources.changed",
            Self::PromptsChanged {} => "prompts.changed",
            Self::CallStarted { .. } => "call.started",
            Self::CallProgress { .. } => "call.progress",
            Self::CallFinished { .. } => "call.finished",
            Self::PermissionAsked { .. } => "permission.asked",
            Self::PermissionResolved { .. } => "permission.resolved",
            Self::QuestionAsked { .. } => "question.asked",
            Self::QuestionAnswered { .. } => "question.answered",
            Self::PluginLoaded { .. } => "plugin.loaded",
            Self::PluginFailed { .. } => "plugin.failed",
            Self::PluginUntrusted { .. } => "plugin.untrusted",
            Self::PluginUnloaded { .. } => "plugin.unloaded",
            Self::PluginHandlerFailed { .. } => "plugin.error",
            Self::PluginRefused { .. } => "plugin.refused",
            Self::FleetChanged {} => "fleet.changed",
            Self::ConfigChanged { .. } => "config.changed",
            Self::SessionOpened { .. } => "session.opened",
            Self::SessionClosed { .. } => "session.closed",
            Self::SessionMode { .. } => "session.mode",
            Self::TodoChanged { .. } => "todo.changed",
            Self::ShellStarted { .. } => "shell.started",
            Self::ShellExited { .. } => "shell.exited",
            Self::Notice { .. } => "notice",
            Self::Log { .. } => "log",
            Self::Message { .. } => "message",
            Self::Lagged { .. } => "lagged",
        }
    }

    /// The kinds that a subscription can name.
    pub const KINDS: &[&'static str] = &[
        "tools.changed",
        "resources.changed",
        "prompts.changed",
        "call.started",
        "call.progress",
        "call.finished",
        "permission.asked",
        "permission.resolved",
        "question.asked",
        "question.answered",
        "plugin.loaded",
        "plugin.failed",
        "plugin.untrusted",
        "plugin.unloaded",
        "plugin.error",
        "plugin.refused",
        "fleet.changed",
        "config.changed",
        "session.opened",
        "session.closed",
        "session.mode",
        "todo.changed",
        "shell.started",
        "shell.exited",
        "notice",
        "log",
        "message",
    ];

    /// The kinds that are about one plugin.
    pub const OF_PLUGINS: [&'static str; 9] = [
        "plugin.loaded",
        "plugin.failed",
        "plugin.untrusted",
        "plugin.unloaded",
        "plugin.error",
        "plugin.refused",
        "notice",
        "log",
        "message",
    ];

    /// The plugin that it is about, if any.
    pub fn plugin(&self) -> Option<&str> {
        match self {
            Self::PluginLoaded { plugin, .. }
            | Self::PluginFailed { plugin, .. }
            | Self::PluginUntrusted { plugin, .. }
            | Self::PluginUnloaded { plugin, .. }
            | Self::PluginHandlerFailed { plugin, .. }
            | Self::PluginRefused { plugin, .. }
            | Self::Log { plugin, .. }
            | Self::Message { plugin, .. } => Some(plugin),
            Self::Notice { plugin, .. } => plugin.as_deref(),
            _ => None,
        }
    }

    /// Whether it is about a call: there are far more of these than of all others.
    pub fn is_of_call(&self) -> bool {
        matches!(self, Self::CallStarted { .. } | Self::CallProgress { .. } | Self::CallFinished { .. })
    }

    /// The session it belongs to, if any.
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::CallStarted { session_id, .. }
            | Self::CallProgress { session_id, .. }
            | Self::CallFinished { session_id, .. }
            | Self::PermissionAsked { session_id, .. }
            | Self::PermissionResolved { session_id, .. }
            | Self::QuestionAsked { session_id, .. }
            | Self::QuestionAnswered { session_id, .. }
            | Self::SessionOpened { session_id, .. }
            | Self::SessionClosed { session_id }
            | Self::SessionMode { session_id, .. }
            | Self::TodoChanged { session_id, .. }
            | Self::ShellStarted { session_id, .. }
            | Self::ShellExited { session_id, .. }
            | Self::Message { session_id, .. } => Some(session_id),
            Self::Notice { session_id, .. }
            | Self::Log { session_id, .. }
            | Self::PluginHandlerFailed { session_id, .. } => session_id.as_ref(),
            Self::ToolsChanged { .. }
            | Self::ResourcesChanged {}
            | Self::PromptsChanged {}
            | Self::PluginLoaded { .. }
            | Self::PluginFailed { .. }
            | Self::PluginUntrusted { .. }
            | Self::PluginUnloaded { .. }
            | Self::PluginRefused { .. }
            | Self::FleetChanged {}
            | Self::ConfigChanged { .. }
            | Self::Lagged { .. } => None,
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    /// A result with `is_error`.
    Error,
    Denied,
    TimedOut,
    Cancelled,
    InvalidArgs,
    Overloaded,
    /// A crash, a missing dependency, a permission engine that is closing.
    Failed,
    Skipped,
    /// The daemon ended while the call ran, this one or that of another machine: whether it was done is unknown.
    Interrupted,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Error,
        Self::Denied,
        Self::TimedOut,
        Self::Cancelled,
        Self::InvalidArgs,
        Self::Overloaded,
        Self::Failed,
        Self::Skipped,
        Self::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::InvalidArgs => "invalid_args",
            Self::Overloaded => "overloaded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Interrupted => "interrupted",
        }
    }
}

/// An item of a subscription on the wire: `{method: "X.event", params: {subscription, result}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubscriptionItem<T> {
    pub subscription: String,
    pub result: T,
}

/// Params of `X.unsubscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unsubscribe {
    /// The id that the subscription was answered with.
    pub subscription: String,
}
