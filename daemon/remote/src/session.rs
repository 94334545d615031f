//! Where calls work there: for each session here one of its own there, so that grants, lanes and read stamps are not
//! mixed. What that session's calls ask a person is shown here, to whoever could answer the call here, and answered
//! there.

use std::sync::{Arc, Mutex, Weak};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::HashMap;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use toold_client::{ClientError, Items};
use toold_engine::asks::relay::{Relayed, relay};
use toold_engine::cx::Cx;
use toold_engine::questions::{FormOutcome, FormRequest, QuestionAnswer, QuestionRequest};
use toold_engine::schema::Schema;
use toold_engine::session::Session;
use toold_engine::tool::ToolError;
use toold_proto::method::{
    PermissionsReply, PermissionsSubscribe, QuestionsReply, QuestionsSubscribe, SessionClose, SessionOpen,
};
use toold_proto::permission::{Ask, PermissionEvent, ReplyPermission, Resolved, Scope, SubscribePrompts};
use toold_proto::question::{Question, QuestionEvent, ReplyQuestion};
use toold_proto::session::{ClientInfo, CloseSession, OpenSession, OpenedSession};
use toold_proto::tool::{CallId, SessionId};

use crate::lock;
use crate::mounted::Live;

/// A session there, for one here.
pub(crate) struct There {
    pub(crate) id: SessionId,
    local: Weak<Session>,
    /// Opened once on each connection.
    opened: tokio::sync::OnceCell<()>,
    /// What it works on, the newest last.
    calls: Mutex<Vec<(CallId, Arc<Cx>)>>,
    /// Whoever passes its asks on, until this is dropped.
    listening: tokio::sync::Mutex<Option<(CancellationToken, DropGuard)>>,
}

/// Opens a session there in a folder there, or comes back to it.
///
/// # Errors
/// As of any request.
pub(crate) async fn open(live: &Live, id: SessionId, cwd: &str) -> Result<OpenedSession, ClientError> {
    let params = OpenSession {
        cwd: Some(cwd.to_owned()),
        session_id: Some(id),
        client: Some(ClientInfo { name: "toold".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
        protocol: Some(toold_proto::PROTOCOL),
        ..OpenSession::default()
    };
    live.client.call::<SessionOpen>(params).await
}

impl There {
    pub(crate) fn new(id: SessionId, local: &Arc<Session>) -> Self {
        Self {
            id,
            local: Arc::downgrade(local),
            opened: tokio::sync::OnceCell::new(),
            calls: Mutex::default(),
            listening: tokio::sync::Mutex::default(),
        }
    }

    /// The session here is gone.
    pub(crate) fn is_left(&self) -> bool {
        self.local.strong_count() == 0
    }

    /// # Errors
    /// Why there is none, for a model.
    pub(crate) async fn opened(&self, live: &Live) -> Result<(), String> {
        let opened = self.opened.get_or_try_init(|| async {
            open(live, self.id.clone(), &live.cwd).await.map(|_| ()).map_err(|error| error.to_string())
        });
        opened.await.copied()
    }

    pub(crate) async fn close(&self, live: &Live) {
        drop(self.listening.lock().await.take());
        // It goes by itself one day.
        let _ = live.client.call::<SessionClose>(CloseSession { session_id: self.id.clone() }).await;
    }

    /// A call that runs there, until it is dropped.
    pub(crate) fn enter(&self, call_id: CallId, cx: Arc<Cx>) -> Entered<'_> {
        lock(&self.calls).push((call_id.clone(), cx));
        Entered { there: self, call_id }
    }

    /// Passes on what its calls ask, if somebody here could answer this one.
    pub(crate) async fn listen(self: &Arc<Self>, live: &Arc<Live>, cx: &Cx) -> Result<(), ClientError> {
        if !live.decides || !cx.engine.asks.can_be_answered(cx) {
            return Ok(());
        }
        let mut listening = self.listening.lock().await;
        if listening.as_ref().is_some_and(|(ended, _)| !ended.is_cancelled()) {
            return Ok(());
        }
        let wanted = SubscribePrompts { session_id: Some(self.id.clone()) };
        let asks = live.client.subscribe::<PermissionsSubscribe>(wanted.clone()).await?;
        let questions = live.client.subscribe::<QuestionsSubscribe>(wanted).await?;
        let (ended, stop) = (CancellationToken::new(), live.gone.child_token());
        let relays = Relays { there: self.clone(), live: Arc::downgrade(live), ended: HashMap::new() };
        let told = ended.clone().drop_guard();
        let guard = stop.clone().drop_guard();
        live.tasks.spawn(async move {
            let _told = told;
            relays.run(asks, questions, stop).await;
        });
        *listening = Some((ended, guard));
        Ok(())
    }

    /// The call here that something there is asked for: the one that is named, else the newest, since one that is made
    /// within a call has a name that only the daemon there knows.
    fn asking(&self, named: &[CallId]) -> Option<Arc<Cx>> {
        let calls = lock(&self.calls);
        let mut running = calls.iter().rev().filter(|(_, cx)| !cx.is_cancelled());
        let newest = running.clone().next();
        running.find(|(id, _)| named.contains(id)).or(newest).map(|(_, cx)| cx.clone())
    }
}

/// Counts as running there.
pub(crate) struct Entered<'a> {
    there: &'a There,
    call_id: CallId,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        lock(&self.there.calls).retain(|(id, _)| *id != self.call_id);
    }
}

/// What is passed on for one session.
struct Relays {
    there: Arc<There>,
    live: Weak<Live>,
    /// How those ended there that are shown here.
    ended: HashMap<String, watch::Sender<Option<Ended>>>,
}

