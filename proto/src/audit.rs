//! The audit log on the wire: what was done, by whom, and who allowed it.

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::Outcome;
use crate::tool::{CallId, SessionId, ToolName};

/// Params of `audit.query`. An entry must match all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditQuery {
    /// Calls that began at this time or later: RFC 3339, or how long ago, such as `15m` or `2h 30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first entries after this `id`; when absent, the last entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// Calls of this agent, its sub-agents included, or of this client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The maximum number of entries; 100 when absent, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Answer of `audit.query`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditList {
    /// Sorted by `id`, which is the order in which the calls ended.
    pub entries: Vec<AuditEntry>,
    /// Whether more entries match: earlier ones, or later ones with `after`.
    pub more: bool,
    /// How many calls of that time are missing, because they could not be written in time.
    pub lost: u64,
}

/// One call. Secrets in it are replaced by `[redacted]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// Grows with every entry.
    pub id: u64,
    /// When the call began: RFC 3339, UTC.
    pub at: String,
    pub call_id: CallId,
    pub session_id: SessionId,
    pub tool: ToolName,
    /// Who owns the tool: kind and name, such as `plugin:git`.
    pub source: String,
    /// The agent, when it used a tool of its own; `source` is then `agent:` and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The sub-agent of it that used the tool: its kind, and its id in brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The frontend that opened the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The number of the connection, new at each start of the daemon.
    pub connection: u64,
    /// The decision about each permission that the call needed, in order.
    pub decisions: Vec<AuditDecision>,
    pub outcome: Outcome,
    pub duration_ms: u64,
    /// Whether the result came from the cache; the tool did not run then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// With `cached`: how long the call took that produced the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_ms: Option<u64>,
    /// Size of the arguments.
    pub input_bytes: u64,
    /// Size of the result's text.
    pub output_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditDecision {
    pub category: String,
    pub target: String,
    /// `allow`, `deny`, or `ask` for a question that was left to an agent's own prompt.
    pub verdict: String,
    /// The rule or the grant that decided, in words that name where it stands.
    pub rule: String,
    /// The words that choose what a command does, such as `git push`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// The effects of a command, as far as they are known, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// What a command whose sandbox has the network by host exchanged with the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<HostTraffic>,
}

/// Bytes that a call's commands exchanged with a host, without those of the proxy protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostTraffic {
    pub connections: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// Answer of `audit.verify`: whether rows of the audit log were removed or changed. It shows loss, not a forger with the
/// rights of the person, who could write a whole log that is right in itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditVerification {
    /// Rows that were checked.
    pub rows: u64,
    /// Rows that an earlier version wrote, which gave them no hash.
    pub without_chain: u64,
    /// The last row that was removed because of its age or the number of rows; those after it are checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// Calls that could not be recorded; the daemon counted them.
    pub lost: u64,
    /// How many breaks there are; 0 when nothing was removed or changed.
    pub broken: u64,
    /// The first of them.
    pub breaks: Vec<AuditBreak>,
}

/// A place at which something was removed or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditBreak {
    /// The row at which it shows, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// When it was found, if it is none: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub what: String,
}
