//! `permissions.request` and `permissions.done`: judging what agents do with tools of their own.
//!
//! A request becomes a call like any other, of an [`AgentTool`]. It is judged on the caller's connection and then lasts
//! without it, until `permissions.done`.

pub(crate) mod approvals;
pub(crate) mod pending;
pub(crate) mod sessions;

use std::future::ready;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::SystemTime;

use futures_util::FutureExt;
use futures_util::future::Either;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toold_adapters::agents::{AgentAction, AgentInputError, CONFINABLE, actions};
use toold_builtins::agent_tool::{AgentFloor, AgentReport, AgentTool, AgentWork};
use toold_engine::agent_request::{AgentRequest, Judgement};
use toold_engine::call::{Call, CallError};
use toold_engine::execute::execute_tool;
use toold_engine::progress::broadcast;
use toold_engine::session::{Session, SessionOwner};
use toold_engine::time::rfc3339;
use toold_host::environment::Environment;
use toold_proto::agent_names::{AGENTS, agent_named};
use toold_proto::agent_request::{
    ConfirmationCode, DecidedBy, FinishRequest, FinishScope, FinishedRequest, JudgedRequest, PermissionWaiting,
    RequestPermission,
};
use toold_proto::daemon::Done;
use toold_proto::method::{
    PermissionsCode, PermissionsConfine, PermissionsConfirm, PermissionsDone, PermissionsRequest,
};
use toold_proto::permission::Verdict;
use toold_proto::session::Mode;
use toold_proto::tool::{Block, CallId, Category, ToolResult};

use pending::{OpenRequest, OpenRequestKey, RequestingAgent, TooManyRequests};
use sessions::session_for;

use crate::config::agents::AgentConfines;
use crate::config::random::random_hex;
use crate::peer::agent_processes::ProcessId;
use crate::peer::process_end;
use crate::rpc::connection::ClientConnection;
use crate::rpc::error::{invalid_params, of_call, refused, unknown};
use crate::rpc::tools::within;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, may_decide};

/// Limits of the texts of a request, in bytes.
const MAX_AGENT: usize = 32;
const MAX_NAME: usize = 128;
const MAX_NEEDS: usize = 256;
const MAX_SUMMARY: usize = 4 * 1024;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PermissionsRequest, _>(module, Right::Program, judge_request)?;
    add_async::<PermissionsDone, _>(module, Right::Program, finish)?;
    add_async::<PermissionsConfine, _>(module, Right::Program, approvals::confine)?;
    add::<PermissionsCode>(module, Right::Decider, |request, _| {
        let (code, expires_at) = request.services.agent_processes.codes.make();
        Ok(ConfirmationCode { code, expires_at: rfc3339(expires_at) })
    })?;
    add::<PermissionsConfirm>(module, Right::Program, |request, params| {
        match request.connection().peer.confirm(&params.code) {
            true => Ok(Done {}),
            false => Err(refused("wrong_code", "the code is not valid: it counts once, and for two minutes")),
        }
    })
}

