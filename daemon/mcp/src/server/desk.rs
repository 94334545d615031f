//! What one request asks its client: leave, questions, forms, a model's answer.
//!
//! Other frontends see the same permission prompts and questions at the same time; the first answer counts.
#![expect(deprecated, reason = "sampling and roots are deprecated in the newest revision only")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{ClientCapabilities, ElicitationCapability, InputRequest, ListRootsRequest};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
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

use crate::server::{ByCaller, Connection, forms};

/// How often a client may answer what does not do.
const TRIES: u32 = 3;
/// What a call may ask of a model at once.
const WAITING: usize = 16;

/// The requests in flight, by their callers, for those who ask a client straight.
#[derive(Default)]
pub(crate) struct Desks {
    lines: ByCaller<Arc<Line>>,
    next: AtomicU64,
}

/// Something that is asked of this client and of nobody else.
pub(crate) struct Straight {
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, String>>,
}

/// One request's line to its client.
pub(super) struct Line {
    can: Can,
    /// Of its desk; none where the client can be asked nothing.
    desk: Mutex<Option<mpsc::Sender<Straight>>>,
    /// What was wanted of the client that it does not offer.
    missing: Mutex<Option<ClientCapabilities>>,
}

/// What a client can be asked, as it says itself.
#[derive(Clone, Copy)]
pub(super) struct Can {
    pub(super) show_forms: bool,
    pub(super) sample: bool,
    pub(super) tell_roots: bool,
}

impl Can {
    pub(super) fn of(capabilities: Option<ClientCapabilities>) -> Self {
        let capabilities = capabilities.unwrap_or_default();
        // One that names no kind of elicitation means forms, as the first revision with it had no other.
        let forms = |can: ElicitationCapability| can.form.is_some() || can.url.is_none();
        Self {
            show_forms: capabilities.elicitation.is_some_and(forms),
            sample: capabilities.sampling.is_some(),
            tell_roots: capabilities.roots.is_some(),
        }
    }

    pub(super) fn be_asked(self) -> bool {
        self.show_forms || self.sample || self.tell_roots
    }
}

impl Line {
    /// What was wanted of the client that it does not offer, if anything was.
    pub(super) fn missing(&self) -> Option<ClientCapabilities> {
        lock(&self.missing).clone()
    }
}

/// A line that is open until this is dropped.
pub(super) struct OpenLine {
    desks: Arc<Desks>,
    caller: Arc<Caller>,
    pub(super) line: Arc<Line>,
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        lock(&self.desks.lines).remove(&address(&self.caller));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}

impl Desks {
    /// Opens the line of a request, which this caller stands for.
    pub(super) fn line(self: &Arc<Self>, caller: &Arc<Caller>, can: Can) -> OpenLine {
        let line = Arc::new(Line { can, desk: Mutex::default(), missing: Mutex::default() });
        lock(&self.lines).insert(address(caller), line.clone());
        OpenLine { desks: self.clone(), caller: caller.clone(), line }
    }

    /// Asks the client of a call.
    ///
    /// # Errors
    /// `Told` when the client cannot be asked, or did not answer.
    async fn ask(
        &self,
        caller: &Arc<Caller>,
        offers: impl Fn(Can) -> bool,
        wanted: ClientCapabilities,
        kind: &str,
        request: InputRequest,
    ) -> Result<Value, ToolError> {
        let nobody = |words: &str| ToolError::Failed(words.to_owned());
        let line = lock(&self.lines).get(&address(caller)).cloned();
        let line = line.ok_or_else(|| nobody("the client of this call cannot be asked any more"))?;
        if !offers(line.can) {
            *lock(&line.missing) = Some(wanted);
            return Err(nobody(&format!("the client of this call offers no {kind}")));
        }
        let desk = lock(&line.desk).clone().ok_or_else(|| nobody("the client of this call cannot be asked"))?;
        let key = format!("{kind}_{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        let gone = "the client of this call did not answer";
        desk.send(Straight { key, request, answer }).await.map_err(|_| nobody(gone))?;
        answered.await.map_err(|_| nobody(gone))?.map_err(ToolError::Failed)
    }
}

impl Sampler for Desks {
    fn sample<'a>(&'a self, asked: SamplingRequest, cx: &'a Cx) -> BoxFuture<'a, Result<SamplingResponse, ToolError>> {
        async move {
            let wanted = ClientCapabilities::builder().enable_sampling().build();
            let answer = self.ask(&cx.caller, |can| can.sample, wanted, "sampling", forms::sampling(&asked)).await?;
            forms::read_sampled(answer).map_err(ToolError::Failed)
        }
        .boxed()
    }

