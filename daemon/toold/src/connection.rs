//! One client's stream: messages in, answers and notifications out.
//!
//! One task for each connection. A request's future is polled once in place, and most are done then;
//! those that wait are kept here, so that the end of the connection is the end of them. Nothing is
//! buffered while a connection is idle, and one that does not read is not read from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jsonrpsee::core::id_providers::RandomStringIdProvider;
use jsonrpsee::core::server::{
    BoundedSubscriptions, MethodCallback, MethodResponse, MethodSink, Methods, SubscriptionState,
};
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned, Id, Params};
use jsonrpsee::{ConnectionId, Extensions};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toold_engine::execute::{Caller, Principal};
use toold_engine::session::Session;
use toold_mcp::server::opening::is_opening;
use toold_proto::error::{self, ErrorData};
use toold_proto::tool::SessionId;

use crate::framing::{self, Found, Framing, Splitter};
use crate::outboxes::{Listed, Outboxes};
use crate::peer::Peer;
use crate::unfinished::{Part, Unfinished};

/// What the transport sets for all connections.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Bytes of one message, either way.
    pub max_message: usize,
    pub max_subscriptions: u32,
    /// Requests in flight; at this many the connection is not read from.
    pub max_requests: usize,
    /// Where it is told how full the outbox of each connection is.
    pub outboxes: Arc<Outboxes>,
    /// Of all connections together.
    pub unfinished: Arc<Unfinished>,
    /// What clients are told last, once `stop` fires, behind all answers: what was not answered was not read.
    pub farewell: Arc<OnceLock<Box<RawValue>>>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_message: 16 * 1024 * 1024,
            max_subscriptions: 512,
            max_requests: 1_024,
            outboxes: Arc::default(),
            unfinished: Arc::default(),
            farewell: Arc::default(),
        }
    }
}

/// Messages that are taken in one turn; then other connections have theirs.
const TURN: usize = 32;
/// Answers beyond this many bytes wait until the client has read some.
const HIGH_WATER: usize = 256 * 1024;
/// How often a client that sends no more is asked whether it still listens.
const HANG_UP_CHECK: Duration = Duration::from_millis(50);
/// How long a stream may take to say that it ends.
const GOODBYE: Duration = Duration::from_secs(1);
/// Notifications that wait for a slow client; progress beyond is lost, subscriptions wait.
const OUTBOX: usize = 256;

/// What the methods know of the connection that a request came on.
pub struct Connection {
    pub id: u64,
    pub peer: Peer,
    pub caller: Arc<Caller>,
    /// Takes notifications for this client. Bounded: 256 wait for a slow one.
    pub outbox: mpsc::Sender<Box<RawValue>>,
    /// The session that `session.open` bound, or the connection's own.
    session: Mutex<Option<Arc<Session>>>,
    /// A session that was made for a client that opened none; it ends with the connection.
    own_session: OnceLock<SessionId>,
    /// Fires when the client is gone.
    gone: CancellationToken,
    /// It said that it acts for a model. There is no way back.
    agent: AtomicBool,
    _listed: Listed,
}

/// Put into the extensions of each request.
#[derive(Clone)]
pub struct RequestScope {
    pub connection: Arc<Connection>,
    /// Fires when the request is cancelled or its connection goes.
    pub cancel: CancellationToken,
}

impl Connection {
    fn new(id: u64, peer: Peer, outbox: mpsc::Sender<Box<RawValue>>, outboxes: &Arc<Outboxes>) -> Self {
        let _listed = outboxes.enter(id, &outbox);
        let caller = Caller { connection: id, principal: peer.principal, in_flight: Arc::new(AtomicUsize::new(0)) };
        Self {
            id,
            peer,
            caller: Arc::new(caller),
            outbox,
            session: Mutex::new(None),
            own_session: OnceLock::new(),
            gone: CancellationToken::new(),
            agent: AtomicBool::new(false),
            _listed,
        }
    }

