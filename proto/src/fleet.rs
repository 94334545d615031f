//! The fleet of this daemon, as clients see it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permission::Action;
use crate::tool::{Category, ToolName};

/// Answer of `fleet.status`. Persons, keys, addresses and errors are for callers that may decide; others see none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Rows of its audit log that it has not sent yet.
    pub audit_waiting: u64,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetLabel {
    pub name: String,
    /// The daemons that are online, and those that are away.
    pub online: Vec<String>,
    pub away: Vec<String>,
    /// Of all that are online.
    pub running: u64,
    pub max_calls: u64,
    /// The tools of the label under their names here; none when `[fleet.use_labels]` does not name it.
    pub tools: Vec<ToolName>,
    pub mounted: bool,
}

/// Params of `fleet.grant`: a grant that is valid on every daemon that lets this person decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MakeFleetGrant {
    pub action: Action,
    pub category: Category,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RevokeFleetGrant {
    pub id: String,
}

/// Answer of `fleet.grants`, `fleet.grant` and `fleet.revoke`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetGrants {
    /// The newest last.
    pub grants: Vec<FleetGrantInfo>,
}

/// A grant of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
