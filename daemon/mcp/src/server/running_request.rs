//! A request from its start to its result, including its requests to the client.
//!
//! In the older revisions the request stays open, and the server sends requests to the client. In
//! the stateless ones a question ends a round: the request continues in its own task, and the
//! client's next request finds it by its `requestState`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CancelledNotificationParam, ClientResult, GetPromptResult, InputRequest, InputRequests,
    InputResponses, ReadResourceResult, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::server::McpIdentity;
use crate::server::client_requests::{ClientRequestEvent, ClientRequests};
use crate::server::logs::LogSources;
use crate::server::progress::ProgressRouter;
use crate::server::tasks::{McpTask, McpTasks, TaskHandover};

/// The result of a request.
pub(super) enum RequestOutcome {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
    /// The call was cancelled.
    Cancelled,
}

pub(super) type RequestResult = Result<RequestOutcome, ErrorData>;

/// Requests to the client within this time are combined in one round.
const GATHER: Duration = Duration::from_millis(20);
/// How long a result waits for a client whose person has not closed a dialog yet that was answered elsewhere.
const RESULT_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Events that wait for the attending request; when it is full, the task waits.
const MAX_EVENTS: usize = 64;

/// A request in its own task. Dropping its last handle cancels it.
pub(super) struct RunningRequest {
    orders: mpsc::Sender<RequestOrder>,
    pub(super) progress: ProgressRouter,
    pub(super) log_sources: LogSources,
    /// How it may become an MCP task.
    pub(super) handover: Option<TaskHandover>,
    /// Cancels its call.
    cancel: CancellationToken,
}

enum RequestOrder {
    /// This request of the client waits for the result from now on. Open requests to the client are
    /// sent to it again.
    Attend { answers: InputResponses, events: mpsc::Sender<RequestEvent> },
    /// The client's answer to one request.
    Answer { key: String, answer: Result<Value, String> },
    /// The request that attended ends, and another one will follow.
    Detach,
}

enum RequestEvent {
    Asked(String, Box<InputRequest>),
    /// It was answered elsewhere, or is no longer needed.
    Ended(String),
    Finished(Box<RequestResult>),
}

/// A request of the client that waits for the result.
pub(super) struct AttendedRequest {
    request: RunningRequest,
    events: mpsc::Receiver<RequestEvent>,
}

/// The outcome of a round of a stateless revision.
pub(super) enum RoundEnd {
    Finished(RequestResult),
    /// The client should answer these, and send the request again.
    Asks(InputRequests, RunningRequest),
    /// It is still running when it becomes an MCP task.
    Long(AttendedRequest),
    /// Its client cancelled it.
    Cancelled,
}

/// Passes on the client's answers to the questions of an MCP task.
pub(super) struct AnswerSender(mpsc::Sender<RequestOrder>);

impl AnswerSender {
    pub(super) async fn send(&self, key: String, answer: Value) {
        // Fails when the request has ended, which then needs no answers.
        let _ = self.0.send(RequestOrder::Answer { key, answer: Ok(answer) }).await;
    }
}

impl RunningRequest {
    /// Starts a request. `patience`: how long the client may take for its next round.
    pub(super) fn begin(
        future: BoxFuture<'static, RequestResult>,
        client_requests: ClientRequests,
        progress: ProgressRouter,
        log_sources: LogSources,
        cancel: CancellationToken,
        handover: Option<TaskHandover>,
        patience: Duration,
    ) -> (Self, impl Future<Output = ()>) {
        let (orders, receiver) = mpsc::channel(MAX_EVENTS);
        let request = Self { orders, progress, log_sources, handover, cancel: cancel.clone() };
        let (asked, attending, finished) = (BTreeMap::new(), None, None);
        let task = RequestTask { client_requests, cancel, patience, attending, asked, finished };
        (request, task.run(future, receiver))
    }

    pub(super) fn is_over(&self) -> bool {
        self.orders.is_closed()
    }

    /// Waits for the result from now on. `answers` are to requests that were sent before, or will be.
    pub(super) async fn attend(self, answers: InputResponses) -> AttendedRequest {
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        // If this fails the events end at once, which is reported as the end of the request.
        let _ = self.orders.send(RequestOrder::Attend { answers, events: sender }).await;
        AttendedRequest { request: self, events }
    }
}