    pub fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().expect("no code panics while it holds this lock").clone()
    }

    pub fn is_bound_to(&self, session: &Session) -> bool {
        self.session().is_some_and(|bound| std::ptr::eq(bound.as_ref(), session))
    }

    pub fn is_agent(&self) -> bool {
        self.agent.load(Ordering::Relaxed) || self.peer.principal == Principal::Agent
    }

    /// Whether it may do what only a person may.
    pub fn may_decide(&self) -> bool {
        self.peer.principal.may_decide() && !self.is_agent()
    }

    /// Binds a session that ends with the connection.
    pub fn bind_own(&self, session: Arc<Session>) {
        // There is only ever one: it is made when nothing is bound, and something always is from then on.
        let _ = self.own_session.set(session.id.clone());
        self.bind(session);
    }

    pub fn own_session(&self) -> Option<&SessionId> {
        self.own_session.get()
    }

    pub fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// From now on it may not answer asks.
    pub fn become_agent(&self) {
        self.agent.store(true, Ordering::Relaxed);
    }

    /// Binds another session from now on.
    pub fn bind(&self, session: Arc<Session>) {
        session.bind();
        let before = self.session.lock().expect("no code panics while it holds this lock").replace(session);
        if let Some(before) = before {
            before.unbind();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(session) = self.session() {
            session.unbind();
        }
    }
}

/// A stream, and a way to see that the other end is gone for good.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Called only after the end of what can be read: true when nobody can read our answers any more.
    fn hung_up(&self) -> bool;

    /// Of a stream whose messages are framed in one way whatever its first byte is.
    fn framing(&self) -> Option<Framing> {
        None
    }

    /// False when it ends with the answer to its first message: then there is nothing to subscribe to.
    fn is_kept(&self) -> bool {
        true
    }
}

/// Serves one client until it is gone or `stop` fires and its requests have ended.
///
/// When the client goes, its calls are cancelled. When it only ends its sending side, those in flight are
/// answered first. When `stop` fires, nothing more is read; `cancel` then cuts short what still runs.
pub async fn serve<S: Stream>(
    mut stream: S,
    id: u64,
    peer: Peer,
    methods: Methods,
    limits: ConnectionLimits,
    stop: CancellationToken,
    cancel: CancellationToken,
) -> Served<S> {
    let (sender, outbox) = mpsc::channel(OUTBOX);
    let sink = MethodSink::new_with_limit(sender.clone(), u32::MAX);
    let connection = Arc::new(Connection::new(id, peer, sender, &limits.outboxes));
    let mut limits = limits;
    if !stream.is_kept() {
        limits.max_subscriptions = 0;
    }
    let subscriptions = BoundedSubscriptions::new(limits.max_subscriptions);
    let mut splitter = Splitter::new(limits.max_message);
    splitter.framing = stream.framing();
    let mut server = Server {
        connection,
        methods,
        sink,
        subscriptions,
        splitter,
        unfinished: Part::new(limits.unfinished.clone()),
        limits,
        cancel: cancel.child_token(),
        tokens: HashMap::new(),
        pending: FuturesUnordered::new(),
        outbox,
        inbox: Vec::new(),
        searched: 0,
        out: Vec::new(),
        written: 0,
        barrier: false,
        more: false,
        reading: true,
        dialect: Dialect::Unknown,
    };
    let end = server.run(&mut stream, &stop).await;
    if let Err(error) = end {
        tracing::debug!(connection = id, %error, "connection ended");
    }
    let connection = server.connection.clone();
    let is_other = server.dialect == Dialect::Mcp;
    let inbox = std::mem::take(&mut server.inbox);
    // Boxed, as all that comes after the idle time: the task has the size of the largest.
    Box::pin(server.end()).await;
    if !is_other && stream.framing().is_some() {
        // Such a stream has a goodbye of its own, which nobody waits for long.
        let goodbye = std::future::poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context));
        let _ = Box::pin(tokio::time::timeout(GOODBYE, goodbye)).await;
    }
    Served { connection, other: is_other.then_some((stream, inbox)) }
}

