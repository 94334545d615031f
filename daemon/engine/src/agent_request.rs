//! An action that an agent is about to take with a tool of its own, and the decision about it.
//!
//! The agent does the work. The call determines and decides the needs like those of any other call, hands out a
//! [`Judgement`], and lasts until the agent reports the end of its work. [`crate::agent_prompt`] leaves questions to the
//! agent's own prompt.

use tokio::sync::watch;
use tokio::time::Instant;
use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::Verdict;
use toold_proto::session::Mode;

/// The agent of such a call.
#[derive(Clone, Debug)]
pub struct AgentRequest {
    pub agent: String,
    /// The agent's sub-agent, in words.
    pub subagent: Option<String>,
    /// Until when people may answer here; `None` leaves all questions to the agent's own prompt.
    pub asks_until: Option<Instant>,
    /// A person was asked about it by a daemon that ended before the answer.
    pub was_asked: bool,
    /// Becomes true once a person is asked.
    pub waiting: watch::Sender<bool>,
    /// A person wants a record first: everything but denials and protected writes is left to the agent.
    pub observed: bool,
    /// The agent's own mode, where the configuration trusts it; `plan` always.
    pub mode: Option<Mode>,
}

/// How the rule of a decision begins that was recorded, and left to the agent. It is no answer, and no use of a grant.
pub const OBSERVED: &str = "observed: ";

/// How the rule of a decision begins about which a person was asked in vain.
pub(crate) const NOBODY_ANSWERED: &str = "nobody answered";

/// The decision about everything that the agent's tool needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// `Ask` leaves the question to the agent's own prompt.
    pub decision: Verdict,
    pub by: DecidedBy,
    pub reason: String,
    /// The question is about a protected write.
    pub protected: bool,
}

impl Judgement {
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { decision: Verdict::Ask, by: DecidedBy::Default, reason: reason.into(), protected: false }
    }
}

/// A question that was left to the agent's own prompt.
#[derive(Clone, Debug)]
pub struct QuestionLeft {
    pub reason: String,
    pub by: DecidedBy,
    /// One of the questions is about a protected write.
    pub protected: bool,
}
