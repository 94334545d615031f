//! `permissions.*`

use std::path::{Path, PathBuf};

use jsonrpsee::types::{ErrorObjectOwned, SubscriptionId};
use toold_engine::Engine;
use toold_engine::asks::{AskReplyError, AskSubscription, Replier, reply};
use toold_engine::grant_commands::grant_command;
use toold_engine::guarded_files::GuardedFiles;
use toold_engine::need::Need;
use toold_engine::permission::{GrantError, grant, revoke};
use toold_engine::policy::allowing::allowing_pattern;
use toold_engine::policy::grants::GrantScope;
use toold_engine::policy::pattern::Pattern;
use toold_engine::policy::{CallingAgent, Subject, check};
use toold_engine::rule_files::RuleFiles;
use toold_engine::session::Session;
use toold_engine::tool::Origin;
use toold_host::environment::Environment;
use toold_host::exclude::Exclusions;
use toold_host::file_needs::{read_need, write_need};
use toold_host::shell_grammar::{self, Explained, Surroundings};
use toold_proto::daemon::Done;
use toold_proto::error::{self, ErrorData};
use toold_proto::event::EventBody;
use toold_proto::fleet::RevokeFleetGrant;
use toold_proto::method::{
    PermissionsCheck, PermissionsGrant, PermissionsList, PermissionsPending, PermissionsReply, PermissionsReview,
    PermissionsRevoke, PermissionsSetMode, PermissionsSubscribe,
};
use toold_proto::permission::{
    Action, Answerer, CheckPermission, CheckedPart, CheckedPermission, ExplainedCommand, ExplainedWord, GrantInfo,
    GrantPermission, KnownProgram, PendingAsks, PermissionEvent, PermissionList, ReplyPermission, RevokePermission,
    Scope, SetMode, SubscribePrompts, Verdict,
};
use toold_proto::tool::{Category, SessionId, ToolName};

use crate::config::project_folder::{grant_project_of, project_of};
use crate::config::warnings::of_pattern;
use crate::rpc::agent_requests::hooked_agent;
use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, invalid_params, object, refused, unknown};
use crate::rpc::fleet;
use crate::rpc::grant_review::{self, with_uses};
use crate::rpc::located::{for_onlooker, knows, located};
use crate::rpc::subscription::{ItemSubscriber, add_subscription};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, client_name, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    let open = |request: &MethodRequest, wanted: SubscribePrompts, _: &SubscriptionId<'_>| {
        // A client that may not answer sees the asks of its own session, and does not count as able
        // to answer.
        let (can_answer, session) = match may_decide(request) {
            true => (true, session_of(request, &wanted)?),
            false => (false, Some(request.session(wanted.session_id.as_ref())?.id.clone())),
        };
        Ok((request.services.engine.asks.subscribe(can_answer, session), can_answer))
    };
    add_subscription::<PermissionsSubscribe, _, _>(module, open, stream)?;
    add_async::<PermissionsReply, _>(module, Right::Decider, answer)?;
    add::<PermissionsPending>(module, Right::Anyone, pending)?;
    add_async::<PermissionsList, _>(module, Right::Anyone, list)?;
    add_async::<PermissionsReview, _>(module, Right::Decider, grant_review::review)?;
    add_async::<PermissionsGrant, _>(module, Right::Decider, make_grant)?;
    add_async::<PermissionsRevoke, _>(module, Right::Decider, take_back)?;
    add_async::<PermissionsCheck, _>(module, Right::Anyone, would)?;
    add_async::<PermissionsSetMode, _>(module, Right::Decider, set_mode)
}

/// The session that a subscriber selects, if not all.
pub(super) fn session_of(
    request: &MethodRequest,
    wanted: &SubscribePrompts,
) -> Result<Option<SessionId>, ErrorObjectOwned> {
    let Some(id) = &wanted.session_id else { return Ok(None) };
    Ok(Some(request.session(Some(id))?.id.clone()))
}

async fn stream(subscriber: ItemSubscriber<PermissionsSubscribe>, (mut asks, can_answer): (AskSubscription, bool)) {
    loop {
        let mut event = tokio::select! {
            () = subscriber.gone() => return,
            event = asks.next() => event,
        };
        if let PermissionEvent::Asked { request } = &mut event
            && !can_answer
        {
            for_onlooker(request);
        }
        if subscriber.send(&event).await.is_err() {
            return;
        }
    }
}