/// What is left of a connection.
pub struct Served<S> {
    /// For whoever cleans up after it.
    pub connection: Arc<Connection>,
    /// The stream, and what was read of it, when its client speaks the Model Context Protocol.
    pub other: Option<(S, Vec<u8>)>,
}

struct Server {
    connection: Arc<Connection>,
    methods: Methods,
    sink: MethodSink,
    subscriptions: BoundedSubscriptions,
    limits: ConnectionLimits,
    splitter: Splitter,
    unfinished: Part,
    /// Fires for all requests of the connection.
    cancel: CancellationToken,
    /// Of the requests in flight, by id.
    tokens: HashMap<RequestId, CancellationToken>,
    pending: FuturesUnordered<PendingReply>,
    outbox: mpsc::Receiver<Box<RawValue>>,
    inbox: Vec<u8>,
    searched: usize,
    out: Vec<u8>,
    written: usize,
    /// A request is in flight that must take effect before the next message is read.
    barrier: bool,
    /// The inbox may hold further messages, whose turn is the next one.
    more: bool,
    reading: bool,
    dialect: Dialect,
}

/// What a client speaks, told by its first message that is valid in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Unknown,
    Native,
    Mcp,
}

/// A request's id, as it is compared: two ids are the same when their JSON is.
type RequestId = Box<str>;

/// What a message came to: its answer, or none for notifications and accepted subscriptions.
struct Reply {
    json: Option<Box<RawValue>>,
    ids: Vec<RequestId>,
    barrier: bool,
}

type PendingReply = Pin<Box<dyn Future<Output = Reply> + Send>>;
type Responding = Pin<Box<dyn Future<Output = Option<Box<RawValue>>> + Send>>;

