//! Shows the asks of other daemons to the person at this machine, and sends that person's answers.

mod answer;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use futures_util::{Stream, StreamExt};
use tokio::sync::watch;
use toold_engine::asks::relay::{Relayed, ShownAsk, renew, show};
use toold_engine::time::from_rfc3339;
use toold_proto::permission::{Answerer, Ask, Resolved};
use toold_proto::tool::SessionId;

use crate::broker::ASK_LIFETIME;
use crate::foreign_asks::{Noted, PromptState};
use crate::member::Member;
use crate::messages::{EndedFleetAsk, FleetAsk};
use crate::names::FleetName;
use crate::own_asks::{MAX_ASK, request_id};
use crate::show_asks::answer::Sent;
use crate::signed::{self, CLOCK_TOLERANCE, MessageRefusal, SignedKind, random_id};
use crate::subjects;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    let Some(person) = member.person() else { return std::future::pending().await };
    let mut changes = member.directory.changes();
    loop {
        let mut messages = follow(member, person).await?;
        loop {
            show_open(member);
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => match note(member, &message?) {
                        Some(Noted::HasRoom) => break,
                        Some(Noted::Changed | Noted::Unchanged | Noted::Stale) | None => {}
                    },
                    None => return Err("asks are not received any more".to_owned()),
                },
                // The sender is a part of the member.
                _ = changes.changed() => {}
            }
        }
    }
}

