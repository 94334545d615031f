//! Our own JSON-RPC on a WebSocket: one text frame is one message, and the connection is as any other.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use toold_engine::call::Principal;
use toold_proto::error::INVALID_REQUEST;
use toold_remote::websocket::lines::WebSocketLines;
use toold_remote::websocket::{Bounds, PIECE, WebSocketMessages, accept_key};

use super::revocable::RevocableStream;
use super::{HttpAnswer, refusal};
use crate::peer::Peer;
use crate::rpc::byte_stream::ByteStream;
use crate::rpc::connection::failure;
use crate::rpc::connection::message_stream::{MessageStream, NextMessage, Transferred};
use crate::rpc::message_budget::Reservation;
use crate::transport::ClientServer;
use crate::transport::whole_message::WholeMessage;

/// What a client offers beside its token, and is answered with (RFC 6455, section 1.9).
const PROTOCOL: &str = "toold";
/// A token as a protocol: browsers let no page set a header here.
const TOKEN_PREFIX: &str = "bearer.";

type UpgradedStream = RevocableStream<TokioIo<Upgraded>>;

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

/// Answers with the upgrade, and serves the client from then on, in a task of the daemon's. `held` is dropped when the
/// connection has ended.
pub(super) fn upgrade(
    clients: &ClientServer,
    request: Request<Incoming>,
    peer: Peer,
    revoked: CancellationToken,
    held: impl Send + 'static,
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
            Ok(stream) => serve(&clients, RevocableStream::new(TokioIo::new(stream), revoked), peer).await,
            Err(error) => tracing::debug!(%error, "the upgrade to a WebSocket failed"),
        }
        drop(held);
    });
    answer
}

async fn serve(clients: &ClientServer, stream: UpgradedStream, peer: Peer) {
    let limits = &clients.services.limits;
    let max = limits.max_message;
    let words = format!("the message is longer than {max} bytes");
    let too_large = failure(jsonrpsee::types::Id::Null, INVALID_REQUEST, words, "too_large");
    let bounds = Bounds { max_message: max, too_large: Some(too_large.get().to_owned()) };
    let stream = FrameStream {
        socket: WebSocketMessages::server(stream, bounds).await,
        received: WholeMessage::new(limits),
        may_be_mcp: peer.principal != Principal::Page,
        out: VecDeque::new(),
        queued: 0,
        handed: 0,
        unread: Reservation::new(limits.unread.clone()),
    };
    clients.serve_messages(stream, peer, FrameStream::into_parts).await;
}

fn words(headers: &HeaderMap, name: http::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// A WebSocket, whose text frames are messages.
struct FrameStream {
    socket: WebSocketMessages<UpgradedStream>,
    received: WholeMessage,
    /// The page speaks its own protocol only.
    may_be_mcp: bool,
    out: VecDeque<String>,
    /// Bytes in `out`.
    queued: usize,
    /// Bytes that are with the socket, which did not send them all yet.
    handed: usize,
    unread: Reservation,
}

impl FrameStream {
    /// The socket in lines, and the line that was not given as a message.
    fn into_parts(self) -> Option<(LineStream, Vec<u8>)> {
        let mut ahead = self.received.into_message().map_or_else(Vec::new, Vec::from);
        if !ahead.is_empty() {
            ahead.push(b'\n');
        }
        Some((LineStream(WebSocketLines::new(self.socket)), ahead))
    }

    /// Sends one piece of what is queued, or a message that is longer.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.handed == 0 {
            ready!(self.socket.poll_ready(context))?;
            while let Some(message) =
                self.out.pop_front_if(|message| self.handed == 0 || self.handed + message.len() <= PIECE)
            {
                self.queued -= message.len();
                self.handed += message.len();
                self.socket.start_send(message)?;
            }
            if self.out.is_empty() {
                self.out = VecDeque::new();
            }
        }
        ready!(self.socket.poll_flush(context))?;
        self.handed = 0;
        self.unread.set(self.unsent());
        Poll::Ready(Ok(()))
    }
}

impl MessageStream for FrameStream {
    fn next_message(&mut self) -> NextMessage<'_> {
        self.received.next(self.may_be_mcp)
    }

    fn has_received(&self) -> bool {
        self.received.is_received()
    }

    fn put_back(&mut self) {
        self.received.put_back();
    }

    fn send(&mut self, message: &[u8]) {
        let message = String::from_utf8(message.to_vec()).expect("JSON is UTF-8");
        self.queued += message.len();
        self.out.push_back(message);
        self.unread.set(self.unsent());
    }

    fn unsent(&self) -> usize {
        self.queued + self.handed
    }

    fn poll_transfer(&mut self, context: &mut Context<'_>, receiving: bool) -> Poll<io::Result<Transferred>> {
        self.received.release();
        if self.unsent() > 0
            && let Poll::Ready(sent) = self.poll_send(context)
        {
            return Poll::Ready(sent.map(|()| Transferred::Sent));
        }
        if !receiving {
            return Poll::Pending;
        }
        let Some(message) = ready!(self.socket.poll_receive(context)) else { return Poll::Ready(Ok(Transferred::End)) };
        self.received.receive(message.into());
        Poll::Ready(Ok(Transferred::Received))
    }

    /// The protocol has no half of a connection: once it is closed, nobody reads.
    fn hung_up(&self) -> bool {
        self.socket.is_over()
    }

    fn poll_goodbye(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_close(context)
    }
}

/// A WebSocket in lines, for the Model Context Protocol.
struct LineStream(WebSocketLines<UpgradedStream>);

impl ByteStream for LineStream {
    fn hung_up(&self) -> bool {
        self.0.is_over()
    }
}

impl AsyncRead for LineStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for LineStream {
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