#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// A string that is borrowed where it holds no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// An id of `null` is there, and wrong; for serde it would be none at all.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Server {
    async fn run(&mut self, stream: &mut impl Stream, stop: &CancellationToken) -> io::Result<()> {
        loop {
            self.dispatch_inbox()?;
            if self.is_done() || self.dialect == Dialect::Mcp {
                if self.dialect != Dialect::Mcp
                    && let Some(farewell) = self.limits.farewell.clone().get()
                {
                    self.put(farewell);
                }
                return Box::pin(self.flush(stream)).await;
            }
            if self.more {
                // Nothing would come between a flood and its end otherwise: what is read is ready at once.
                tokio::task::yield_now().await;
                continue;
            }
            let busy = self.barrier || self.pending.len() >= self.limits.max_requests || self.backlog() >= HIGH_WATER;
            tokio::select! {
                biased;
                moved = exchange(stream, &mut self.inbox, self.reading && !busy, &self.out[self.written..]) => {
                    match moved? {
                        Moved::In(0) => self.reading = false,
                        Moved::In(_) => {}
                        Moved::Out(bytes) => self.sent(bytes),
                    }
                }
                () = stop.cancelled(), if self.reading => self.reading = false,
                Some(reply) = self.pending.next(), if !self.pending.is_empty() => self.take_reply(reply),
                Some(message) = self.outbox.recv(), if self.backlog() < HIGH_WATER => self.notify(&message),
                // The end of what can be read was told already, so whether anybody still listens is asked.
                () = async { Box::pin(tokio::time::sleep(HANG_UP_CHECK)).await }, if !self.reading => {
                    if stream.hung_up() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn sent(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.out.len() {
            self.written = 0;
            self.out = Vec::new();
        }
    }

    fn backlog(&self) -> usize {
        self.out.len() - self.written
    }

    /// Nothing more comes in, and all that came has been answered.
    fn is_done(&self) -> bool {
        !self.reading && self.pending.is_empty() && !self.more
    }

    async fn flush(&mut self, stream: &mut impl Stream) -> io::Result<()> {
        while let Ok(message) = self.outbox.try_recv() {
            self.notify(&message);
        }
        let out = std::mem::take(&mut self.out);
        let rest = &out[self.written..];
        let flushed = tokio::time::timeout(Duration::from_secs(2), async {
            let mut written = 0;
            while written < rest.len() {
                written += write(stream, &rest[written..]).await?;
            }
            io::Result::Ok(())
        });
        flushed.await.unwrap_or(Ok(()))
    }

    /// Cancels what is in flight and waits until it has been told: each answer is quick after that.
    async fn end(mut self) {
        self.connection.gone.cancel();
        self.cancel.cancel();
        while self.pending.next().await.is_some() {}
    }

    /// Takes whole messages off the inbox, as long as more may run.
    fn dispatch_inbox(&mut self) -> io::Result<()> {
        let inbox = std::mem::take(&mut self.inbox);
        let (mut used, mut taken) = (0, 0);
        self.more = false;
        while !self.barrier && self.pending.len() < self.limits.max_requests && self.backlog() < HIGH_WATER {
            match self.splitter.next(&inbox[used..], self.searched) {
                Found::Message(message, length) => {
                    self.searched = 0;
                    self.unfinished.clear();
                    if self.dialect == Dialect::Unknown && self.is_of_mcp(message) {
                        // The message stays in the inbox: it is the other dialect's first.
                        self.dialect = Dialect::Mcp;
                        break;
                    }
                    used += length;
                    self.dispatch(message);
                    taken += 1;
                    if taken == TURN && used < inbox.len() {
                        self.more = true;
                        break;
                    }
                }
                Found::Skip(length) => {
                    used += length;
                    self.searched = 0;
                }
                Found::TooLarge => {
                    self.searched = 0;
                    let max = self.limits.max_message;
                    let words = format!("the message is longer than {max} bytes");
                    self.put(&failure(Id::Null, error::INVALID_REQUEST, words, "too_large"));
                }
                Found::More if self.unfinished.grow(inbox.len() - used) => {
                    self.searched = inbox.len() - used;
                    break;
                }
                Found::More => {
                    self.splitter.give_up(&inbox[used..]);
                    self.unfinished.clear();
                    self.searched = 0;
                    let words = "all clients together have sent too much of messages that have not ended".to_owned();
                    self.put(&failure(Id::Null, error::OVERLOADED, words, "overloaded"));
                }
                Found::Broken(words) => {
                    self.put(&failure(Id::Null, error::PARSE_ERROR, words.to_owned(), "broken_frame"));
                    self.reading = false;
                    self.searched = 0;
                    return Ok(());
                }
            }
        }
        if used == 0 {
            self.inbox = inbox;
        } else if used < inbox.len() {
            self.inbox = inbox[used..].to_vec();
        }
        Ok(())
    }

    /// Whether a message begins a conversation in the Model Context Protocol, which is always in lines.
    fn is_of_mcp(&self, message: &[u8]) -> bool {
        self.splitter.framing == Some(Framing::Lines) && is_opening(message)
    }

    fn dispatch(&mut self, message: &[u8]) {
        let first = message.iter().find(|b| !b.is_ascii_whitespace());
        if first == Some(&b'[') {
            return self.dispatch_batch(message);
        }
        match self.start(message, Place::Alone) {
            Started::Nothing => {}
            Started::Done(json) => self.put(&json),
            Started::Waiting { responding, id, barrier } => self.push(responding, id.into_iter().collect(), barrier),
        }
    }

    fn dispatch_batch(&mut self, message: &[u8]) {
        let members: Vec<&RawValue> = match serde_json::from_slice(message) {
            Ok(members) => members,
            Err(error) => return self.put(&not_json(&error)),
        };
        if members.is_empty() {
            let words = "an empty batch asks for nothing".to_owned();
            return self.put(&failure(Id::Null, error::INVALID_REQUEST, words, "invalid_request"));
        }
        let (mut done, mut waiting, mut ids) = (Vec::new(), FuturesUnordered::new(), Vec::new());
        let mut any_barrier = false;
        for member in members {
            match self.start(member.get().as_bytes(), Place::InBatch) {
                Started::Nothing => {}
                Started::Done(json) => done.push(json),
                Started::Waiting { responding, id, barrier } => {
                    waiting.push(responding);
                    ids.extend(id);
                    any_barrier |= barrier;
                }
            }
        }
        if waiting.is_empty() {
            if let Some(json) = batch(done) {
                self.put(&json);
            }
            return;
        }
        let all = async move {
            while let Some(json) = waiting.next().await {
                done.extend(json);
            }
            batch(done)
        };
        self.push(Box::pin(all), ids, any_barrier);
    }

    /// Looks a request up and polls it once.
    fn start(&mut self, message: &[u8], place: Place) -> Started {
        let request: RawRequest = match serde_json::from_slice(message) {
            Ok(request) => request,
            Err(error) if error.is_data() => {
                let words = "a request is an object with jsonrpc, method, and an id unless it is a notification";
                return Started::Done(failure(Id::Null, error::INVALID_REQUEST, words.to_owned(), "invalid_request"));
            }
            Err(error) => return Started::Done(not_json(&error)),
        };
        let id = match request.id.map(read_id).transpose() {
            Ok(id) => id,
            Err(words) => {
                return Started::Done(failure(Id::Null, error::INVALID_REQUEST, words, "invalid_request"));
            }
        };
        let answer_id = id.clone().unwrap_or(Id::Null);
        let method: Option<Text> = request.method.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let version = request.jsonrpc.map(RawValue::get);
        let (Some(Text(method)), Some("\"2.0\"")) = (method, version) else {
            let words = "expected jsonrpc: \"2.0\" and method: a string".to_owned();
            return Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request"));
        };
        if method == "$/cancelRequest" {
            self.cancel_request(request.params);
            return match id {
                None => Started::Nothing,
                Some(id) => Started::Done(response(id, &())),
            };
        }
        let key = request.id.map(|raw| raw.get().trim());
        if key.is_some_and(|key| self.tokens.contains_key(key)) {
            let words = "a request with this id is in flight on this connection".to_owned();
            return Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request"));
        }
        self.call(&method, request.params, id, key, place)
    }

    fn call(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        id: Option<Id<'static>>,
        key: Option<&str>,
        place: Place,
    ) -> Started {
        let answer_id = id.clone().unwrap_or(Id::Null);
        let notification = id.is_none();
        let done = |response: MethodResponse| match notification {
            true => Started::Nothing,
            false => Started::Done(response.into_json()),
        };
        let Some((name, callback)) = self.methods.method_with_name(method) else {
            let words = format!("there is no method {}", method.chars().take(80).collect::<String>());
            return done(MethodResponse::error(
                answer_id,
                ErrorObject::owned(error::METHOD_NOT_FOUND, words, None::<()>),
            ));
        };
        self.dialect = Dialect::Native;
        let token = self.cancel.child_token();
        let mut extensions = Extensions::new();
        extensions.insert(RequestScope { connection: self.connection.clone(), cancel: token.clone() });
        let connection_id = ConnectionId(self.connection.id as usize);
        let params_text = params.map(RawValue::get);
        let max = self.limits.max_message;
        let future = match callback.clone() {
            MethodCallback::Sync(run) => {
                return done(within(run(answer_id, Params::new(params_text), usize::MAX, extensions), max));
            }
            MethodCallback::Unsubscription(run) => {
                // jsonrpsee takes the id by position, our protocol by name.
                let by_position = by_position(params_text);
                return done(run(
                    answer_id,
                    Params::new(by_position.as_deref()),
                    connection_id,
                    usize::MAX,
                    extensions,
                ));
            }
            MethodCallback::Async(run) => {
                run(answer_id, Params::new(params_text).into_owned(), connection_id, usize::MAX, extensions)
            }
            MethodCallback::Subscription(_) if place == Place::InBatch || notification => {
                let words = format!("{name} is a subscription: send it alone, with an id");
                return match notification {
                    true => Started::Nothing,
                    false => Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request")),
                };
            }
            MethodCallback::Subscription(_) if self.limits.max_subscriptions == 0 => {
                let words = format!("{name} is a subscription: it needs a connection that stays, such as a WebSocket");
                return Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "no_stream"));
            }
            MethodCallback::Subscription(run) => {
                let Some(permit) = self.subscriptions.acquire() else {
                    let words = format!("{} subscriptions of this connection are open", self.subscriptions.max());
                    return Started::Done(failure(answer_id, error::OVERLOADED, words, "overloaded"));
                };
                let state = SubscriptionState {
                    conn_id: connection_id,
                    id_provider: &RandomStringIdProvider::new(16),
                    subscription_permit: permit,
                };
                run(answer_id, Params::new(params_text), self.sink.clone(), state, extensions)
            }
        };
        let mut responding: Responding = Box::pin(async move {
            let response = within(future.await, max);
            // The sink has carried the answer of a subscription already.
            if notification || response.is_subscription() { None } else { Some(response.into_json()) }
        });
        let mut context = Context::from_waker(std::task::Waker::noop());
        // The waker does not matter: whatever is pending now is polled again by the connection's own loop.
        match responding.as_mut().poll(&mut context) {
            Poll::Ready(None) => Started::Nothing,
            Poll::Ready(Some(json)) => Started::Done(json),
            Poll::Pending => {
                let key: Option<RequestId> = key.map(Into::into);
                if let Some(key) = &key {
                    self.tokens.insert(key.clone(), token);
                }
                Started::Waiting { responding, id: key, barrier: takes_effect_in_order(name) }
            }
        }
    }

    fn push(&mut self, responding: Responding, ids: Vec<RequestId>, barrier: bool) {
        self.barrier |= barrier;
        self.pending.push(Box::pin(async move { Reply { json: responding.await, ids, barrier } }));
    }

    fn take_reply(&mut self, reply: Reply) {
        for id in &reply.ids {
            self.tokens.remove(id);
        }
        if reply.barrier {
            self.barrier = false;
        }
        if let Some(json) = reply.json {
            self.put(&json);
        }
    }

    fn cancel_request(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let Some(cancel) = params.and_then(|params| serde_json::from_str::<Cancel>(params.get()).ok()) else { return };
        if let Some(token) = self.tokens.get(cancel.id.get().trim()) {
            token.cancel();
        }
    }

    /// Puts an answer behind the notifications that came before it.
    fn put(&mut self, json: &RawValue) {
        while let Ok(message) = self.outbox.try_recv() {
            self.notify(&message);
        }
        self.notify(json);
    }

    fn notify(&mut self, json: &RawValue) {
        let framing = self.splitter.framing.unwrap_or(Framing::Lines);
        framing::write(framing, json.get().as_bytes(), &mut self.out);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Alone,
    InBatch,
}

enum Started {
    Nothing,
    Done(Box<RawValue>),
    Waiting { responding: Responding, id: Option<RequestId>, barrier: bool },
}

/// Methods that take effect before the next message is read.
fn takes_effect_in_order(method: &str) -> bool {
    ["session.", "buffers.", "permissions.", "questions."].iter().any(|prefix| method.starts_with(prefix))
        || method.ends_with("subscribe")
        || method == "tools.provide"
        || method == "tools.unprovide"
}

/// Strings, and integers from 0 to 2^53-1, which every JSON reader keeps exact.
fn read_id(raw: &RawValue) -> Result<Id<'static>, String> {
    const MAX: u64 = (1 << 53) - 1;
    let id: Option<Id> = serde_json::from_str(raw.get()).ok();
    match id.map(Id::into_owned) {
        Some(Id::Number(n)) if n <= MAX => Ok(Id::Number(n)),
        Some(Id::Str(text)) => Ok(Id::Str(text)),
        Some(Id::Number(_) | Id::Null) | None => Err("an id is a string or an integer from 0 to 2^53-1".to_owned()),
    }
}

fn by_position(params: Option<&str>) -> Option<String> {
    let by_name: toold_proto::event::Unsubscribe = serde_json::from_str(params?).ok()?;
    serde_json::to_string(&[by_name.subscription]).ok()
}

fn not_json(error: &serde_json::Error) -> Box<RawValue> {
    failure(Id::Null, error::PARSE_ERROR, format!("the message is no JSON: {error}"), "parse_error")
}

pub(crate) fn failure(id: Id<'_>, code: i32, words: String, kind: &str) -> Box<RawValue> {
    let object: ErrorObjectOwned = ErrorObject::owned(code, words, Some(ErrorData::new(kind)));
    MethodResponse::error(id, object).into_json()
}

fn response(id: Id<'_>, result: &impl serde::Serialize) -> Box<RawValue> {
    let payload = jsonrpsee::core::server::ResponsePayload::success_borrowed(&result);
    MethodResponse::response(id, payload, usize::MAX).into_json()
}

/// An answer that is too large becomes an error that says so.
fn within(response: MethodResponse, max: usize) -> MethodResponse {
    let length = response.as_json().get().len();
    if length <= max || response.is_subscription() {
        return response;
    }
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: Id<'a>,
    }
    let id = serde_json::from_str::<OnlyId>(response.as_json().get()).map_or(Id::Null, |only| only.id.into_owned());
    let words = format!("the answer has {length} bytes, more than the limit of {max}");
    MethodResponse::error(id, ErrorObject::owned(error::INTERNAL_ERROR, words, Some(ErrorData::new("too_large"))))
}