async fn answer(request: MethodRequest, params: ReplyPermission) -> Result<Done, ErrorObjectOwned> {
    let replier = Replier {
        by: Answerer { client: client_name(&request), connection: request.connection().id },
        widest: Scope::Always,
        session: None,
    };
    let engine = request.services.engine.clone();
    // Remembered answers are written to the database.
    let replied = blocking(move || reply(&engine, &params, &replier)).await?;
    replied.map(|()| Done {}).map_err(|failed| match &failed {
        AskReplyError::Unknown(id) => unknown("request", id),
        AskReplyError::AlreadyAnswered(..) | AskReplyError::Ended(..) => {
            object(error::UNKNOWN, &failed.to_string(), ErrorData::new("unknown_request"))
        }
        AskReplyError::NotSuggested(_)
        | AskReplyError::CannotBeRemembered(_)
        | AskReplyError::TooWide(..)
        | AskReplyError::PatternOfParts => invalid_params(&failed.to_string()),
        AskReplyError::Store(_) => refused(NOT_KEPT, &failed.to_string()),
    })
}

fn pending(request: MethodRequest, _: toold_proto::daemon::NoParams) -> Result<PendingAsks, ErrorObjectOwned> {
    let mut asks = request.services.engine.asks.pending();
    if !may_decide(&request) {
        let own = request.session(None)?;
        asks.retain(|ask| ask.session_id == own.id);
        asks.iter_mut().for_each(for_onlooker);
    }
    Ok(PendingAsks { asks })
}

async fn list(request: MethodRequest, _: toold_proto::daemon::NoParams) -> Result<PermissionList, ErrorObjectOwned> {
    // Grants hold, and are listed, while the database cannot be read.
    let uses = grant_review::grant_uses(&request).await.unwrap_or_default();
    let session = request.session(None)?;
    let engine = &request.services.engine;
    let policy = engine.policy.load();
    let grants = engine.grants.snapshot();
    let (sees_all, above) = (may_decide(&request), session.above());
    let visible = grants.iter().filter(|grant| match &grant.scope {
        GrantScope::Session(id) => sees_all || *id == session.id || above.contains(&id),
        GrantScope::Project(project) => sees_all || project == session.project() || project == session.grant_project(),
        GrantScope::Always => true,
    });
    // The rules of another project are as private as its files.
    let project = (!sees_all).then_some(session.project());
    Ok(PermissionList {
        mode: session.mode(),
        rules: policy.describe_rules(project),
        grants: visible.map(|grant| with_uses(grant, &uses)).collect(),
        broken: policy.describe_broken(project),
    })
}

async fn make_grant(request: MethodRequest, mut params: GrantPermission) -> Result<GrantInfo, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    let cwd = match &params.cwd {
        Some(cwd) => absolute(cwd)?,
        None => session.cwd.clone(),
    };
    let scope = match params.scope {
        Scope::Once => return Err(invalid_params("scope: expected session, project or always")),
        Scope::Session => GrantScope::Session(session.id.clone()),
        Scope::Project => {
            let project = project_of(&cwd).map_err(|error| invalid_params(&format!("cwd: {}: {error}", cwd.display())));
            GrantScope::Project(grant_project_of(&project?))
        }
        Scope::Always => GrantScope::Always,
    };
    params.cwd = Some(cwd.display().to_string());
    let (engine, by) = (request.services.engine.clone(), client_name(&request));
    let granted = blocking(move || {
        let granted = grant(&engine, &params, scope, by)?;
        Ok(GrantInfo { warnings: doubts(&granted), ..granted })
    });
    granted.await?.map_err(|error| match error {
        GrantError::BadPattern(words) => invalid_params(&format!("pattern: {words}")),
        GrantError::BadName(words) => invalid_params(&words),
        GrantError::Store(_) => refused(NOT_KEPT, &error.to_string()),
    })
}

/// What the pattern of a grant probably means and does not.
fn doubts(grant: &GrantInfo) -> Vec<String> {
    let action = match grant.action {
        Action::Allow => Verdict::Allow,
        Action::Deny => Verdict::Deny,
    };
    // It has been parsed before.
    let pattern = Pattern::parse_to_use(grant.category, &grant.pattern);
    pattern.map(|pattern| of_pattern(grant.category, &pattern, action)).unwrap_or_default()
}

async fn take_back(request: MethodRequest, params: RevokePermission) -> Result<Done, ErrorObjectOwned> {
    if fleet::grants::is_of_fleet(&request, &params.id) {
        return fleet::grants::revoke(request, RevokeFleetGrant { id: params.id }).await.map(|_| Done {});
    }
    let (engine, id) = (request.services.engine.clone(), params.id.clone());
    match blocking(move || revoke(&engine, &id)).await? {
        Ok(true) => Ok(Done {}),
        Ok(false) => Err(unknown("grant", &params.id)),
        Err(error) => Err(refused(NOT_KEPT, &error.to_string())),
    }
}

