//! Between the SDK and the wire: what must be in order or bounded is dealt with here.
//!
//! The SDK hands every notification to a task of its own, which loses their order and has no bound.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam, ProgressToken, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio::sync::Notify;
use toold_engine::cx::Cx;
use toold_host::stderr_log::StderrLog;
use toold_proto::call::Progress;

use super::lock;

/// Requests of a server that nobody has answered yet; what comes beyond is not heard.
const MAX_REQUESTS: usize = 32;

/// What the transport tells those who wait for it.
pub(super) struct Ears {
    pub(super) calls: Calls,
    /// The server's list of tools is another one.
    pub(super) changed: Notify,
    pub(super) chatter: Arc<StderrLog>,
}

/// The calls that a server works on.
#[derive(Default)]
pub(super) struct Calls(Mutex<HashMap<ProgressToken, InFlight>>);

#[derive(Clone)]
struct InFlight {
    request: RequestId,
    cx: Arc<Cx>,
}

/// Marks an outgoing request as that of a call. It never reaches the wire.
#[derive(Clone)]
pub(super) struct OfCall(pub(super) Arc<Cx>);

impl Calls {
    fn tell(&self, told: ProgressNotificationParam) {
        // Cloned, since a sink is the engine's business and must not run under this lock.
        let call = lock(&self.0).get(&told.progress_token).cloned();
        if let Some(call) = call {
            let (progress, total) = (Some(told.progress), told.total);
            call.cx.report(Progress::Update { progress, total, message: told.message, content: None, details: None });
        }
    }

    pub(super) fn end(&self, token: &ProgressToken) {
        lock(&self.0).remove(token);
    }

    /// The call that a request of the server belongs to: the one that it names, else the only one there is. Calls of
    /// one session count as one: they are the same person's.
    pub(super) fn asking(&self, request: Option<&RequestId>, token: Option<&ProgressToken>) -> Option<Arc<Cx>> {
        let calls = lock(&self.0);
        if let Some(call) = token.and_then(|token| calls.get(token)) {
            return Some(call.cx.clone());
        }
        if let Some(request) = request {
            return calls.values().find(|call| call.request == *request).map(|call| call.cx.clone());
        }
        let sessions: HashSet<&str> = calls.values().map(|call| call.cx.session.id.as_str()).collect();
        let newest = calls.values().max_by_key(|call| call.cx.started_at);
        newest.filter(|_| sessions.len() == 1).map(|call| call.cx.clone())
    }
}

/// A transport that is listened to.
pub(super) struct Tap<T> {
    inner: T,
    ears: Arc<Ears>,
    requests: HashSet<RequestId>,
}

impl<T> Tap<T> {
    pub(super) fn new(inner: T, ears: Arc<Ears>) -> Self {
        Self { inner, ears, requests: HashSet::new() }
    }

    /// Gives back what the SDK must see.
    fn hear(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Notification(told) => match told.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.ears.calls.tell(progress.params);
                    None
                }
                ServerNotification::ToolListChangedNotification(_) => {
                    self.ears.changed.notify_one();
                    None
                }
                ServerNotification::LoggingMessageNotification(logged) => {
                    #[expect(deprecated, reason = "servers of the older way log so")]
                    let text = match &logged.params.data {
                        serde_json::Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    self.ears.chatter.line(&text);
                    None
                }
                ServerNotification::CancelledNotification(_)
                | ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                    Some(JsonRpcMessage::Notification(told))
                }
                // Of resources, prompts and tasks, which are not used.
                _ => None,
            },
            JsonRpcMessage::Request(request) => {
                if self.requests.len() >= MAX_REQUESTS {
                    return None;
                }
                self.requests.insert(request.id.clone());
                Some(JsonRpcMessage::Request(request))
            }
            answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => Some(answer),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &mut message {
            // Before the request is on its way, so that its progress cannot come first.
            JsonRpcMessage::Request(sent) => {
                let token = sent.request.get_meta().get_progress_token();
                let of_call = sent.request.extensions().get::<OfCall>().cloned();
                // One that is over already takes nothing out again.
                if let Some((OfCall(cx), token)) = of_call.zip(token).filter(|(OfCall(cx), _)| !cx.is_cancelled()) {
                    lock(&self.ears.calls.0).insert(token, InFlight { request: sent.id.clone(), cx });
                }
            }
            JsonRpcMessage::Response(answer) => _ = self.requests.remove(&answer.id),
            JsonRpcMessage::Error(answer) => {
                if let Some(id) = &answer.id {
                    self.requests.remove(id);
                }
            }
            JsonRpcMessage::Notification(_) => {}
        }
        self.inner.send(message)
    }

    /// Cancel-safe where the transport inside is: what it gave is dealt with at once.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            if let Some(message) = self.hear(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
