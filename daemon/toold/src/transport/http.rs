//! HTTP. For clients with a token: MCP on Streamable HTTP at `/mcp`, our own JSON-RPC at `/rpc`. For browsers: the
//! [`page`].
//!
//! [`listener`] accepts them, [`connections`] bounds how many there are, [`names`] is who may call by which name, [`tokens`] what they show;
//! [`websocket`] and [`post`] are the two ways of `/rpc`.

mod connections;
mod listener;
mod names;
mod page;
mod post;
mod revocable;
mod token_clients;
mod tokens;
mod websocket;

pub use listener::HttpSocket;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toold_mcp::server::http::HttpOptions;

use crate::rpc::metrics;
use crate::rpc::parsed_memory::Refusal;
use crate::transport::ClientServer;
use crate::transport::http::connections::{ConnectionPlace, CountedStream};
use crate::transport::http::listener::TokenListener;
use crate::transport::http::names::AllowedNames;
use crate::transport::http::page::PageGate;
use crate::transport::http::token_clients::{AllTokenClients, TokenClients};
use crate::transport::http::tokens::{ShownToken, Tokens};

/// Such sessions that are idle for so long end.
const SESSION_IDLE: Duration = Duration::from_secs(1_800);
/// The headers of a request that has begun must arrive within this.
const HEADER_WAIT: Duration = Duration::from_secs(2);
const MCP: &str = "/mcp";
const RPC: &str = "/rpc";
const METRICS: &str = "/metrics";

/// What all requests have to pass.
struct HttpGate {
    tokens: Option<TokenGate>,
    page: Option<PageGate>,
    clients: ClientServer,
    max_body: usize,
    request_wait: Duration,
    stop: CancellationToken,
}

/// Checks requests with a token.
struct TokenGate {
    clients: AllTokenClients,
    tokens: Arc<Tokens>,
    names: AllowedNames,
}

impl TokenGate {
    fn new(listener: TokenListener, clients: &ClientServer, max_body: usize) -> Self {
        let TokenListener { tokens, hosts, origins, max_sessions } = listener;
        let names = AllowedNames { hosts: hosts.clone(), origins: origins.clone() };
        let stop = clients.services.lifecycle.cancelled();
        let options = HttpOptions { hosts, origins, max_body, session_idle: SESSION_IDLE, max_sessions, stop };
        Self { clients: AllTokenClients::new(options), tokens: Arc::new(tokens), names }
    }
}

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// A connection's two ends, and its place.
#[derive(Clone)]
struct HttpConnection {
    local: SocketAddr,
    peer: SocketAddr,
    place: Arc<ConnectionPlace>,
}