/// The last message of each ask for the person, then new ones, in order.
async fn follow(
    member: &Member,
    person: &FleetName,
) -> Result<impl Stream<Item = Result<Message, String>> + Unpin, String> {
    fn failed(error: impl std::fmt::Display) -> String {
        format!("can't read the asks on the broker: {error}")
    }
    let stream = member.broker.jetstream.get_stream(subjects::ASKS).await.map_err(failed)?;
    let config = pull::OrderedConfig {
        // Named, so that the server sees in the subject of the request what is read.
        name: Some(random_id()),
        filter_subject: subjects::ask(person, ">"),
        deliver_policy: DeliverPolicy::LastPerSubject,
        ..pull::OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(failed)?;
    let messages = consumer.messages().await.map_err(failed)?;
    Ok(messages.map(|message| message.map_err(failed)))
}

/// Takes over a message; `None` when it is refused, or about an ask of this daemon.
fn note(member: &Member, message: &Message) -> Option<Noted> {
    let id = message.subject.strip_prefix("toold.ask.").and_then(|rest| rest.split_once('.')).map(|(_, id)| id);
    if id.is_some_and(|id| request_id(&member.name, id).is_some()) {
        return None;
    }
    let ask = match verified(member, message) {
        Ok(ask) => ask,
        Err(None) => return None,
        Err(Some((refusal, sentence))) => {
            member.counts.refuse(refusal, sentence);
            return None;
        }
    };
    let (id, now) = (ask.body.ask_id.clone(), ask.body.ask.clone());
    let noted = member.foreign_asks.lock().note(&ask.from, ask.at, ask.body);
    if noted == Noted::Unchanged
        && let Some(now) = &now
    {
        renew(&member.engine, ask.from.as_str(), now);
    }
    if noted == Noted::Stale {
        let sentence = format!("the ask {id} of {} is older than what was received of it", ask.from);
        member.counts.refuse(MessageRefusal::Replayed, sentence);
    }
    Some(noted)
}

/// # Errors
/// Why it is refused; `None` when that is counted already.
fn verified(member: &Member, message: &Message) -> Result<signed::Message<FleetAsk>, Option<(MessageRefusal, String)>> {
    let subject = &message.subject;
    if message.payload.len() > MAX_ASK {
        return Err(Some((MessageRefusal::Malformed, format!("the ask at {subject} has more than {MAX_ASK} bytes"))));
    }
    let ask: signed::Message<FleetAsk> = member.verify(&message.payload, SignedKind::Ask, subject).map_err(|_| None)?;
    let (from, body) = (&ask.from, &ask.body);
    let shows = member.verifier.roster().daemons.get(from).is_some_and(|daemon| daemon.shows_asks);
    if !shows {
        return Err(Some((MessageRefusal::NotPermitted, format!("{from} asks, but its asks are not shown here"))));
    }
    let is_own = request_id(from, &body.ask_id).is_some() && subject.ends_with(&format!(".{}", body.ask_id));
    if !is_own {
        return Err(Some((
            MessageRefusal::NotPermitted,
            format!("{from} sent an ask that is not its own: {}", body.ask_id),
        )));
    }
    if body.ask.is_some() == body.ended.is_some() {
        return Err(Some((
            MessageRefusal::Malformed,
            format!("the ask {} of {from} is neither open nor ended", body.ask_id),
        )));
    }
    Ok(ask)
}

/// Shows the open asks of daemons that are there, and ends the prompts of those that are gone or were restarted.
fn show_open(member: &Arc<Member>) {
    let mut foreign = member.foreign_asks.lock();
    foreign.forget(|message| message.ask.as_ref().and_then(time_left).is_none());
    let mut new = Vec::new();
    for (from, open) in foreign.open() {
        let instance = Some(open.message.instance.as_str());
        let is_there = member.directory.find(from, |daemon| !daemon.is_away && daemon.instance() == instance);
        match (is_there.unwrap_or(false), &open.prompt) {
            (true, PromptState::Absent) => new.push((from, open)),
            (false, PromptState::Shown(_)) => open.end(None),
            (true, PromptState::Shown(_)) | (false, PromptState::Absent) | (_, PromptState::Done) => {}
        }
    }
    new.sort_by_key(|(_, open)| open.at);
    for (from, open) in new {
        let Some(ask) = &open.message.ask else { continue };
        let Some(shown) = show_here(member, from, &open.message, ask) else { continue };
        let (sender, end) = watch::channel(None);
        open.prompt = PromptState::Shown(sender);
        member.tasks.spawn(conduct(member.clone(), from.clone(), open.message.clone(), shown, end));
    }
}

/// How long the ask still waits by the clock here; `None` when it is over.
fn time_left(ask: &Ask) -> Option<Duration> {
    let until = from_rfc3339(&ask.expires_at)?.checked_add(CLOCK_TOLERANCE)?;
    let left = until.duration_since(SystemTime::now()).ok()?;
    Some(left.min(ASK_LIFETIME))
}

/// Shows a prompt; `None` when the time of the ask is over.
fn show_here(member: &Member, from: &FleetName, message: &FleetAsk, ask: &Ask) -> Option<ShownAsk> {
    let time = time_left(ask)?;
    let origin = message.origin.as_ref().filter(|origin| origin.daemon == member.name);
    let session = origin.and(message.session.as_deref()).and_then(|session| SessionId::parse(session).ok());
    let own = session.filter(|session| member.engine.sessions.find(session).is_some());
    let calls = own.as_ref().map(|session| member.outgoing.waiting_for(session, &ask.call_ids)).unwrap_or_default();
    // Nobody can guess this one, so no session here sees what is asked elsewhere.
    let session =
        own.unwrap_or_else(|| SessionId::parse(&format!("fleet-{}", member.instance)).expect("hexadecimal digits fit"));
    Some(show(&member.engine, from.as_str(), ask, &session, calls, time))
}

/// Waits for the person's answer and sends it; asks again when it does not count.
async fn conduct(
    member: Arc<Member>,
    from: FleetName,
    message: FleetAsk,
    mut shown: ShownAsk,
    end: watch::Receiver<Option<EndedFleetAsk>>,
) {
    let Some(mut ask) = message.ask.clone() else { return };
    loop {
        let relayed = tokio::select! {
            biased;
            () = member.stop.cancelled() => return,
            relayed = shown.answer(wait_for_end(end.clone(), &ask)) => relayed,
        };
        match relayed {
            Relayed::Answered(reply) => match answer::send(&member, &from, &message, &reply, end.clone()).await {
                Sent::Done => break,
                Sent::Refused(why) => {
                    tracing::warn!(daemon = %from, ask = message.ask_id, why, "an answer does not count");
                    let Some(theirs) = &message.ask else { return };
                    let reason = theirs.reason.as_ref().map_or_else(String::new, |reason| format!("{reason}; "));
                    ask.reason = Some(format!("{reason}your answer does not count: {why}"));
                    match show_here(&member, &from, &message, &ask) {
                        Some(again) => shown = again,
                        None => break,
                    }
                }
                Sent::Ended => return,
            },
            // It was noted by whatever ended it.
            Relayed::Elsewhere => return,
            Relayed::Nobody => break,
        }
    }
    member.foreign_asks.lock().set_done(&from, &message);
}

async fn wait_for_end(mut end: watch::Receiver<Option<EndedFleetAsk>>, ask: &Ask) -> Resolved {
    let ended = end.wait_for(Option::is_some).await.map(|ended| ended.clone());
    match ended {
        Ok(Some(EndedFleetAsk { action, scope, by })) => {
            let by = by.map(|client| Answerer { client: Some(client), connection: 0 });
            Resolved { request_id: ask.request_id.clone(), action, scope, by, how: String::new() }
        }
        // Forgotten, because its time is over: the prompt ends by itself.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}