impl AttendedRequest {
    /// Waits as the stateless revisions do, and at most for `limit` while nothing is asked.
    pub(super) async fn round(mut self, cancelled: &CancellationToken, limit: Option<Duration>) -> RoundEnd {
        let long = tokio::time::sleep(limit.unwrap_or(Duration::MAX));
        tokio::pin!(long);
        let mut asked = InputRequests::new();
        let gathered = tokio::time::sleep(Duration::MAX);
        tokio::pin!(gathered);
        loop {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => return RoundEnd::Cancelled,
                event = self.events.recv() => match event {
                    Some(RequestEvent::Asked(key, request)) => {
                        if asked.is_empty() {
                            gathered.as_mut().reset(tokio::time::Instant::now() + GATHER);
                        }
                        asked.insert(key, *request);
                    }
                    Some(RequestEvent::Ended(key)) => _ = asked.remove(&key),
                    Some(RequestEvent::Finished(finished)) => return RoundEnd::Finished(*finished),
                    None => return RoundEnd::Finished(Err(over())),
                },
                () = &mut gathered, if !asked.is_empty() => {
                    if self.request.orders.send(RequestOrder::Detach).await.is_err() {
                        return RoundEnd::Finished(Err(over()));
                    }
                    return RoundEnd::Asks(asked, self.request);
                }
                () = &mut long, if limit.is_some() && asked.is_empty() => return RoundEnd::Long(self),
            }
        }
    }

    /// Makes it an MCP task; the future must be polled until the task has ended.
    pub(super) fn into_task(
        mut self,
        tasks: &McpTasks,
        owner: McpIdentity,
    ) -> (Arc<McpTask>, impl Future<Output = ()> + use<>) {
        if let Some(handover) = &self.request.handover {
            handover.done.store(true, Ordering::Relaxed);
        }
        let task = tasks.add(owner, AnswerSender(self.request.orders.clone()), self.request.cancel.clone());
        let mut progress = self.request.progress.listen();
        let entry = task.clone();
        let follow = async move {
            loop {
                tokio::select! {
                    biased;
                    event = self.events.recv() => match event {
                        Some(RequestEvent::Asked(key, request)) => entry.ask(key, request),
                        Some(RequestEvent::Ended(key)) => entry.end_ask(&key),
                        Some(RequestEvent::Finished(finished)) => return entry.finish(*finished),
                        None => return entry.finish(Err(over())),
                    },
                    Some(progress) = progress.recv() => entry.progress(progress),
                }
            }
        };
        (task, follow)
    }

    /// Waits as the older revisions do, and sends requests to the client. `None` when the client cancelled it.
    pub(super) async fn attend_and_ask(mut self, context: &RequestContext<RoleServer>) -> Option<RequestResult> {
        let mut asking = FuturesUnordered::new();
        let mut open: HashMap<String, CancellationToken> = HashMap::new();
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return None,
                event = self.events.recv() => match event {
                    Some(RequestEvent::Asked(key, request)) => {
                        let over = CancellationToken::new();
                        if let Some(before) = open.insert(key.clone(), over.clone()) {
                            before.cancel();
                        }
                        asking.push(ask(context.peer.clone(), key, *request, over));
                    }
                    Some(RequestEvent::Ended(key)) => {
                        if let Some(over) = open.remove(&key) {
                            over.cancel();
                        }
                    }
                    Some(RequestEvent::Finished(finished)) => {
                        open.values().for_each(CancellationToken::cancel);
                        // Waits until the client knows which of its prompts were answered elsewhere, and closes them.
                        while asking.next().await.is_some() {}
                        return Some(*finished);
                    }
                    None => return Some(Err(over())),
                },
                Some(answered) = asking.next(), if !asking.is_empty() => {
                    let Some((key, answer)) = answered else { continue };
                    open.remove(&key);
                    let _ = self.request.orders.send(RequestOrder::Answer { key, answer }).await;
                }
            }
        }
    }
}

fn over() -> ErrorData {
    ErrorData::internal_error("the call of this request has ended", None)
}

