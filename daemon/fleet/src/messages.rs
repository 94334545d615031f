//! The bodies of messages. Each is the part of a signed [`Message`](crate::signed::Message) beside `kind`, `from`, `to`
//! and the others.
//!
//! Unknown members are ignored, so that daemons of different versions understand each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toold_proto::audit::AuditEntry;
use toold_proto::call::{Progress, Stream};
use toold_proto::permission::{Action, Ask, Scope};
use toold_proto::tool::{Annotations, Category, ToolGrammar, ToolResult};

use crate::names::FleetName;

/// `toold.D.call` and `toold.any.LABEL.call`, of kind `call`: asks a daemon to run a tool. The answers go to the reply subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetCall {
    /// Random, and the id of the call on the daemon that runs it: 1 to 64 of `[a-z0-9_-]`.
    pub call_id: String,
    /// Its name on the daemon that runs it.
    pub tool: String,
    /// See [`ToolRecord::fingerprint`]: a tool that has changed since is not called.
    pub fingerprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// In place of `arguments` that exceed the message limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_blob: Option<Blob>,
    /// The caller's session: calls of one session share a session there.
    pub session: String,
    pub origin: CallOrigin,
    /// Time limit of the tool, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A text in the object store, as UTF-8, encrypted: every machine reads there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// BLAKE3 of what is stored, in hexadecimal digits. The object's name is `DIGEST.CALL`.
    pub digest: String,
    /// Bytes that are stored.
    pub size: u64,
    /// Random, for this text alone; see `blobs`.
    pub key: String,
}

/// Where a call comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrigin {
    pub daemon: FleetName,
    /// The person who uses that machine. Asks of the call go to this person, if the receiver lets them decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<FleetName>,
    /// The program that calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Whether a frontend there can ask that person about this call.
    #[serde(default)]
    pub can_ask: bool,
}

/// The reply subject of a call, of kind `reply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReply {
    pub call_id: String,
    /// 0, 1, 2...: a gap means that messages were lost, and they are sent again.
    pub seq: u64,
    #[serde(flatten)]
    pub event: ReplyEvent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyEvent {
    /// Always first: the call begins when the caller has sent an `alive` with the challenge.
    Accepted(Accepted),
    /// In place of `accepted`, and the last one.
    Refused(RefusedCall),
    /// Progress of any kind but output. May be dropped.
    Progress(Progress),
    /// Never dropped.
    Output { stream: Stream, text: String },
    /// Nothing new: the call is still running. It has the number of the next message and does not use it up.
    Beat(CallBeat),
    /// The last one.
    Result(Finished),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// See [`MemberRecord::instance`].
    pub instance: String,
    /// Random, for this call alone.
    pub challenge: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallBeat {
    /// 1, 2, 3...: one that is not greater than all before it was received before, and is no sign of life.
    pub number: u64,
    /// Whether the call waits for a person. The caller's time limit is paused meanwhile.
    #[serde(default)]
    pub asks: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusedCall {
    pub reason: CallRefusal,
    /// A sentence for the caller.
    pub message: String,
}

/// Why a call does not run. In each case it has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallRefusal {
    /// The daemon runs as many calls as it takes.
    Busy,
    /// It has no such tool, or does not offer it.
    UnknownTool,
    /// The tool has changed since it was listed.
    ChangedTool,
    /// The caller may not call here.
    NotPermitted,
    /// The message expired or was received before.
    Stale,
    /// The daemon is stopping.
    Stopping,
    /// Anything else, such as arguments that cannot be fetched.
    Failed,
}

/// The end of a call that ran. Exactly one of the members but `last` is present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// In place of a result that exceeds the message limit: its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_blob: Option<Blob>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub cancelled: bool,
    /// Always true.
    pub last: bool,
}