async fn judge_request(request: MethodRequest, params: RequestPermission) -> Result<JudgedRequest, ErrorObjectOwned> {
    check(&params)?;
    let connection = request.connection();
    note_agent(connection, &params.agent);
    if params.is_own {
        let later = Judgement::ask("it is judged when its call comes");
        return Ok(answer(later, id_of(&params), request.services.engine.new_call_id()));
    }
    let requester = requester(connection);
    let session = session_for(&request, &requester, &params).await?;
    let services = &request.services;
    if !services.plugins.is_settled() {
        services.plugins.settled().await;
    }
    let request_id = id_of(&params);
    let conversation = params.session.as_deref().map(|session| conversation_of(&params.agent, session));
    let digest = digest_of(&params);
    let generation = services.engine.policy_generation();
    let id = (!params.again || params.call_id.is_some()).then_some(request_id.as_str());
    let same = OpenRequestKey { id, conversation: conversation.clone(), digest: &digest, generation };
    if let Some((judgement, request_id, call_id)) = services.open_requests.judgement_of(&same, &requester) {
        return Ok(answer(judgement, request_id, call_id));
    }
    if let Some(conversation) = &conversation {
        services.open_requests.go_on(conversation, params.agent_id.as_deref(), &requester).await;
    }
    let call_id = params.call_id.clone().filter(|id| session.call(id).is_none());
    let call_id = call_id.unwrap_or_else(|| services.engine.new_call_id());
    // Nobody waits for an agent's tool when the daemon stops.
    let cancel = services.lifecycle.stopping().child_token();
    let (report, reported) = oneshot::channel();
    let (judge, mut judged) = oneshot::channel();
    let tool = tool_for(&request, &params, judge, reported);
    let call = call_of(&request, &params, &session, call_id.clone(), cancel.clone())?;
    let ended = CancellationToken::new();
    let open = OpenRequest {
        tool: tool.clone(),
        conversation,
        subagent: params.agent_id.clone(),
        requester: requester.clone(),
        session: session.id.clone(),
        call_id: call_id.clone(),
        digest,
        generation,
        judgement: None,
        report,
        cancel: cancel.clone(),
        ended: ended.clone(),
    };
    let call_ended = ended.clone();
    let number = services.open_requests.add(&request_id, open).map_err(|TooManyRequests| {
        of_call(CallError::Overloaded("too many requests of this agent wait for an answer".to_owned()))
    })?;
    let unjudged = UnjudgedRequest { tool: tool.clone(), cancel: Some(cancel) };
    let agent = connection.peer.lineage.starter();
    let mut work = Box::pin({
        let (services, tool) = (services.clone(), tool.clone());
        async move {
            let answer = execute_tool(&services.engine, tool, call).await;
            services.open_requests.remove(number);
            ended.cancel();
            answer
        }
    });
    // Most are judged at once, and need no task before the answer.
    let ran = match futures_util::poll!(&mut work) {
        Poll::Ready(answer) => Either::Left(ready(answer)),
        Poll::Pending => Either::Right(services.engine.tasks.spawn(work).map(|joined| {
            let failed = |error: JoinError| Err(CallError::Failed(error.to_string()));
            joined.unwrap_or_else(failed)
        })),
    };
    let mut ran = std::pin::pin!(ran);
    let mut asked = std::pin::pin!(person_asked(&tool));
    let mut agent_ended = std::pin::pin!(ended_while_asked(agent, &tool));
    let mut is_told = false;
    let judgement = loop {
        tokio::select! {
            biased;
            // Before the judgement, whose receiver is not polled again once it has failed.
            until = &mut asked, if !is_told => {
                tell_of_waiting(connection, &request_id, until);
                is_told = true;
            }
            Ok(judgement) = &mut judged => break judgement,
            // A denial ends the call.
            answer = &mut ran => break match judged.try_recv() {
                Ok(judgement) => judgement,
                Err(_) => judgement_of_end(&tool, answer)?,
            },
            () = request.scope.cancel.cancelled() => return Err(of_call(CallError::Cancelled)),
            () = &mut agent_ended => {
                tool.note_gone("the agent ended");
                return Err(refused("agent_ended", "the agent has ended, and nobody is asked for it any more"));
            }
        }
    };
    let cancel = unjudged.judged();
    services.open_requests.judge(number, &judgement);
    if params.confines && judgement.decision != Verdict::Deny {
        services.command_approvals.leave(&request_id, &requester, &params, &judgement, (&tool, generation));
    }
    // An agent that has ended, or refused the tool itself, reports no end.
    if let Some(agent) = agent.filter(|_| !call_ended.is_cancelled()) {
        services.engine.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = call_ended.cancelled() => {}
                () = process_end::ended(agent) => cancel.cancel(),
            }
        });
    }
    Ok(answer(judgement, request_id, call_id))
}

/// When the caller goes before there is a judgement, nobody is asked any more.
struct UnjudgedRequest {
    tool: Arc<AgentTool>,
    /// `None` once it is judged.
    cancel: Option<CancellationToken>,
}

