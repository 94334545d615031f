//! One JSON text per line over a byte stream, as a transport of jsonrpsee's client.
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

/// How long to wait for a daemon's last messages after writing to it fails.
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
        // The messages still to be read may say why, for instance that another daemon took over.
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
    /// A message has been received, so a daemon is at the other end.
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
            self.expect_json().await?;
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
            if let Some(closing) = closing_notice(&line) {
                self.ending.set_closing(closing);
                continue;
            }
            if let Some(message) = error_without_request(&line) {
                return Err(io::Error::other(message));
            }
            return Ok(ReceivedMessage::Bytes(line));
        }
    }
}

/// How many characters of another program's output are shown.
const MAX_SHOWN: usize = 60;

impl<R: AsyncRead + Unpin> LineReceiver<R> {
    /// Fails as soon as the first byte cannot begin a message: a program with another protocol may never end a line.
    async fn expect_json(&mut self) -> io::Result<()> {
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
        io::Error::new(io::ErrorKind::InvalidData, "received something that is not a message of a daemon")
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
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon closed it"));
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
    struct ProgressLine<'a> {
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    // A search is much cheaper than parsing a large answer only to find its kind.
    memmem::find(line, br#""tools.progress""#)?;
    let notification: ProgressLine<'_> = serde_json::from_slice(line).ok()?;
    (notification.method == "tools.progress").then_some(notification.params)
}

/// A daemon's notice that it ends.
fn closing_notice(line: &[u8]) -> Option<Closing> {
    #[derive(Deserialize)]
    struct ClosingNotification {
        method: String,
        params: Closing,
    }
    if line.len() > 4096 || memmem::find(line, CLOSING.as_bytes()).is_none() {
        return None;
    }
    let notification: ClosingNotification = serde_json::from_slice(line).ok()?;
    (notification.method == CLOSING).then_some(notification.params)
}

/// The message of an error without a request id: the daemon could not read one of our requests. jsonrpsee would close
/// the connection with a meaningless error, so it is closed with the daemon's message instead.
fn error_without_request(line: &[u8]) -> Option<String> {
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

/// jsonrpsee unsubscribes by position, `["id"]`, but the daemon takes params by name only.
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
    fn a_closing_notice_differs_from_a_quote_of_it() {
        let said = |line: &str| closing_notice(line.as_bytes()).map(|closing| closing.reason);
        let notice = r#"{"jsonrpc":"2.0","method":"daemon.closing","params":{"reason":"restart"}}"#;
        assert_eq!(said(notice).as_deref(), Some("restart"));
        assert_eq!(said(r#"{"jsonrpc":"2.0","id":1,"result":{"method":"daemon.closing"}}"#), None);
    }

    #[test]
    fn an_error_without_a_request_keeps_its_words() {
        let line = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too large"}}"#;
        assert_eq!(error_without_request(line).unwrap(), "too large");
        let line = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"too large"}}"#;
        assert_eq!(error_without_request(line), None);
    }
}
