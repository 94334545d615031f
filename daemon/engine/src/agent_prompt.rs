//! Questions about an agent's own tool that are left to the agent's own prompt, and the judgement of the whole.

use tokio::time::{Instant, timeout_at};
use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::agent_request::Judgement;
use crate::asks::{self, AskAnswer};
use crate::cx::Cx;
use crate::decision::with_subject;
use crate::grant_commands::way_to_allow;
use crate::need::Need;
use crate::policy::{Decision, Subject, strict_rule};
use crate::tool::ToolError;

impl Cx {
    /// The judgement after the needs of an agent's call were checked; a denial has ended the call before.
    pub fn judgement(&self) -> Judgement {
        if let Some((reason, by)) = self.question_left() {
            return Judgement { by, ..Judgement::ask(reason) };
        }
        let rank = |by: DecidedBy| match by {
            DecidedBy::Default => 0,
            DecidedBy::Rule => 1,
            DecidedBy::Grant => 2,
            DecidedBy::Person => 3,
        };
        let decisions = self.decisions();
        match decisions.into_iter().max_by_key(|decision| rank(decision.by)) {
            Some(decision) => Judgement { decision: Verdict::Allow, by: decision.by, reason: decision.rule },
            None => Judgement {
                decision: Verdict::Allow,
                by: DecidedBy::Default,
                reason: "it needs no permission".to_owned(),
            },
        }
    }
}

impl Cx {
    /// The first rule or grant, in words, that could be about something of this category that the agent's tool does, and
    /// has one of these verdicts. Rules for other tools count too, since the tool may do the same as they do.
    pub fn rule_about_any(&self, category: Category, verdicts: &[Verdict]) -> Option<String> {
        with_subject(self, &self.tool, self.origin, &self.chain, |subject| {
            let subject = Subject { tool: None, ..subject.clone() };
            strict_rule(&self.engine.policy.load(), &self.engine.grants.snapshot(), &subject, category, verdicts)
        })
    }
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
    let open = |until: &Instant| *until > Instant::now() && cx.engine.asks.can_be_answered(cx);
    if decision.verdict == Verdict::Ask
        && let Some(until) = agent.asks_until.filter(open)
    {
        // Dropping the future withdraws the question.
        match timeout_at(until, asks::ask(cx, chain, need, declared, decision)).await {
            Ok(Ok(AskAnswer::Denied { by: DecidedBy::Default, .. })) | Err(_) => {}
            Ok(answer) => return answer.map(Some),
        }
    }
    leave(cx, chain, need, decision);
    Ok(None)
}

fn leave(cx: &Cx, chain: &[String], need: &Need, decision: &Decision) {
    cx.record(need, "ask", decision.rule.clone(), decision.by);
    let way = way_to_allow(cx, chain, need).map(|way| format!(". {way}")).unwrap_or_default();
    let noun = match need.category {
        Category::Shell => String::new(),
        category => format!("{category} "),
    };
    cx.leave_question(format!("needs approval: {noun}{} ({}){way}", need.target, decision.rule), decision.by);
}