impl UnjudgedRequest {
    fn judged(mut self) -> CancellationToken {
        self.cancel.take().expect("nothing else takes it before the end")
    }
}

impl Drop for UnjudgedRequest {
    fn drop(&mut self) {
        // A daemon that stops has cancelled it before.
        if let Some(cancel) = self.cancel.take().filter(|cancel| !cancel.is_cancelled()) {
            self.tool.note_gone("the agent's hook ended");
            cancel.cancel();
        }
    }
}

/// Returns once the agent has ended while a person is asked for it: its hook may live on.
async fn ended_while_asked(agent: Option<ProcessId>, tool: &AgentTool) {
    match agent {
        Some(agent) if tool.request().asks_until.is_some() => {
            // The sender lives as long as the tool.
            let _ = tool.request().waiting.subscribe().wait_for(|waiting| *waiting).await;
            process_end::ended(agent).await;
        }
        _ => std::future::pending().await,
    }
}

/// Until when the answer comes, once a person is asked; never for a request that asks nobody.
async fn person_asked(tool: &AgentTool) -> Instant {
    let agent = tool.request();
    let asked = match agent.asks_until {
        Some(until) => agent.waiting.subscribe().wait_for(|waiting| *waiting).await.is_ok().then_some(until),
        None => None,
    };
    match asked {
        Some(until) => until,
        None => std::future::pending().await,
    }
}

/// The caller learns that a person is asked, so that it waits until then, and no longer for a daemon that does not answer.
fn tell_of_waiting(connection: &ClientConnection, request_id: &str, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let params = PermissionWaiting { request: request_id.to_owned(), until: rfc3339(SystemTime::now() + left) };
    let notification = json!({"jsonrpc": "2.0", "method": "permissions.waiting", "params": params});
    let sent = connection.outbox.writer().try_send(|| to_raw_value(&notification).ok());
    if !sent {
        tracing::warn!(
            request = request_id,
            "the caller reads no notifications and does not learn that a person is asked"
        );
    }
}

async fn finish(request: MethodRequest, params: FinishRequest) -> Result<FinishedRequest, ErrorObjectOwned> {
    let (requester, is_person) = (requester(request.connection()), may_decide(&request));
    let may_end_of = |of: &RequestingAgent| is_person || *of == requester;
    let may_end = |open: &OpenRequest| may_end_of(&open.requester);
    if params.scope != FinishScope::Request {
        request.services.command_approvals.end(&params.request_id, may_end_of);
        request.services.open_requests.end_conversation(&params.request_id, params.scope, may_end);
        return Ok(FinishedRequest::default());
    }
    if params.denied.is_some() {
        request.services.command_approvals.deny(&params.request_id, may_end_of);
    }
    let runs = request.services.command_approvals.take_runs(&params.request_id, may_end_of);
    let open = request.services.open_requests.take(&params.request_id, may_end);
    let open = open.ok_or_else(|| unknown("request", &params.request_id))?;
    let mut summary = params.summary.unwrap_or_default();
    summary.truncate(summary.floor_char_boundary(MAX_SUMMARY));
    // The call may have ended at this moment, and is done all the same.
    let _ = open.report.send(match (params.ok, params.denied) {
        (true, _) => AgentReport::Done(summary),
        (false, Some(why)) => AgentReport::Denied(why),
        (false, None) => AgentReport::Failed(summary),
    });
    // The next request may undo the change.
    open.ended.cancelled().await;
    Ok(FinishedRequest { notes: approvals::notes(runs).await })
}

