//! Leave for one need: the policy's decision, or a person's.

use std::path::Path;

use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::asks::Answer;
use crate::cx::Cx;
use crate::need::Need;
use crate::policy::{Decision, Subject, decide};
use crate::tool::ToolError;

/// A no, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    pub category: Category,
    pub target: String,
    pub rule: String,
    /// For the model: what was refused, by what, and what can be done.
    pub message: String,
}

/// Decides one need of a call, asking a person where the policy says so.
///
/// # Errors
/// `Denied` with the rule that decided; `Cancelled` when the call ends while a person is asked;
/// `PermissionEngine` when the daemon is stopping.
pub async fn permit(cx: &Cx, chain: &[String], need: Need) -> Result<(), ToolError> {
    let decision = judge(cx, chain, &need);
    match decision.verdict {
        Verdict::Allow => {
            cx.record(&need, "allow", &decision.rule);
            Ok(())
        }
        Verdict::Deny => {
            let message = format!("not allowed: {} {} (by {})", need.category, need.target, decision.rule);
            refuse(cx, need, decision.rule, message)
        }
        Verdict::Ask if cx.was_granted_once(&need, chain) => Ok(()),
        Verdict::Ask => match crate::asks::ask(cx, chain, &need, &decision).await? {
            Answer::Allowed { rule } => {
                cx.record(&need, "allow", &rule);
                cx.remember_once(&need, chain);
                Ok(())
            }
            Answer::Denied { rule, message } => refuse(cx, need, rule, message),
        },
    }
}

/// The policy's word alone, with nobody asked.
pub fn judge(cx: &Cx, chain: &[String], need: &Need) -> Decision {
    let session = &cx.session;
    let roots: Vec<&Path> = std::iter::once(&session.cwd).chain(&session.roots).map(|path| path.as_path()).collect();
    let subject = Subject {
        tool: &cx.tool,
        origin: cx.origin,
        session: &session.id,
        mode: session.mode(),
        cwd: &cx.cwd,
        roots: &roots,
        project: &session.project,
        chain,
    };
    decide(&cx.engine.policy.load(), &cx.engine.grants.snapshot(), &subject, need)
}

fn refuse(cx: &Cx, need: Need, rule: String, message: String) -> Result<(), ToolError> {
    cx.record(&need, "deny", &rule);
    let denial = Denial { category: need.category, target: need.target, rule, message };
    Err(ToolError::Denied(std::sync::Arc::new(denial)))
}