/// What would happen to a call with this need, and by which rule. Nobody is asked.
async fn would(request: MethodRequest, params: CheckPermission) -> Result<CheckedPermission, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    let cwd = match &params.cwd {
        // Not every caller may learn whether the folder exists.
        Some(cwd) if !may_decide(&request) => {
            let cwd = absolute_path(cwd)?;
            located(&request.services.engine, &session, cwd)
                .map_or(cwd.to_owned(), |found| found.judged_as.unwrap_or(found.path))
        }
        Some(cwd) => absolute(cwd)?,
        None => session.cwd.clone(),
    };
    request.services.config.until_current(session.project()).await;
    let (tool, origin) = tool_of(&request, &session, &params)?;
    let (category, target, place) = (params.category, params.target.clone(), cwd.clone());
    let (engine, of) = (request.services.engine.clone(), session.clone());
    // This resolves paths and reads ignore files.
    let environment = request.services.config.options.of_children().with(&session.env);
    let explained = blocking(move || explain(&engine, &of, &environment, category, &target, &place)).await??;
    let mut needs: Vec<Need> = explained.iter().flat_map(|part| part.needs.iter().cloned()).collect();
    let engine = &request.services.engine;
    let agent = params.agent.as_deref().map(hooked_agent).transpose()?;
    let level = engine.policy.load().levels.of(&session, agent).level;
    if category == Category::Shell && tool.as_str() == "bash" && origin == Origin::Builtin {
        let (builtins, of, place) = (request.services.builtins.clone(), session.clone(), cwd.clone());
        let files = GuardedFiles::of(engine, &session, agent);
        builtins.add_overwritten(&mut needs, level, &session, &files).await;
        needs = blocking(move || {
            builtins.mark_confined(&mut needs, level, &of, &place, &files);
            needs
        })
        .await?;
    }
    let (places, above, chain, made) = (session.places(), session.above(), session.chain(), session.made());
    let subject = Subject {
        tool: Some(&tool),
        origin,
        session: &session.id,
        above: &above,
        mode: session.mode(),
        level,
        cwd: &cwd,
        roots: &places,
        project: session.project(),
        grant_project: session.grant_project(),
        chain: &chain,
        undeclared: &engine.plugin_limits.of_chain(&chain, session.project()),
        made: &made,
        profile: None,
        agent: CallingAgent::of(&session, agent, None),
    };
    let mut checked = check(&engine.policy.load(), &engine.grants.snapshot(), &subject, &needs);
    if params.explain && category == Category::Shell {
        let (policy, grants) = (engine.policy.load(), engine.grants.snapshot());
        let allowing = |need: &Need| {
            let pattern = allowing_pattern(&policy, &grants, &subject, need)?;
            Some(grant_command(need.category(), &pattern, &[]))
        };
        checked.commands = commands(explained, &checked, &allowing);
    }
    Ok(checked)
}

/// The version of this program among those that a table names; all of them where none is named after it.
fn version_of<'v>(name: &str, versions: &'v str) -> &'v str {
    let program = name.split(' ').next().unwrap_or_default();
    let is_its = |version: &&str| version.split(' ').any(|word| word.eq_ignore_ascii_case(program));
    versions.split(", ").find(is_its).unwrap_or(versions)
}

/// How the command line was parsed, with the decision about each part.
fn commands(
    explained: Vec<Explained>,
    checked: &CheckedPermission,
    allowing: &dyn Fn(&Need) -> Option<String>,
) -> Vec<ExplainedCommand> {
    let mut parts = checked.parts.iter().cloned();
    let mut part = |need: Need| {
        // The parts are reported only when there are several.
        let part = parts.next().unwrap_or_else(|| CheckedPart {
            category: need.category(),
            target: need.target.clone(),
            verdict: checked.verdict,
            rule: checked.rule.clone(),
            allowed_with: None,
        });
        let allowed_with = (part.verdict == Verdict::Ask).then(|| allowing(&need)).flatten();
        CheckedPart { allowed_with, ..part }
    };
    let command = |explained: Explained| ExplainedCommand {
        command: (!explained.command.is_empty()).then_some(explained.command),
        known: explained.program.map(|(name, version)| {
            let version = version_of(&name, &version).to_owned();
            KnownProgram { name, version }
        }),
        words: explained
            .notes
            .into_iter()
            .map(|note| ExplainedWord { text: note.text, meaning: note.meaning })
            .collect(),
        unsure: explained.unsure,
        reads_only: explained.reads_only,
        effects: explained.effects.iter().collect(),
        parts: explained.needs.into_iter().map(&mut part).collect(),
    };
    explained.into_iter().map(command).collect()
}

