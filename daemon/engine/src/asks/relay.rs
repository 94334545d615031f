//! Asks of another daemon, for calls that a tool makes there: shown here, answered there.
//!
//! No rule, grant or mode of this daemon answers them, since they are about another machine, and
//! nothing of the answer is stored here.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::{Ask, ReplyPermission, Resolution, Resolved};
use toold_proto::provide::CallWait;

use crate::asks::{AskAnswer, PendingAsk, allowed, denied, ended, refused};
use crate::cx::Cx;
use crate::need::Need;
use crate::prompts::WaitOutcome;
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
    let shown = |number| PendingAsk {
        need: Arc::new(need_of(theirs)),
        parts: Arc::default(),
        project: cx.session.project().to_owned(),
        is_relayed: true,
        agents: vec![theirs.agent.clone()],
        ask: Box::new(Ask {
            request_id: format!("ask_{}_{number}", engine.short_epoch()),
            session_id: cx.session.id.clone(),
            call_id: cx.call_id.clone(),
            call_ids: vec![cx.call_id.clone()],
            tool: cx.tool.to_string(),
            source: cx.source.clone(),
            reason: Some(match &theirs.reason {
                Some(reason) => format!("on {from}: {reason}"),
                None => format!("on {from}, by its tool {}", theirs.tool),
            }),
            asked_at: rfc3339(SystemTime::now()),
            expires_at: rfc3339(SystemTime::now() + settings.ask_timeout),
            ..theirs.clone()
        }),
    };
    let key = format!("{:?}", (from, &theirs.request_id, cx.call_id.as_str()));
    let Some(mut waiter) = engine.asks.prompts.enter(key, cx, settings.ask_timeout, shown) else {
        return Ok(Relayed::Nobody);
    };
    let _pause = cx.deadline.pause();
    let _waiting = cx.wait_for(CallWait::Permission);
    let request_id = waiter.prompt.ask.request_id.clone();
    let need = Need { target: format!("{from}: {}", theirs.target), ..need_of(theirs) };
    let nobody =
        |resolution| ended(&request_id, resolution, denied("nobody answered", DecidedBy::Default, "nobody answered"));
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    tokio::pin!(elsewhere);
    let (over, otherwise) = loop {
        tokio::select! {
            biased;
            // Dropping the waiter ends the prompt.
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            waited = waiter.wait() => break match waited {
                WaitOutcome::Answered(ended) => (ended, Relayed::Nobody),
                WaitOutcome::Expired => (waiter.resolve(nobody(Resolution::Expired)), Relayed::Nobody),
                WaitOutcome::Alone => (waiter.resolve(nobody(Resolution::Cancelled)), Relayed::Nobody),
            },
            there = &mut elsewhere => {
                let rule = format!("answer on {from}");
                let answer = match there.action {
                    Resolution::Allow => allowed(rule.clone(), DecidedBy::Person),
                    Resolution::Deny | Resolution::Cancelled | Resolution::Expired => {
                        refused(&rule, DecidedBy::Person, &need, "there")
                    }
                };
                let mut end = ended(&request_id, there.action, answer);
                end.resolved.scope = there.scope;
                break (waiter.resolve(end), Relayed::Elsewhere);
            }
            _ = heartbeat.tick() => cx.message("waiting for a person's answer"),
        }
    };
    match &over.answer {
        AskAnswer::Allowed { rule, by, .. } => cx.record(&need, "allow", rule.clone(), *by),
        AskAnswer::Denied { rule, by, .. } => cx.record(&need, "deny", rule.clone(), *by),
    }
    Ok(over.reply.map_or(otherwise, Relayed::Answered))
}

fn need_of(theirs: &Ask) -> Need {
    Need {
        reason: theirs.reason.clone(),
        command: theirs.command.clone(),
        diff: theirs.diff.clone(),
        ..Need::new(theirs.category, theirs.target.clone())
    }
}
