//! HTTP, for whoever has a token: MCP on Streamable HTTP at `/mcp`, our own JSON-RPC at `/rpc`.
//!
//! [`connections`] bounds how many there are, [`names`] is who may call by which name, [`tokens`] what they show;
//! [`websocket`] and [`post`] are the two ways of `/rpc`.

mod connections;
mod names;
mod post;
mod revocable;
mod token_clients;
mod tokens;
mod websocket;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toold_mcp::server::http::HttpOptions;

use crate::config::mcp_servers::McpConfig;
use crate::config::paths::DaemonPaths;
use crate::rpc::metrics;
use crate::rpc::parsed_memory::Refusal;
use crate::transport::ClientServer;
use crate::transport::http::connections::{ConnectionPlace, Connections, CountedStream};
use crate::transport::http::names::AllowedNames;
use crate::transport::http::token_clients::{AllTokenClients, TokenClients};
use crate::transport::http::tokens::{ShownToken, Tokens};

/// Connections at one time.
const MAX_CONNECTIONS: usize = 256;
/// Sessions of the older revisions at one time, when the configuration does not say.
const MAX_SESSIONS: usize = 128;
/// Such sessions that are idle for so long end.
const SESSION_IDLE: Duration = Duration::from_secs(1_800);
/// A client has so long to send a request's body, and as long to begin its next request, when the configuration does
/// not say.
const REQUEST_WAIT: Duration = Duration::from_secs(20);
/// The headers of a request that has begun must arrive within this.
const HEADER_WAIT: Duration = Duration::from_secs(2);
const MCP: &str = "/mcp";
const RPC: &str = "/rpc";
const METRICS: &str = "/metrics";

/// Where HTTP clients connect.
pub struct HttpSocket {
    listener: std::net::TcpListener,
    address: SocketAddr,
    tokens: Tokens,
    hosts: Vec<String>,
    origins: Vec<String>,
    max_sessions: usize,
    request_wait: Duration,
}

impl HttpSocket {
    /// Binds the address that the configuration names; `None` when it names none.
    ///
    /// # Errors
    /// It is no address, is taken, or other machines reach it and `allow_remote` is not set; a token's file
    /// cannot be read or is open to others.
    pub fn bind(config: &McpConfig, places: &DaemonPaths) -> anyhow::Result<Option<Self>> {
        let Some(listen) = &config.listen else { return Ok(None) };
        let address = address(listen).with_context(|| format!("mcp.listen: {listen:?} is not an address and port"))?;
        if !address.ip().is_loopback() && !config.allow_remote {
            bail!("mcp.listen: other machines can reach {address}; set mcp.allow_remote = true to allow that");
        }
        let tokens = Tokens::read(places)?;
        let listener = std::net::TcpListener::bind(address).with_context(|| format!("can't listen on {address}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        hosts.extend(config.hosts.iter().cloned());
        if config.allow_remote && !address.ip().is_unspecified() {
            hosts.push(address.ip().to_string());
        }
        Ok(Some(Self {
            listener,
            address,
            tokens,
            hosts,
            origins: config.origins.clone(),
            max_sessions: config.max_sessions.unwrap_or(MAX_SESSIONS),
            request_wait: config.body_timeout_ms.map_or(REQUEST_WAIT, Duration::from_millis),
        }))
    }

    /// Where MCP clients connect.
    pub fn mcp_url(&self) -> String {
        format!("http://{}{MCP}", self.address)
    }

    /// Where native clients connect.
    pub fn rpc_url(&self) -> String {
        format!("ws://{}{RPC}", self.address)
    }

    /// Accepts clients until the daemon stops.
    pub async fn accept(self, clients: ClientServer) {
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "can't accept HTTP clients"),
        };
        let stop = clients.services.lifecycle.stopping();
        let max_body = clients.services.limits.max_message;
        let names = AllowedNames { hosts: self.hosts.clone(), origins: self.origins.clone() };
        let options = HttpOptions {
            hosts: self.hosts,
            origins: self.origins,
            max_body,
            session_idle: SESSION_IDLE,
            max_sessions: self.max_sessions,
            stop: clients.services.lifecycle.cancelled(),
        };
        let gate = Arc::new(HttpGate {
            token_clients: AllTokenClients::new(options),
            clients,
            tokens: Arc::new(self.tokens),
            names,
            max_body,
            request_wait: self.request_wait,
            stop: stop.clone(),
        });
        let mut connections = Connections::new(MAX_CONNECTIONS);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let place = tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        place = connections.place() => place,
                    };
                    let (gate, stop) = (gate.clone(), stop.clone());
                    gate.clients
                        .services
                        .lifecycle
                        .tracker()
                        .clone()
                        .spawn(async move { gate.serve(stream, stop, place).await });
                }
                Err(error) => {
                    // Out of descriptors or memory: the next try may fare better, and must not spin.
                    tracing::warn!(%error, "can't accept an HTTP client");
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(Duration::from_millis(100)) => {}
                    }
                }
            }
        }
    }
}

/// An address and a port. Names are not looked up: `localhost` is the loopback address.
fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?)),
        None => text.parse().ok(),
    }
}

/// What all requests have to pass.
struct HttpGate {
    token_clients: AllTokenClients,
    clients: ClientServer,
    tokens: Arc<Tokens>,
    names: AllowedNames,
    max_body: usize,
    request_wait: Duration,
    stop: CancellationToken,
}

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

