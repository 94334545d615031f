//! The fleet of this daemon, as clients see it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audit::AuditEntry;
use crate::event::Outcome;
use crate::permission::Action;
use crate::tool::{Category, SessionId, ToolName};

/// Answer of `fleet.status`. Persons, keys, addresses and errors are for callers that may decide; others see none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetStatus {
    /// Whether `[fleet]` is configured. If not, nothing else is present.
    pub configured: bool,
    /// The name of this daemon in the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The public key of this daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The person who uses this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The public key of that person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_key: Option<String>,
    /// Whether the broker is connected.
    pub connected: bool,
    /// RFC 3339, UTC: since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The addresses of the broker.
    pub servers: Vec<String>,
    /// Why this daemon is not in the fleet, or what does not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The labels of this daemon.
    pub labels: Vec<String>,
    /// Calls from the fleet that are running here, that have ended here, and how many run at the same time.
    pub running: u64,
    pub served: u64,
    pub max_calls: u64,
    /// How many of its tools this daemon offers.
    pub offered: u64,
    /// The other daemons that `[fleet]` names, sorted by name.
    pub daemons: Vec<FleetDaemon>,
    /// The labels of all daemons, sorted by name.
    pub label_groups: Vec<FleetLabel>,
    /// How many messages were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// The last refused message, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refused: Option<String>,
    /// Rows of the audit log that the broker has confirmed since this daemon started, and those that wait.
    pub audit_sent: u64,
    pub audit_waiting: u64,
    /// Grants of the fleet that are valid here now.
    pub grants: u64,
}

/// Another daemon of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetDaemon {
    pub name: String,
    pub state: FleetDaemonState,
    /// Its public key.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub labels: Vec<String>,
    /// Its tools under their names here, also while it is away.
    pub tools: Vec<ToolName>,
    /// Calls from the fleet that are running there, and how many it runs at the same time.
    pub running: u64,
    pub max_calls: u64,
    /// Persons who can be asked there now.
    pub people: Vec<String>,
    /// RFC 3339, UTC: when it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<String>,
    /// How old its last record is, in milliseconds. It is renewed every ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ms: Option<u64>,
    /// How far its clock was ahead of the clock here when its last record arrived, in milliseconds; less than 0 when it was
    /// behind. Calls need clocks that differ by less than a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ms: Option<i64>,
    /// Rows of its audit log that it has not sent yet.
    pub audit_waiting: u64,
    /// Whether it knows this daemon's name and key: if not, it refuses everything from here. Absent while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusts_this: Option<bool>,
    /// Whether it may call tools here.
    pub may_call: bool,
    /// Tools that were left out of its list, and why.
    pub problems: Vec<String>,
    /// Calls from here that have ended, and how many of them failed.
    pub calls: u64,
    pub bad_calls: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FleetDaemonState {
    Online,
    /// It was there and is gone: its tools stay listed, and calls of them fail.
    Away,
    /// It has not been heard of since this daemon started.
    Unknown,
    /// `enabled = false`: its tools are not listed here.
    Disabled,
}

impl FleetDaemonState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Away => "away",
            Self::Unknown => "unknown",
            Self::Disabled => "disabled",
        }
    }
}

/// All daemons with a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetLabel {
    pub name: String,
    /// The daemons that are online, and those that are away.
    pub online: Vec<String>,
    pub away: Vec<String>,
    /// Calls that run on all daemons that are online.
    pub running: u64,
    pub max_calls: u64,
    /// The tools of the label under their names here; none when `[fleet.use_labels]` does not name it.
    pub tools: Vec<ToolName>,
    pub mounted: bool,
}

/// Params of `fleet.grant`: a grant that is valid on every daemon that lets this person decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MakeFleetGrant {
    pub action: Action,
    pub category: Category,
    /// What it is about, as in a rule of the category.
    pub pattern: String,
    /// Only for these tools, by their names on the daemon; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Only on these daemons; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemons: Option<Vec<String>>,
    /// For how long it is valid, in seconds. When absent: 12 hours if it allows, without an end if it denies. At most 30 days
    /// if it allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// Params of `fleet.revoke`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevokeFleetGrant {
    /// The id of the grant.
    pub id: String,
}

/// Answer of `fleet.grants`, `fleet.grant` and `fleet.revoke`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetGrants {
    /// The newest last.
    pub grants: Vec<FleetGrantInfo>,
}

/// A grant of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetGrantInfo {
    pub id: String,
    pub person: String,
    pub action: Action,
    pub category: Category,
    pub pattern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemons: Option<Vec<String>>,
    /// The daemon at which it was made.
    pub made_on: String,
    /// RFC 3339, UTC.
    pub made_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Whether it is valid here now.
    pub valid: bool,
    /// Why it is not, such as a lease that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// Params of `fleet.audit`. An entry must match all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetAuditQuery {
    /// Only calls on this daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<String>,
    /// Calls that began at this time or later: RFC 3339, or how long ago, such as `15m` or `2h 30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first entries after this `sequence`; when absent, the last entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Only entries before this `sequence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
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

/// Answer of `fleet.audit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetAuditList {
    /// Sorted by `sequence`.
    pub entries: Vec<FleetAuditEntry>,
    /// Whether more entries match: earlier ones, or later ones with `after`.
    pub more: bool,
    /// The `sequence` of the newest row that was looked at, for the next query with `after`; 0 if there was none.
    pub last: u64,
    /// Rows that were not signed by the daemon that they claim to be from, or whose daemon is not in `[fleet]`: they are left
    /// out.
    pub unverified: u64,
    /// Rows that the broker should have and has not, by daemon, among those that were looked at: each daemon numbers its rows.
    pub missing: BTreeMap<String, u64>,
}

/// A row of the audit log of a daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetAuditEntry {
    /// Its number in the stream of the broker, which grows with every row of any daemon.
    pub sequence: u64,
    /// The daemon that ran the call.
    pub daemon: String,
    /// As in that daemon's own log; `decisions` may be left out of one that is too large for the broker.
    pub row: AuditEntry,
}
