//! The requests that one MCP request makes to its client: permission, questions, forms, sampling,
//! roots.
//!
//! Other frontends see the same permission prompts and questions; the first answer counts. A client of a stateless revision
//! is asked only while there is no other frontend.
#![expect(deprecated, reason = "sampling and roots are deprecated in the newest revision only")]

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{ClientCapabilities, ElicitationCapability, InputRequest, ListRootsRequest};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use toold_engine::Engine;
use toold_engine::asks::{self, AskSubscription, Replier};
use toold_engine::call::Caller;
use toold_engine::cx::Cx;
use toold_engine::questions::{self, QuestionSubscription};
use toold_engine::sampling::{ClientRoot, Sampler, SamplingRequest, SamplingResponse};
use toold_engine::session::Session;
use toold_engine::tool::ToolError;
use toold_proto::permission::{Answerer, Ask, PermissionEvent, Scope};
use toold_proto::question::{Question, QuestionEvent, ReplyQuestion};

use crate::server::{ByCaller, McpConnection, forms};

/// How often a client may give an invalid answer to one prompt.
const MAX_TRIES: u32 = 3;
/// Direct requests of one call at a time; more wait.
const MAX_DIRECT: usize = 16;

/// The channels of all requests in flight, by which a tool asks the client of its own call directly.
#[derive(Default)]
pub(crate) struct RequestChannels {
    channels: ByCaller<Arc<RequestChannel>>,
    next: AtomicU64,
}

/// A request to this client only.
pub(crate) struct DirectRequest {
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, String>>,
}

/// The channel from one request to its client.
pub(super) struct RequestChannel {
    can: ClientAbilities,
    /// To its [`ClientRequests`]; `None` while the client cannot be asked.
    requests: Mutex<Option<mpsc::Sender<DirectRequest>>>,
    /// A required capability that the client lacks.
    missing: Mutex<Option<ClientCapabilities>>,
}

/// The capabilities that a client declares.
#[derive(Clone, Copy)]
pub(super) struct ClientAbilities {
    pub(super) show_forms: bool,
    pub(super) sample: bool,
    pub(super) list_roots: bool,
}

impl ClientAbilities {
    pub(super) fn of(capabilities: Option<ClientCapabilities>) -> Self {
        let capabilities = capabilities.unwrap_or_default();
        // An elicitation capability without a kind means forms: the first revision with it had no other.
        let forms = |can: ElicitationCapability| can.form.is_some() || can.url.is_none();
        Self {
            show_forms: capabilities.elicitation.is_some_and(forms),
            sample: capabilities.sampling.is_some(),
            list_roots: capabilities.roots.is_some(),
        }
    }

    pub(super) fn any(self) -> bool {
        self.show_forms || self.sample || self.list_roots
    }
}

impl RequestChannel {
    /// A required capability that the client lacks, if any.
    pub(super) fn missing(&self) -> Option<ClientCapabilities> {
        self.missing.lock().clone()
    }
}

/// A channel that is open until this is dropped.
pub(super) struct OpenRequestChannel {
    channels: Arc<RequestChannels>,
    caller: Arc<Caller>,
    pub(super) channel: Arc<RequestChannel>,
}

impl Drop for OpenRequestChannel {
    fn drop(&mut self) {
        self.channels.channels.lock().remove(&address(&self.caller));
    }
}

impl RequestChannels {
    /// Opens the channel of a request, which this caller identifies.
    pub(super) fn open(self: &Arc<Self>, caller: &Arc<Caller>, can: ClientAbilities) -> OpenRequestChannel {
        let channel = Arc::new(RequestChannel { can, requests: Mutex::default(), missing: Mutex::default() });
        self.channels.lock().insert(address(caller), channel.clone());
        OpenRequestChannel { channels: self.clone(), caller: caller.clone(), channel }
    }