impl HttpGate {
    async fn serve(self: &Arc<Self>, stream: TcpStream, stop: CancellationToken, place: Arc<ConnectionPlace>) {
        // Small answers would wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "can't turn off TCP delays for an HTTP client");
        }
        let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
        let connection = HttpConnection { local, peer, place };
        match self.page.as_ref().and_then(PageGate::tls) {
            None => self.serve_stream(CountedStream::new(stream), stop, connection).await,
            Some(acceptor) => {
                let accepted = tokio::select! {
                    accepted = tokio::time::timeout(self.request_wait, acceptor.accept(stream)) => accepted,
                    () = connection.place.closing() => return,
                    () = stop.cancelled() => return,
                };
                match accepted {
                    Ok(Ok(stream)) => self.serve_stream(CountedStream::new(stream), stop, connection).await,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client of the page"),
                    Err(_) => tracing::debug!("a client of the page took too long for TLS"),
                }
            }
        }
    }

    async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self: &Arc<Self>,
        stream: CountedStream<S>,
        stop: CancellationToken,
        client: HttpConnection,
    ) {
        let (gate, held) = (self.clone(), client.clone());
        let service = service_fn(move |request| {
            let (gate, client) = (gate.clone(), held.clone());
            async move { Ok::<_, Infallible>(gate.answer(request, client).await) }
        });
        let connection = http1::Builder::new()
            .timer(stream.header_timer(HEADER_WAIT))
            .header_read_timeout(self.request_wait)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = client.place.closing() => return,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>, client: HttpConnection) -> HttpAnswer {
        let mut answer = self.route(request, client).await;
        // A browser that is led here by another site shows no answer as another type than the one it has.
        answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer
    }

    async fn route(&self, request: Request<Incoming>, client: HttpConnection) -> HttpAnswer {
        match (&self.page, &self.tokens) {
            (Some(page), _) if page::is_below(request.uri().path()) => page.answer(self, request, client).await,
            (_, Some(tokens)) => self.answer_with_token(tokens, request, client.place).await,
            (_, None) if request.uri().path() == "/" => page::redirect(),
            (_, None) => refusal(StatusCode::NOT_FOUND, "not found: the page is at /page/"),
        }
    }

    async fn answer_with_token(
        &self,
        gate: &TokenGate,
        request: Request<Incoming>,
        place: Arc<ConnectionPlace>,
    ) -> HttpAnswer {
        let offered = websocket::is_upgrade(&request).then(|| websocket::offered_token(&request)).flatten();
        let Some(shown) = bearer(&request).or(offered).and_then(|token| gate.tokens.find(token)) else {
            let mut answer = refusal(StatusCode::UNAUTHORIZED, "send a token: Authorization: Bearer TOKEN");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toold\""));
            // The body was not read, and is not waited for.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return answer;
        };
        place.has_shown_a_token();
        // Without its profile, a token would reach all tools.
        if let Some(name) = &shown.profile
            && let Err(error) = self.clients.services.config.profile(name)
        {
            return refusal(StatusCode::FORBIDDEN, &format!("this token is one of the profile {name}, but {error}"));
        }
        let of_token = gate.clients.of(&shown, &gate.tokens, &self.clients);
        match request.uri().path() {
            MCP => self.mcp(request, &of_token).await,
            RPC => self.rpc(&gate.names, request, &shown, &of_token, place).await,
            METRICS if shown.profile.is_some() => {
                refusal(StatusCode::FORBIDDEN, "the token of a profile is for /mcp and /rpc only")
            }
            METRICS if self.clients.services.config.loaded().config.metrics.prometheus => {
                self.metrics(&gate.names, &request).await
            }
            _ => refusal(StatusCode::NOT_FOUND, "not found: MCP is at /mcp, JSON-RPC at /rpc"),
        }
    }

    async fn metrics(&self, names: &AllowedNames, request: &Request<Incoming>) -> HttpAnswer {
        if let Err(words) = names.check(request.headers()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        if request.method() != Method::GET {
            return not_allowed("GET");
        }
        match metrics::text(&self.clients.services).await {
            Ok(text) => {
                let mut answer = Response::new(Full::new(Bytes::from(text)).boxed());
                let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:#}")),
        }
    }

    async fn mcp(&self, request: Request<Incoming>, of_token: &TokenClients) -> HttpAnswer {
        if ![Method::GET, Method::POST, Method::DELETE].contains(request.method()) {
            return not_allowed("GET, POST, DELETE");
        }
        let is_stream = request.method() == Method::GET;
        let (mut parts, body) = request.into_parts();
        if is_same_origin(&parts.headers) {
            parts.headers.remove(ORIGIN);
        }
        let body = match self.body(&parts.headers, body, self.max_body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let _held = match self.clients.services.limits.parsed.hold(&body) {
            Ok(held) => held,
            Err(Refusal::TooLarge(words)) => return refusal(StatusCode::PAYLOAD_TOO_LARGE, &words),
            Err(Refusal::Overloaded(words)) => return refusal(StatusCode::SERVICE_UNAVAILABLE, &words),
        };
        let answer = of_token.mcp.answer(Request::from_parts(parts, body)).await;
        match is_stream {
            // What only tells news does not keep the daemon from stopping.
            true => answer.map(|body| Until { body, over: Box::pin(self.stop.clone().cancelled_owned()) }.boxed()),
            false => answer,
        }
    }

    async fn rpc(
        &self,
        names: &AllowedNames,
        request: Request<Incoming>,
        shown: &ShownToken,
        of_token: &TokenClients,
        place: Arc<ConnectionPlace>,
    ) -> HttpAnswer {
        if let Err(words) = names.check(request.headers()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        if websocket::is_upgrade(&request) {
            return websocket::upgrade(&self.clients, request, shown.peer(), of_token.revoked.clone(), place);
        }
        if request.method() != Method::POST {
            return not_allowed("POST, or GET with an upgrade to a WebSocket");
        }
        let (parts, body) = request.into_parts();
        match self.body(&parts.headers, body, self.max_body).await {
            Ok(body) => post::answer(&self.clients, body, shown.peer()).await,
            Err(refused) => refused,
        }
    }

    /// The whole body, of `max` bytes at most.
    async fn body(&self, headers: &HeaderMap, body: Incoming, max: usize) -> Result<Bytes, HttpAnswer> {
        let too_large = || refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is longer than {max} bytes"));
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > max) {
            return Err(too_large());
        }
        match tokio::time::timeout(self.request_wait, Limited::new(body, max).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(refusal(StatusCode::BAD_REQUEST, "the body cannot be read")),
            Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        }
    }
}

/// The token of a request (RFC 6750, section 2.1).
fn bearer<B>(request: &Request<B>) -> Option<&str> {
    let (scheme, token) = request.headers().get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn not_allowed(methods: &'static str) -> HttpAnswer {
    let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, &format!("expected {methods}"));
    let allowed = methods.split(", or ").next().unwrap_or(methods);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Whether a request comes from a page of this very server (RFC 6454, section 5), whose `Host` is checked still.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    match (text(ORIGIN).and_then(|origin| origin.strip_prefix("http://")), text(HOST)) {
        (Some(origin), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

fn refusal(status: StatusCode, words: &str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{words}\n"))).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// A body that ends when the daemon stops.
struct Until<B> {
    body: B,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for Until<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
