//! An action that an agent is about to take with a tool of its own, and the decision about it.
//!
//! The agent does the work. The call determines and decides the needs like those of any other call, hands out a
//! [`Judgement`], and lasts until the agent reports the end of its work. [`crate::agent_prompt`] leaves questions to the
//! agent's own prompt.

use std::sync::OnceLock;

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
    /// The same in the agent's words, for people who are asked.
    pub mode_name: Option<String>,
    /// How it ended for whom the call is judged, in words, if that came before the judgement.
    pub gone: OnceLock<&'static str>,
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
    /// As [`QuestionLeft::may_be_denied`].
    pub may_be_denied: bool,
}

impl Judgement {
    pub fn ask(reason: impl Into<String>) -> Self {
        let (decision, by) = (Verdict::Ask, DecidedBy::Default);
        Self { decision, by, reason: reason.into(), protected: false, may_be_denied: false }
    }
}

/// How many questions beside the first are named in the agent's prompt.
const MAX_SHOWN: usize = 5;

/// The questions of a call that were left to the agent's own prompt.
#[derive(Clone, Debug)]
pub struct QuestionLeft {
    pub reason: String,
    /// The need in words, if the input of the agent's tool does not show it.
    pub(crate) unseen: Option<String>,
    /// The same of the other questions.
    pub(crate) others_unseen: Vec<String>,
    pub by: DecidedBy,
    /// One of the questions is about a protected write.
    pub protected: bool,
    /// One of them is asked because it may be about what is denied: by a rule or a grant, or as a file that no tool touches.
    pub may_be_denied: bool,
}

impl QuestionLeft {
    pub(crate) fn by_default(reason: String) -> Self {
        let by = DecidedBy::Default;
        Self { reason, unseen: None, others_unseen: Vec::new(), by, protected: false, may_be_denied: false }
    }

    /// The reason of the first question that a rule asks counts; without any, that of the first question.
    pub(crate) fn with(self, next: Self) -> Self {
        let protected = self.protected || next.protected;
        let may_be_denied = self.may_be_denied || next.may_be_denied;
        let by_next = self.by == DecidedBy::Default && next.by != DecidedBy::Default;
        let (mut counts, other) = if by_next { (next, self) } else { (self, next) };
        for unseen in other.unseen.into_iter().chain(other.others_unseen) {
            if counts.unseen.as_ref() != Some(&unseen) && !counts.others_unseen.contains(&unseen) {
                counts.others_unseen.push(unseen);
            }
        }
        Self { protected, may_be_denied, ..counts }
    }

    /// For the agent's prompt, which shows the input of the agent's tool: the reason, and what else the answer is about.
    pub(crate) fn in_words(&self) -> String {
        let (shown, more) = self.others_unseen.split_at(self.others_unseen.len().min(MAX_SHOWN));
        let more = (!more.is_empty()).then(|| format!("{} more", more.len()));
        let others: Vec<&str> = shown.iter().map(String::as_str).chain(more.as_deref()).collect();
        match others.is_empty() {
            true => self.reason.clone(),
            false => format!("{}; also {}", self.reason, others.join("; ")),
        }
    }
}
