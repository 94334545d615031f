//! Relays prompts of a remote session: each is shown to local frontends that could answer the call,
//! and answered there.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toold_client::{ClientError, Items};
use toold_engine::asks::relay::{Relayed, relay, renew};
use toold_engine::cx::Cx;
use toold_engine::questions::{FormOutcome, FormRequest, QuestionAnswer, QuestionRequest};
use toold_engine::schema::Schema;
use toold_engine::tool::ToolError;
use toold_proto::method::{PermissionsReply, QuestionsReply};
use toold_proto::permission::{Ask, PermissionEvent, ReplyPermission, Resolved, Scope};
use toold_proto::question::{Question, QuestionEvent, ReplyQuestion};
use toold_proto::tool::CallId;

use super::RemoteSession;
use crate::peer::RemotePeer;

/// Relays the prompts of one session.
pub(super) struct PromptRelay {
    session: Arc<RemoteSession>,
    peer: Weak<RemotePeer>,
    /// The prompts that are shown here, by their remote `request_id`, and the channels that report how they are there.
    shown: HashMap<String, watch::Sender<RemotePrompt>>,
}

/// A prompt as it is there.
struct RemotePrompt {
    /// The calls that wait for it.
    call_ids: Vec<CallId>,
    end: Option<PromptEnd>,
}

/// The remote outcome of a prompt.
#[derive(Clone)]
enum PromptEnd {
    Ask(Resolved),
    Question,
}

enum RelayOutcome {
    /// The prompt with this `request_id` is over.
    Done(String),
    /// Nobody here can answer.
    Nobody,
}

type RelayedPrompt = BoxFuture<'static, RelayOutcome>;

impl PromptRelay {
    pub(super) fn new(session: Arc<RemoteSession>, peer: Weak<RemotePeer>) -> Self {
        Self { session, peer, shown: HashMap::new() }
    }

    /// Runs until the connection is over, or nobody here can answer any more.
    pub(super) async fn run(
        mut self,
        mut asks: Items<PermissionEvent>,
        mut questions: Items<QuestionEvent>,
        stop: CancellationToken,
    ) {
        let mut relayed: FuturesUnordered<RelayedPrompt> = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                event = asks.next() => match event {
                    Some(Ok(PermissionEvent::Asked { request })) => {
                        if self.renew(&request) {
                            continue;
                        }
                        let there = self.show(&request.request_id, &request.call_ids);
                        relayed.push(Box::pin(relay_ask(self.session.clone(), self.peer.clone(), *request, there)));
                    }
                    Some(Ok(PermissionEvent::Resolved(resolved))) => {
                        let id = resolved.request_id.clone();
                        self.end(&id, PromptEnd::Ask(resolved));
                    }
                    Some(Err(error)) => tracing::debug!(%error, "a permission prompt of a remote daemon cannot be read"),
                    None => return,
                },
                event = questions.next() => match event {
                    Some(Ok(QuestionEvent::Asked { request })) => {
                        let there = self.show(&request.request_id, std::slice::from_ref(&request.call_id));
                        relayed.push(Box::pin(relay_question(self.session.clone(), self.peer.clone(), *request, there)));
                    }
                    Some(Ok(QuestionEvent::Resolved(resolved))) => self.end(&resolved.request_id, PromptEnd::Question),
                    Some(Err(error)) => tracing::debug!(%error, "a question of a remote daemon cannot be read"),
                    None => return,
                },
                Some(outcome) = relayed.next(), if !relayed.is_empty() => match outcome {
                    RelayOutcome::Done(id) => _ = self.shown.remove(&id),
                    // Ends the subscriptions, so that this daemon no longer counts as able to
                    // answer there.
                    RelayOutcome::Nobody => return,
                },
            }
        }
    }

    fn show(&mut self, request_id: &str, call_ids: &[CallId]) -> watch::Receiver<RemotePrompt> {
        let (sender, receiver) = watch::channel(RemotePrompt { call_ids: call_ids.to_vec(), end: None });
        self.shown.insert(request_id.to_owned(), sender);
        receiver
    }

    /// Whether the ask is shown here already; then other calls wait for it than before.
    fn renew(&self, ask: &Ask) -> bool {
        let Some(sender) = self.shown.get(&ask.request_id) else { return false };
        sender.send_modify(|prompt| prompt.call_ids.clone_from(&ask.call_ids));
        if let (Some(peer), Some(cx)) = (self.peer.upgrade(), self.session.call_for(&ask.call_ids)) {
            renew(&cx.engine, &peer.name, ask);
        }
        true
    }

    fn end(&mut self, request_id: &str, end: PromptEnd) {
        if let Some(sender) = self.shown.remove(request_id) {
            sender.send_modify(|prompt| prompt.end = Some(end));
        }
    }
}

