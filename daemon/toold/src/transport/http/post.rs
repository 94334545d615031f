//! One message of our own JSON-RPC in the body of a POST, for clients that hold no connection.
//!
//! It is served as a connection of its own, which ends with its answer. So there is no subscription and no progress,
//! and a session lives on only if it was opened by an id.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use jsonrpsee::types::Id;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toold_proto::error::INVALID_REQUEST;

use super::{HttpAnswer, refusal};
use crate::peer::Peer;
use crate::rpc::connection::failure;
use crate::rpc::connection::message_stream::{MessageStream, NextMessage, Transferred};
use crate::transport::ClientServer;
use crate::transport::unix::SocketStream;
use crate::transport::whole_message::WholeMessage;

/// Serves one request or one batch. Dropped, it cancels what it runs: its client is gone.
pub(super) async fn answer(clients: &ClientServer, body: Bytes, peer: Peer) -> HttpAnswer {
    if let Some(refused) = wants_progress(&body) {
        return json(refused.into());
    }
    let (sender, answer) = oneshot::channel();
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    let mut message = WholeMessage::new(&clients.services.limits);
    message.receive(body);
    let stream = OneMessage { message, answer: Some(sender), gone };
    let served = clients.serve_messages(stream, peer, OneMessage::into_parts);
    clients.services.lifecycle.tracker().spawn(served);
    match answer.await {
        Ok(Some(answer)) => json(answer),
        Ok(None) => empty(),
        Err(error) => {
            tracing::debug!(%error, "a request on HTTP has no answer");
            refusal(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops")
        }
    }
}

fn is_notification(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct MethodProbe<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<MethodProbe>(message).is_ok_and(|probe| !probe.method.is_empty())
}

/// The refusal of a call that asks for what HTTP cannot carry.
fn wants_progress(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ProgressProbe<'a> {
        #[serde(borrow, default)]
        id: Option<Id<'a>>,
        #[serde(default)]
        params: ProgressParams,
    }
    #[derive(Default, Deserialize)]
    struct ProgressParams {
        #[serde(default)]
        progress: bool,
    }
    memchr::memmem::find(body, b"progress")?;
    // The connection reports a body that it cannot parse.
    let asked: ProgressProbe = serde_json::from_slice(body).ok()?;
    asked.params.progress.then(|| {
        let words = "a POST has one answer and no progress: use a WebSocket, or leave progress out".to_owned();
        failure(asked.id.unwrap_or(Id::Null), INVALID_REQUEST, words, "no_stream").get().to_owned()
    })
}

fn json(text: Vec<u8>) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// For notifications, which have no answer.
fn empty() -> HttpAnswer {
    let mut answer = refusal(StatusCode::NO_CONTENT, "");
    *answer.body_mut() = Full::new(Bytes::new()).boxed();
    answer.headers_mut().remove(CONTENT_TYPE);
    answer
}

/// The connection of one request.
struct OneMessage {
    message: WholeMessage,
    /// Takes the answer, or that there is none.
    answer: Option<oneshot::Sender<Option<Vec<u8>>>>,
    /// Fires when nobody waits for the answer.
    gone: CancellationToken,
}

impl OneMessage {
    /// It has one answer, so it cannot carry another protocol.
    fn into_parts(self) -> Option<(SocketStream, Vec<u8>)> {
        None
    }
}

impl MessageStream for OneMessage {
    fn next_message(&mut self) -> NextMessage<'_> {
        self.message.next(false)
    }

    fn has_received(&self) -> bool {
        self.message.is_received()
    }

    fn put_back(&mut self) {
        self.message.put_back();
    }

    /// Sends the answer. Progress that a member of a batch asked for comes before it, and has no way to go.
    fn send(&mut self, message: &[u8]) {
        if !is_notification(message)
            && let Some(answer) = self.answer.take()
        {
            // Nobody waits for it when the client is gone.
            let _ = answer.send(Some(message.to_vec()));
        }
    }

    fn unsent(&self) -> usize {
        0
    }

    fn poll_transfer(&mut self, _context: &mut Context<'_>, receiving: bool) -> Poll<io::Result<Transferred>> {
        self.message.release();
        match receiving {
            true => Poll::Ready(Ok(Transferred::End)),
            false => Poll::Pending,
        }
    }

    fn hung_up(&self) -> bool {
        self.gone.is_cancelled()
    }

    fn is_kept(&self) -> bool {
        false
    }

    /// All that there was is answered.
    fn poll_goodbye(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(None);
        }
        Poll::Ready(())
    }
}
