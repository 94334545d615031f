//! Receives the answers of persons to asks of this daemon.

use std::sync::Arc;

use async_nats::Message;
use toold_engine::asks::{AskReplyError, Replier, reply};
use toold_proto::permission::{Answerer, ReplyPermission, Scope};

use crate::member::Member;
use crate::messages::{AnswerReceipt, AskAnswerMessage};
use crate::own_asks::{OwnAsk, answerer, request_id};
use crate::signed::{self, MessageRefusal, SignedKind};

/// Bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024;
/// The connection of persons at other machines. Connections are numbered from 1.
pub(super) const NO_CONNECTION: u64 = 0;

/// Takes an answer, if it is one to an ask of this daemon, and replies to it.
pub(super) async fn receive(member: &Arc<Member>, asks: &[OwnAsk], message: Message) {
    let Some(ask_id) = message.subject.strip_prefix("toold.answer.") else { return };
    let Some(request_id) = request_id(&member.name, ask_id) else { return };
    let answered = match verified(member, &message, ask_id) {
        Ok(answer) => take(member, asks, &answer, request_id).await,
        Err(MessageRefusal::Expired) => {
            Err(("it was signed too long ago, or the clocks of the machines differ".to_owned(), true))
        }
        Err(refusal) => Err((format!("it was refused as {}", refusal.as_str()), true)),
    };
    let Some(inbox) = message.reply else { return };
    let (error, pending) = match answered {
        Ok(()) => (None, false),
        Err((error, pending)) => (Some(error), pending),
    };
    let answered = AnswerReceipt { ask_id: ask_id.to_owned(), error, pending };
    let signed = member.sign(SignedKind::Answered, &inbox, answered);
    if let Err(error) = member.broker.client.publish(inbox, signed.into()).await {
        tracing::debug!(%error, "the reply to an answer was not sent");
    }
}

type SignedAnswer = signed::Message<AskAnswerMessage>;

fn verified(member: &Member, message: &Message, ask_id: &str) -> Result<SignedAnswer, MessageRefusal> {
    let refuse = |refusal, sentence| {
        member.counts.refuse(refusal, sentence);
        Err(refusal)
    };
    if message.payload.len() > MAX_ANSWER {
        return refuse(MessageRefusal::Malformed, format!("an answer to {ask_id} has more than {MAX_ANSWER} bytes"));
    }
    let answer: SignedAnswer = member.verify(&message.payload, SignedKind::Answer, &message.subject)?;
    if answer.body.ask_id != ask_id {
        return refuse(
            MessageRefusal::Misdirected,
            format!("an answer to {} arrived as one to {ask_id}", answer.body.ask_id),
        );
    }
    let decides = member.verifier.roster().people.get(&answer.from).is_some_and(|person| person.decides);
    match decides {
        true => Ok(answer),
        false => {
            refuse(MessageRefusal::NotPermitted, format!("{} answered {ask_id}, but does not decide here", answer.from))
        }
    }
}

/// Applies the answer.
///
/// # Errors
/// Why it does not count, and whether the ask still waits.
async fn take(
    member: &Arc<Member>,
    asks: &[OwnAsk],
    answer: &SignedAnswer,
    request_id: &str,
) -> Result<(), (String, bool)> {
    let person = &answer.from;
    let body = &answer.body;
    let open = asks.iter().find(|own| own.message.ask_id == body.ask_id && own.message.ended.is_none());
    let Some(own) = open else {
        return Err(("the ask no longer waits for an answer".to_owned(), false));
    };
    if !own.people.contains(person) {
        let sentence = format!("{person} answered {}, which asks somebody else", body.ask_id);
        member.counts.refuse(MessageRefusal::NotPermitted, sentence);
        return Err(("this person was not asked".to_owned(), true));
    }
    if own.message.challenge != body.challenge {
        let sentence = format!("an answer of {person} to {} is for an earlier ask", body.ask_id);
        member.counts.refuse(MessageRefusal::Replayed, sentence);
        return Err(("this is an answer to an earlier ask".to_owned(), true));
    }
    let wanted = ReplyPermission {
        request_id: request_id.to_owned(),
        action: body.decision,
        scope: Some(body.scope),
        pattern: body.pattern.clone(),
        message: body.message.clone(),
        expires_in: body.expires_in,
        all_parts: body.all_parts,
    };
    let client = Some(answerer(person, &body.at_daemon));
    let replier = Replier { by: Answerer { client, connection: NO_CONNECTION }, widest: Scope::Always, session: None };
    let engine = member.engine.clone();
    // Answers that are remembered are written to the database.
    let replied = tokio::task::spawn_blocking(move || reply(&engine, &wanted, &replier)).await;
    match replied {
        Ok(Ok(())) => Ok(()),
        Ok(Err(
            error @ (AskReplyError::Unknown(_) | AskReplyError::AlreadyAnswered(..) | AskReplyError::Ended(..)),
        )) => Err((error.to_string(), false)),
        Ok(Err(error)) => Err((error.to_string(), true)),
        Err(error) => Err((format!("the answer was lost: {error}"), true)),
    }
}
