//! One client: messages in, answers and notifications out.
//!
//! One task for each connection. A request's future is polled once in place, and most are done then;
//! those that wait are kept here, so that the end of the connection is the end of them. Nothing is
//! buffered while a connection is idle, and one that does not read is not read from.

mod batch;
mod message;
pub mod message_stream;
mod pending;
mod requests;

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jsonrpsee::core::server::{BoundedSubscriptions, Methods};
use jsonrpsee::types::Id;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toold_engine::arrival::ArrivalOrder;
use toold_engine::call::{Caller, Principal};
use toold_engine::session::Session;
use toold_mcp::server::protocol_detection::is_mcp;
use toold_proto::error;
use toold_proto::tool::SessionId;

use batch::RequestBatch;
pub(crate) use message::{failure, success};
use message_stream::{MessageStream, NextMessage, Transferred};
use pending::PendingRequests;

use crate::peer::Peer;
use crate::rpc::message_budget::MessageBudget;
use crate::rpc::outboxes::{Outbox, Outboxes};
use crate::rpc::parse_streams::ParseStreams;
use crate::rpc::parsed_memory::ParsedMemory;

/// What the transport sets for all connections.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Bytes of one message, either way.
    pub max_message: usize,
    pub max_subscriptions: u32,
    /// Requests in flight; at this many the connection is not read from.
    pub max_requests: usize,
    /// Knows how full the outbox of each connection is.
    pub outboxes: Arc<Outboxes>,
    /// Messages that have begun and not ended, of all connections together.
    pub unfinished: Arc<MessageBudget>,
    /// Answers that clients have not read, of all connections together.
    pub unread: Arc<MessageBudget>,
    /// Messages that were parsed, of all connections together.
    pub parsed: Arc<ParsedMemory>,
    /// The last message to each client once `stop` fires. It follows all answers: a request without an answer was not read.
    pub farewell: Arc<OnceLock<Box<RawValue>>>,
    /// Fires when what still runs is cut short.
    pub cancel: CancellationToken,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_message: 16 * 1024 * 1024,
            max_subscriptions: 512,
            max_requests: 1_024,
            outboxes: Arc::default(),
            unfinished: Arc::new(MessageBudget::new(MAX_UNFINISHED)),
            unread: Arc::new(MessageBudget::new(MAX_UNREAD)),
            parsed: Arc::default(),
            farewell: Arc::default(),
            cancel: CancellationToken::new(),
        }
    }
}

/// Messages that are taken in one turn; then other connections have theirs.
const TURN: usize = 32;
/// Answers beyond this many bytes wait until the client has read some.
pub(crate) const HIGH_WATER: usize = 128 * 1024;
/// Requests in flight are answered up to so many bytes for a client that does not read.
const MAX_BACKLOG: usize = 64 * 1024 * 1024;
/// Limit of unread bytes over all such clients.
const MAX_UNREAD: usize = 256 * 1024 * 1024;
/// Bytes of messages that have begun and not ended.
const MAX_UNFINISHED: usize = 256 * 1024 * 1024;
/// How often a client that sends no more is asked whether it still listens.
const HANG_UP_CHECK: Duration = Duration::from_millis(50);
/// How long a stream may take to say that it ends.
const GOODBYE: Duration = Duration::from_secs(1);

/// What the methods know of the connection that a request came on.
pub struct ClientConnection {
    pub id: u64,
    pub peer: Peer,
    pub caller: Arc<Caller>,
    /// The order of its calls.
    pub arrivals: ArrivalOrder,
    /// Takes notifications for this client.
    pub outbox: Outbox,
    /// The session that `session.open` bound, or the connection's own.
    session: Mutex<Option<Arc<Session>>>,
    /// A session that was made for a client that opened none; it ends with the connection.
    own_session: OnceLock<SessionId>,
    /// The client is gone.
    gone: AtomicBool,
    /// It said that it acts for a model. There is no way back.
    agent: AtomicBool,
    /// The answers of models that it has in parsing.
    pub parse_streams: ParseStreams,
}

