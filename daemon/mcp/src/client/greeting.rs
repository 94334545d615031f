//! The greeting on one connection: first the probe of revision 2026-07-28, then `initialize` if the probe stays without an
//! answer. A server that starts slowly answers both late, and each answer is recognised by its id.

use std::borrow::Cow;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeResult,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout_at};

use crate::boxed_transport::{BoxedTransport, BoxedTransportError};

/// How long a server may take to answer the probe, at most half of its time to start. Shorter than the SDK's own limit,
/// after which a late answer would end the greeting.
pub(super) const MAX_PROBE: Duration = Duration::from_secs(9);

/// A transport that separates the answers to the two greetings.
pub(super) struct GreetingTransport {
    inner: BoxedTransport<RoleClient>,
    probe_limit: Duration,
    /// The probe that waits for its answer, and until when.
    probe: Option<(RequestId, Instant)>,
    /// The probe whose answer is not waited for any more.
    given_up: Option<RequestId>,
    /// Its answer, which came late: the server speaks the newer revision.
    late: Option<DiscoverResult>,
    initialize: Option<RequestId>,
}

impl GreetingTransport {
    pub(super) fn new(inner: BoxedTransport<RoleClient>, start_timeout: Duration) -> Self {
        let probe_limit = MAX_PROBE.min(start_timeout / 2);
        Self { inner, probe_limit, probe: None, given_up: None, late: None, initialize: None }
    }

    /// The message for the SDK; `None` for a late answer.
    fn sort(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let id = match &message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(id) = id else { return Some(message) };
        if self.probe.as_ref().is_some_and(|(probe, _)| is_same(probe, id)) {
            self.probe = None;
            // Some servers answer every method with an empty object: they do not know this one.
            if let JsonRpcMessage::Response(answer) = &message
                && !matches!(answer.result, ServerResult::DiscoverResult(_))
            {
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "server/discover is not known", None);
                return Some(ServerJsonRpcMessage::error(error, Some(id.clone())));
            }
        } else if self.given_up.as_ref().is_some_and(|probe| is_same(probe, id)) {
            self.given_up = None;
            if let JsonRpcMessage::Response(answer) = message
                && let ServerResult::DiscoverResult(late) = answer.result
            {
                self.late = Some(late);
            }
            return None;
        } else if let Some(initialize) = self.initialize.take_if(|initialize| is_same(initialize, id)) {
            return Some(self.initialized(message, initialize));
        }
        Some(message)
    }

    /// The answer to `initialize`. A server that refuses it and has answered the probe since speaks the newer revision.
    fn initialized(&mut self, message: ServerJsonRpcMessage, id: RequestId) -> ServerJsonRpcMessage {
        match (message, self.late.take()) {
            (JsonRpcMessage::Error(_), Some(late))
                if late.supported_versions.contains(&ProtocolVersion::V_2026_07_28) =>
            {
                let mut result = InitializeResult::new(late.capabilities);
                result.protocol_version = ProtocolVersion::V_2026_07_28;
                result.server_info = Implementation::new("unknown", "0");
                result.instructions = late.instructions;
                ServerJsonRpcMessage::response(ServerResult::InitializeResult(result), id)
            }
            (message, _) => message,
        }
    }

    /// An answer in place of the one that did not come in time: the SDK goes on with `initialize`.
    fn give_up(&mut self) -> Option<ServerJsonRpcMessage> {
        let (id, _) = self.probe.take()?;
        self.given_up = Some(id.clone());
        let error = ErrorData::internal_error("no answer to server/discover in time", None);
        Some(ServerJsonRpcMessage::error(error, Some(id)))
    }
}

/// Some servers answer a number with a text of it.
fn is_same(sent: &RequestId, answered: &RequestId) -> bool {
    sent == answered || sent.to_string() == answered.to_string()
}

impl Transport<RoleClient> for GreetingTransport {
    type Error = BoxedTransportError;

    fn name() -> Cow<'static, str> {
        BoxedTransport::<RoleClient>::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(sent) = &message {
            match &sent.request {
                ClientRequest::DiscoverRequest(_) => {
                    self.probe = Some((sent.id.clone(), Instant::now() + self.probe_limit));
                }
                ClientRequest::InitializeRequest(_) => self.initialize = Some(sent.id.clone()),
                _ => {}
            }
        }
        self.inner.send(message)
    }

    /// Cancel-safe where the inner transport is.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let received = match &self.probe {
                Some((_, until)) => match timeout_at(*until, self.inner.receive()).await {
                    Ok(received) => received,
                    Err(_) => return self.give_up(),
                },
                None => self.inner.receive().await,
            };
            if let Some(message) = self.sort(received?) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