    /// Asks the client of a call.
    ///
    /// # Errors
    /// `Failed` when the client cannot be asked, or did not answer.
    async fn ask(
        &self,
        caller: &Arc<Caller>,
        offers: impl Fn(ClientAbilities) -> bool,
        needed: ClientCapabilities,
        kind: &str,
        request: InputRequest,
    ) -> Result<Value, ToolError> {
        let failed = |message: &str| ToolError::Failed(message.to_owned());
        let channel = self.channels.lock().get(&address(caller)).cloned();
        let channel = channel.ok_or_else(|| failed("the call has ended, so its client cannot be asked"))?;
        if !offers(channel.can) {
            *channel.missing.lock() = Some(needed);
            return Err(failed(&format!("the client of this call offers no {kind}")));
        }
        let requests = channel.requests.lock().clone();
        let requests = requests.ok_or_else(|| failed("the client of this call cannot be asked"))?;
        let key = format!("{kind}_{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        let gone = "the client of this call did not answer";
        requests.send(DirectRequest { key, request, answer }).await.map_err(|_| failed(gone))?;
        answered.await.map_err(|_| failed(gone))?.map_err(ToolError::Failed)
    }
}

impl Sampler for RequestChannels {
    fn sample<'a>(&'a self, asked: SamplingRequest, cx: &'a Cx) -> BoxFuture<'a, Result<SamplingResponse, ToolError>> {
        async move {
            let needed = ClientCapabilities::builder().enable_sampling().build();
            let answer = self.ask(&cx.caller, |can| can.sample, needed, "sampling", forms::sampling(&asked)).await?;
            forms::read_sampled(answer).map_err(ToolError::Failed)
        }
        .boxed()
    }

    fn has_model(&self, cx: &Cx) -> bool {
        self.channels.lock().get(&address(&cx.caller)).is_some_and(|channel| channel.can.sample)
    }

    fn roots<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<ClientRoot>, ToolError>> {
        async move {
            let needed = ClientCapabilities::builder().enable_roots().build();
            let request = InputRequest::ListRoots(ListRootsRequest::default());
            let answer = self.ask(&cx.caller, |can| can.list_roots, needed, "roots", request).await?;
            forms::read_roots(answer).map_err(ToolError::Failed)
        }
        .boxed()
    }
}

fn address(caller: &Arc<Caller>) -> usize {
    Arc::as_ptr(caller).addr()
}

/// The request that asks, and its client.
pub(super) struct RequestOrigin {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Arc<Session>,
    /// This request's own, which distinguishes its prompts from others.
    pub(super) caller: Arc<Caller>,
    /// Held so that its sampler lasts as long as this request, whose client may come back on another connection.
    pub(super) connection: Arc<McpConnection>,
    pub(super) client: Option<String>,
    /// Its answers to permission prompts count.
    pub(super) may_approve: bool,
    pub(super) shows_forms: bool,
    /// A form that somebody else has answered can be taken back. In the stateless revisions it cannot: a client that shows one
    /// has no request that waits.
    pub(super) can_withdraw: bool,
}

pub(super) struct ClientRequests {
    origin: RequestOrigin,
    asks: Option<AskSubscription>,
    questions: Option<QuestionSubscription>,
    direct: mpsc::Receiver<DirectRequest>,
    pending: HashMap<String, PendingClientRequest>,
    /// Prompts that a frontend was shown: they are not put to the client while it may answer.
    held_back: Vec<ClientRequestSubject>,
    /// Fire when frontends come and go.
    ask_frontends: watch::Receiver<()>,
    question_frontends: watch::Receiver<()>,
}

struct PendingClientRequest {
    subject: ClientRequestSubject,
    tries: u32,
}

enum ClientRequestSubject {
    Ask(Box<Ask>),
    Question(Box<Question>),
    Direct(Option<oneshot::Sender<Result<Value, String>>>),
}

impl ClientRequestSubject {
    /// Whether it is the prompt of this id.
    fn is(&self, request_id: &str) -> bool {
        match self {
            Self::Ask(ask) => ask.request_id == request_id,
            Self::Question(question) => question.request_id == request_id,
            Self::Direct(_) => false,
        }
    }
}

/// A change of the open requests to the client.
pub(super) enum ClientRequestEvent {
    Asked(String, Box<InputRequest>),
    Ended(String),
}

impl ClientRequests {
    /// While this exists, its client counts as able to answer.
    pub(super) fn new(origin: RequestOrigin, channel: &RequestChannel) -> Self {
        let (sender, direct) = mpsc::channel(MAX_DIRECT);
        *channel.requests.lock() = Some(sender);
        let RequestOrigin { engine, caller, shows_forms, may_approve, .. } = &origin;
        let asks = (*shows_forms && *may_approve).then(|| engine.asks.subscribe_for(caller.clone()));
        let questions = shows_forms.then(|| engine.questions.subscribe_for(caller.clone()));
        let (ask_frontends, question_frontends) = (engine.asks.changes(), engine.questions.changes());
        let (pending, held_back) = (HashMap::new(), Vec::new());
        Self { origin, asks, questions, direct, pending, held_back, ask_frontends, question_frontends }
    }