async fn set_mode(request: MethodRequest, params: SetMode) -> Result<Done, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    let kept = request.services.sessions.change_mode(&session, params.mode).await;
    if kept.as_ref().map_or_else(|error| error.holds, |()| true) {
        request.services.engine.policy_changed();
        let session_id = session.id.clone();
        request.services.engine.events.emit(EventBody::SessionMode { session_id, mode: params.mode });
    }
    kept.map(|()| Done {}).map_err(|error| refused(NOT_KEPT, &error.to_string()))
}

/// The tool that would need it: the named one, the target itself for tools, otherwise none in
/// particular.
fn tool_of(
    request: &MethodRequest,
    session: &Session,
    params: &CheckPermission,
) -> Result<(ToolName, Origin), ErrorObjectOwned> {
    let usual = match params.category {
        Category::FileRead => "read",
        Category::FileWrite => "write",
        Category::Shell => "bash",
        Category::Network => "web_fetch",
        Category::Agent => "subagent",
        Category::Mcp => &mounted_name(&params.target),
        Category::Plugin => &params.target,
    };
    let name = params.tool.as_deref().unwrap_or(usual);
    let name = ToolName::parse(name).map_err(|error| invalid_params(&error.to_string()))?;
    let snapshot = request.services.engine.registry.snapshot();
    let found = snapshot.view(session.project()).find_own(name.as_str()).map(|tool| tool.spec().origin);
    let stranger = match params.category {
        Category::Plugin => Origin::Frontend,
        Category::Mcp => Origin::Mcp,
        Category::FileRead | Category::FileWrite | Category::Shell | Category::Network | Category::Agent => {
            Origin::Builtin
        }
    };
    Ok((name, found.unwrap_or(stranger)))
}

/// The usual name here of a tool of a mounted server: `server_tool`.
fn mounted_name(target: &str) -> String {
    let own = target.strip_prefix("remote:").unwrap_or(target).to_ascii_lowercase();
    let own = own.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    own.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(64).collect()
}

fn explain(
    engine: &Engine,
    session: &Session,
    environment: &Environment,
    category: Category,
    target: &str,
    cwd: &Path,
) -> Result<Vec<Explained>, ErrorObjectOwned> {
    let resolved = || {
        let found = located(engine, session, &cwd.join(target));
        let found = found.map_err(|error| invalid_params(&format!("target: {target}: {error}")))?;
        Ok::<PathBuf, ErrorObjectOwned>(found.judged_as.unwrap_or(found.path))
    };
    let mut exclusions = Exclusions::default();
    let needs = match category {
        Category::FileRead => vec![read_need(&resolved()?, &mut exclusions)],
        Category::FileWrite => vec![write_need(&resolved()?, &mut exclusions)],
        Category::Shell => {
            let may_read = &mut |place: &Path| knows(engine, session, place);
            let surroundings = &mut Surroundings { cwd, folders: &session.places(), environment, may_read };
            return Ok(shell_grammar::explain(target, surroundings));
        }
        Category::Network | Category::Mcp | Category::Agent | Category::Plugin => vec![Need::new(category, target)],
    };
    Ok(vec![Explained::of_needs(needs)])
}

pub(super) fn absolute(cwd: &str) -> Result<PathBuf, ErrorObjectOwned> {
    let path = absolute_path(cwd)?;
    crate::config::project_folder::real_dir(path).map_err(|error| invalid_params(&format!("cwd: {cwd}: {error}")))
}

fn absolute_path(cwd: &str) -> Result<&Path, ErrorObjectOwned> {
    let path = Path::new(cwd);
    if path.is_absolute() { Ok(path) } else { Err(invalid_params(&format!("cwd: {cwd} is not an absolute path"))) }
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn a_program_has_its_own_version_of_a_table() {
        let table = "GNU Make 4.3, cargo 1.95, GCC 12";
        for (name, version) in
            [("cargo build", "cargo 1.95"), ("make", "GNU Make 4.3"), ("gcc", "GCC 12"), ("cc", table)]
        {
            assert_eq!(version_of(name, table), version);
        }
    }
}
