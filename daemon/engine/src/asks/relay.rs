//! Asks of another daemon: shown here, answered there. [`relay`] shows one for a call that a tool makes there; [`show`] one
//! of any call there.
//!
//! No rule, grant or mode of this daemon answers them, since they are about another machine, and
//! nothing of the answer is stored here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::{Ask, ReplyPermission, Resolution, Resolved};
use toold_proto::provide::CallWait;
use toold_proto::tool::{SessionId, Source, SourceKind};

use crate::Engine;
use crate::agent_request::NOBODY_ANSWERED;
use crate::asks::{AskAnswer, EndedAsk, PendingAsk, RelayedAsk, allowed, denied, ended, refused};
use crate::cx::Cx;
use crate::need::Need;
use crate::prompts::{PromptWaiter, WaitOutcome};
use crate::time::rfc3339;
use crate::tool::ToolError;

/// The outcome of an ask of another daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum Relayed {
    /// A person's answer, to be sent to the other daemon. Its `request_id` is that of the prompt
    /// here.
    Answered(ReplyPermission),
    /// The ask ended on the other daemon.
    Elsewhere,
    /// Nobody here can answer, or nobody did.
    Nobody,
}

/// Shows people here an ask of the daemon `from` for this call, and waits for an answer or until
/// the ask ends there.
///
/// The call's deadline stands still meanwhile. Dropping the future ends the prompt.
///
/// # Errors
/// `Cancelled` when the call ends first.
pub async fn relay(
    cx: &Cx,
    from: &str,
    theirs: &Ask,
    elsewhere: impl Future<Output = Resolved>,
) -> Result<Relayed, ToolError> {
    let engine = &cx.engine;
    let settings = engine.settings.load_full();
    let time = settings.ask_timeout;
    let here = |theirs| Ask {
        asked_at: rfc3339(SystemTime::now()),
        expires_at: rfc3339(SystemTime::now() + time),
        ..for_call(cx, theirs)
    };
    let make = |number| shown(engine, from, theirs, number, cx.session.grant_project().to_owned(), here);
    let key = format!("{:?}", (from, &theirs.request_id, cx.call_id.as_str()));
    let Some(waiter) = engine.asks.prompts.enter_relayed(key, cx, time, make) else {
        return Ok(Relayed::Nobody);
    };
    let _pause = cx.deadline.pause();
    let _waiting = cx.wait_for(CallWait::Permission);
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    let over = answer(waiter, from, theirs, elsewhere);
    tokio::pin!(over);
    let (ended, relayed) = loop {
        tokio::select! {
            biased;
            // Dropping the waiter ends the prompt.
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            over = &mut over => break over,
            _ = heartbeat.tick() => cx.message("waiting for a person's answer"),
        }
    };
    let need = named_need(from, theirs);
    match &ended.answer {
        AskAnswer::Allowed { rule, by, .. } => cx.record(&need, "allow", rule.clone(), *by),
        AskAnswer::Denied { rule, by, .. } => cx.record(&need, "deny", rule.clone(), *by),
    }
    Ok(relayed)
}

/// Shows an ask of the daemon `from` as it is there now: others may wait for its answer than before. Does nothing when it is
/// not shown here.
pub fn renew(engine: &Engine, from: &str, theirs: &Ask) {
    engine.asks.prompts.change(|shown| {
        let is_it = shown.relayed.as_ref().is_some_and(|of| of.from == from && of.request_id == theirs.request_id);
        let ask = &mut shown.ask;
        let is_new = (&ask.agent, &ask.agents, &ask.subagent) != (&theirs.agent, &theirs.agents, &theirs.subagent);
        if is_it && is_new {
            ask.agent.clone_from(&theirs.agent);
            ask.agents.clone_from(&theirs.agents);
            ask.subagent.clone_from(&theirs.subagent);
        }
        is_it && is_new
    });
}

/// An ask of another daemon that is shown here. Dropping it ends the prompt.
pub struct ShownAsk {
    waiter: PromptWaiter<PendingAsk>,
    from: String,
    theirs: Ask,
    calls: Vec<Arc<Cx>>,
}

/// Shows people here an ask of the daemon `from` for as long as `time`, also while no frontend is connected.
///
/// `calls` are those of this daemon that wait for the answer there: the ask is shown to their callers too, and their
/// deadlines stand still. Without one it is an ask of `session`, which need not exist here.
pub fn show(
    engine: &Engine,
    from: &str,
    theirs: &Ask,
    session: &SessionId,
    calls: Vec<Arc<Cx>>,
    time: Duration,
) -> ShownAsk {
    let here = |theirs| match calls.first() {
        Some(cx) => Ask { call_ids: calls.iter().map(|cx| cx.call_id.clone()).collect(), ..for_call(cx, theirs) },
        None => {
            let source = Source { kind: SourceKind::Fleet, name: from.to_owned(), path: None };
            Ask { session_id: session.clone(), source, ..theirs }
        }
    };
    let project = calls.first().map(|cx| cx.session.grant_project().to_owned()).unwrap_or_default();
    let make = |number| shown(engine, from, theirs, number, project, here);
    let key = format!("{:?}", (from, &theirs.request_id));
    let waiter = engine.asks.prompts.show(key, &calls, time, make);
    ShownAsk { waiter, from: from.to_owned(), theirs: theirs.clone(), calls }
}

