//! Questions about an agent's own tool that are left to the agent's own prompt, and the judgement of the whole.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::agent_request::{Judgement, NOBODY_ANSWERED, QuestionLeft};
use crate::asks::{self, AskAnswer};
use crate::cx::Cx;
use crate::decision::with_subject;
use crate::grant_commands::way_to_allow;
use crate::need::Need;
use crate::policy::{Decision, Subject, denial_of_all, strict_rule};
use crate::tool::ToolError;

impl Cx {
    /// The judgement after the needs of an agent's call were checked; a denial has ended the call before.
    pub fn judgement(&self) -> Judgement {
        if let Some(question) = self.question_left() {
            let QuestionLeft { by, protected, may_be_denied, .. } = question;
            return Judgement { by, protected, may_be_denied, ..Judgement::ask(question.in_words()) };
        }
        let rank = |by: DecidedBy| match by {
            DecidedBy::Default => 0,
            DecidedBy::Rule => 1,
            DecidedBy::Grant => 2,
            DecidedBy::Person => 3,
        };
        let decisions = self.decisions();
        match decisions.into_iter().max_by_key(|decision| rank(decision.by)) {
            Some(decision) => allowed(decision.by, decision.rule),
            None => allowed(DecidedBy::Default, "it needs no permission".to_owned()),
        }
    }
}

impl Cx {
    /// Whether no person allowed what a judgement allows of these needs, by a rule, a grant or an answer: it only reads, or a
    /// level freed it.
    pub fn is_freed(&self, judgement: &Judgement, needs: &[Need]) -> bool {
        judgement.decision == Verdict::Allow && self.floor(needs).is_some()
    }

    /// The first rule or grant, in words, that could be about something of this category that the agent's tool does, and
    /// has one of these verdicts. Rules for other tools count too, since the tool may do the same as they do.
    pub fn rule_about_any(&self, category: Category, verdicts: &[Verdict]) -> Option<String> {
        with_subject(self, &self.tool, self.origin, &self.chain, |subject| {
            let subject = Subject { tool: None, ..subject.clone() };
            strict_rule(&self.engine.policy.load(), &self.engine.grants.snapshot(), &subject, category, verdicts)
        })
    }

    /// The rule or grant, in words, that denies this tool everything of the category.
    pub fn denial_of_all(&self, category: Category) -> Option<String> {
        with_subject(self, &self.tool, self.origin, &self.chain, |subject| {
            denial_of_all(&self.engine.policy.load(), &self.engine.grants.snapshot(), subject, category)
        })
    }
}

fn allowed(by: DecidedBy, reason: String) -> Judgement {
    Judgement { decision: Verdict::Allow, by, ..Judgement::ask(reason) }
}

/// How much longer than the ask itself its call waits, so that frontends see the ask expire, and not its call end.
const AFTER_THE_ASK: Duration = Duration::from_millis(200);

/// Why a question is left to the agent's own prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftBecause {
    /// People are not asked here.
    NotAskedHere,
    NobodyAnswered,
    /// No frontend is connected that could answer.
    NobodyThere,
}

/// Asks a person. `None`: the call is an agent's, and the question is left to the agent's own prompt.
///
/// # Errors
/// As [`asks::ask`].
pub(crate) async fn ask_or_leave(
    cx: &Cx,
    chain: &[String],
    need: &Need,
    declared: &[Need],
    decision: &Decision,
) -> Result<Option<AskAnswer>, ToolError> {
    let Some(agent) = &cx.agent else { return asks::ask(cx, chain, need, declared, decision).await.map(Some) };
    let left = match agent.asks_until {
        Some(until) if decision.verdict == Verdict::Ask => {
            if until > Instant::now() && cx.engine.asks.can_be_answered(cx) {
                // Dropping the future withdraws the question.
                match timeout_at(until + AFTER_THE_ASK, asks::ask(cx, chain, need, declared, decision)).await {
                    Ok(Ok(AskAnswer::Denied { by: DecidedBy::Default, .. })) | Err(_) => {
                        cx.note_answered(need);
                        LeftBecause::NobodyAnswered
                    }
                    Ok(answer) => return answer.map(Some),
                }
            } else if *agent.waiting.borrow() {
                LeftBecause::NobodyAnswered
            } else {
                LeftBecause::NobodyThere
            }
        }
        _ => LeftBecause::NotAskedHere,
    };
    leave(cx, chain, need, decision, left);
    Ok(None)
}

fn leave(cx: &Cx, chain: &[String], need: &Need, decision: &Decision, because: LeftBecause) {
    // The configuration wants a person, so that this counts as a rule that asks: without an answer, nothing is allowed.
    let (why, by) = match because {
        // It may touch a file that no tool touches, in whatever mode the agent is: silence would let it run in some.
        LeftBecause::NotAskedHere if need.hides_file() => (decision.rule.clone(), DecidedBy::Rule),
        LeftBecause::NotAskedHere => (decision.rule.clone(), decision.by),
        LeftBecause::NobodyAnswered => (format!("{NOBODY_ANSWERED} ({})", decision.rule), DecidedBy::Rule),
        LeftBecause::NobodyThere => (format!("nobody to ask ({})", decision.rule), DecidedBy::Rule),
    };
    let way = way_to_allow(cx, chain, need).map(|way| format!(". {way}")).unwrap_or_default();
    let noun = match need.category() {
        Category::Shell => String::new(),
        category => format!("{category} "),
    };
    let protected = cx.engine.policy.load().protected_write(cx.session.project(), need).is_some();
    let named = format!("{noun}{}", need.named());
    cx.leave_question(QuestionLeft {
        reason: format!("needs approval: {named} ({}){way}", need.explained(&why)),
        unseen: need.reason.as_ref().filter(|_| !need.is_workspace()).map(|reason| format!("{named} ({reason})")),
        others_unseen: Vec::new(),
        by,
        protected,
        may_be_denied: decision.may_be_denied || need.hides_file(),
    });
    cx.record(need, "ask", why, by);
}
