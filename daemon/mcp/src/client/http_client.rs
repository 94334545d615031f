//! The HTTP client of a connection. The answer to a POST belongs to the request that was posted, whatever id it has, and an
//! answer that cannot be read ends its request with the reason. It also knows whether the stream is open on which a server
//! of a revision with sessions sends its own requests: a server drops those that it makes before.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::connect::RedirectRefused;
use super::{discarded, exact_integers};

/// How long the first call waits for the stream. Some servers send nothing, not even headers, before their first message.
const MAX_OPENING: Duration = Duration::from_secs(8);

type ServerHttpError = StreamableHttpError<reqwest::Error>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

#[derive(Clone)]
pub(super) struct ServerHttpClient<C> {
    inner: C,
    shared: Arc<ServerHttpState>,
}

/// What is known about the server at the other end.
pub(super) struct ServerHttpState {
    stream: watch::Sender<ServerStream>,
    /// The requests that were refused for their session: each is made again once, in a new session.
    refused: Mutex<HashSet<RequestId>>,
}

/// The stream for messages that belong to no request.
enum ServerStream {
    /// There is no session, or it has said that it has no such stream.
    Settled,
    /// Calls wait for it, until then once the first has begun to.
    Opening { until: Option<Instant> },
}

impl ServerHttpState {
    /// Whether requests of the server may be lost, since its stream is not open yet.
    pub(super) fn is_opening(&self) -> bool {
        match *self.stream.borrow() {
            ServerStream::Settled => false,
            ServerStream::Opening { until } => until.is_none_or(|until| until > Instant::now()),
        }
    }

    /// Waits until the server can make requests, for [`MAX_OPENING`] at most. Cancel-safe.
    pub(super) async fn opened(&self) {
        let mut limit = None;
        self.stream.send_if_modified(|stream| {
            if let ServerStream::Opening { until } = stream {
                limit = Some(*until.get_or_insert_with(|| Instant::now() + MAX_OPENING));
            }
            false
        });
        let Some(until) = limit else { return };
        let mut stream = self.stream.subscribe();
        let _ = timeout_at(until, stream.wait_for(|stream| matches!(stream, ServerStream::Settled))).await;
    }
}

impl<C> ServerHttpClient<C> {
    pub(super) fn new(inner: C) -> Self {
        let stream = watch::Sender::new(ServerStream::Settled);
        Self { inner, shared: Arc::new(ServerHttpState { stream, refused: Mutex::default() }) }
    }

    pub(super) fn state(&self) -> Arc<ServerHttpState> {
        self.shared.clone()
    }

    /// Makes an answer that of the request with this id.
    fn own(
        &self,
        answer: Result<StreamableHttpPostResponse, ServerHttpError>,
        id: RequestId,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, ServerHttpError> {
        use StreamableHttpPostResponse::{Accepted, Json, Sse};
        match answer {
            Ok(Json(JsonRpcMessage::Error(mut error), session)) => {
                let is_of_session =
                    has_session && error.id.as_ref() != Some(&id) && is_about_session(&error.error.message);
                if is_of_session && self.shared.refused.lock().insert(id.clone()) {
                    return Err(ServerHttpError::SessionExpired);
                }
                self.shared.refused.lock().remove(&id);
                error.id = Some(id);
                Ok(Json(JsonRpcMessage::Error(error), session))
            }
            Ok(Json(JsonRpcMessage::Response(mut response), session)) => {
                self.shared.refused.lock().remove(&id);
                response.id = id;
                Ok(Json(JsonRpcMessage::Response(response), session))
            }
            Ok(Json(JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_), _)) => {
                Err(ServerHttpError::UnexpectedServerResponse("it answered with a message that is no answer".into()))
            }
            // In a session, the answer may come on the server's own stream.
            Ok(Accepted) if !has_session => {
                Err(ServerHttpError::UnexpectedServerResponse("it accepted the request, and did not answer it".into()))
            }
            Ok(Sse(events, session)) => Ok(Sse(answer_events(events, id), session)),
            Err(ServerHttpError::UnexpectedServerResponse(text)) if has_session && is_about_session(&text) => {
                let mut refused = self.shared.refused.lock();
                if refused.insert(id.clone()) {
                    return Err(ServerHttpError::SessionExpired);
                }
                refused.remove(&id);
                Err(ServerHttpError::UnexpectedServerResponse(text))
            }
            Err(ServerHttpError::UnexpectedServerResponse(text)) => {
                Err(ServerHttpError::UnexpectedServerResponse(in_words(&text).into()))
            }
            other => other,
        }
    }
}