/// Put into the extensions of each request, in an `Arc`.
pub struct RequestScope {
    pub connection: Arc<ClientConnection>,
    /// Fires when the request is cancelled or its connection goes.
    pub cancel: CancellationToken,
    response: Mutex<Option<Vec<u8>>>,
    subscribed: Notify,
}

impl RequestScope {
    fn new(connection: Arc<ClientConnection>, cancel: CancellationToken) -> Self {
        Self { connection, cancel, response: Mutex::default(), subscribed: Notify::new() }
    }

    /// Says that the subscription which was asked for can be ended from now on. Until then, jsonrpsee has answered the
    /// request and does not know the subscription yet, so the next request of the connection has to wait.
    pub fn note_subscribed(&self) {
        self.subscribed.notify_one();
    }

    /// Gives the whole response, in place of the one that the method returns to jsonrpsee.
    pub fn answer(&self, response: Vec<u8>) {
        *self.response.lock() = Some(response);
    }

    fn take_response(&self) -> Option<Vec<u8>> {
        self.response.lock().take()
    }
}

impl ClientConnection {
    fn new(id: u64, peer: Peer, outboxes: &Arc<Outboxes>) -> Self {
        let caller = Caller::new(id, peer.principal);
        Self {
            id,
            peer,
            caller: Arc::new(caller),
            arrivals: ArrivalOrder::default(),
            outbox: Outbox::new(id, outboxes),
            session: Mutex::new(None),
            own_session: OnceLock::new(),
            gone: AtomicBool::new(false),
            agent: AtomicBool::new(false),
            parse_streams: ParseStreams::default(),
        }
    }

    pub fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().clone()
    }

    pub fn is_bound_to(&self, session: &Session) -> bool {
        self.session().is_some_and(|bound| std::ptr::eq(bound.as_ref(), session))
    }

    pub fn is_agent(&self) -> bool {
        self.agent.load(Ordering::Relaxed)
            || self.peer.principal == Principal::Agent
            || self.peer.principal == Principal::Person && self.peer.agent_above().is_some()
    }

    /// Whether it may do what only a person may.
    pub fn may_decide(&self) -> bool {
        self.peer.principal.may_decide() && !self.is_agent() && self.peer.needs_code().is_none()
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

    /// Whether the client is gone, which is so before its requests are cancelled for it.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// From now on it may not answer asks, nor may what its process or the program that started it runs.
    pub fn become_agent(&self) {
        let is_new = !self.agent.swap(true, Ordering::Relaxed);
        // Also below another agent, which may end first.
        if is_new && matches!(self.peer.principal, Principal::Person | Principal::Agent) {
            self.peer.record_agent();
        }
    }

    /// Binds another session from now on.
    pub fn bind(&self, session: Arc<Session>) {
        session.bind();
        let before = self.session.lock().replace(session);
        if let Some(before) = before {
            before.unbind();
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        if let Some(session) = self.session() {
            session.unbind();
        }
    }
}

/// Serves one client until it is gone or `stop` fires and its requests have ended.
///
/// When the client goes, its calls are cancelled. When it only ends its sending side, those in flight are
/// answered first. When `stop` fires, nothing more is read; the limits' `cancel` then cuts short what still runs.
pub fn serve<S: MessageStream>(
    mut stream: S,
    id: u64,
    peer: Peer,
    methods: Methods,
    limits: Arc<ConnectionLimits>,
    stop: CancellationToken,
) -> impl Future<Output = ServedConnection<S>> {
    let connection = Arc::new(ClientConnection::new(id, peer, &limits.outboxes));
    let mut server = ConnectionTask {
        connection,
        methods,
        subscriptions: None,
        is_kept: stream.is_kept(),
        limits,
        cancel: None,
        pending: PendingRequests::default(),
        batch: None,
        outbox: None,
        barrier: false,
        more: false,
        reading: true,
        dialect: ClientDialect::Unknown,
    };
    // Made outside: what an `async fn` is given and moves takes its place twice, for as long as the client is there.
    async move {
        let end = server.run(&mut stream, &stop).await;
        if let Err(error) = end {
            tracing::debug!(connection = id, %error, "connection ended");
        }
        let connection = server.connection.clone();
        let is_mcp = server.dialect == ClientDialect::Mcp;
        // Boxed, as all that comes after the idle time: the task has the size of the largest.
        Box::pin(server.end()).await;
        if !is_mcp {
            // Nobody waits long for it.
            let goodbye = std::future::poll_fn(|context| stream.poll_goodbye(context));
            let _ = Box::pin(tokio::time::timeout(GOODBYE, goodbye)).await;
        }
        ServedConnection { connection, mcp: is_mcp.then_some(stream) }
    }
}

/// What is left of a connection.
pub struct ServedConnection<S> {
    /// For whoever cleans up after it.
    pub connection: Arc<ClientConnection>,
    /// The stream, with the first message, when its client speaks the Model Context Protocol.
    pub mcp: Option<S>,
}

struct ConnectionTask {
    connection: Arc<ClientConnection>,
    methods: Methods,
    /// From the first one on.
    subscriptions: Option<BoundedSubscriptions>,
    /// False when there can be no subscriptions.
    is_kept: bool,
    limits: Arc<ConnectionLimits>,
    /// Fires for all requests of the connection; from the first one on that can be cancelled.
    cancel: Option<CancellationToken>,
    pending: PendingRequests,
    /// A batch whose requests are not all begun.
    batch: Option<Box<RequestBatch>>,
    /// The receiving end of the connection's outbox, once something was written to it.
    outbox: Option<mpsc::Receiver<Box<RawValue>>>,
    /// A request is in flight that must take effect before the next message is read.
    barrier: bool,
    /// Further messages may have been received, whose turn is the next one.
    more: bool,
    reading: bool,
    dialect: ClientDialect,
}

impl Drop for ConnectionTask {
    /// Also when the task dies.
    fn drop(&mut self) {
        self.connection.outbox.close(&mut self.outbox);
    }
}

/// What a client speaks, told by its first message that is valid in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientDialect {
    Unknown,
    Native,
    Mcp,
}

