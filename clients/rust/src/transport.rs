//! One JSON text per line over a byte stream, as jsonrpsee's client wants it.
//!
//! Progress notifications leave the stream here and go to their calls, so that all progress of a
//! call is there before its answer is, and so that a full buffer never costs a response.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::client::{ReceivedMessage, TransportReceiverT, TransportSenderT};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use toold_proto::daemon::{CLOSING, Closing};

use crate::progress::{ConnectionEnd, ProgressRoutes};

/// The daemon reads messages of 16 MiB by default; the envelope of a request fits in the rest.
pub(crate) const MAX_PARAMS: usize = (16 << 20) - 4096;

/// A longer message ends the connection: it did not come from a daemon that keeps its limits.
const MAX_RECEIVED: usize = 64 << 20;

/// How long what a daemon said last is waited for, once it takes nothing more.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(crate) struct LineSender<W> {
    writer: W,
    ending: Arc<ConnectionEnd>,
}

impl<W> LineSender<W> {
    pub(crate) fn new(writer: W, ending: Arc<ConnectionEnd>) -> Self {
        Self { writer, ending }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> TransportSenderT for LineSender<W> {
    type Error = io::Error;

    async fn send(&mut self, message: String) -> Result<(), io::Error> {
        let mut line = named_unsubscribe(&message).unwrap_or(message);
        line.push('\n');
        let sent = async {
            self.writer.write_all(line.as_bytes()).await?;
            self.writer.flush().await
        };
        let sent = sent.await;
        // Why it takes nothing more may stand in what is still to be read, such as that another daemon serves.
        if sent.is_err() {
            let _ = tokio::time::timeout(LAST_WORDS, self.ending.ended()).await;
        }
        sent
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.writer.shutdown().await
    }
}

pub(crate) struct LineReceiver<R> {
    reader: BufReader<R>,
    routes: Arc<ProgressRoutes>,
    ending: Arc<ConnectionEnd>,
    /// A message came: a daemon is at the other end.
    speaks: bool,
}

impl<R: AsyncRead + Send + Unpin + 'static> LineReceiver<R> {
    pub(crate) fn new(reader: R, routes: Arc<ProgressRoutes>, ending: Arc<ConnectionEnd>) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), routes, ending, speaks: false }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> TransportReceiverT for LineReceiver<R> {
    type Error = io::Error;

    async fn receive(&mut self) -> Result<ReceivedMessage, io::Error> {
        let received = self.next_message().await;
        if received.is_err() {
            self.ending.set_ended();
        }
        received
    }
}

impl<R: AsyncRead + Unpin> LineReceiver<R> {
    async fn next_message(&mut self) -> Result<ReceivedMessage, io::Error> {
        if !self.speaks {
            self.hear_a_daemon().await?;
        }
        loop {
            let line = read_line(&mut self.reader).await?;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if !self.speaks {
                if !is_json_rpc(&line) {
                    return Err(self.foreign(&line));
                }
                self.speaks = true;
            }
            if let Some(params) = progress(&line) {
                self.routes.deliver(params);
                continue;
            }
            if says_that_another_takes_over(&line) {
                self.ending.set_replaced();
                continue;
            }
            if let Some(message) = answer_to_nothing(&line) {
                return Err(io::Error::other(message));
            }
            return Ok(ReceivedMessage::Bytes(line));
        }
    }
}

/// How much is shown of what another program says, in characters.
const MAX_SHOWN: usize = 60;

impl<R: AsyncRead + Unpin> LineReceiver<R> {
    /// Fails as soon as what comes first cannot be a message: other protocols may wait for more before they end a line.
    async fn hear_a_daemon(&mut self) -> io::Result<()> {
        let read = self.reader.fill_buf().await?;
        match read.first() {
            Some(b'{' | b'[') | None => Ok(()),
            Some(byte) if byte.is_ascii_whitespace() => Ok(()),
            Some(_) => {
                let said = read.to_vec();
                Err(self.foreign(&said))
            }
        }
    }

    fn foreign(&self, said: &[u8]) -> io::Error {
        let text = String::from_utf8_lossy(&said[..said.len().min(4 * MAX_SHOWN)]);
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        self.ending.set_foreign(shown);
        io::Error::new(io::ErrorKind::InvalidData, "what came is no message of a daemon")
    }
}

