//! Leave for one need: the policy's decision, or a person's.

use std::path::Path;
use std::time::{Duration, SystemTime};

use toold_proto::permission::{GrantInfo, GrantPermission, Verdict};
use toold_proto::tool::{Category, ToolName};

use crate::Engine;
use crate::asks::Answer;
use crate::cx::Cx;
use crate::need::Need;
use crate::policy::pattern::Pattern;
use crate::policy::rules::{RulePlace, absolute_pattern};
use crate::policy::targets::is_plugin_name;
use crate::policy::{Decision, Grant, GrantScope, Subject, decide, makes_temporary, of_approved_command};
use crate::tool::{Origin, ToolError};
use crate::workspace;

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
pub async fn permit(cx: &Cx, chain: &[String], need: &Need) -> Result<(), ToolError> {
    let answer = decide_or_ask(cx, chain, need).await;
    if answer.is_ok() && makes_temporary(need) {
        cx.session.note_made(Path::new(&need.target));
    }
    cx.note_need(need, chain, answer.is_ok());
    answer
}

async fn decide_or_ask(cx: &Cx, chain: &[String], need: &Need) -> Result<(), ToolError> {
    let mut decision = judge(cx, chain, need);
    if cx.session.topmost().workspace().is_some() && Box::pin(workspace::require(cx, need, &decision)).await? {
        // The folder that was opened may be what it needs.
        decision = judge(cx, chain, need);
    }
    match decision.verdict {
        Verdict::Allow => {
            if need.category == Category::Shell && decision.covers_all {
                cx.approve_command(&need.target);
            }
            cx.record(need, "allow", decision.rule);
            Ok(())
        }
        Verdict::Deny => {
            let message = format!("not allowed: {} {} (by {})", need.category, need.target, decision.rule);
            refuse(cx, need, decision.rule, message)
        }
        Verdict::Ask if cx.was_granted_once(need, chain) => Ok(()),
        Verdict::Ask if is_of_approved_command(cx, need) => {
            let command = need.of_command.as_deref().unwrap_or_default();
            cx.record(need, "allow", of_approved_command(command));
            Ok(())
        }
        Verdict::Ask => match Box::pin(crate::asks::ask(cx, chain, need, &decision)).await? {
            Answer::Allowed { rule, .. } => {
                cx.record(need, "allow", rule);
                if need.category == Category::Shell {
                    // Whoever was asked saw the whole of it.
                    cx.approve_command(&need.target);
                }
                cx.remember_once(need, chain);
                Ok(())
            }
            Answer::Denied { rule, message } => refuse(cx, need, rule, message),
        },
    }
}

/// Whether the file is named by a command that a person approved, or a rule for exactly that command. A write that makes
/// something run later needs its own approval all the same.
fn is_of_approved_command(cx: &Cx, need: &Need) -> bool {
    need.of_command.as_deref().is_some_and(|command| cx.is_approved_command(command))
        && cx.engine.policy.load().protected_write(cx.session.project(), need).is_none()
}

/// The policy's word alone, with nobody asked.
pub fn judge(cx: &Cx, chain: &[String], need: &Need) -> Decision {
    judge_for(cx, &cx.tool, cx.origin, chain, need)
}

/// As [`judge`], for a tool that was called within the call.
pub(crate) fn judge_for(cx: &Cx, tool: &ToolName, origin: Origin, chain: &[String], need: &Need) -> Decision {
    let session = &cx.session;
    let (places, above) = (session.places(), session.above());
    let subject = Subject {
        tool,
        origin,
        session: &session.id,
        above: &above,
        mode: session.mode(),
        cwd: &cx.cwd,
        roots: &places,
        project: session.project(),
        chain,
        made: &session.made(),
    };
    decide(&cx.engine.policy.load(), &cx.engine.grants.snapshot(), &subject, need)
}

pub(crate) fn refuse(cx: &Cx, need: &Need, rule: String, message: String) -> Result<(), ToolError> {
    cx.record(need, "deny", rule.clone());
    let denial = Denial { category: need.category, target: need.target.clone(), rule, message };
    Err(ToolError::Denied(std::sync::Arc::new(denial)))
}

/// Why a grant was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("{0}")]
    BadPattern(String),
    /// A name that nothing can have; which, and what is expected.
    #[error("{0}")]
    BadName(String),
    #[error("the grant cannot be kept: {0}")]
    Store(String),
}

/// Makes a grant that a person gives without being asked. It counts at once, for asks that wait too.
///
/// `scope` is what the parameters' scope means here. A relative path is meant from the parameters' `cwd`.
///
/// # Errors
/// The pattern cannot be read or can match nothing, a name is none, or the store refused the grant; nothing was granted.
pub fn grant(
    engine: &Engine,
    params: &GrantPermission,
    scope: GrantScope,
    by: Option<String>,
) -> Result<GrantInfo, GrantError> {
    for tool in params.tools.iter().flatten() {
        ToolName::parse(tool).map_err(|error| GrantError::BadName(format!("tools: {error}")))?;
    }
    if let Some(name) = params.chain.iter().find(|name| !is_plugin_name(name)) {
        let words = format!("chain: {name:?} is no plugin name: expected [a-z][a-z0-9_-]*");
        return Err(GrantError::BadName(words));
    }
    let pattern = match params.category {
        Category::FileRead | Category::FileWrite => {
            let place = RulePlace {
                origin: String::new(),
                project: None,
                trusted: true,
                base: params.cwd.as_ref().map(Into::into),
                home: engine.policy.load().home.clone(),
            };
            absolute_pattern(&params.pattern, &place).map_err(GrantError::BadPattern)?
        }
        Category::Shell | Category::Network | Category::Mcp | Category::Agent | Category::Plugin => {
            params.pattern.clone()
        }
    };
    let now = SystemTime::now();
    let grant = Grant {
        id: engine.new_grant_id(),
        category: params.category,
        pattern: Pattern::parse_to_use(params.category, &pattern)
            .map_err(|error| GrantError::BadPattern(error.to_string()))?,
        action: params.action,
        scope,
        tools: params.tools.clone(),
        chain: params.chain.clone(),
        by,
        granted_at: now,
        expires_at: params.expires_in.and_then(|seconds| now.checked_add(Duration::from_secs(seconds))),
    };
    let info = grant.info();
    engine.grants.add(grant).map_err(GrantError::Store)?;
    engine.policy_changed();
    Ok(info)
}

/// Takes a grant back; false for an unknown id. Calls that have not begun to run are judged anew.
///
/// # Errors
/// The store refused it, in words for people; the grant still holds.
pub fn revoke(engine: &Engine, id: &str) -> Result<bool, String> {
    let removed = engine.grants.remove(id)?;
    if removed.is_some() {
        engine.policy_changed();
    }
    Ok(removed.is_some())
}
