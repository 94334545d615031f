//! Our own JSON-RPC on a WebSocket: one text frame is one message, and the connection is as any other.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use toold_engine::call::Principal;
use toold_proto::error::INVALID_REQUEST;
use toold_remote::websocket::{Bounds, WebSocketLines, accept_key};

use super::connections::ConnectionPlace;
use super::{HttpAnswer, refusal};
use crate::peer::Peer;
use crate::rpc::connection::{ClientStream, failure};
use crate::rpc::framing::Framing;
use crate::transport::ClientServer;

/// What a client offers beside its token, and is answered with (RFC 6455, section 1.9).
const PROTOCOL: &str = "toold";
/// A token as a protocol: browsers let no page set a header here.
const TOKEN_PREFIX: &str = "bearer.";

/// Whether a request asks for a WebSocket.
pub(super) fn is_upgrade<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && words(request.headers(), CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"))
        && words(request.headers(), UPGRADE).any(|word| word.eq_ignore_ascii_case("websocket"))
}

/// The token among the protocols that are offered.
pub(super) fn offered_token<B>(request: &Request<B>) -> Option<&str> {
    words(request.headers(), SEC_WEBSOCKET_PROTOCOL).find_map(|word| word.strip_prefix(TOKEN_PREFIX))
}

/// Answers with the upgrade, and serves the client from then on, in a task of the daemon's.
pub(super) fn upgrade(
    clients: &ClientServer,
    request: Request<Incoming>,
    principal: Principal,
    place: Arc<ConnectionPlace>,
) -> HttpAnswer {
    let headers = request.headers();
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let mut answer = refusal(StatusCode::UPGRADE_REQUIRED, "expected version 13 of WebSocket");
        answer.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return answer;
    }
    let accepted = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| accept_key(key.as_bytes()).parse().ok());
    let Some(accepted) = accepted else {
        return refusal(StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is missing");
    };
    let mut answer = refusal(StatusCode::SWITCHING_PROTOCOLS, "");
    *answer.headers_mut() = HeaderMap::from_iter([
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (SEC_WEBSOCKET_ACCEPT, accepted),
    ]);
    if words(headers, SEC_WEBSOCKET_PROTOCOL).any(|word| word == PROTOCOL) {
        answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    let clients = clients.clone();
    let tracker = clients.services.lifecycle.tracker().clone();
    tracker.spawn(async move {
        match hyper::upgrade::on(request).await {
            Ok(stream) => serve(&clients, stream, principal).await,
            Err(error) => tracing::debug!(%error, "the upgrade to a WebSocket failed"),
        }
        drop(place);
    });
    answer
}

async fn serve(clients: &ClientServer, stream: Upgraded, principal: Principal) {
    let max = clients.services.limits.max_message;
    let words = format!("the message is longer than {max} bytes");
    let too_large = failure(jsonrpsee::types::Id::Null, INVALID_REQUEST, words, "too_large");
    let bounds = Bounds { max_message: max, too_large: Some(too_large.get().to_owned()) };
    let lines = WebSocketLines::server(TokioIo::new(stream), bounds).await;
    clients.serve_here(WebSocket(lines), Peer::of_token(principal)).await;
}

fn words(headers: &HeaderMap, name: http::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

struct WebSocket(WebSocketLines<TokioIo<Upgraded>>);

impl ClientStream for WebSocket {
    /// The protocol has no half of a connection: once it is closed, nobody reads.
    fn hung_up(&self) -> bool {
        self.0.is_over()
    }

    fn framing(&self) -> Option<Framing> {
        Some(Framing::Lines)
    }
}

impl AsyncRead for WebSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for WebSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