/// Waits until the prompt has ended there.
async fn wait_for_end(mut there: watch::Receiver<RemotePrompt>) -> PromptEnd {
    match there.wait_for(|prompt| prompt.end.is_some()).await.map(|prompt| prompt.end.clone()) {
        Ok(Some(end)) => end,
        // Its end will not be reported.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

async fn relay_ask(
    session: Arc<RemoteSession>,
    peer: Weak<RemotePeer>,
    ask: Ask,
    there: watch::Receiver<RemotePrompt>,
) -> RelayOutcome {
    let done = RelayOutcome::Done(ask.request_id.clone());
    loop {
        let cx = session.call_for(&there.borrow().call_ids);
        let (Some(peer), Some(cx)) = (peer.upgrade(), cx) else { return done };
        let elsewhere = async {
            match wait_for_end(there.clone()).await {
                // A connection of another daemon means nothing here.
                PromptEnd::Ask(resolved) => Resolved { by: None, ..resolved },
                PromptEnd::Question => std::future::pending().await,
            }
        };
        match relay(&cx, &peer.name, &ask, elsewhere).await {
            Ok(Relayed::Answered(reply)) => {
                answer(&peer, &ask, reply).await;
                return done;
            }
            Ok(Relayed::Elsewhere) => return done,
            Ok(Relayed::Nobody) => return RelayOutcome::Nobody,
            // Another call may wait for the same answer.
            Err(ToolError::Cancelled) if cx.is_cancelled() => {}
            Err(_) => return done,
        }
    }
}

async fn answer(peer: &RemotePeer, ask: &Ask, reply: ReplyPermission) {
    let reply = ReplyPermission { request_id: ask.request_id.clone(), ..reply };
    let once = ReplyPermission { scope: None, pattern: None, expires_in: None, ..reply.clone() };
    let is_remembered = reply.scope.is_some_and(|scope| scope != Scope::Once);
    match peer.client.call::<PermissionsReply>(reply).await {
        Ok(_) => {}
        // It cannot be remembered there, but the person's answer applies to this call.
        Err(ClientError::Rpc(error)) if is_remembered && error.kind() == "invalid_params" => {
            tracing::warn!(remote = peer.name, target = ask.target, %error, "an answer counts for this call only");
            let _ = peer.client.call::<PermissionsReply>(once).await;
        }
        // Somebody there answered first, or the connection is gone.
        Err(error) => tracing::debug!(remote = peer.name, %error, "an answer came too late"),
    }
}

async fn relay_question(
    session: Arc<RemoteSession>,
    peer: Weak<RemotePeer>,
    question: Question,
    there: watch::Receiver<RemotePrompt>,
) -> RelayOutcome {
    let request_id = question.request_id.clone();
    let done = RelayOutcome::Done(request_id.clone());
    let ids = [question.call_id.clone()];
    let (Some(peer), Some(cx)) = (peer.upgrade(), session.call_for(&ids)) else { return done };
    let answered = tokio::select! {
        biased;
        // Dropping the other ends the question here.
        _ = wait_for_end(there) => return done,
        answered = ask_here(&cx, &peer.name, question) => answered,
    };
    match answered {
        Ok(reply) => {
            if let Err(error) = peer.client.call::<QuestionsReply>(ReplyQuestion { request_id, ..reply }).await {
                tracing::debug!(remote = peer.name, %error, "an answer came too late");
            }
            done
        }
        Err(ToolError::Cancelled) => done,
        Err(_) => RelayOutcome::Nobody,
    }
}

/// Asks a person here.
async fn ask_here(cx: &Cx, remote: &str, question: Question) -> Result<ReplyQuestion, ToolError> {
    let words = format!("[{remote}] {}", question.question);
    let Some(schema) = question.schema else {
        let Question { options, multiple, allow_other, .. } = question;
        let said = cx.question(QuestionRequest { question: words, options, multiple, allow_other }).await?;
        return Ok(match said {
            QuestionAnswer::Answer { answer_ids, answer } => {
                ReplyQuestion { answer_ids: Some(answer_ids), answer, ..ReplyQuestion::default() }
            }
            QuestionAnswer::Cancelled => ReplyQuestion { cancelled: true, ..ReplyQuestion::default() },
        });
    };
    let schema = Schema::compile(schema).map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(match cx.elicit(FormRequest { key: question.key, message: words, schema }).await? {
        FormOutcome::Accepted(content) => ReplyQuestion { content: Some(content), ..ReplyQuestion::default() },
        FormOutcome::Declined => ReplyQuestion { declined: true, ..ReplyQuestion::default() },
        FormOutcome::Cancelled => ReplyQuestion { cancelled: true, ..ReplyQuestion::default() },
    })
}
