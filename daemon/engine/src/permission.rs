//! Permission for one need: the policy's decision, or a person's answer.

mod just_decided;
mod workspace;

use std::path::Path;
use std::time::SystemTime;

use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::{Action, GrantInfo, GrantPermission, Verdict};
use toold_proto::tool::{Category, ToolName};

use crate::Engine;
use crate::agent_prompt::ask_or_leave;
use crate::asks::{ANSWER, AskAnswer};
use crate::cx::Cx;
use crate::decision::{decide_need, with_subject};
use crate::grant_commands::way_to_allow;
use crate::kept::NotKept;
use crate::need::Need;
use crate::permission::just_decided::DecisionBasis;
use crate::plugin_refusals::{RefusedDuring, note_refusal, scope_of};
use crate::policy::grants::{Grant, GrantScope};
use crate::policy::pattern::Pattern;
use crate::policy::rules::{RulePlace, absolute_pattern, at_home};
use crate::policy::targets::is_plugin_name;
use crate::policy::{Decision, default_rule, makes_temporary, of_approved_command};
use crate::registry::SourceScope;
use crate::tool::{Denial, ToolError};

/// Decides one need of a call, asking a person where the policy says so.
///
/// # Errors
/// `Denied` with the rule that decided; `Cancelled` when the call ends while a person is asked;
/// `PermissionEngine` when the daemon is stopping.
pub async fn check_permission(cx: &Cx, chain: &[String], need: &Need) -> Result<(), ToolError> {
    check_one(cx, chain, need, &[]).await
}

/// Decides all needs that a call declares, one after another. A person who is asked about one sees which others will be
/// asked about, and can answer them together.
///
/// # Errors
/// As [`check_permission`], for the first that is refused.
pub async fn check_declared(cx: &Cx, needs: &[Need]) -> Result<(), ToolError> {
    if needs.is_empty() {
        check_paused(cx)?;
    }
    let basis = DecisionBasis::of(cx);
    for (at, need) in needs.iter().enumerate() {
        let checked = check_one(cx, cx.chain_of_declared(need), need, needs).await;
        if let Err(ToolError::Denied(denial)) = &checked {
            let is_denied = |other: &Need| (other.category(), &other.target) == (denial.category, &denial.target);
            let rest: Vec<Need> = needs[at..].iter().filter(|other| !is_denied(other)).cloned().collect();
            cx.note_rest(&rest);
        }
        checked?;
    }
    cx.note_decided_by(basis);
    Ok(())
}

/// A call that needs nothing, or of which nobody knows what it needs, does not run either while everything is paused.
fn check_paused(cx: &Cx) -> Result<(), ToolError> {
    let policy = cx.engine.policy.load();
    let Some(paused) = &policy.paused else { return Ok(()) };
    let message = format!("not allowed: {} ({})", cx.tool.as_str(), policy.because(paused));
    refuse(cx, &Need::new(Category::Agent, cx.tool.as_str()), (paused.clone(), DecidedBy::Rule), message)
}

async fn check_one(cx: &Cx, chain: &[String], need: &Need, declared: &[Need]) -> Result<(), ToolError> {
    let answer = decide_or_ask(cx, chain, need, declared).await;
    if answer.is_ok() && cx.question_left().is_none() && makes_temporary(need) {
        cx.session.note_made(Path::new(&need.target));
    }
    cx.note_need(need, chain, answer.is_ok());
    if let Err(ToolError::Denied(denial)) = &answer {
        note_refused(cx, chain, need, &denial.rule);
    }
    answer
}

/// For the person who may grant it to the plugin. The answer of a person who was asked needs no second look.
fn note_refused(cx: &Cx, chain: &[String], need: &Need, rule: &str) {
    let Some(plugin) = chain.last().filter(|_| !rule.starts_with(ANSWER) && !need.is_workspace()) else { return };
    let project = cx.session.project();
    let (scope, during) = match cx.session.is_of_plugin() {
        false => (scope_of(&cx.engine, plugin, project), RefusedDuring::Call(cx.session.id.clone())),
        // It may not be registered yet.
        true if project.parent().is_none() => (SourceScope::Global, RefusedDuring::Load),
        true => (SourceScope::Project(project.to_owned()), RefusedDuring::Load),
    };
    with_subject(cx, &cx.tool, cx.origin, chain, |subject| {
        note_refusal(&cx.engine, subject, scope, need, rule, during);
    });
}

