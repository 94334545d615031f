//! Streamable HTTP, as a service that a listener passes its requests to.

mod batch;
pub mod records;
mod sessions;
mod streams;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_proto::error::INVALID_REQUEST;
use toold_proto::mcp_line::{UnreadableMessage, parts_of};

use crate::server::http::records::TokenSessionRecords;
use crate::server::http::sessions::ResumableSessions;
use crate::server::{ConnectionKind, McpClientServer, McpFacade, McpIdentity, misfits};

/// How requests are served.
#[derive(Clone)]
pub struct HttpOptions {
    /// Names and addresses by which clients may call this host, each with or without a port.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, such as `http://localhost:*`; none when empty.
    pub origins: Vec<String>,
    /// Bytes of one request's body.
    pub max_body: usize,
    /// A session of the older revisions ends after this idle time.
    pub session_idle: Duration,
    /// Such sessions at one time; more are refused.
    pub max_sessions: usize,
    /// Fires when all open requests and sessions must end.
    pub stop: CancellationToken,
}

/// Answers requests of both eras.
///
/// In the stateless revisions a client that disconnects before its answer cancels its request. In the older ones it may
/// come back for the answer with `Last-Event-ID`, within the limits of [`streams`].
pub struct McpHttp {
    service: Arc<StreamableHttpService<McpClientServer, ResumableSessions>>,
    sessions: Arc<ResumableSessions>,
    /// The tasks of the daemon, which waits for them when it stops.
    tasks: TaskTracker,
    records: TokenSessionRecords,
    max_sessions: usize,
}

impl McpHttp {
    /// For requests whose token, which is of this identity, was checked already. Answers are JSON where no stream is needed.
    /// `owner` tells the sessions of tokens apart, also after a restart.
    pub fn new(mcp: &Arc<McpFacade>, identity: McpIdentity, owner: String, options: HttpOptions) -> Self {
        let HttpOptions { hosts, origins, max_body, session_idle, max_sessions, stop } = options;
        let records = mcp.http_sessions.of(owner);
        let mut config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation()
            .with_json_response(true)
            .with_max_request_body_bytes(max_body)
            .with_cancellation_token(stop);
        config.session_store = Some(Arc::new(records.clone()));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(session_idle);
        let tasks = mcp.host.engine().tasks.clone();
        let sessions = Arc::new(ResumableSessions::new(sessions, records.clone(), tasks.clone()));
        let mcp = mcp.clone();
        let server = move || Ok(mcp.server(ConnectionKind::Http, mcp.host.next_connection(), identity.clone(), None));
        let service = Arc::new(StreamableHttpService::new(server, sessions.clone(), config));
        Self { service, sessions, tasks, records, max_sessions }
    }

    pub async fn answer(&self, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        if opens_session(request.body()) && self.sessions.count().await >= self.max_sessions {
            let message = format!("{} sessions are open: close one, or try again later\n", self.max_sessions);
            let mut refused = Response::new(Full::new(Bytes::from(message)).boxed());
            *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            refused.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            return refused;
        }
        let ended = match *request.method() {
            Method::DELETE => Some(self.ended_session(&request).await),
            _ => None,
        };
        let mut request = request;
        if *request.method() == Method::POST {
            accept_all(request.headers_mut());
            if is_batch(request.body()) {
                return self.answer_batch(request).await;
            }
            if let Err(unreadable) = read(request.body()) {
                return faulty(&unreadable);
            }
        }
        let mut answer = self.service.handle(request.map(Full::new)).await;
        // The SDK answers 202, as if the session were still to end, also for one that it does not know.
        if let Some(status) = ended.filter(|_| answer.status() == StatusCode::ACCEPTED) {
            *answer.status_mut() = status;
        }
        answer
    }

    async fn answer_batch(&self, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        let parts = parts_of(request.body(), u64::MAX);
        let session = session_id(&request);
        let is_known = self.records.has(session) || self.sessions.has_session(&session.into()).await.unwrap_or(false);
        if !session.is_empty() && !is_known {
            // Its client begins another one.
            let mut unknown = Response::new(Full::new(Bytes::from_static(b"Not Found: Session not found")).boxed());
            *unknown.status_mut() = StatusCode::NOT_FOUND;
            return unknown;
        }
        let revision = self.records.revision(session);
        match (&parts[..], revision.as_deref()) {
            // It is empty, or no JSON.
            ([Err(unreadable)], _) if unreadable.id.is_null() => faulty(unreadable),
            (_, Some(batch::REVISION)) => {
                batch::answer(self.service.clone(), request.into_parts().0, parts, &self.tasks).await
            }
            (_, _) => batch::refusal(parts),
        }
    }

    /// The status of the answer to a request that ends a session.
    async fn ended_session(&self, request: &Request<Bytes>) -> StatusCode {
        let id = session_id(request);
        match self.sessions.has_session(&id.into()).await {
            Ok(true) => StatusCode::NO_CONTENT,
            // One of the previous daemon, which was not used here yet.
            Ok(false) if self.records.has(id) => StatusCode::NO_CONTENT,
            Ok(false) | Err(_) => StatusCode::NOT_FOUND,
        }
    }
}

fn is_batch(body: &[u8]) -> bool {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start().starts_with(b"[")
}

fn session_id(request: &Request<Bytes>) -> &str {
    request.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).unwrap_or_default()
}

/// A client that accepts everything, or does not say, accepts both kinds of answers.
fn accept_all(headers: &mut HeaderMap) {
    let takes_all = match headers.get(ACCEPT).map(HeaderValue::to_str) {
        None => true,
        Some(accept) => accept.is_ok_and(|accept| accept.split(',').any(|kind| kind.trim().starts_with("*/*"))),
    };
    if takes_all {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    }
}

/// Whether a body has the one message that the SDK can read.
///
/// # Errors
/// The answer to any other.
fn read(body: &[u8]) -> Result<(), UnreadableMessage> {
    let invalid = |reason| Err(UnreadableMessage::new(Value::Null, INVALID_REQUEST, reason));
    let mut parts = parts_of(body, u64::MAX);
    let message = match (parts.pop(), parts.is_empty()) {
        (Some(message), true) => message?,
        (None | Some(_), _) => return invalid("the body is empty: expected a message of JSON-RPC 2.0"),
    };
    match misfits::read(&message)? {
        Some(_) => Ok(()),
        None => invalid("the body is no message of MCP"),
    }
}

/// The answer to a body that has no message which the SDK can read.
fn faulty(unreadable: &UnreadableMessage) -> Response<BoxBody<Bytes, Infallible>> {
    let mut answer = Response::new(Full::new(Bytes::from(unreadable.answer())).boxed());
    if unreadable.id.is_null() {
        *answer.status_mut() = StatusCode::BAD_REQUEST;
    }
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn opens_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct SessionProbe<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<SessionProbe>(body).is_ok_and(|probe| probe.method == "initialize")
}