    /// The next request to the client, or the end of one. Cancel-safe.
    pub(super) async fn next(&mut self) -> ClientRequestEvent {
        loop {
            let free = self.held_back.iter().position(|subject| !self.is_answered_elsewhere(subject));
            if let Some(event) = free.map(|at| self.held_back.swap_remove(at)).and_then(|subject| self.put(subject)) {
                return event;
            }
            let Self { asks, questions, direct, held_back, ask_frontends, question_frontends, .. } = self;
            let event = tokio::select! {
                Ok(()) = ask_frontends.changed(), if !held_back.is_empty() => None,
                Ok(()) = question_frontends.changed(), if !held_back.is_empty() => None,
                event = next_ask(asks) => self.take_ask(event),
                event = next_question(questions) => self.take_question(event),
                Some(direct) = direct.recv() => {
                    self.add(direct.key.clone(), ClientRequestSubject::Direct(Some(direct.answer)));
                    Some(ClientRequestEvent::Asked(direct.key, Box::new(direct.request)))
                }
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn add(&mut self, key: String, subject: ClientRequestSubject) {
        self.pending.insert(key, PendingClientRequest { subject, tries: 0 });
    }

    /// Whether a frontend is there that may answer, so that a form which cannot be taken back would stay open.
    fn is_answered_elsewhere(&self, subject: &ClientRequestSubject) -> bool {
        let engine = &self.origin.engine;
        !self.origin.can_withdraw
            && match subject {
                ClientRequestSubject::Ask(_) => engine.asks.can_all_be_answered(),
                ClientRequestSubject::Question(_) => engine.questions.can_all_be_answered(),
                ClientRequestSubject::Direct(_) => false,
            }
    }

    fn take_ask(&mut self, event: PermissionEvent) -> Option<ClientRequestEvent> {
        match event {
            PermissionEvent::Asked { request } => match self.known(&request.request_id) {
                // Others wait for the answer than before. A form that is open cannot be changed.
                Some(known) => {
                    *known = ClientRequestSubject::Ask(request);
                    None
                }
                None => self.put_or_hold(ClientRequestSubject::Ask(request)),
            },
            PermissionEvent::Resolved(resolved) => self.end(&resolved.request_id),
        }
    }

    fn known(&mut self, request_id: &str) -> Option<&mut ClientRequestSubject> {
        let pending = self.pending.values_mut().map(|pending| &mut pending.subject);
        self.held_back.iter_mut().chain(pending).find(|subject| subject.is(request_id))
    }

    fn take_question(&mut self, event: QuestionEvent) -> Option<ClientRequestEvent> {
        match event {
            QuestionEvent::Asked { request } => self.put_or_hold(ClientRequestSubject::Question(request)),
            QuestionEvent::Resolved(resolved) => self.end(&resolved.request_id),
        }
    }

    fn put_or_hold(&mut self, subject: ClientRequestSubject) -> Option<ClientRequestEvent> {
        if self.is_answered_elsewhere(&subject) {
            self.held_back.push(subject);
            return None;
        }
        self.put(subject)
    }

    /// Puts a prompt to the client.
    fn put(&mut self, subject: ClientRequestSubject) -> Option<ClientRequestEvent> {
        let (key, form) = match &subject {
            ClientRequestSubject::Ask(ask) => (ask.request_id.clone(), forms::ask(ask)),
            ClientRequestSubject::Question(question) => {
                let key = forms::key_of(question, |key| self.pending.contains_key(key));
                (key, forms::question(question))
            }
            ClientRequestSubject::Direct(_) => return None,
        };
        self.add(key.clone(), subject);
        Some(ClientRequestEvent::Asked(key, Box::new(form)))
    }

    fn end(&mut self, request_id: &str) -> Option<ClientRequestEvent> {
        self.held_back.retain(|subject| !subject.is(request_id));
        let key =
            self.pending.iter().find(|(_, pending)| pending.subject.is(request_id)).map(|(key, _)| key.clone())?;
        self.pending.remove(&key);
        Some(ClientRequestEvent::Ended(key))
    }

    /// Takes the client's answer to one request. True when it is invalid and the client should be
    /// asked again.
    pub(super) async fn answer(&mut self, key: &str, answer: Result<Value, String>) -> bool {
        let Some(pending) = self.pending.get_mut(key) else { return false };
        let by = Answerer { client: self.origin.client.clone(), connection: self.origin.connection.id };
        pending.tries += 1;
        let last = pending.tries >= MAX_TRIES;
        let engine = self.origin.engine.clone();
        let session = self.origin.session.id.clone();
        let again = match &mut pending.subject {
            ClientRequestSubject::Direct(sender) => {
                if let Some(sender) = sender.take() {
                    // Fails when the call of the tool has ended.
                    let _ = sender.send(answer);
                }
                false
            }
            ClientRequestSubject::Ask(ask) => {
                let reply = match forms::read_ask(ask, answer) {
                    Ok(reply) => reply,
                    Err(error) if last => forms::deny(ask, &error),
                    Err(_) => return true,
                };
                let replier = Replier { by, widest: Scope::Session, session: Some(session) };
                let (of, by_them) = (engine.clone(), replier.clone());
                // An answer that is remembered is written to the database.
                let replied = tokio::task::spawn_blocking(move || asks::reply(&of, &reply, &by_them)).await;
                match replied {
                    Ok(Ok(()) | Err(asks::AskReplyError::Unknown(_))) => false,
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "an answer to a permission prompt was not accepted");
                        if last {
                            // Fails when it has ended meanwhile. A denial for once is not written anywhere.
                            let _ = asks::reply(&engine, &forms::deny(ask, &error.to_string()), &replier);
                        }
                        !last
                    }
                    Err(error) => {
                        tracing::error!(%error, "an answer to a permission prompt was lost");
                        false
                    }
                }
            }
            ClientRequestSubject::Question(question) => {
                let (engine, session) = (&engine, Some(&session));
                let reply = forms::read_question(question, answer);
                let replied = reply.and_then(|reply| match questions::reply(engine, &reply, by.clone(), session) {
                    Err(error @ questions::QuestionReplyError::NoAnswer(_)) => Err(error.to_string()),
                    Ok(())
                    | Err(
                        questions::QuestionReplyError::Unknown(_)
                        | questions::QuestionReplyError::AlreadyAnswered(..)
                        | questions::QuestionReplyError::Ended(..),
                    ) => Ok(()),
                });
                if replied.is_err() && last {
                    let request_id = question.request_id.clone();
                    let cancelled = ReplyQuestion { request_id, cancelled: true, ..ReplyQuestion::default() };
                    // Fails when it has ended meanwhile.
                    let _ = questions::reply(engine, &cancelled, by, session);
                }
                replied.is_err() && !last
            }
        };
        if !again {
            self.pending.remove(key);
        }
        again
    }
}

async fn next_ask(asks: &mut Option<AskSubscription>) -> PermissionEvent {
    match asks {
        Some(asks) => asks.next().await,
        None => std::future::pending().await,
    }
}

async fn next_question(questions: &mut Option<QuestionSubscription>) -> QuestionEvent {
    match questions {
        Some(questions) => questions.next().await,
        None => std::future::pending().await,
    }
}