/// Sends one request to the client; `None` when it is no longer needed, of which the client is
/// notified.
async fn ask(
    peer: Peer<RoleServer>,
    key: String,
    request: InputRequest,
    over: CancellationToken,
) -> Option<(String, Result<Value, String>)> {
    let request = match request {
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Some((key, Err("toold does not send this kind of request to clients".to_owned()))),
    };
    let handle = match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(handle) => handle,
        Err(error) => return Some((key, Err(error.to_string()))),
    };
    let id = handle.id.clone();
    tokio::select! {
        () = over.cancelled() => {
            let param = CancelledNotificationParam::new(Some(id), Some("it was answered elsewhere".to_owned()));
            let _ = peer.notify_cancelled(param).await;
            None
        }
        answered = handle.await_response() => Some((key, read(answered))),
    }
}

fn read(answered: Result<ClientResult, ServiceError>) -> Result<Value, String> {
    match answered {
        Ok(result) => serde_json::to_value(result).map_err(|error| error.to_string()),
        Err(ServiceError::McpError(error)) => Err(error.message.into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The task in which a request runs.
struct RequestTask {
    client_requests: ClientRequests,
    cancel: CancellationToken,
    patience: Duration,
    attending: Option<mpsc::Sender<RequestEvent>>,
    /// Requests to the client that are open.
    asked: BTreeMap<String, Box<InputRequest>>,
    finished: Option<Box<RequestResult>>,
}

impl RequestTask {
    async fn run(mut self, mut future: BoxFuture<'static, RequestResult>, mut orders: mpsc::Receiver<RequestOrder>) {
        let alone = tokio::time::sleep(self.patience);
        tokio::pin!(alone);
        // The call starts when a request attends, or its first progress would be lost.
        let mut has_started = false;
        loop {
            let attending = self.attending.clone();
            let detached = async {
                match &attending {
                    Some(attending) => attending.closed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(RequestOrder::Attend { answers, events }) => {
                        self.attending = Some(events);
                        has_started = true;
                        for (key, answer) in answers {
                            self.answer(&key, Ok(answer)).await;
                        }
                        for (key, request) in self.asked.clone() {
                            self.send(RequestEvent::Asked(key, request)).await;
                        }
                    }
                    Some(RequestOrder::Answer { key, answer }) => {
                        if let Some(again) = self.answer(&key, answer).await {
                            self.send(RequestEvent::Asked(key, again)).await;
                        }
                    }
                    Some(RequestOrder::Detach) => {
                        self.attending = None;
                        let patience = if self.finished.is_some() { RESULT_KEPT } else { self.patience };
                        alone.as_mut().reset(tokio::time::Instant::now() + patience);
                    }
                    // All handles are dropped.
                    None => break,
                },
                () = detached => break,
                () = self.cancel.cancelled(), if self.attending.is_none() && self.finished.is_some() => break,
                () = &mut alone, if self.attending.is_none() => break,
                finished = &mut future, if has_started && self.finished.is_none() => {
                    self.finished = Some(Box::new(finished));
                    alone.as_mut().reset(tokio::time::Instant::now() + RESULT_KEPT);
                }
                event = self.client_requests.next(), if self.finished.is_none() => match event {
                    ClientRequestEvent::Asked(key, request) => {
                        self.asked.insert(key.clone(), request.clone());
                        self.send(RequestEvent::Asked(key, request)).await;
                    }
                    ClientRequestEvent::Ended(key) => {
                        if self.asked.remove(&key).is_some() {
                            self.send(RequestEvent::Ended(key)).await;
                        }
                    }
                },
            }
            if self.attending.is_some()
                && let Some(finished) = self.finished.take()
            {
                self.send(RequestEvent::Finished(finished)).await;
                return;
            }
        }
        if self.finished.is_none() {
            self.cancel.cancel();
            // So that its call is recorded.
            let _ = future.await;
        }
    }

    /// Passes on an answer; returns the request again when the answer is invalid.
    async fn answer(&mut self, key: &str, answer: Result<Value, String>) -> Option<Box<InputRequest>> {
        let again = self.client_requests.answer(key, answer).await;
        match again {
            true => self.asked.get(key).cloned(),
            false => {
                self.asked.remove(key);
                None
            }
        }
    }

    async fn send(&self, event: RequestEvent) {
        if let Some(attending) = &self.attending {
            // When the request has ended, `run` notices at its next step.
            let _ = attending.send(event).await;
        }
    }
}