#[derive(Clone)]
enum Ended {
    Ask(Resolved),
    Question,
}

/// What became of one that was shown here.
enum Passed {
    /// By its `request_id` there.
    Done(String),
    Nobody,
}

type Passing = BoxFuture<'static, Passed>;

impl Relays {
    async fn run(
        mut self,
        mut asks: Items<PermissionEvent>,
        mut questions: Items<QuestionEvent>,
        stop: CancellationToken,
    ) {
        let mut passing: FuturesUnordered<Passing> = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                event = asks.next() => match event {
                    Some(Ok(PermissionEvent::Asked { request })) => {
                        let ended = self.shown(&request.request_id);
                        passing.push(Box::pin(pass_ask(self.there.clone(), self.live.clone(), *request, ended)));
                    }
                    Some(Ok(PermissionEvent::Resolved(resolved))) => {
                        let id = resolved.request_id.clone();
                        self.end(&id, Ended::Ask(resolved));
                    }
                    Some(Err(error)) => tracing::debug!(%error, "an ask of another daemon cannot be read"),
                    None => return,
                },
                event = questions.next() => match event {
                    Some(Ok(QuestionEvent::Asked { request })) => {
                        let ended = self.shown(&request.request_id);
                        passing.push(Box::pin(pass_question(self.there.clone(), self.live.clone(), *request, ended)));
                    }
                    Some(Ok(QuestionEvent::Resolved(resolved))) => self.end(&resolved.request_id, Ended::Question),
                    Some(Err(error)) => tracing::debug!(%error, "a question of another daemon cannot be read"),
                    None => return,
                },
                Some(passed) = passing.next(), if !passing.is_empty() => match passed {
                    Passed::Done(id) => _ = self.ended.remove(&id),
                    // Whoever is there may answer; we are not somebody any more.
                    Passed::Nobody => return,
                },
            }
        }
    }

    fn shown(&mut self, request_id: &str) -> watch::Receiver<Option<Ended>> {
        let (sender, receiver) = watch::channel(None);
        self.ended.insert(request_id.to_owned(), sender);
        receiver
    }

    fn end(&mut self, request_id: &str, how: Ended) {
        if let Some(sender) = self.ended.remove(request_id) {
            sender.send_replace(Some(how));
        }
    }
}

/// Waits until it ended there.
async fn there(mut ended: watch::Receiver<Option<Ended>>) -> Ended {
    match ended.wait_for(Option::is_some).await.map(|how| how.clone()) {
        Ok(Some(how)) => how,
        // Nothing more is heard of it.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

async fn pass_ask(session: Arc<There>, live: Weak<Live>, ask: Ask, ended: watch::Receiver<Option<Ended>>) -> Passed {
    let done = Passed::Done(ask.request_id.clone());
    loop {
        let (Some(live), Some(cx)) = (live.upgrade(), session.asking(&ask.call_ids)) else { return done };
        let elsewhere = async {
            match there(ended.clone()).await {
                Ended::Ask(resolved) => resolved,
                Ended::Question => std::future::pending().await,
            }
        };
        match relay(&cx, &live.name, &ask, elsewhere).await {
            Ok(Relayed::Answered(reply)) => {
                answer(&live, &ask, reply).await;
                return done;
            }
            Ok(Relayed::Elsewhere) => return done,
            Ok(Relayed::Nobody) => return Passed::Nobody,
            // Another call may wait for the same answer.
            Err(ToolError::Cancelled) if cx.is_cancelled() => {}
            Err(_) => return done,
        }
    }
}

async fn answer(live: &Live, ask: &Ask, reply: ReplyPermission) {
    let reply = ReplyPermission { request_id: ask.request_id.clone(), ..reply };
    let once = ReplyPermission { scope: None, pattern: None, expires_in: None, ..reply.clone() };
    let is_kept = reply.scope.is_some_and(|scope| scope != Scope::Once);
    match live.client.call::<PermissionsReply>(reply).await {
        Ok(_) => {}
        // It cannot be remembered there; that the person said it counts still.
        Err(ClientError::Rpc(error)) if is_kept && error.kind() == "invalid_params" => {
            tracing::warn!(remote = live.name, target = ask.target, %error, "an answer counts once only");
            let _ = live.client.call::<PermissionsReply>(once).await;
        }
        // Somebody there was faster, or the connection is gone.
        Err(error) => tracing::debug!(remote = live.name, %error, "an answer came too late"),
    }
}

async fn pass_question(
    session: Arc<There>,
    live: Weak<Live>,
    question: Question,
    ended: watch::Receiver<Option<Ended>>,
) -> Passed {
    let request_id = question.request_id.clone();
    let done = Passed::Done(request_id.clone());
    let named = [question.call_id.clone()];
    let (Some(live), Some(cx)) = (live.upgrade(), session.asking(&named)) else { return done };
    let answered = tokio::select! {
        biased;
        // Dropping the other ends the question here.
        _ = there(ended) => return done,
        answered = put(&cx, &live.name, question) => answered,
    };
    match answered {
        Ok(reply) => {
            if let Err(error) = live.client.call::<QuestionsReply>(ReplyQuestion { request_id, ..reply }).await {
                tracing::debug!(remote = live.name, %error, "an answer came too late");
            }
            done
        }
        Err(ToolError::Cancelled) => done,
        Err(_) => Passed::Nobody,
    }
}

/// Asks people here.
async fn put(cx: &Cx, remote: &str, question: Question) -> Result<ReplyQuestion, ToolError> {
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