    fn roots<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<ClientRoot>, ToolError>> {
        async move {
            let wanted = ClientCapabilities::builder().enable_roots().build();
            let request = InputRequest::ListRoots(ListRootsRequest::default());
            let answer = self.ask(&cx.caller, |can| can.tell_roots, wanted, "roots", request).await?;
            forms::read_roots(answer).map_err(ToolError::Failed)
        }
        .boxed()
    }
}

fn address(caller: &Arc<Caller>) -> usize {
    Arc::as_ptr(caller).addr()
}

/// Who a desk is for, and what its client can be asked.
pub(super) struct Asker {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Arc<Session>,
    /// This request's own, so that what it asks is told from what others ask.
    pub(super) caller: Arc<Caller>,
    /// Held so that what it lends lasts as long as this request, whose client may come again by another.
    pub(super) connection: Arc<Connection>,
    pub(super) client: Option<String>,
    /// Its answers to permission prompts count.
    pub(super) may_approve: bool,
    /// It shows forms.
    pub(super) forms: bool,
}

pub(super) struct Desk {
    asker: Asker,
    asks: Option<AskSubscription>,
    questions: Option<QuestionSubscription>,
    straight: mpsc::Receiver<Straight>,
    open: HashMap<String, Open>,
}

struct Open {
    what: What,
    tries: u32,
}

enum What {
    Ask(Box<Ask>),
    Question(Box<Question>),
    Straight(Option<oneshot::Sender<Result<Value, String>>>),
}

/// What there is to tell the client.
pub(super) enum News {
    Asked(String, Box<InputRequest>),
    Ended(String),
}

impl Desk {
    /// Opens a desk. While it is open its client counts as somebody who can answer.
    pub(super) fn open(asker: Asker, line: &Line) -> Self {
        let (sender, straight) = mpsc::channel(WAITING);
        *lock(&line.desk) = Some(sender);
        let asks = (asker.forms && asker.may_approve).then(|| asker.engine.asks.subscribe_for(asker.caller.clone()));
        let questions = asker.forms.then(|| asker.engine.questions.subscribe_for(asker.caller.clone()));
        Self { asker, asks, questions, straight, open: HashMap::new() }
    }

    /// What is asked next, or is asked no more. Cancel-safe.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let Self { asks, questions, straight, .. } = self;
            let news = tokio::select! {
                event = next_ask(asks) => self.take_ask(event),
                event = next_question(questions) => self.take_question(event),
                Some(straight) = straight.recv() => {
                    let what = What::Straight(Some(straight.answer));
                    self.open.insert(straight.key.clone(), Open { what, tries: 0 });
                    Some(News::Asked(straight.key, Box::new(straight.request)))
                }
            };
            if let Some(news) = news {
                return news;
            }
        }
    }

    fn take_ask(&mut self, event: PermissionEvent) -> Option<News> {
        match event {
            PermissionEvent::Asked { request } => {
                let key = request.request_id.clone();
                let form = forms::ask(&request);
                self.open.insert(key.clone(), Open { what: What::Ask(request), tries: 0 });
                Some(News::Asked(key, Box::new(form)))
            }
            PermissionEvent::Resolved(resolved) => self.end(&resolved.request_id),
        }
    }

    fn take_question(&mut self, event: QuestionEvent) -> Option<News> {
        match event {
            QuestionEvent::Asked { request } => {
                let key = forms::key_of(&request, |key| self.open.contains_key(key));
                let form = forms::question(&request);
                self.open.insert(key.clone(), Open { what: What::Question(request), tries: 0 });
                Some(News::Asked(key, Box::new(form)))
            }
            QuestionEvent::Resolved(resolved) => self.end(&resolved.request_id),
        }
    }

    fn end(&mut self, request_id: &str) -> Option<News> {
        let is_it = |open: &Open| match &open.what {
            What::Ask(ask) => ask.request_id == request_id,
            What::Question(question) => question.request_id == request_id,
            What::Straight(_) => false,
        };
        let key = self.open.iter().find(|(_, open)| is_it(open)).map(|(key, _)| key.clone())?;
        self.open.remove(&key);
        Some(News::Ended(key))
    }

    /// Takes what the client says to one thing. True when it does not do, and is to be asked again.
    pub(super) async fn answer(&mut self, key: &str, answer: Result<Value, String>) -> bool {
        let Some(open) = self.open.get_mut(key) else { return false };
        let by = Answerer { client: self.asker.client.clone(), connection: self.asker.connection.id };
        open.tries += 1;
        let last = open.tries >= TRIES;
        let engine = self.asker.engine.clone();
        let session = self.asker.session.id.clone();
        let again = match &mut open.what {
            What::Straight(sender) => {
                if let Some(sender) = sender.take() {
                    // The tool waits no more when its call has ended.
                    let _ = sender.send(answer);
                }
                false
            }
            What::Ask(ask) => {
                let reply = match forms::read_ask(ask, answer) {
                    Ok(reply) => reply,
                    Err(words) if last => forms::deny(ask, &words),
                    Err(_) => return true,
                };
                let replier = Replier { by, widest: Scope::Session, session: Some(session) };
                // What is remembered is written to the database.
                let replied = tokio::task::spawn_blocking(move || asks::reply(&engine, &reply, &replier)).await;
                match replied {
                    Ok(Ok(()) | Err(asks::AskReplyError::Unknown(_))) => false,
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "an answer to a permission prompt was not taken");
                        !last
                    }
                    Err(error) => {
                        tracing::error!(%error, "an answer to a permission prompt was lost");
                        false
                    }
                }
            }
            What::Question(question) => {
                let (engine, session) = (&engine, Some(&session));
                let reply = forms::read_question(question, answer);
                let replied = reply.and_then(|reply| match questions::reply(engine, &reply, by.clone(), session) {
                    Ok(()) | Err(questions::QuestionReplyError::Unknown(_)) => Ok(()),
                    Err(error @ questions::QuestionReplyError::NoAnswer(_)) => Err(error.to_string()),
                });
                if replied.is_err() && last {
                    let request_id = question.request_id.clone();
                    let cancelled = ReplyQuestion { request_id, cancelled: true, ..ReplyQuestion::default() };
                    // It has ended meanwhile, or ends now.
                    let _ = questions::reply(engine, &cancelled, by, session);
                }
                replied.is_err() && !last
            }
        };
        if !again {
            self.open.remove(key);
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
