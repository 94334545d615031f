//! A server's messages besides its answers: progress, log lines, changes of its list, and requests.
//!
//! They are taken from the transport before the SDK sees them. The SDK gives every notification a
//! task of its own, which loses their order and has no bound.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam, ProgressToken, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use toold_engine::cx::Cx;
use toold_engine::redact;
use toold_mounts::adapter::ConnectionContext;
use toold_proto::call::Progress;

use super::turns::SessionTurns;

/// Unanswered requests of a server; further ones are ignored.
const MAX_REQUESTS: usize = 32;

/// The destination of one connection's notifications.
pub(super) struct Notifications {
    pub(super) calls: ServerCalls,
    pub(super) turns: SessionTurns,
    context: Arc<ConnectionContext>,
}

impl Notifications {
    pub(super) fn new(context: Arc<ConnectionContext>) -> Self {
        Self { calls: ServerCalls::default(), turns: SessionTurns::default(), context }
    }

    /// The call that a question to a person belongs to. A server that does not name it makes its sessions take turns.
    ///
    /// # Errors
    /// As a sentence for the server.
    pub(super) fn call_that_asks(
        &self,
        request: Option<&RequestId>,
        token: Option<&ProgressToken>,
    ) -> Result<Arc<Cx>, UnknownCall> {
        if request.is_none() && token.is_none() {
            self.turns.require();
        }
        self.calls.find(request, token)
    }
}

/// The calls that are running on a server.
#[derive(Default)]
pub(super) struct ServerCalls(Mutex<HashMap<ProgressToken, ServerCall>>);

#[derive(Clone)]
struct ServerCall {
    request: RequestId,
    cx: Arc<Cx>,
}

/// Marks an outgoing request as that of a call. It never reaches the wire.
#[derive(Clone)]
pub(super) struct OfCall(pub(super) Arc<Cx>);

impl ServerCalls {
    fn report_progress(&self, update: ProgressNotificationParam) {
        // Cloned, since the engine's sink must not run under this lock.
        let call = self.0.lock().get(&update.progress_token).cloned();
        if let Some(call) = call {
            let (progress, total) = (Some(update.progress), update.total);
            call.cx.report(Progress::Update { progress, total, message: update.message, content: None, details: None });
        }
    }

    pub(super) fn remove(&self, token: &ProgressToken) {
        self.0.lock().remove(token);
    }

    /// The call that a server's request belongs to: the one that it names, or else the only running
    /// one. Calls of one session count as one: they belong to the same person.
    ///
    /// # Errors
    /// No call is running, or it may belong to calls of several sessions. From then on the sessions take turns.
    fn find(&self, request: Option<&RequestId>, token: Option<&ProgressToken>) -> Result<Arc<Cx>, UnknownCall> {
        let calls = self.0.lock();
        if let Some(call) = token.and_then(|token| calls.get(token)) {
            return Ok(call.cx.clone());
        }
        if let Some(request) = request {
            let call = calls.values().find(|call| call.request == *request);
            return call.map(|call| call.cx.clone()).ok_or(UnknownCall::None);
        }
        let sessions: HashSet<&str> = calls.values().map(|call| call.cx.session.id.as_str()).collect();
        match (calls.values().max_by_key(|call| call.cx.started_at), sessions.len()) {
            (Some(newest), 1) => Ok(newest.cx.clone()),
            (Some(_), of_sessions) => Err(UnknownCall::Ambiguous { of_sessions }),
            (None, _) => Err(UnknownCall::None),
        }
    }
}

/// Why a server's question has no addressee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownCall {
    #[error("nobody was asked: no call is running that this question could belong to")]
    None,
    #[error(
        "nobody was asked: calls of {of_sessions} sessions are running, and the server did not say which of them asks. \
         From now on these calls wait for each other, so call again; or set scope = \"session\" for this server"
    )]
    Ambiguous { of_sessions: usize },
}

/// A transport that keeps messages from the SDK that it need not see.
pub(super) struct InterceptingTransport<T> {
    inner: T,
    notifications: Arc<Notifications>,
    requests: HashSet<RequestId>,
}

impl<T> InterceptingTransport<T> {
    pub(super) fn new(inner: T, notifications: Arc<Notifications>) -> Self {
        Self { inner, notifications, requests: HashSet::new() }
    }

    /// Returns the messages that the SDK must see.
    fn intercept(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Notification(notification) => match notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.notifications.calls.report_progress(progress.params);
                    None
                }
                ServerNotification::ToolListChangedNotification(_) => {
                    self.notifications.context.report_changed_tools();
                    None
                }
                ServerNotification::LoggingMessageNotification(logged) => {
                    #[expect(deprecated, reason = "servers of earlier revisions log with it")]
                    let text = match &logged.params.data {
                        serde_json::Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    self.notifications.context.stderr_log.line(&text);
                    None
                }
                ServerNotification::CancelledNotification(_)
                | ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                    Some(JsonRpcMessage::Notification(notification))
                }
                // Of resources, prompts and tasks, which the daemon does not use.
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

impl<T: Transport<RoleClient>> Transport<RoleClient> for InterceptingTransport<T> {
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
                // A call that is already over would not be removed again.
                if let Some((OfCall(cx), token)) = of_call.zip(token).filter(|(OfCall(cx), _)| !cx.is_cancelled()) {
                    self.notifications.calls.0.lock().insert(token, ServerCall { request: sent.id.clone(), cx });
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

    /// Cancel-safe where the inner transport is: nothing is awaited between a message and its return.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            // A server may repeat the secrets that it was given. They go to no model, person or log.
            let message = redact::cleaned(self.inner.receive().await?);
            if let Some(message) = self.intercept(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