/// `toold.D.alive.CALL`, of kind `alive`: the caller waits for the call. The first one starts it. Sent every
/// [`ALIVE_INTERVAL`](crate::silence::ALIVE_INTERVAL), and when a share of the window has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AliveCall {
    pub call_id: String,
    pub challenge: String,
    /// The number of the next message that the caller expects.
    pub seen: u64,
    /// 1, 2, 3...: one that is not greater than all before it was received before, and counts as refused.
    pub number: u64,
}

/// `toold.D.cancel.CALL`, of kind `cancel`. It is answered by `cancelled` when nothing of the call runs any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelCallRequest {
    pub call_id: String,
}

/// The content of a message of kind `cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelledCall {
    pub call_id: String,
    /// Whether the call was running.
    pub was_running: bool,
}

/// Bucket `toold_daemons`, of kind `daemon`, by the daemon's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Random, new at each start of the process.
    pub instance: String,
    pub labels: Vec<FleetName>,
    /// The number of changes of this record and of the daemon's tools since its start.
    pub revision: u64,
    pub version: String,
    /// How many tools it offers.
    pub tools: u64,
    pub running: u64,
    pub max_calls: u64,
    /// The persons who can be asked there now, because a frontend of theirs is connected.
    #[serde(default)]
    pub people: Vec<FleetName>,
    /// Rows of its audit log that it has not sent yet.
    #[serde(default)]
    pub audit_waiting: u64,
    /// The daemons whose messages count there, and their public keys.
    #[serde(default)]
    pub trusts: BTreeMap<FleetName, String>,
}

/// Bucket `toold_tools`, of kind `tool`, by `DAEMON.TOOL`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRecord {
    pub label: String,
    pub description: String,
    /// The schema of the input: JSON Schema of draft 2020-12.
    pub schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Changes with everything that a person sees when allowing the tool.
    pub fingerprint: String,
    pub annotations: Annotations,
    pub parallelizable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<ToolGrammar>,
}

/// Stream `TOOLD_ASKS`, `toold.ask.PERSON.DAEMON.ASK`, of kind `ask`. The ended one replaces the open one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetAsk {
    /// The name of the daemon that asks, a dot, and the id of the ask there.
    pub ask_id: String,
    /// The instance of the daemon that asks.
    pub instance: String,
    /// Random, for this ask alone; an answer contains it.
    pub challenge: String,
    /// Present while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// The origin of the call that asks, if it came through the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<CallOrigin>,
    /// The session of `origin` that called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Present when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndedFleetAsk>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedFleetAsk {
    pub action: toold_proto::permission::Resolution,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The person or client that answered, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// `toold.answer.DAEMON.ASK`, of kind `answer`, signed by a person. It is answered by `answered`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskAnswerMessage {
    pub ask_id: String,
    /// The challenge of the ask.
    pub challenge: String,
    /// The daemon at which the person sits.
    pub at_daemon: FleetName,
    pub decision: Action,
    pub scope: Scope,
    /// One of the suggestions of the ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    #[serde(default)]
    pub all_parts: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// In seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// The content of a message of kind `answered`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerReceipt {
    pub ask_id: String,
    /// Why the answer does not count; absent when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the ask still waits for another answer.
    pub pending: bool,
}

/// Bucket `toold_grants`, of kind `grant`, by `PERSON.ID`, signed by the person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetGrant {
    pub id: String,
    pub rule: FleetRule,
    pub origin: GrantOrigin,
    /// RFC 3339, UTC. An allowing grant always ends; one that denies may have no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<String>,
    /// A revocation, which takes the place of the grant and is final.
    #[serde(default)]
    pub revoked: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetRule {
    pub action: Action,
    pub category: Category,
    pub pattern: String,
    /// Only for these tools, by their names on the daemon; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Only on these daemons; on all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemons: Option<Vec<FleetName>>,
}

/// Where a grant was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrantOrigin {
    pub daemon: FleetName,
    /// RFC 3339, UTC.
    pub made_at: String,
}

/// Stream `TOOLD_AUDIT`, `toold.audit.D`, of kind `audit`: one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditMessage {
    /// Rows of one daemon are in the stream in the order of their `id`, each once.
    pub row: AuditEntry,
    /// Further facts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}
