//! A request from its start to its result, while it may ask its client in between.
//!
//! In the older revisions the request stays open and what is asked are requests to the client. In the
//! stateless ones each thing that is asked ends a round: the work goes on in its own task, and the
//! client's next request finds it by the state that it was given.

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
use toold_engine::call::Principal;
use toold_proto::tool::SessionId;

use crate::server::desk::{Desk, News};
use crate::server::progress::Tap;
use crate::server::tasks::{Entry, Handing, Tasks};

/// What a request comes to.
pub(super) enum Outcome {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
    /// The call was cancelled.
    Cancelled,
}

pub(super) type Finished = Result<Outcome, ErrorData>;

/// What is asked within this time is asked in one round.
const GATHER: Duration = Duration::from_millis(20);
/// How much news waits for the request that attends to it.
const NEWS: usize = 64;

/// Work in its own task. Dropping the last handle of it that attends cancels it.
pub(super) struct Work {
    orders: mpsc::Sender<Order>,
    pub(super) tap: Tap,
    pub(super) session: SessionId,
    /// How it may become a task.
    pub(super) handing: Option<Handing>,
    /// Cancels what is done.
    cancel: CancellationToken,
}

enum Order {
    /// This request waits for the result from now on. What is still asked is told to it again.
    Attend { answers: InputResponses, news: mpsc::Sender<Told> },
    /// The client's answer to one thing.
    Answer { key: String, answer: Result<Value, String> },
    /// The request that attended ends, and another will come.
    Leave,
}

enum Told {
    Asked(String, Box<InputRequest>),
    /// It was answered by somebody else, or is wanted no more.
    Ended(String),
    Finished(Box<Finished>),
}

/// A request that waits for work.
pub(super) struct Attending {
    work: Work,
    news: mpsc::Receiver<Told>,
}

/// How a round of a stateless revision ended.
pub(super) enum Round {
    Finished(Finished),
    /// The client is to answer these, and to come again.
    Asks(InputRequests, Work),
    /// It is not over when it was to become a task.
    Long(Attending),
    /// Its client cancelled it.
    Cancelled,
}

/// Where answers to what a task asked are handed in.
pub(super) struct Answers(mpsc::Sender<Order>);

impl Answers {
    pub(super) async fn give(&self, key: String, answer: Value) {
        // The work has ended when this fails, and needs none.
        let _ = self.0.send(Order::Answer { key, answer: Ok(answer) }).await;
    }
}

impl Work {
    /// Begins. `patience`: how long a client may take for its next round.
    pub(super) fn begin(
        future: BoxFuture<'static, Finished>,
        desk: Desk,
        tap: Tap,
        session: SessionId,
        cancel: CancellationToken,
        handing: Option<Handing>,
        patience: Duration,
    ) -> (Self, impl Future<Output = ()>) {
        let (orders, receiver) = mpsc::channel(NEWS);
        let work = Self { orders, tap, session, handing, cancel: cancel.clone() };
        let task = Task { desk, cancel, patience, attending: None, asked: BTreeMap::new(), finished: None };
        (work, task.run(future, receiver))
    }

    pub(super) fn is_over(&self) -> bool {
        self.orders.is_closed()
    }

    /// Waits for the result from now on. `answers` are to what was asked before, or will be.
    pub(super) async fn attend(self, answers: InputResponses) -> Attending {
        let (sender, news) = mpsc::channel(NEWS);
        // When it fails the news end at once, which is told as the end of the work.
        let _ = self.orders.send(Order::Attend { answers, news: sender }).await;
        Attending { work: self, news }
    }
}

