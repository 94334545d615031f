//! Runs calls from the fleet.

mod counted_call;
mod groups;
mod served_run;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{Message as NatsMessage, Subject, Subscriber};
use futures_util::StreamExt;
use tokio::time::{MissedTickBehavior, interval};

use self::counted_call::CountedCall;
use self::groups::LabelGroups;
use crate::member::Member;
use crate::messages::{CallRefusal, CallReply, CancelCallRequest, CancelledCall, FleetCall, RefusedCall, ReplyEvent};
use crate::served_calls::ServedCall;
use crate::served_calls::backlog::Backlog;
use crate::served_calls::window::ReplyWindow;
use crate::signed::{Message, MessageRefusal, SignedKind, random_id};
use crate::{blobs, offered, subjects};

/// How often changed settings are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// A byte of text may become so many in JSON.
const LONGEST_ESCAPE: usize = 6;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    let subscribe = async |subject: String| -> Result<Subscriber, String> {
        member.broker.client.subscribe(subject).await.map_err(|error| error.to_string())
    };
    let mut cancels = subscribe(subjects::cancel(&member.name, "*")).await?;
    let mut direct = subscribe(subjects::call(&member.name)).await?;
    let mut groups = LabelGroups::default();
    let mut running = member.served.changes();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = || "a subscription ended".to_owned();
    loop {
        groups.adjust(member).await?;
        tokio::select! {
            message = cancels.next() => cancel(member, &message.ok_or_else(ended)?),
            message = direct.next() => receive(member, member.name.as_str(), message.ok_or_else(ended)?).await,
            (label, message) = groups.next() => receive(member, &format!("any.{label}"), message).await,
            _ = running.changed() => {}
            _ = look.tick() => {}
        }
    }
}

/// Cancels a call, and answers when nothing of it runs any more.
fn cancel(member: &Arc<Member>, message: &NatsMessage) {
    let to = member.name.as_str();
    let Ok(request) = member.verify::<CancelCallRequest>(&message.payload, SignedKind::Cancel, to) else { return };
    let call_id = request.body.call_id;
    let call = member.served.find(&call_id);
    if let Some(call) = call.as_ref().filter(|call| call.caller != request.from) {
        let sentence = format!("{} wanted to cancel a call of {}", request.from, call.caller);
        member.counts.refuse(MessageRefusal::NotPermitted, sentence);
        return;
    }
    let (member, reply) = (member.clone(), message.reply.clone());
    let tasks = member.tasks.clone();
    tasks.spawn(async move {
        let was_running = match call {
            Some(call) => {
                let was_running = !call.over.is_cancelled();
                call.give_up();
                tokio::select! {
                    () = call.over.cancelled() => {}
                    () = member.stop.cancelled() => return,
                }
                was_running
            }
            None => false,
        };
        let Some(reply) = reply else { return };
        let answer = CancelledCall { call_id: call_id.clone(), was_running };
        let bytes = member.sign(SignedKind::Cancelled, &call_id, answer);
        if let Err(error) = member.broker.client.publish(reply, bytes.into()).await {
            tracing::debug!(%error, "a cancelled call was not answered");
        }
    });
}

/// A request to run a tool, for this daemon or for `any.LABEL`.
async fn receive(member: &Arc<Member>, to: &str, message: NatsMessage) {
    let Some(reply) = message.reply else { return };
    let request = match member.verify::<FleetCall>(&message.payload, SignedKind::Call, to) {
        Ok(request) => request,
        Err(MessageRefusal::Expired) => {
            // Its signature is right, so it is from a member, which can correct its clock.
            if let Ok(old) = serde_json::from_slice::<Message<FleetCall>>(&message.payload) {
                let text = format!(
                    "{} refused the call: it was signed too long ago, or the clocks differ (see `toolctl fleet doctor`)",
                    member.name
                );
                refuse(member, &reply, &old.body.call_id, CallRefusal::Stale, text).await;
            }
            return;
        }
        Err(_) => return,
    };
    let call_id = request.body.call_id.clone();
    match admit(member, request, &reply) {
        Ok((call, request, running)) => {
            member.tasks.spawn(served_run::run(member.clone(), call, request, running));
        }
        Err((reason, text)) => refuse(member, &reply, &call_id, reason, text).await,
    }
}

/// Decides whether the call may be accepted.
fn admit(
    member: &Arc<Member>,
    request: Message<FleetCall>,
    reply: &Subject,
) -> Result<(Arc<ServedCall>, FleetCall, CountedCall), (CallRefusal, String)> {
    let Message { from, body: request, .. } = request;
    let here = &member.name;
    let may_call = member.verifier.roster().daemons.get(&from).is_some_and(|daemon| daemon.may_call);
    if !may_call || request.origin.daemon != from {
        member
            .counts
            .refuse(MessageRefusal::NotPermitted, format!("{from} called {}, but may not call here", request.tool));
        return Err((CallRefusal::NotPermitted, format!("{here} does not let {from} call its tools")));
    }
    if !is_call_id(&request.call_id) {
        let text = "the id of the call must be 1 to 64 of the characters a-z, 0-9, _ and -".to_owned();
        return Err((CallRefusal::Failed, text));
    }
    if member.stop.is_cancelled() {
        return Err((CallRefusal::Stopping, format!("{here} is stopping")));
    }
    let Some(tool) = offered::find(&member.engine, &member.settings.load(), &request.tool) else {
        return Err((CallRefusal::UnknownTool, format!("{here} offers no tool {}", request.tool)));
    };
    if offered::fingerprint(tool.spec()) != request.fingerprint {
        let text = format!("{} on {here} has changed since it was listed", request.tool);
        return Err((CallRefusal::ChangedTool, text));
    }
    let Some(running) = CountedCall::enter(member, &from) else {
        let (now, most) = (member.counts.running.load(Ordering::Relaxed), member.settings.load().max_calls);
        let why = match (now as usize) < most {
            true => "others that have fewer calls there wait too".to_owned(),
            false => format!("it runs {now} of {most} calls"),
        };
        return Err((CallRefusal::Busy, format!("{here} is busy: {why}")));
    };
    let folder = member.connection.state_dir.clone();
    let backlog = Backlog::new(move || {
        std::fs::create_dir_all(&folder)?;
        tempfile::tempfile_in(&folder)
    });
    // Each call's `accepted` is message 0.
    let window = ReplyWindow::new(1, blobs::message_limit(member) / LONGEST_ESCAPE, backlog);
    let call = ServedCall::new(request.call_id.clone(), from, reply.clone(), random_id(), window);
    if !member.served.add(&call) {
        return Err((CallRefusal::Failed, format!("{here} runs another call of the same id")));
    }
    Ok((call, request, running))
}

fn is_call_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&id.len()) && id.bytes().all(fits)
}

async fn refuse(member: &Member, reply: &Subject, call_id: &str, reason: CallRefusal, message: String) {
    let event = ReplyEvent::Refused(RefusedCall { reason, message });
    let bytes = member.sign(SignedKind::Reply, call_id, CallReply { call_id: call_id.to_owned(), seq: 0, event });
    if let Err(error) = member.broker.client.publish(reply.clone(), bytes.into()).await {
        tracing::debug!(%error, "a refused call was not answered");
    }
}
