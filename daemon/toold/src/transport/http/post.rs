//! One message of our own JSON-RPC in the body of a POST, for clients that hold no connection.
//!
//! It is served as a connection of its own, which ends with its answer. So there is no subscription and no progress,
//! and a session lives on only if it was opened by an id.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use jsonrpsee::types::Id;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadBuf, duplex};
use tokio_util::sync::CancellationToken;
use toold_engine::call::Principal;
use toold_proto::error::INVALID_REQUEST;

use super::{HttpAnswer, refusal};
use crate::peer::Peer;
use crate::rpc::connection::{ClientStream, failure};
use crate::rpc::framing::Framing;
use crate::transport::ClientServer;

/// What is on its way between the request and its connection.
const ON_THE_WAY: usize = 64 * 1024;

/// Serves one request or one batch. Dropped, it cancels what it runs: its client is gone.
pub(super) async fn answer(clients: &ClientServer, body: &[u8], principal: Principal) -> HttpAnswer {
    if let Some(refused) = wants_progress(body) {
        return json(&refused);
    }
    let (near, far) = duplex(ON_THE_WAY);
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    clients.serve(OneMessage { stream: far, gone }, Peer::of_token(principal));
    match exchange(near, body).await {
        Ok(line) if line.is_empty() => empty(),
        Ok(line) => json(&line),
        Err(error) => {
            tracing::debug!(%error, "a request on HTTP has no answer");
            refusal(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops")
        }
    }
}

async fn exchange(stream: DuplexStream, body: &[u8]) -> io::Result<String> {
    let (read, mut write) = tokio::io::split(stream);
    // A line break within the body is a blank, which is the same in JSON.
    let mut line: Vec<u8> = body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    let sent = async {
        write.write_all(&line).await?;
        write.shutdown().await
    };
    let mut answer = String::new();
    let mut read = BufReader::new(read);
    let got = async {
        // Progress that a member of a batch asked for comes before the answer, and has no way to go.
        loop {
            answer.clear();
            if read.read_line(&mut answer).await? == 0 || !is_notification(&answer) {
                return io::Result::Ok(());
            }
        }
    };
    let (sent, got) = tokio::join!(sent, got);
    got?;
    sent?;
    Ok(answer)
}

fn is_notification(line: &str) -> bool {
    #[derive(Deserialize)]
    struct MethodProbe<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_str::<MethodProbe>(line).is_ok_and(|probe| !probe.method.is_empty())
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
    // What cannot be read is told where it is read.
    let asked: ProgressProbe = serde_json::from_slice(body).ok()?;
    asked.params.progress.then(|| {
        let words = "a POST has one answer and no progress: use a WebSocket, or leave progress out".to_owned();
        failure(asked.id.unwrap_or(Id::Null), INVALID_REQUEST, words, "no_stream").get().to_owned()
    })
}

fn json(text: &str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(text.trim_end().to_owned())).boxed());
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

/// The connection's end of one request.
struct OneMessage {
    stream: DuplexStream,
    /// Fires when nobody waits for the answer.
    gone: CancellationToken,
}

impl ClientStream for OneMessage {
    fn hung_up(&self) -> bool {
        self.gone.is_cancelled()
    }

    fn framing(&self) -> Option<Framing> {
        Some(Framing::Lines)
    }

    fn is_kept(&self) -> bool {
        false
    }
}

impl AsyncRead for OneMessage {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for OneMessage {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