/// A request's id, as it is compared: two ids are the same when their JSON is.
type RequestId = Box<str>;

/// What a message came to: its answer, or none for notifications and accepted subscriptions.
struct MessageReply {
    json: Option<Vec<u8>>,
    ids: Vec<RequestId>,
    barrier: bool,
}

type PendingReply = Pin<Box<dyn Future<Output = MessageReply> + Send>>;
/// Gives a response, or none for what asks for none.
type Responding = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

impl ConnectionTask {
    async fn run(&mut self, stream: &mut impl MessageStream, stop: &CancellationToken) -> io::Result<()> {
        let stopped = stop.cancelled();
        tokio::pin!(stopped);
        loop {
            self.dispatch_received(stream);
            if self.is_done() || self.dialect == ClientDialect::Mcp {
                if self.dialect != ClientDialect::Mcp
                    && let Some(farewell) = self.limits.farewell.clone().get()
                {
                    self.put(stream, farewell.get().as_bytes());
                }
                return Box::pin(self.flush(stream)).await;
            }
            if self.more {
                // Nothing would come between a flood and its end otherwise: what is read is ready at once.
                tokio::task::yield_now().await;
                continue;
            }
            let busy = self.barrier || self.pending.len() >= self.limits.max_requests || stream.unsent() >= HIGH_WATER;
            let receiving = self.reading && !busy;
            tokio::select! {
                biased;
                transferred = std::future::poll_fn(|context| stream.poll_transfer(context, receiving)) => {
                    match transferred? {
                        Transferred::End => {
                            self.reading = false;
                            if stream.hung_up() {
                                return Ok(());
                            }
                        }
                        Transferred::Received | Transferred::Sent => {}
                    }
                }
                () = &mut stopped, if self.reading => self.reading = false,
                Some(reply) = self.pending.next(), if !self.pending.is_empty() && self.may_answer(stream.unsent()) => {
                    if reply.barrier {
                        self.barrier = false;
                    }
                    if let Some(json) = reply.json {
                        self.put(stream, &json);
                    }
                }
                message = self.connection.outbox.next(&mut self.outbox), if stream.unsent() < HIGH_WATER => {
                    stream.send(message.get().as_bytes());
                }
                // The end of what can be read was told already, so whether anybody still listens is asked.
                () = async { Box::pin(tokio::time::sleep(HANG_UP_CHECK)).await }, if !self.reading => {
                    if stream.hung_up() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether requests in flight may put their answers behind what the client has not read.
    fn may_answer(&self, unsent: usize) -> bool {
        unsent < HIGH_WATER || unsent < MAX_BACKLOG && self.limits.unread.has_room()
    }

    /// Nothing more comes in, and all that came has been answered.
    fn is_done(&self) -> bool {
        !self.reading && self.pending.is_empty() && !self.more
    }

    async fn flush(&mut self, stream: &mut impl MessageStream) -> io::Result<()> {
        self.send_waiting(stream);
        let flushed = tokio::time::timeout(Duration::from_secs(2), async {
            while stream.unsent() > 0 {
                std::future::poll_fn(|context| stream.poll_transfer(context, false)).await?;
            }
            io::Result::Ok(())
        });
        flushed.await.unwrap_or(Ok(()))
    }

    /// Cancels what is in flight and waits until it has been told: each answer is quick after that. The outbox closes
    /// first, because requests and subscriptions may be waiting for room in it.
    async fn end(mut self) {
        self.connection.gone.store(true, Ordering::Release);
        self.connection.outbox.close(&mut self.outbox);
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
        while self.pending.next().await.is_some() {}
    }

    /// Takes messages that were received, as long as more may run.
    fn dispatch_received(&mut self, stream: &mut impl MessageStream) {
        if let Some(batch) = self.batch.take() {
            if let Some(answer) = self.go_on_with(batch) {
                self.put(stream, &answer);
            }
            self.more = true;
            return;
        }
        let mut taken = 0;
        self.more = false;
        while !self.barrier && self.pending.len() < self.limits.max_requests && stream.unsent() < HIGH_WATER {
            match stream.next_message() {
                NextMessage::Message { json, may_be_mcp } => {
                    if may_be_mcp && self.dialect == ClientDialect::Unknown && is_mcp(json) {
                        self.dialect = ClientDialect::Mcp;
                        stream.put_back();
                        return;
                    }
                    if let Some(answer) = self.dispatch(json) {
                        self.put(stream, &answer);
                    }
                    taken += 1;
                    if self.batch.is_some() || taken == TURN && stream.has_received() {
                        self.more = true;
                        return;
                    }
                }
                NextMessage::TooLarge => {
                    let max = self.limits.max_message;
                    let words = format!("the message is longer than {max} bytes");
                    self.refuse(stream, error::INVALID_REQUEST, words, "too_large");
                }
                NextMessage::OverBudget => {
                    let words = "all clients together have sent too many bytes of unfinished messages".to_owned();
                    self.refuse(stream, error::OVERLOADED, words, "overloaded");
                }
                NextMessage::Broken(words) => {
                    self.refuse(stream, error::PARSE_ERROR, words.to_owned(), "broken_frame");
                    self.reading = false;
                    return;
                }
                NextMessage::Incomplete => return,
            }
        }
    }

    /// Answers what is no request.
    fn refuse(&mut self, stream: &mut impl MessageStream, code: i32, words: String, kind: &str) {
        self.put(stream, failure(Id::Null, code, words, kind).get().as_bytes());
    }

    /// Puts an answer behind the notifications that came before it.
    fn put(&mut self, stream: &mut impl MessageStream, json: &[u8]) {
        self.send_waiting(stream);
        stream.send(json);
    }

    fn send_waiting(&mut self, stream: &mut impl MessageStream) {
        while let Some(message) = self.connection.outbox.try_next(&mut self.outbox) {
            stream.send(message.get().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::framed::FramedStream;
    use crate::transport::unix::SocketStream;

    /// Each client has such a task for as long as it is there, and most of the time does nothing.
    #[tokio::test]
    async fn the_task_of_a_connection_is_small() {
        let (stream, _other) = tokio::net::UnixStream::pair().unwrap();
        let stop = CancellationToken::new();
        let limits = Arc::<ConnectionLimits>::default();
        let stream = FramedStream::new(SocketStream(stream), &limits);
        let serving = serve(stream, 1, Peer::parent(), Methods::new(), limits, stop);
        assert!(size_of_val(&serving) <= 656, "{} bytes", size_of_val(&serving));
    }
}