fn check(params: &RequestPermission) -> Result<(), ErrorObjectOwned> {
    let agent = params.agent.as_str();
    let is_name = agent.starts_with(|c: char| c.is_ascii_lowercase())
        && agent.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
    if !is_name || agent.len() > MAX_AGENT {
        let words =
            format!("agent: expected a name such as codex, of at most {MAX_AGENT} small letters, digits, - and _");
        return Err(invalid_params(&words));
    }
    let texts = [
        ("tool", Some(params.tool.as_str())),
        ("session", params.session.as_deref()),
        ("mode", params.mode.as_deref()),
        ("shell", params.shell.as_deref()),
        ("agent_id", params.agent_id.as_deref()),
        ("agent_type", params.agent_type.as_deref()),
        ("call_id", params.call_id.as_ref().map(CallId::as_str)),
    ];
    for (name, text) in texts {
        if text.is_some_and(|text| text.len() > MAX_NAME || text.chars().any(char::is_control)) {
            return Err(invalid_params(&format!("{name}: expected at most {MAX_NAME} printable bytes")));
        }
    }
    if params.needs.as_ref().is_some_and(|needs| needs.len() > MAX_NEEDS) {
        return Err(invalid_params(&format!("needs: expected at most {MAX_NEEDS}")));
    }
    Ok(())
}

/// A hook is a new process for each event, and knows it too if its agent tells it the conversation and the call.
fn id_of(params: &RequestPermission) -> String {
    match (&params.session, &params.call_id) {
        (Some(session), Some(call)) => [&params.agent, session.as_str(), call.as_str()].join("/"),
        _ => format!("request_{}", random_hex(16)),
    }
}

/// An agent's own client, such as a hook. What the agent runs from now on is no person's.
fn note_agent(connection: &ClientConnection, agent: &str) {
    let Some(agent) = AGENTS.into_iter().find(|known| *known == agent) else { return };
    if !connection.is_agent() {
        connection.become_agent();
    }
    // The name of a tool tells which agent asks.
    connection.peer.name_agent(agent);
}

/// The agent of this name, in the parameter `agent` of a method.
pub(super) fn hooked_agent(name: &str) -> Result<&'static str, ErrorObjectOwned> {
    agent_named(name).ok_or_else(|| {
        let known = AGENTS.join(", ");
        invalid_params(&format!("agent: {name:?} has no hooks that toold knows: expected one of {known}"))
    })
}

/// The agent and its own id of the conversation.
fn conversation_of(agent: &str, session: &str) -> String {
    [agent, session].join("/")
}

/// The tool and its input: everything that the judgement depends on, but the policy.
fn digest_of(params: &RequestPermission) -> blake3::Hash {
    let RequestPermission { tool, input, cwd, needs, mode, session_id, shell, confines, .. } = params;
    blake3::hash(json!([tool, input, cwd, needs, mode, session_id, shell, confines]).to_string().as_bytes())
}

fn requester(connection: &ClientConnection) -> RequestingAgent {
    let below = match &connection.peer.owner {
        SessionOwner::Tool(starter) => Some(starter.session.id.clone()),
        SessionOwner::Frontend | SessionOwner::UnknownTool | SessionOwner::Plugin { .. } => None,
    };
    RequestingAgent { opener: connection.opener(), below }
}

