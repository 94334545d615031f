//! The audit log: what was done, by whom, and who allowed it.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use toold_proto::agent_request::DecidedBy;
use toold_proto::audit::HostTraffic;
use toold_proto::effect::Effect;
use toold_proto::event::Outcome;
use toold_proto::tool::{CallId, SessionId, ToolName};

use crate::judged_need::JudgedNeed;

/// How the source of a row begins when an agent used a tool of its own.
pub const OF_AGENT: &str = "agent:";

/// Receives one row for each call, and what is known of a call that may change something before it runs. Each takes some
/// microseconds, and survives the end of the process once it returns.
pub trait AuditLog: Send + Sync {
    /// A call begins, or goes on after a person was asked: then `row` has the number of the first begin, which it replaces.
    /// `row` is what is recorded if the call's end never is. Returns the number for [`AuditRow::begun`].
    ///
    /// # Errors
    /// Why it is not recorded.
    fn begin(&self, row: &AuditRow) -> Result<u64, String>;

    /// A call has ended, and is answered now.
    ///
    /// # Errors
    /// Why it is not recorded.
    fn record(&self, row: &AuditRow) -> Result<(), String>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// The number of its begin, if that was recorded.
    pub begun: Option<u64>,
    pub at: SystemTime,
    pub call_id: CallId,
    pub session_id: SessionId,
    pub tool: ToolName,
    /// Kind and name, such as `plugin:git`; [`OF_AGENT`] and the name of an agent for its own tools, with its sub-agent
    /// behind a slash.
    pub source: String,
    pub client: Option<String>,
    pub connection: u64,
    /// Each decided need, in order: category, target, verdict and rule.
    pub decisions: Vec<DecisionRecord>,
    pub outcome: Outcome,
    pub duration_ms: u64,
    /// How long the call took whose result answered this one from the cache.
    pub original: Option<Duration>,
    /// Bytes of the arguments' and of the result's text.
    pub input_bytes: u64,
    pub output_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DecisionRecord {
    pub category: Cow<'static, str>,
    pub target: String,
    pub verdict: Cow<'static, str>,
    pub rule: String,
    #[serde(skip)]
    pub by: DecidedBy,
    /// The words that choose what a command does, such as `git push`; empty for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// The effects of a command, as far as they are known, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// Bytes that the call's commands sent to the host and received from it, where the daemon made the connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<HostTraffic>,
    /// What is needed to decide it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<JudgedNeed>,
}