/// Records a need that the policy does not allow, where nobody is asked.
pub fn note_unasked(cx: &Cx, chain: &[String], need: &Need) {
    note_refused(cx, chain, need, &default_rule(need.category()));
}

impl Cx {
    /// Permission for something that this call will touch: asks a person where the policy says so,
    /// and pauses the deadline meanwhile. A read that the call has declared is not decided a second time in the same moment.
    ///
    /// # Errors
    /// As [`check_permission`]. A tool passes them on with `?`.
    pub async fn require(&self, need: Need) -> Result<(), ToolError> {
        match self.was_just_allowed(&need) {
            true => Ok(()),
            false => check_permission(self, &self.chain, &need).await,
        }
    }
}

async fn decide_or_ask(cx: &Cx, chain: &[String], need: &Need, declared: &[Need]) -> Result<(), ToolError> {
    let mut decision = decide_need(cx, chain, need);
    if cx.session.topmost().workspace().is_some()
        && Box::pin(workspace::approve_folders(cx, chain, need, &decision)).await?
    {
        // The folder that was just opened may be the one that the need lies in.
        decision = decide_need(cx, chain, need);
    }
    match decision.verdict {
        Verdict::Allow => {
            if need.category() == Category::Shell && decision.covers_all {
                cx.approve_command(&need.target);
            }
            note_part(cx, need, &decision);
            cx.record(need, "allow", decision.rule, decision.by);
            Ok(())
        }
        // Nothing forbids it to an agent that asks its own user.
        Verdict::Deny if cx.agent.is_some() && decision.by == DecidedBy::Default => {
            Box::pin(ask_or_leave(cx, chain, need, declared, &decision)).await.map(drop)
        }
        Verdict::Deny => {
            let way = way_to_allow(cx, chain, need).map(|way| format!(". {way}")).unwrap_or_default();
            let by = cx.engine.policy.load().because(&decision.rule);
            // An agent's own tool may need what its input does not show.
            let by = if cx.agent.is_some() { need.explained(&by) } else { by };
            let message = format!("not allowed: {} {} ({by}){way}", need.category(), need.named());
            refuse(cx, need, (decision.rule, decision.by), message)
        }
        Verdict::Ask if !need.always_asked && cx.was_granted_once(need, chain) => Ok(()),
        Verdict::Ask if is_of_approved_command(cx, need) => {
            let command = need.command_naming_it().unwrap_or_default();
            cx.record(need, "allow", of_approved_command(command), DecidedBy::Rule);
            Ok(())
        }
        Verdict::Ask => {
            // Nobody is asked about a part of what is denied as a whole.
            if let Some(denied) = denied_among(cx, chain, declared) {
                return Box::pin(check_one(cx, chain, denied, &[])).await;
            }
            match Box::pin(ask_or_leave(cx, chain, need, declared, &decision)).await? {
                None => Ok(()),
                Some(AskAnswer::Allowed { rule, by, parts, .. }) => {
                    for part in parts.iter().filter(|part| *part != need) {
                        allow_once(cx, cx.chain_of_declared(part), part, rule.clone(), by);
                    }
                    allow_once(cx, chain, need, rule, by);
                    Ok(())
                }
                Some(AskAnswer::Denied { rule, by, message }) => refuse(cx, need, (rule, by), message),
            }
        }
    }
}

/// The need of the same call, other than of a file, that a rule, a grant or the mode denies. Files are refused in their order: the
/// denial of writing one would tell where a link leads that may not be read. A plugin's own needs are refused one by one, for the
/// person who may grant them.
fn denied_among<'n>(cx: &Cx, chain: &[String], declared: &'n [Need]) -> Option<&'n Need> {
    let is_denied = |need: &&Need| {
        if need.file().is_some() {
            return false;
        }
        let decision = decide_need(cx, chain, need);
        decision.verdict == Verdict::Deny && decision.by != DecidedBy::Default
    };
    declared.iter().filter(|_| chain.is_empty()).find(is_denied)
}

/// Whether a call that was allowed to have these needs still may, as it was allowed, by rules, grants, modes and levels as they
/// are now. Nobody is asked: an answer to this call counts, and so does that of the agent's own prompt.
///
/// # Errors
/// Why not, in words for people and models.
pub fn check_again(cx: &Cx, needs: &[Need]) -> Result<(), String> {
    let is_left = cx.question_left().is_some();
    for need in needs {
        let chain = cx.chain_of_declared(need);
        let decision = decide_need(cx, chain, need);
        let is_allowed = match decision.verdict {
            // A part that a person allowed runs as the configuration says, and a free one runs confined.
            Verdict::Allow => !is_freed(need, &decision) || !cx.was_allowed_by_person(need),
            Verdict::Deny if decision.by != DecidedBy::Default => false,
            Verdict::Deny | Verdict::Ask => {
                is_left || cx.was_granted_once(need, chain) || is_of_approved_command(cx, need)
            }
        };
        if !is_allowed {
            let by = cx.engine.policy.load().because(&decision.rule);
            return Err(format!("not allowed any more: {} {} ({by})", need.category(), need.named()));
        }
    }
    Ok(())
}