fn batch(answers: Vec<Box<RawValue>>) -> Option<Box<RawValue>> {
    (!answers.is_empty()).then(|| serde_json::value::to_raw_value(&answers).expect("raw JSON can be written"))
}

thread_local! {
    /// Bytes are read here first, so that idle connections hold no buffer.
    static SCRATCH: std::cell::RefCell<Box<[u8]>> = std::cell::RefCell::new(vec![0; 64 * 1024].into_boxed_slice());
}

enum Moved {
    /// Bytes that were read; none at the end.
    In(usize),
    /// Bytes that were written.
    Out(usize),
}

/// Writes some of `out`, or reads what is there and appends it, whichever can be done first.
/// Waits for ever when there is nothing to write and reading is not wanted. Cancel-safe.
async fn exchange(stream: &mut impl Stream, inbox: &mut Vec<u8>, reading: bool, out: &[u8]) -> io::Result<Moved> {
    std::future::poll_fn(|context| {
        if !out.is_empty()
            && let Poll::Ready(written) = Pin::new(&mut *stream).poll_write(context, out)
        {
            let written = written?;
            return Poll::Ready(if written == 0 {
                Err(io::ErrorKind::WriteZero.into())
            } else {
                Ok(Moved::Out(written))
            });
        }
        if !reading {
            return Poll::Pending;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
            inbox.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(Moved::In(buffer.filled().len())))
        })
    })
    .await
}

/// Writes some. Cancel-safe: what was written is told.
async fn write(stream: &mut impl Stream, bytes: &[u8]) -> io::Result<usize> {
    let written = std::future::poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
    if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
}

/// Whether a descriptor's other end is closed both ways.
pub(crate) fn fd_hung_up(fd: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(_) => fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
        Err(_) => true,
    }
}
