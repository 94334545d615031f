//! Sends the answer of the person at this machine to the daemon that asks.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use toold_proto::event::EventBody;
use toold_proto::permission::{ReplyPermission, Scope};

use crate::member::Member;
use crate::messages::{AnswerReceipt, AskAnswerMessage, EndedFleetAsk, FleetAsk};
use crate::names::FleetName;
use crate::own_asks::answerer;
use crate::signed::SignedKind;
use crate::subjects;

/// How long after a failure it is sent again.
const RETRY: Duration = Duration::from_secs(1);
/// How long its daemon may take to reply.
const REPLY: Duration = Duration::from_secs(5);
/// How long the end of an ask that has ended may be under way.
const END: Duration = Duration::from_secs(5);

pub(super) enum Sent {
    /// The answer counts, or the ask no longer waits.
    Done,
    /// It does not count, and the ask still waits.
    Refused(String),
    /// Something else ended the ask.
    Ended,
}

/// Sends it until its daemon replies or the ask ends, also while the broker is away.
pub(super) async fn send(
    member: &Member,
    from: &FleetName,
    message: &FleetAsk,
    reply: &ReplyPermission,
    mut end: watch::Receiver<Option<EndedFleetAsk>>,
) -> Sent {
    let answered = tokio::select! {
        biased;
        () = member.stop.cancelled() => return Sent::Done,
        ended = ended(&mut end) => return after_end(member, from, ended.as_ref(), Sent::Ended),
        answered = until_replied(member, from, message, reply) => answered,
    };
    match answered {
        AnswerReceipt { error: None, .. } => Sent::Done,
        AnswerReceipt { error: Some(why), pending: true, .. } => Sent::Refused(why),
        // Somebody was faster, or this answer did count and the reply to it was lost.
        AnswerReceipt { error: Some(_), pending: false, .. } => {
            let ended = tokio::time::timeout(END, ended(&mut end)).await.unwrap_or_default();
            after_end(member, from, ended.as_ref(), Sent::Done)
        }
    }
}

async fn ended(end: &mut watch::Receiver<Option<EndedFleetAsk>>) -> Option<EndedFleetAsk> {
    match end.wait_for(Option::is_some).await {
        Ok(ended) => ended.clone(),
        // The ask was forgotten, because its time is over.
        Err(_) => None,
    }
}

/// Tells people here when their answer did not count.
fn after_end(member: &Member, from: &FleetName, ended: Option<&EndedFleetAsk>, sent: Sent) -> Sent {
    let by = ended.and_then(|ended| ended.by.as_deref());
    let own = member.person().map(|person| answerer(person, &member.name));
    if by.is_none() || by != own.as_deref() {
        let why = by.map_or_else(|| "it has ended".to_owned(), |by| format!("{by} was faster"));
        let message = format!("an answer to a request of {from} came too late: {why}");
        tracing::info!("{message}");
        member.engine.events.emit(EventBody::Notice { session_id: None, plugin: None, level: "warn".into(), message });
    }
    sent
}

async fn until_replied(
    member: &Member,
    from: &FleetName,
    message: &FleetAsk,
    reply: &ReplyPermission,
) -> AnswerReceipt {
    let subject = subjects::answer(&message.ask_id);
    let mut state = member.broker.state.clone();
    loop {
        // Fails only when the broker is gone for good, which stops the member.
        let _ = state.wait_for(|state| state.connected).await;
        // Signed each time: an answer is accepted once, and only while it is fresh.
        let body = AskAnswerMessage {
            ask_id: message.ask_id.clone(),
            challenge: message.challenge.clone(),
            at_daemon: member.name.clone(),
            decision: reply.action,
            scope: reply.scope.unwrap_or(Scope::Once),
            pattern: reply.pattern.clone(),
            all_parts: reply.all_parts,
            message: reply.message.clone(),
            expires_in: reply.expires_in,
        };
        let Some(signed) = member.sign_for_person(SignedKind::Answer, &subject, body) else {
            return std::future::pending().await;
        };
        let request = member.broker.client.request(subject.clone(), signed.into());
        match tokio::time::timeout(REPLY, request).await {
            Ok(Ok(response)) => {
                let read = member.verify::<AnswerReceipt>(&response.payload, SignedKind::Answered, &response.subject);
                if let Ok(answered) = read
                    && answered.from == *from
                    && answered.body.ask_id == message.ask_id
                {
                    return answered.body;
                }
            }
            Ok(Err(error)) => tracing::debug!(daemon = %from, %error, "an answer was not delivered"),
            Err(_) => tracing::debug!(daemon = %from, "an answer was not replied to"),
        }
        sleep(RETRY).await;
    }
}
