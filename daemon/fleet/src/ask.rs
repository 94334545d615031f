//! Sends the asks of this daemon to the persons who decide here, and receives their answers.
//!
//! Questions of tools are not sent: they are asked on the machine on which the tool runs.

mod answers;
mod people;

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use toold_engine::Engine;
use toold_proto::permission::{Ask, PermissionEvent, Resolution, Resolved};

use crate::caller_origin::origin_of;
use crate::member::Member;
use crate::messages::{EndedFleetAsk, FleetAsk};
use crate::names::FleetName;
use crate::own_asks::{MAX_ASK, OwnAsk, OwnAsks, ask_id, request_id};
use crate::signed::{SignedKind, random_id, read_own};
use crate::subjects;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    let mut own = member.own_asks.lock().await;
    let OwnAsks { subscription, asks } = &mut *own;
    let engine = &member.engine;
    let subscription = subscription.get_or_insert_with(|| {
        let member = Arc::downgrade(member);
        let is_there = move |session: &_| member.upgrade().is_some_and(|member| people::can_be_asked(&member, session));
        engine.asks.subscribe_elsewhere(is_there)
    });
    let answers = member.broker.client.subscribe(subjects::answer(&ask_id(&member.name, "*"))).await;
    let mut answers = answers.map_err(|error| format!("can't receive answers: {error}"))?;
    while let Some(event) = subscription.try_next() {
        take(member, asks, event);
    }
    end_forgotten(member, asks).await?;
    // The broker may have lost what it had.
    asks.iter_mut().for_each(|ask| ask.is_sent = false);
    let mut changes = member.directory.changes();
    let _reachable = Reachable::new(&member.engine);
    loop {
        send(member, asks).await?;
        tokio::select! {
            event = subscription.next() => take(member, asks, event),
            answer = answers.next() => match answer {
                Some(message) => answers::receive(member, asks, message).await,
                None => return Err("answers are not received any more".to_owned()),
            },
            // The sender is a part of the member.
            _ = changes.changed() => member.engine.asks.reconsider(),
        }
    }
}

/// From now on nobody elsewhere can be asked. The engine calls the function of the subscription under a lock that dropping the
/// subscription needs as well, so the subscription must be gone before the member can be dropped by that function.
pub(crate) async fn leave(member: &Member) {
    member.own_asks.lock().await.subscription = None;
}

/// While it exists, people elsewhere may be reachable. Asks hear of its beginning and its end.
struct Reachable(Arc<Engine>);

impl Reachable {
    fn new(engine: &Arc<Engine>) -> Self {
        engine.asks.reconsider();
        Self(engine.clone())
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        self.0.asks.reconsider();
    }
}

fn take(member: &Member, asks: &mut Vec<OwnAsk>, event: PermissionEvent) {
    match event {
        PermissionEvent::Asked { request } => add(member, asks, *request),
        PermissionEvent::Resolved(resolved) => end(member, asks, resolved),
    }
}

/// A new ask, or a known one for whose answer others wait than before.
fn add(member: &Member, asks: &mut Vec<OwnAsk>, ask: Ask) {
    let id = ask_id(&member.name, &ask.request_id);
    if let Some(own) = asks.iter_mut().find(|own| own.message.ask_id == id) {
        (own.message.ask, own.is_sent) = (Some(ask), false);
        return;
    }
    let people = people::of(member, &ask.session_id);
    if people.is_empty() {
        return;
    }
    let from = origin_of(&member.engine, &ask.session_id);
    let message = FleetAsk {
        ask_id: id,
        instance: member.instance.clone(),
        challenge: random_id(),
        ask: Some(ask),
        origin: from.as_ref().map(|from| from.origin.clone()),
        session: from.map(|from| from.session),
        ended: None,
    };
    asks.push(OwnAsk { people, message, is_sent: false, was_sent: false });
}

fn end(member: &Member, asks: &mut Vec<OwnAsk>, resolved: Resolved) {
    let id = ask_id(&member.name, &resolved.request_id);
    let Some(at) = asks.iter().position(|own| own.message.ask_id == id) else { return };
    if !asks[at].was_sent {
        asks.remove(at);
        return;
    }
    let by = resolved.by.and_then(|by| {
        // Persons elsewhere have no connection here, and are named with their machine.
        let client = by.client?;
        Some(if by.connection == answers::NO_CONNECTION { client } else { format!("{client} at {}", member.name) })
    });
    let own = &mut asks[at];
    own.message.ask = None;
    own.message.ended = Some(EndedFleetAsk { action: resolved.action, scope: resolved.scope, by });
    own.is_sent = false;
}

/// Sends what the broker does not have yet, in order.
async fn send(member: &Member, asks: &mut Vec<OwnAsk>) -> Result<(), String> {
    for own in asks.iter_mut().filter(|own| !own.is_sent) {
        own.was_sent = true;
        for person in &own.people {
            publish(member, person, &own.message).await?;
        }
        own.is_sent = true;
    }
    asks.retain(|own| own.message.ended.is_none());
    Ok(())
}

async fn publish(member: &Member, person: &FleetName, message: &FleetAsk) -> Result<(), String> {
    let subject = subjects::ask(person, &message.ask_id);
    let mut signed = member.sign(SignedKind::Ask, &subject, message);
    if signed.len() > MAX_ASK {
        let mut shorter = message.clone();
        if let Some(ask) = &mut shorter.ask
            && ask.diff.take().is_some()
        {
            let why = format!("the diff is too long to be shown here, but not on {}", member.name);
            ask.reason = Some(ask.reason.take().map_or(why.clone(), |reason| format!("{reason}; {why}")));
        }
        signed = member.sign(SignedKind::Ask, &subject, shorter);
    }
    if signed.len() > MAX_ASK {
        tracing::warn!(ask = message.ask_id, "an ask is too long to be sent to people elsewhere");
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| format!("can't send an ask to {person}: {error}");
    let sent = member.broker.jetstream.publish(subject, signed.into()).await.map_err(|error| failed(&error))?;
    sent.await.map_err(|error| failed(&error))?;
    Ok(())
}

/// Ends asks in the stream that an earlier process of this daemon left open.
async fn end_forgotten(member: &Member, asks: &[OwnAsk]) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("can't read the asks on the broker: {error}");
    let stream = member.broker.jetstream.get_stream(subjects::ASKS).await.map_err(|error| failed(&error))?;
    let mut stored =
        stream.info_with_subjects(format!("toold.ask.*.{}.>", member.name)).await.map_err(|error| failed(&error))?;
    while let Some((subject, _)) = stored.try_next().await.map_err(|error| failed(&error))? {
        let Some((person, id)) = subject.strip_prefix("toold.ask.").and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        let Ok(person) = FleetName::parse(person) else { continue };
        if request_id(&member.name, id).is_none() || asks.iter().any(|own| own.message.ask_id == id) {
            continue;
        }
        let last = stream.direct_get_last_for_subject(&subject).await.ok();
        let last = last.and_then(|last| read_own::<FleetAsk>(member.key(), &last.payload, SignedKind::Ask, &subject));
        if last.is_none_or(|last| last.body.ended.is_none()) {
            let message = FleetAsk {
                ask_id: id.to_owned(),
                instance: member.instance.clone(),
                challenge: random_id(),
                ask: None,
                origin: None,
                session: None,
                ended: Some(EndedFleetAsk { action: Resolution::Cancelled, scope: None, by: None }),
            };
            publish(member, &person, &message).await?;
        }
    }
    Ok(())
}