/// The SDK's reason why it did not take an answer, without the names of its types.
fn in_words(text: &str) -> String {
    match text.strip_prefix("could not parse JSON response as ServerJsonRpcMessage: ") {
        Some(rest) => {
            let rest = rest.strip_prefix("unrecognized JSON-RPC message: ").unwrap_or(rest);
            format!("its answer is no message of JSON-RPC: {rest}")
        }
        None => text.to_owned(),
    }
}

/// The SDK's error names no cause.
fn name_redirect(error: ServerHttpError) -> ServerHttpError {
    let ServerHttpError::Client(client) = &error else { return error };
    let mut source = std::error::Error::source(client);
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<RedirectRefused>() {
            return ServerHttpError::UnexpectedServerResponse(refused.to_string().into());
        }
        source = cause.source();
    }
    error
}

/// Whether a refusal without the id of its request is for a session that the server does not know. No code says so: servers
/// on the SDKs answer 400 with `Bad Request: No valid session ID provided` and the like.
fn is_about_session(words: &str) -> bool {
    words.to_ascii_lowercase().contains("session")
}

/// The events of an answer. They end with an answer, unless the stream can be resumed.
fn answer_events(events: EventStream, id: RequestId) -> EventStream {
    let answer = EventsOfAnswer { events, id, is_answered: false, can_resume: false, discarded: None };
    stream::unfold(Some(answer), |answer| async move {
        let mut answer = answer?;
        match answer.events.next().await {
            Some(Ok(mut event)) => {
                answer.take(&mut event);
                Some((Ok(event), Some(answer)))
            }
            Some(Err(_)) | None if answer.is_answered => None,
            Some(Err(error)) if answer.can_resume => Some((Err(error), Some(answer))),
            None if answer.can_resume => None,
            Some(Err(error)) => Some((Ok(answer.failed(&format!("its answer broke off: {error}"))), None)),
            None => Some((Ok(answer.failed("its answer ended without a result")), None)),
        }
    })
    .boxed()
}

struct EventsOfAnswer {
    events: EventStream,
    id: RequestId,
    is_answered: bool,
    can_resume: bool,
    /// The first characters of the last event that could not be read.
    discarded: Option<String>,
}

impl EventsOfAnswer {
    fn take(&mut self, event: &mut Sse) {
        self.can_resume |= event.id.is_some();
        if event.event.as_deref().is_some_and(|kind| !kind.is_empty() && kind != "message") {
            return;
        }
        let exact = event.data.as_deref().and_then(|data| exact_integers::as_texts(data.as_bytes()));
        if let Some(exact) = exact.and_then(|exact| String::from_utf8(exact).ok()) {
            event.data = Some(exact);
        }
        let Some(data) = event.data.as_deref().filter(|data| !data.trim().is_empty()) else { return };
        match discarded::owned_by(data.as_bytes(), &self.id) {
            discarded::Owned::Answer(None) => self.is_answered = true,
            discarded::Owned::Answer(Some(changed)) => {
                self.is_answered = true;
                event.data = Some(changed);
            }
            discarded::Owned::Other => {}
            discarded::Owned::Unreadable => {
                self.discarded = Some(discarded::report(data.as_bytes()));
            }
        }
    }

    /// An event that ends the request.
    fn failed(&self, why: &str) -> Sse {
        let more = self.discarded.as_ref().map(|text| format!("; it sent this, which is no message: {text}"));
        let error = ErrorData::internal_error(format!("{why}{}", more.unwrap_or_default()), None);
        let message = ServerJsonRpcMessage::error(error, Some(self.id.clone()));
        Sse { data: serde_json::to_string(&message).ok(), event: None, id: None, retry: None }
    }
}

impl<C: StreamableHttpClient<Error = reqwest::Error> + Sync> StreamableHttpClient for ServerHttpClient<C> {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, ServerHttpError> {
        self.inner.post_message(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, ServerHttpError> {
        use StreamableHttpPostResponse::{Json, Sse};
        let (mut request, mut opens_session) = (None, false);
        if let JsonRpcMessage::Request(sent) = &message {
            request = Some(sent.id.clone());
            opens_session = matches!(sent.request, ClientRequest::InitializeRequest(_));
        }
        let has_session = session_id.is_some();
        let posting = self.inner.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        let answer = posting.await.map_err(name_redirect);
        if opens_session && let Ok(Json(_, Some(_)) | Sse(_, Some(_))) = &answer {
            self.shared.stream.send_replace(ServerStream::Opening { until: None });
        }
        match request {
            Some(id) => self.own(answer, id, has_session),
            None => answer,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), ServerHttpError> {
        self.inner.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, ServerHttpError> {
        self.inner.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<EventStream, ServerHttpError> {
        let is_own = session_id.is_some() && last_event_id.is_none();
        let opening = self.inner.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        let opened = opening.await;
        if is_own {
            self.shared.stream.send_replace(ServerStream::Settled);
        }
        opened
    }
}