impl HttpGate {
    async fn serve(self: &Arc<Self>, stream: TcpStream, stop: CancellationToken, place: Arc<ConnectionPlace>) {
        // Small answers would wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "can't turn off TCP delays for an HTTP client");
        }
        let stream = CountedStream::new(stream);
        let (gate, held) = (self.clone(), place.clone());
        let service = service_fn(move |request| {
            let (gate, place) = (gate.clone(), held.clone());
            async move { Ok::<_, Infallible>(gate.answer(request, place).await) }
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
            () = place.closing() => return,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>, place: Arc<ConnectionPlace>) -> HttpAnswer {
        let offered = websocket::is_upgrade(&request).then(|| websocket::offered_token(&request)).flatten();
        let Some(shown) = bearer(&request).or(offered).and_then(|token| self.tokens.find(token)) else {
            let mut answer = refusal(StatusCode::UNAUTHORIZED, "send a token: Authorization: Bearer TOKEN");
            answer.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer realm=\"toold\""));
            // The body was not read, and is not waited for.
            answer.headers_mut().insert(CONNECTION, http::HeaderValue::from_static("close"));
            return answer;
        };
        place.has_shown_a_token();
        // Without its profile, a token would reach all tools.
        if let Some(name) = &shown.profile
            && let Err(error) = self.clients.services.config.profile(name)
        {
            return refusal(StatusCode::FORBIDDEN, &format!("this token is one of the profile {name}, but {error}"));
        }
        let of_token = self.token_clients.of(&shown, &self.tokens, &self.clients);
        match request.uri().path() {
            MCP => self.mcp(request, &of_token).await,
            RPC => self.rpc(request, &shown, &of_token, place).await,
            METRICS if shown.profile.is_some() => {
                refusal(StatusCode::FORBIDDEN, "the token of a profile is for /mcp and /rpc only")
            }
            METRICS if self.clients.services.config.loaded().config.metrics.prometheus => self.metrics(&request).await,
            _ => refusal(StatusCode::NOT_FOUND, "not found: MCP is at /mcp, JSON-RPC at /rpc"),
        }
    }

    async fn metrics(&self, request: &Request<Incoming>) -> HttpAnswer {
        if let Err(words) = self.names.check(request.headers()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        if request.method() != Method::GET {
            return not_allowed("GET");
        }
        match metrics::text(&self.clients.services).await {
            Ok(text) => {
                let mut answer = Response::new(Full::new(Bytes::from(text)).boxed());
                let kind = http::HeaderValue::from_static(metrics::CONTENT_TYPE);
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
        let body = match self.body(&parts.headers, body).await {
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
        request: Request<Incoming>,
        shown: &ShownToken,
        of_token: &TokenClients,
        place: Arc<ConnectionPlace>,
    ) -> HttpAnswer {
        if let Err(words) = self.names.check(request.headers()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        if websocket::is_upgrade(&request) {
            return websocket::upgrade(&self.clients, request, shown.peer(), of_token.revoked.clone(), place);
        }
        if request.method() != Method::POST {
            return not_allowed("POST, or GET with an upgrade to a WebSocket");
        }
        let (parts, body) = request.into_parts();
        match self.body(&parts.headers, body).await {
            Ok(body) => post::answer(&self.clients, body, shown.peer()).await,
            Err(refused) => refused,
        }
    }

    /// The whole body, within bounds.
    async fn body(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, HttpAnswer> {
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > self.max_body) {
            return Err(self.too_large());
        }
        match tokio::time::timeout(self.request_wait, Limited::new(body, self.max_body).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(self.too_large()),
            Ok(Err(_)) => Err(refusal(StatusCode::BAD_REQUEST, "the body cannot be read")),
            Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        }
    }

    fn too_large(&self) -> HttpAnswer {
        refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is longer than {} bytes", self.max_body))
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
    answer.headers_mut().insert(ALLOW, http::HeaderValue::from_static(allowed));
    answer
}

/// Whether a request comes from a page of this very server (RFC 6454, section 5), whose `Host` is checked still.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match (text(ORIGIN).and_then(|origin| origin.strip_prefix("http://")), text(HOST)) {
        (Some(origin), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

fn refusal(status: StatusCode, words: &str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{words}\n"))).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str) -> McpConfig {
        McpConfig { listen: Some(listen.to_owned()), ..McpConfig::default() }
    }

    #[test]
    fn only_loopback_is_bound_unless_told_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let places = DaemonPaths { config: dir.path().into(), state: dir.path().into(), home: None };
        let refused = |listen| format!("{:#}", HttpSocket::bind(&config(listen), &places).err().unwrap());
        assert!(refused("0.0.0.0:0").contains("allow_remote"));
        assert!(refused("example.com:1").contains("not an address"));
        let bound = HttpSocket::bind(&config("localhost:0"), &places).unwrap().unwrap();
        assert!(bound.address.ip().is_loopback() && bound.address.port() != 0);
        let remote = McpConfig { allow_remote: true, ..config("0.0.0.0:0") };
        assert!(HttpSocket::bind(&remote, &places).unwrap().is_some());
        assert!(HttpSocket::bind(&McpConfig::default(), &places).unwrap().is_none());
    }
}