impl ShownAsk {
    /// Waits for an answer, or until the ask ends there.
    pub async fn answer(self, elsewhere: impl Future<Output = Resolved>) -> Relayed {
        let Self { waiter, from, theirs, calls } = self;
        let _paused: Vec<_> = calls.iter().map(|cx| (cx.deadline.pause(), cx.wait_for(CallWait::Permission))).collect();
        answer(waiter, &from, &theirs, elsewhere).await.1
    }
}

async fn answer(
    mut waiter: PromptWaiter<PendingAsk>,
    from: &str,
    theirs: &Ask,
    elsewhere: impl Future<Output = Resolved>,
) -> (EndedAsk, Relayed) {
    let request_id = waiter.prompt.ask.request_id.clone();
    let nobody = |resolution| {
        let answer = denied(NOBODY_ANSWERED, DecidedBy::Default, NOBODY_ANSWERED);
        ended(&request_id, resolution, NOBODY_ANSWERED, answer)
    };
    let (over, otherwise) = tokio::select! {
        biased;
        waited = waiter.wait() => match waited {
            WaitOutcome::Answered(ended) => (ended, Relayed::Nobody),
            WaitOutcome::Expired => (waiter.resolve(nobody(Resolution::Expired)), Relayed::Nobody),
            WaitOutcome::Alone => (waiter.resolve(nobody(Resolution::Cancelled)), Relayed::Nobody),
        },
        there = elsewhere => {
            let rule = format!("answer on {from}");
            let answer = match there.action {
                Resolution::Allow => allowed(rule, DecidedBy::Person),
                Resolution::Deny | Resolution::Cancelled | Resolution::Expired => {
                    refused(&rule, DecidedBy::Person, &named_need(from, theirs), "there")
                }
            };
            let mut end = ended(&request_id, there.action, &how_there(from, &there), answer);
            end.resolved.scope = there.scope;
            end.resolved.by = there.by;
            (waiter.resolve(end), Relayed::Elsewhere)
        }
    };
    let relayed = over.reply.clone().map_or(otherwise, Relayed::Answered);
    (over, relayed)
}

/// How an ask of the daemon `from` ended there, for people here.
fn how_there(from: &str, there: &Resolved) -> String {
    let client = there.by.as_ref().and_then(|by| by.client.as_deref());
    match (there.how.as_str(), there.action, client) {
        ("", Resolution::Allow, Some(client)) => format!("allowed by {client}"),
        ("", Resolution::Deny, Some(client)) => format!("denied by {client}"),
        ("", ..) => format!("it ended on {from}"),
        (how, ..) => format!("on {from}: {how}"),
    }
}

/// The ask as it is shown here. `place` gives it the session and the calls that it has here.
fn shown(
    engine: &Engine,
    from: &str,
    theirs: &Ask,
    number: u64,
    project: PathBuf,
    place: impl FnOnce(Ask) -> Ask,
) -> PendingAsk {
    let reason = match &theirs.reason {
        Some(reason) => format!("on {from}: {reason}"),
        None => format!("on {from}, by its tool {}", theirs.tool),
    };
    let request_id = format!("ask_{}_{number}", engine.short_epoch());
    PendingAsk {
        ask: Box::new(place(Ask { request_id, reason: Some(reason), ..theirs.clone() })),
        askers: Vec::new(),
        need: Arc::new(need_of(theirs)),
        parts: Arc::default(),
        project,
        relayed: Some(RelayedAsk { from: from.to_owned(), request_id: theirs.request_id.clone() }),
        fits_one_line: false,
    }
}

fn for_call(cx: &Cx, theirs: Ask) -> Ask {
    Ask {
        session_id: cx.session.id.clone(),
        call_id: cx.call_id.clone(),
        call_ids: vec![cx.call_id.clone()],
        tool: cx.tool.to_string(),
        source: cx.source.clone(),
        ..theirs
    }
}

/// For the audit log here.
fn named_need(from: &str, theirs: &Ask) -> Need {
    Need { target: format!("{from}: {}", theirs.target), ..need_of(theirs) }
}

fn need_of(theirs: &Ask) -> Need {
    let need = Need {
        reason: theirs.reason.clone(),
        line: theirs.command.clone(),
        ..Need::new(theirs.category, theirs.target.clone())
    };
    need.with_file(|file| file.diff.clone_from(&theirs.diff))
}
