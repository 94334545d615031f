//! A batch in the body of a request: the revision 2025-03-26 has them, and no other one.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::StreamableHttpService;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use toold_proto::error::{INTERNAL_ERROR, INVALID_REQUEST};
use toold_proto::mcp_line::{LinePart, UnreadableMessage};

use super::sessions::ResumableSessions;
use crate::server::{McpClientServer, misfits};

type HttpService = StreamableHttpService<McpClientServer, ResumableSessions>;
type HttpBatchAnswer = Response<BoxBody<Bytes, Infallible>>;

/// The revision that has batches.
pub(super) const REVISION: &str = "2025-03-26";
/// Requests of one batch that run at the same time.
const MAX_RUNNING: usize = 256;
/// Events that wait for a client; at this number, the requests wait.
const MAX_EVENTS: usize = 16;

/// A message of a batch.
enum BatchMember {
    Request {
        id: Value,
        body: Bytes,
    },
    /// A notification or an answer, which has none.
    Other(Bytes),
    /// It is answered with an error.
    Bad(UnreadableMessage),
}

impl BatchMember {
    /// `None` for a notification or an answer that cannot be read.
    fn of(part: LinePart) -> Option<Self> {
        let read = |message: Box<RawValue>| {
            let body = Bytes::from(message.get().to_owned());
            let member = match misfits::read(&message)? {
                Some(ClientJsonRpcMessage::Request(request)) => {
                    let id = request.id.into_json_value();
                    if let ClientRequest::InitializeRequest(_) = request.request {
                        let reason = "initialize must be sent alone, and not in a batch";
                        return Err(UnreadableMessage::new(id, INVALID_REQUEST, reason));
                    }
                    Self::Request { id, body }
                }
                Some(_) => Self::Other(body),
                None => return Ok(None),
            };
            Ok(Some(member))
        };
        part.and_then(read).unwrap_or_else(|bad| Some(Self::Bad(bad)))
    }
}

/// Serves each message of a batch as if it had been sent alone. All answers come in one stream of events, in the order in
/// which they are there.
pub(super) async fn answer(
    service: Arc<HttpService>,
    head: Parts,
    parts: Vec<LinePart>,
    tasks: &TaskTracker,
) -> HttpBatchAnswer {
    let mut head = head;
    head.headers.remove(CONTENT_LENGTH);
    let mut waiting = Vec::new();
    for member in parts.into_iter().filter_map(BatchMember::of) {
        match member {
            BatchMember::Other(body) => {
                let answer = service.handle(Request::from_parts(head.clone(), Full::new(body))).await;
                if !answer.status().is_success() {
                    return answer;
                }
            }
            BatchMember::Request { .. } | BatchMember::Bad(_) => waiting.push(member),
        }
    }
    if waiting.is_empty() {
        let mut accepted = Response::new(Full::new(Bytes::new()).boxed());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return accepted;
    }
    let (sender, receiver) = mpsc::channel(MAX_EVENTS);
    tasks.spawn(async move {
        let begun = move |member| begin(service.clone(), head.clone(), member);
        // Their calls begin in the order of the batch.
        let events = stream::iter(waiting).then(begun).flat_map_unordered(MAX_RUNNING, |events| {
            Box::pin(stream::unfold(events, |mut events| async move { Some((events.frame().await?, events)) }))
        });
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            // The client is gone; the requests go on as those do that were sent alone.
            if sender.send(event).await.is_err() {
                return;
            }
        }
    });
    let events = stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(events)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

async fn begin(service: Arc<HttpService>, head: Parts, member: BatchMember) -> BoxBody<Bytes, Infallible> {
    match member {
        BatchMember::Request { id, body } => {
            let answer = service.handle(Request::from_parts(head, Full::new(body))).await;
            events_of(id, answer).await
        }
        BatchMember::Bad(bad) => event(&bad.answer()),
        BatchMember::Other(_) => Full::new(Bytes::new()).boxed(),
    }
}

/// The answer to one message as events.
async fn events_of(id: Value, answer: HttpBatchAnswer) -> BoxBody<Bytes, Infallible> {
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if answer.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
        return answer.into_body();
    }
    let status = answer.status();
    let Ok(body) = answer.into_body().collect().await;
    let body = body.to_bytes();
    match serde_json::from_slice::<&RawValue>(&body) {
        Ok(message) => event(message.get()),
        Err(_) => {
            let reason = format!("{status}: {}", String::from_utf8_lossy(&body));
            event(&UnreadableMessage::new(id, INTERNAL_ERROR, reason).answer())
        }
    }
}

/// `message`: JSON in one line.
fn event(message: &str) -> BoxBody<Bytes, Infallible> {
    Full::new(Bytes::from(format!("data: {message}\n\n"))).boxed()
}

/// The answer in a session of another revision, or in none: an error for each message that has an id.
pub(super) fn refusal(parts: Vec<LinePart>) -> HttpBatchAnswer {
    let reason = format!(
        "a batch is for sessions of the revision {REVISION}, and later ones have none: send one message in each request"
    );
    let refused = |part: LinePart| match BatchMember::of(part)? {
        BatchMember::Request { id, .. } => Some(UnreadableMessage::new(id, INVALID_REQUEST, &reason).answer()),
        BatchMember::Bad(bad) => Some(bad.answer()),
        BatchMember::Other(_) => None,
    };
    let refused: Vec<String> = parts.into_iter().filter_map(refused).collect();
    let body = match refused.is_empty() {
        true => UnreadableMessage::new(Value::Null, INVALID_REQUEST, &reason).answer(),
        false => format!("[{}]", refused.join(",")),
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