fn is_json_rpc(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct JsonRpcVersion<'a> {
        #[serde(borrow)]
        jsonrpc: Option<&'a str>,
    }
    let message: Result<JsonRpcVersion<'_>, _> = serde_json::from_slice(line);
    message.is_ok_and(|message| message.jsonrpc == Some("2.0"))
}

async fn read_line<R: AsyncRead + Unpin>(reader: &mut BufReader<R>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let read = reader.fill_buf().await?;
        if read.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed by the daemon"));
        }
        let end = memchr::memchr(b'\n', read);
        line.extend_from_slice(&read[..end.unwrap_or(read.len())]);
        let used = end.map_or(read.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(line);
        }
        if line.len() > MAX_RECEIVED {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is longer than 64 MiB"));
        }
    }
}

/// The params of a progress notification; `None` for any other message.
fn progress(line: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct ProgressNotification<'a> {
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    // The search is much cheaper than parsing a large answer just to see what it is.
    memmem::find(line, br#""tools.progress""#)?;
    let notification: ProgressNotification<'_> = serde_json::from_slice(line).ok()?;
    (notification.method == "tools.progress").then_some(notification.params)
}

/// A daemon's last words, when another one serves from then on.
fn says_that_another_takes_over(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ClosingNotification {
        method: String,
        params: Closing,
    }
    if line.len() > 4096 || memmem::find(line, CLOSING.as_bytes()).is_none() {
        return false;
    }
    let notification: Result<ClosingNotification, _> = serde_json::from_slice(line);
    notification.is_ok_and(|said| said.method == CLOSING && said.params.reason == "restart")
}

/// An error that answers no request in particular: the daemon could not read one of ours. jsonrpsee
/// would close the connection with words that say nothing, so it is closed with the daemon's.
fn answer_to_nothing(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorAnswer {
        id: Value,
        error: AnsweredError,
    }
    #[derive(Deserialize)]
    struct AnsweredError {
        message: String,
    }
    if line.len() > 4096 || memmem::find(line, br#""error""#).is_none() {
        return None;
    }
    let answer: ErrorAnswer = serde_json::from_slice(line).ok()?;
    answer.id.is_null().then_some(answer.error.message)
}

/// jsonrpsee ends a subscription by position, `["id"]`, and the daemon takes params by name only.
fn named_unsubscribe(message: &str) -> Option<String> {
    if message.len() > 4096 || !message.contains(r#""params":[""#) {
        return None;
    }
    let mut request: Value = serde_json::from_str(message).ok()?;
    let [subscription] = request.get("params")?.as_array()?.as_slice() else { return None };
    let params = json!({"subscription": subscription});
    request["params"] = params;
    Some(request.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_progress_notifications_are_taken_out() {
        let line = br#"{"jsonrpc":"2.0","method":"tools.progress","params":{"a":1}}"#;
        assert_eq!(progress(line).unwrap().get(), r#"{"a":1}"#);
        assert!(progress(br#"{"jsonrpc":"2.0","id":1,"result":"tools.progress"}"#).is_none());
        assert!(progress(br#"{"method":"events.event","params":{"result":{"kind":"tools.progress"}}}"#).is_none());
    }

    #[test]
    fn a_subscription_ends_by_name() {
        let sent = r#"{"jsonrpc":"2.0","id":4,"method":"events.unsubscribe","params":["s1"]}"#;
        let expected = r#"{"jsonrpc":"2.0","id":4,"method":"events.unsubscribe","params":{"subscription":"s1"}}"#;
        assert_eq!(named_unsubscribe(sent).unwrap(), expected);
        let text = r#"{"jsonrpc":"2.0","id":4,"method":"tools.execute","params":{"x":"\"params\":[\""}}"#;
        assert_eq!(named_unsubscribe(text), None);
    }

    #[test]
    fn a_farewell_is_told_from_what_quotes_it() {
        let said = |line: &str| says_that_another_takes_over(line.as_bytes());
        assert!(said(r#"{"jsonrpc":"2.0","method":"daemon.closing","params":{"reason":"restart"}}"#));
        assert!(!said(r#"{"jsonrpc":"2.0","method":"daemon.closing","params":{"reason":"later"}}"#));
        assert!(!said(r#"{"jsonrpc":"2.0","id":1,"result":{"method":"daemon.closing"}}"#));
    }

    #[test]
    fn an_error_without_a_request_keeps_its_words() {
        let line = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too large"}}"#;
        assert_eq!(answer_to_nothing(line).unwrap(), "too large");
        let line = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"too large"}}"#;
        assert_eq!(answer_to_nothing(line), None);
    }
}