/// Whether a need that is allowed is so because of its effects alone.
fn is_freed(need: &Need, decision: &Decision) -> bool {
    match need.category() {
        Category::Shell if decision.by == DecidedBy::Default && need.reads_only() && !need.is_harmless() => true,
        Category::Shell | Category::FileWrite => decision.by_level,
        _ => false,
    }
}

/// Keeps what allowed a part of a command: it decides where the command runs.
fn note_part(cx: &Cx, need: &Need, decision: &Decision) {
    match need.category() {
        _ if is_freed(need, decision) => cx.note_freed(need, &decision.rule),
        // Reading is allowed where a command runs, and writing an operand with its command.
        Category::FileRead => {}
        Category::FileWrite if decision.by == DecidedBy::Default => {}
        _ => cx.note_allowed(need),
    }
}

/// A person's answer for this call.
fn allow_once(cx: &Cx, chain: &[String], need: &Need, rule: String, by: DecidedBy) {
    cx.record(need, "allow", rule, by);
    cx.note_allowed(need);
    if need.category() == Category::Shell {
        // The person who was asked saw the whole command.
        cx.approve_command(&need.target);
    }
    cx.remember_once(need, chain);
}

/// Whether the file is named by a command that a person approved, or by a rule for exactly that
/// command. A write to a place that runs code later needs its own approval all the same.
fn is_of_approved_command(cx: &Cx, need: &Need) -> bool {
    need.command_naming_it().is_some_and(|command| cx.is_approved_command(command))
        && cx.engine.policy.load().protected_write(cx.session.project(), need).is_none()
}

fn refuse(cx: &Cx, need: &Need, (rule, by): (String, DecidedBy), message: String) -> Result<(), ToolError> {
    cx.record(need, "deny", rule.clone(), by);
    cx.note_denial(by);
    let denial = Denial { category: need.category(), target: need.target.clone(), rule, message };
    Err(ToolError::Denied(std::sync::Arc::new(denial)))
}

/// Why a grant was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("{0}")]
    BadPattern(String),
    /// An impossible name, with the expected form.
    #[error("{0}")]
    BadName(String),
    #[error("can't store the grant: {0}")]
    Store(NotKept),
}

/// Makes a grant that a person gives without being asked, or renews the one that says the same. It takes effect
/// immediately, also for pending asks.
///
/// `scope` is the parameters' scope, resolved. A relative path is relative to the parameters' `cwd`.
///
/// # Errors
/// The pattern cannot be read or can match nothing, or a name is invalid; nothing was granted. Or it could not be stored.
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
        let words = format!("chain: {name:?} is not a plugin name: expected [a-z][a-z0-9_-]*");
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
        Category::Shell => at_home(&params.pattern, engine.policy.load().home.as_deref()),
        Category::Network | Category::Mcp | Category::Agent | Category::Plugin => params.pattern.clone(),
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
        expires_at: params.expires_in.map(|seconds| crate::time::after(now, seconds)),
        asked: None,
        fleet: None,
    };
    let added = engine.grants.add(grant);
    if added.as_ref().map_or_else(|error| error.holds, |_| true) {
        engine.policy_changed();
    }
    let grant = added.map_err(GrantError::Store)?;
    let (mut info, pattern) = (grant.info(), grant.pattern);
    if info.action == Action::Allow && info.tools.is_none() {
        engine.plugin_refusals.forget_granted(&pattern, &info);
        if info.chain.is_empty() {
            info.without_chains = engine.plugin_refusals.chains(info.category, &pattern);
        }
    }
    Ok(info)
}

/// Revokes a grant; false for an unknown id. Calls that have not begun to run are decided again.
///
/// # Errors
/// It could not be stored.
pub fn revoke(engine: &Engine, id: &str) -> Result<bool, NotKept> {
    let removed = engine.grants.remove(id);
    if removed.as_ref().map_or_else(|error| error.holds, Option::is_some) {
        engine.policy_changed();
    }
    Ok(removed?.is_some())
}