fn tool_for(
    request: &MethodRequest,
    params: &RequestPermission,
    judged: oneshot::Sender<Judgement>,
    reported: oneshot::Receiver<AgentReport>,
) -> Arc<AgentTool> {
    let named = params.needs.clone().unwrap_or_default();
    let (actions, unclear) = match actions(&params.agent, &params.tool, &params.input) {
        Ok(actions) => (actions, None),
        // Its own tools are not known, so that only the caller can know what they need.
        Err(AgentInputError::UnknownAgent(_)) if !named.is_empty() => (Vec::new(), None),
        Err(AgentInputError::UnknownAgent(_)) => (vec![AgentAction::Unknown], None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let builtins = &request.services.builtins;
    let runs_commands =
        actions.iter().any(AgentAction::may_run_commands) || named.iter().any(|need| need.category == Category::Shell);
    let environment = match runs_commands {
        true => builtins.environment.clone().with(request.connection().peer.lineage.environment()),
        false => Environment::default(),
    };
    let observed = request.services.config.observing(Some(&params.agent)).is_some();
    let config = request.services.config.loaded();
    let config = config.config.agents.named.get(&params.agent).cloned().unwrap_or_default();
    let of_agent = AgentRequest {
        agent: params.agent.clone(),
        subagent: subagent_of(params),
        asks_until: config.wait(params.wait_ms).filter(|_| !observed).map(|wait| Instant::now() + wait),
        observed,
        was_asked: params.was_asked,
        waiting: watch::Sender::new(false),
        mode: config.mode(params.mode.as_deref().and_then(mode_of)),
        mode_name: params.mode.clone(),
        gone: OnceLock::new(),
    };
    let work = AgentWork {
        tool: params.tool.clone(),
        input: params.input.clone(),
        actions,
        named,
        unclear,
        shell: params.shell.clone(),
        environment,
        floor: floor_of(params, config.confine),
    };
    Arc::new(AgentTool::new(builtins, of_agent, work, judged, reported))
}

/// How the agent runs its command lines.
fn floor_of(params: &RequestPermission, confines: AgentConfines) -> AgentFloor {
    if !CONFINABLE.contains(&params.agent.as_str()) {
        return AgentFloor::Impossible;
    }
    match confines {
        AgentConfines::Free if params.confines => AgentFloor::OfFree,
        AgentConfines::All if params.confines => AgentFloor::OfAll,
        AgentConfines::Off | AgentConfines::Free | AgentConfines::All => AgentFloor::Missing,
    }
}

/// The kind of the sub-agent, and its id in brackets.
fn subagent_of(params: &RequestPermission) -> Option<String> {
    let [kind, id] = [&params.agent_type, &params.agent_id].map(|text| text.as_deref().filter(|text| !text.is_empty()));
    match (kind, id) {
        (Some(kind), Some(id)) => Some(format!("{kind} ({id})")),
        (Some(kind), None) => Some(kind.to_owned()),
        (None, Some(id)) => Some(format!("({id})")),
        (None, None) => None,
    }
}

/// The mode here that an agent's own corresponds to, by its name in Claude Code, Codex or Gemini CLI.
fn mode_of(name: &str) -> Option<Mode> {
    match name {
        "acceptEdits" | "accept_edits" | "auto_edit" | "autoEdit" => Some(Mode::AcceptEdits),
        "plan" => Some(Mode::Plan),
        "bypassPermissions" | "yolo" => Some(Mode::Yolo),
        _ => None,
    }
}

fn call_of(
    request: &MethodRequest,
    params: &RequestPermission,
    session: &Arc<Session>,
    call_id: CallId,
    cancel: CancellationToken,
) -> Result<Call, ErrorObjectOwned> {
    let engine = &request.services.engine;
    let cwd = within(engine, session, &params.cwd)?;
    Ok(Call {
        name: params.tool.clone(),
        // What is no object is no input of any tool, and is not judged by it.
        arguments: if params.input.is_object() { params.input.clone() } else { Value::Null },
        progress: vec![broadcast(engine, &call_id, &session.id)],
        call_id: Some(call_id),
        chain: session.chain(),
        session: session.clone(),
        cwd: Some(cwd),
        timeout: None,
        no_cache: true,
        caller: request.connection().caller.clone(),
        cancel,
        depth: 0,
        holds_lane: false,
    })
}

/// The judgement of a call that ended before it was judged: a denial ends it, and so does a panic, after which a person is
/// asked.
fn judgement_of_end(tool: &AgentTool, answer: Result<ToolResult, CallError>) -> Result<Judgement, ErrorObjectOwned> {
    let result = match answer {
        Ok(result) => result,
        Err(CallError::Failed(why)) => {
            let reason = format!("toold failed to judge it: {why}");
            return Ok(Judgement { by: DecidedBy::Rule, ..Judgement::ask(reason) });
        }
        Err(error) => return Err(of_call(error)),
    };
    let reason = result.content.iter().find_map(Block::as_text).unwrap_or_default().to_owned();
    let by = tool.context().and_then(|cx| cx.denied_by()).unwrap_or_default();
    Ok(Judgement { decision: Verdict::Deny, by, ..Judgement::ask(reason) })
}

fn answer(judgement: Judgement, request_id: String, call_id: CallId) -> JudgedRequest {
    let Judgement { decision, by, reason, protected, may_be_denied: _ } = judgement;
    JudgedRequest { decision, reason, by, request_id, call_id, protected }
}