impl Attending {
    /// Waits in the manner of the stateless revisions, and no longer than `limit` where nothing is asked.
    pub(super) async fn round(mut self, cancelled: &CancellationToken, limit: Option<Duration>) -> Round {
        let long = tokio::time::sleep(limit.unwrap_or(Duration::MAX));
        tokio::pin!(long);
        let mut asked = InputRequests::new();
        let gathered = tokio::time::sleep(Duration::MAX);
        tokio::pin!(gathered);
        loop {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => return Round::Cancelled,
                told = self.news.recv() => match told {
                    Some(Told::Asked(key, request)) => {
                        if asked.is_empty() {
                            gathered.as_mut().reset(tokio::time::Instant::now() + GATHER);
                        }
                        asked.insert(key, *request);
                    }
                    Some(Told::Ended(key)) => _ = asked.remove(&key),
                    Some(Told::Finished(finished)) => return Round::Finished(*finished),
                    None => return Round::Finished(Err(over())),
                },
                () = &mut gathered, if !asked.is_empty() => {
                    if self.work.orders.send(Order::Leave).await.is_err() {
                        return Round::Finished(Err(over()));
                    }
                    return Round::Asks(asked, self.work);
                }
                () = &mut long, if limit.is_some() && asked.is_empty() => return Round::Long(self),
            }
        }
    }

    /// Enters it as a task, and gives what keeps it: to be polled until the task has ended.
    pub(super) fn hand_over(
        mut self,
        tasks: &Tasks,
        owner: Principal,
    ) -> (Arc<Entry>, impl Future<Output = ()> + use<>) {
        if let Some(handing) = &self.work.handing {
            handing.done.store(true, Ordering::Relaxed);
        }
        let entry = tasks.enter(owner, Answers(self.work.orders.clone()), self.work.cancel.clone());
        let mut progress = self.work.tap.listen();
        let kept = entry.clone();
        let keep = async move {
            loop {
                tokio::select! {
                    biased;
                    told = self.news.recv() => match told {
                        Some(Told::Asked(key, request)) => kept.ask(key, request),
                        Some(Told::Ended(key)) => kept.end_ask(&key),
                        Some(Told::Finished(finished)) => return kept.finish(*finished),
                        None => return kept.finish(Err(over())),
                    },
                    Some(progress) = progress.recv() => kept.progress(progress),
                }
            }
        };
        (entry, keep)
    }

    /// Waits in the manner of the older revisions: what is asked are requests to the client. `None` when its
    /// client cancelled it.
    pub(super) async fn attend_and_ask(mut self, context: &RequestContext<RoleServer>) -> Option<Finished> {
        let mut asking = FuturesUnordered::new();
        let mut open: HashMap<String, CancellationToken> = HashMap::new();
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return None,
                told = self.news.recv() => match told {
                    Some(Told::Asked(key, request)) => {
                        let over = CancellationToken::new();
                        if let Some(before) = open.insert(key.clone(), over.clone()) {
                            before.cancel();
                        }
                        asking.push(ask(context.peer.clone(), key, *request, over));
                    }
                    Some(Told::Ended(key)) => {
                        if let Some(over) = open.remove(&key) {
                            over.cancel();
                        }
                    }
                    Some(Told::Finished(finished)) => {
                        open.values().for_each(CancellationToken::cancel);
                        // So that prompts of the client that were answered elsewhere close.
                        while asking.next().await.is_some() {}
                        return Some(*finished);
                    }
                    None => return Some(Err(over())),
                },
                Some(answered) = asking.next(), if !asking.is_empty() => {
                    let Some((key, answer)) = answered else { continue };
                    open.remove(&key);
                    let _ = self.work.orders.send(Order::Answer { key, answer }).await;
                }
            }
        }
    }
}

fn over() -> ErrorData {
    ErrorData::internal_error("the work for this request has ended", None)
}

/// Asks the client one thing; `None` when it is wanted no more, which the client is told.
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
        _ => return Some((key, Err("this is asked of no client".to_owned()))),
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

/// The task of a piece of work.
struct Task {
    desk: Desk,
    cancel: CancellationToken,
    patience: Duration,
    attending: Option<mpsc::Sender<Told>>,
    /// What waits for the client.
    asked: BTreeMap<String, Box<InputRequest>>,
    finished: Option<Box<Finished>>,
}

impl Task {
    async fn run(mut self, mut future: BoxFuture<'static, Finished>, mut orders: mpsc::Receiver<Order>) {
        let alone = tokio::time::sleep(self.patience);
        tokio::pin!(alone);
        // Nothing runs before somebody hears of it, or its first progress would be lost.
        let mut begun = false;
        loop {
            let attending = self.attending.clone();
            let left = async {
                match &attending {
                    Some(attending) => attending.closed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::Attend { answers, news }) => {
                        self.attending = Some(news);
                        begun = true;
                        for (key, answer) in answers {
                            self.answer(&key, Ok(answer)).await;
                        }
                        for (key, request) in self.asked.clone() {
                            self.tell(Told::Asked(key, request)).await;
                        }
                    }
                    Some(Order::Answer { key, answer }) => {
                        if let Some(again) = self.answer(&key, answer).await {
                            self.tell(Told::Asked(key, again)).await;
                        }
                    }
                    Some(Order::Leave) => {
                        self.attending = None;
                        alone.as_mut().reset(tokio::time::Instant::now() + self.patience);
                    }
                    // Nobody can come back.
                    None => break,
                },
                () = left => break,
                () = &mut alone, if self.attending.is_none() => break,
                finished = &mut future, if begun && self.finished.is_none() => self.finished = Some(Box::new(finished)),
                news = self.desk.next(), if self.finished.is_none() => match news {
                    News::Asked(key, request) => {
                        self.asked.insert(key.clone(), request.clone());
                        self.tell(Told::Asked(key, request)).await;
                    }
                    News::Ended(key) => {
                        if self.asked.remove(&key).is_some() {
                            self.tell(Told::Ended(key)).await;
                        }
                    }
                },
            }
            if self.attending.is_some()
                && let Some(finished) = self.finished.take()
            {
                self.tell(Told::Finished(finished)).await;
                return;
            }
        }
        if self.finished.is_none() {
            self.cancel.cancel();
            // Its books are closed by its end.
            let _ = future.await;
        }
    }

    /// Hands an answer on; gives the request anew where the answer does not do.
    async fn answer(&mut self, key: &str, answer: Result<Value, String>) -> Option<Box<InputRequest>> {
        let again = self.desk.answer(key, answer).await;
        match again {
            true => self.asked.get(key).cloned(),
            false => {
                self.asked.remove(key);
                None
            }
        }
    }

    async fn tell(&self, told: Told) {
        if let Some(attending) = &self.attending {
            // When it has gone, that is seen in a moment.
            let _ = attending.send(told).await;
        }
    }
}
