//! A server's messages on their way to the SDK: those that it need not see are taken here. The SDK gives every
//! notification a task of its own, which loses their order and has no bound.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientJsonRpcMessage, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio::task::JoinSet;
use toold_engine::redact;

use super::greeting::GreetingTransport;
use super::logging;
use super::notifications::{Notifications, OfCall};
use crate::boxed_transport::BoxedTransportError;

/// Unanswered requests of a server; further ones are refused.
const MAX_REQUESTS: usize = 32;
/// Refusals that a server has not read; the requests beyond get no answer.
const MAX_REFUSALS: usize = 1_000;

/// A transport that keeps messages from the SDK that it need not see.
pub(super) struct InterceptingTransport {
    inner: GreetingTransport,
    notifications: Arc<Notifications>,
    requests: HashSet<RequestId>,
    /// Answers to requests beyond the limit that are being sent. Not awaited while receiving: a server may send many
    /// requests before it reads.
    refusals: JoinSet<()>,
}

impl InterceptingTransport {
    pub(super) fn new(inner: GreetingTransport, notifications: Arc<Notifications>) -> Self {
        Self { inner, notifications, requests: HashSet::new(), refusals: JoinSet::new() }
    }

    /// Returns the messages that the SDK must see.
    fn intercept(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        self.notifications.life.note_received();
        match message {
            JsonRpcMessage::Notification(notification) => match notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.notifications.calls.report_progress(progress.params);
                    None
                }
                ServerNotification::ToolListChangedNotification(_)
                | ServerNotification::ResourceListChangedNotification(_)
                | ServerNotification::PromptListChangedNotification(_) => {
                    self.notifications.context.report_changed_lists();
                    None
                }
                ServerNotification::ResourceUpdatedNotification(updated) => {
                    self.notifications.context.watches.report(&updated.params.uri);
                    None
                }
                ServerNotification::LoggingMessageNotification(logged) => {
                    logging::take(&self.notifications, logged.params);
                    None
                }
                ServerNotification::CustomNotification(custom) if custom.method == "notifications/message" => {
                    if let Some(message) = logging::read_leniently(custom.params) {
                        logging::take(&self.notifications, message);
                    }
                    None
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    // The SDK does not answer what was cancelled.
                    if let CancelledNotificationParam { request_id: Some(id), .. } = &cancelled.params {
                        self.requests.remove(id);
                    }
                    Some(ServerJsonRpcMessage::notification(cancelled.into()))
                }
                ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                    Some(JsonRpcMessage::Notification(notification))
                }
                // About tasks, which the daemon does not use.
                _ => None,
            },
            JsonRpcMessage::Request(request) => {
                if self.requests.len() < MAX_REQUESTS && self.requests.insert(request.id.clone()) {
                    return Some(JsonRpcMessage::Request(request));
                }
                self.refuse(request.id);
                None
            }
            answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => Some(answer),
        }
    }

    fn refuse(&mut self, id: RequestId) {
        while self.refusals.try_join_next().is_some() {}
        if self.refusals.len() < MAX_REFUSALS {
            let why = match self.requests.contains(&id) {
                true => "a request with this id has not been answered yet".to_owned(),
                false => format!("{MAX_REQUESTS} requests have not been answered yet: wait for an answer"),
            };
            let refusal = self.inner.send(ClientJsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(id)));
            // Fails when the connection is closed.
            self.refusals.spawn(async move { _ = refusal.await });
        }
    }
}

impl Transport<RoleClient> for InterceptingTransport {
    type Error = BoxedTransportError;

    fn name() -> Cow<'static, str> {
        GreetingTransport::name()
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
                    self.notifications.calls.insert(token, sent.id.clone(), cx);
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
