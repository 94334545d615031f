//! A server's messages on its pipes or on a socket, one a line. Lines that are almost messages are repaired; an error that
//! does not say whose it is, and an answer that is too long, end the call that they can only belong to.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::Instant;
use toold_proto::mcp_line::Members;

use super::notifications::Notifications;
use super::{discarded, exact_integers};

/// The size limit of a message.
const MAX_LINE: usize = 16 << 20;
/// The parts of a longer line that are kept: its id is in one of them.
const KEPT: usize = 256;
/// How long the late answer to a call that was given up may take.
const LATE: Duration = Duration::from_secs(30);

pub(super) struct LinesTransport<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The line is longer than the limit: only its first and last bytes are kept.
    is_too_long: bool,
    write: Arc<Mutex<Option<W>>>,
    open: UnansweredRequests,
    notifications: Arc<Notifications>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> LinesTransport<R, W> {
    pub(super) fn new(read: R, write: W, notifications: Arc<Notifications>) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_too_long: false,
            write: Arc::new(Mutex::new(Some(write))),
            open: UnansweredRequests::default(),
            notifications,
        }
    }

    /// Reads up to the end of a line, which is in `line` then; `None` at the end of the stream. Cancel-safe.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let read = match self.read.fill_buf().await {
                Ok(read) => read,
                Err(error) => {
                    tracing::info!(%error, "can't read from an MCP server");
                    return None;
                }
            };
            if read.is_empty() {
                return None;
            }
            let end = memchr::memchr(b'\n', read);
            let taken = end.map_or(read.len(), |end| end + 1);
            self.line.extend_from_slice(&read[..end.unwrap_or(taken)]);
            self.read.consume(taken);
            if self.line.len() > MAX_LINE || (self.is_too_long && self.line.len() > 4 * KEPT) {
                self.is_too_long = true;
                self.line.drain(KEPT..self.line.len() - KEPT);
            }
            if end.is_some() {
                return Some(());
            }
        }
    }

    /// The message in the line, if there is one.
    fn take_line(&mut self) -> Option<ServerJsonRpcMessage> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return self.too_long(&line);
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            return None;
        }
        let exact = exact_integers::as_texts(text);
        let text = exact.as_deref().unwrap_or(text);
        if let Ok(message) = serde_json::from_slice(text) {
            return self.owned(message, text);
        }
        if let Some(message) = repaired(text) {
            tracing::warn!(
                text = discarded::shown(text),
                "an MCP server sent a message with a fault, which is repaired"
            );
            return self.owned(message, text);
        }
        if let Some(id) = answered_id(text).filter(|id| self.open.end(id)) {
            self.discard(text);
            let why = match serde_json::from_slice::<Value>(text) {
                Err(error) => format!("its answer cannot be read: {error}"),
                Ok(_) => "its answer is no message of JSON-RPC 2.0".to_owned(),
            };
            return Some(ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id)));
        }
        // Notifications with parameters that are not those of MCP mean nothing to the daemon.
        let value = serde_json::from_slice::<Value>(text).ok();
        if !value.is_some_and(|value| value["method"].is_string() && value.get("id").is_none()) {
            self.discard(text);
        }
        None
    }

    /// A message, unless it answers no open request.
    fn owned(&mut self, message: ServerJsonRpcMessage, text: &[u8]) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Response(response) => {
                if self.open.end(&response.id) {
                    return Some(JsonRpcMessage::Response(response));
                }
                if !self.open.is_late() {
                    self.discard(text);
                }
                None
            }
            JsonRpcMessage::Error(mut error) => {
                let is_own = error.id.as_ref().is_some_and(|id| self.open.end(id));
                if is_own {
                    return Some(JsonRpcMessage::Error(error));
                }
                match self.open.take_only() {
                    Some(id) => {
                        error.id = Some(id);
                        Some(JsonRpcMessage::Error(error))
                    }
                    None => {
                        self.discard(text);
                        None
                    }
                }
            }
            other => Some(other),
        }
    }

    /// An error in place of a message that is too long.
    fn too_long(&mut self, ends: &[u8]) -> Option<ServerJsonRpcMessage> {
        let id = id_at_an_end(ends).filter(|id| self.open.end(id)).or_else(|| self.open.take_only());
        self.discard(&ends[..ends.len().min(KEPT)]);
        let why = format!("its answer is longer than {} MiB, and is not taken", MAX_LINE >> 20);
        Some(ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id?)))
    }

    fn discard(&self, text: &[u8]) {
        let shown = discarded::report(text);
        self.notifications.context.stderr_log.line(&format!("[toold] discarded, since it is no message: {shown}"));
        for cx in self.notifications.calls.all() {
            cx.hint_at_time_out(format!("the server sent this meanwhile, which is no answer to a call: {shown}"));
        }
    }
}

/// A message with bytes that are no UTF-8, with half of a surrogate pair, or with other output before it.
fn repaired(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let text = String::from_utf8_lossy(text);
    let whole = without_lone_surrogates(&text);
    if let Ok(message) = serde_json::from_str(&whole) {
        return Some(message);
    }
    let start =
        memmem::find(whole.as_bytes(), b"{\"jsonrpc\"").or_else(|| whole.find('{')).filter(|start| *start > 0)?;
    serde_json::from_str(&whole[start..]).ok()
}

/// Replaces escapes of half a surrogate pair, which are no character. Linear.
fn without_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut clean = String::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        at += found;
        let is_high = |unit: u16| (0xd800..0xdc00).contains(&unit);
        let is_low = |unit: u16| (0xdc00..0xe000).contains(&unit);
        at += match unit(at) {
            Some(high) if is_high(high) && unit(at + 6).is_some_and(is_low) => 12,
            Some(half) if is_high(half) || is_low(half) => {
                clean.push_str(&text[copied..at]);
                clean.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            // The next character is escaped, and may be a backslash; it need not be one byte long.
            _ => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    clean.push_str(&text[copied..]);
    clean
}

/// The id of a text that is an answer, whatever the answer is.
fn answered_id(text: &[u8]) -> Option<RequestId> {
    let members: Members<'_> = serde_json::from_slice(text).ok()?;
    let is_answer = members.contains_key("result") || members.contains_key("error");
    serde_json::from_str(members.get("id").filter(|_| is_answer)?.get()).ok()
}

/// The id in the first bytes of a long answer, before its result, or in the last ones, after it.
fn id_at_an_end(ends: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(ends);
    let head = text.split("\"result\"").next().unwrap_or_default();
    let in_head = (head.len() < text.len()).then(|| head.find("\"id\"")).flatten();
    let at = in_head.or_else(|| text.rfind("\"id\""))?;
    let rest = text[at + 4..].trim_start().strip_prefix(':')?.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok().map(RequestId::Number)
}

/// The requests that wait for their answers.
#[derive(Default)]
struct UnansweredRequests {
    /// With whether each is the call of a tool.
    open: HashMap<RequestId, bool>,
    /// When something else than the only request was sent last, that may be what an error is about.
    other_sent: Option<Instant>,
    call_sent: Option<Instant>,
    given_up: Option<Instant>,
}

impl UnansweredRequests {
    fn sent(&mut self, message: &ClientJsonRpcMessage) {
        let now = Instant::now();
        match message {
            JsonRpcMessage::Request(request) => {
                let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
                self.open.insert(request.id.clone(), is_call);
                match is_call {
                    true => self.call_sent = Some(now),
                    false => self.other_sent = Some(now),
                }
            }
            JsonRpcMessage::Notification(sent) => {
                self.other_sent = Some(now);
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification {
                    self.given_up = Some(now);
                    if let Some(id) = &cancelled.params.request_id {
                        self.open.remove(id);
                    }
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.other_sent = Some(now),
        }
    }

    /// Ends the request of an answer; false for an answer to none. Some servers answer a number with a text of it.
    fn end(&mut self, id: &RequestId) -> bool {
        let number = || id.to_string().parse().ok().map(RequestId::Number);
        self.open.remove(id).is_some() || number().is_some_and(|id| self.open.remove(&id).is_some())
    }

    /// Whether an answer may be that to a call that nobody waits for any more.
    fn is_late(&self) -> bool {
        self.given_up.is_some_and(|at| at.elapsed() < LATE)
    }

    /// Ends the only call, if an error can be about nothing else.
    fn take_only(&mut self) -> Option<RequestId> {
        let mut open = self.open.iter();
        let (id, is_call) = open.next()?;
        let is_only = *is_call && open.next().is_none() && !self.is_late() && self.other_sent < self.call_sent;
        let id = is_only.then(|| id.clone())?;
        self.open.remove(&id);
        Some(id)
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient>
    for LinesTransport<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.open.sent(&message);
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    /// Cancel-safe.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.read_line().await?;
            if let Some(message) = self.take_line() {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_whole_ones_stay() {
        for (text, expected) in [
            (r"a\ud83db", r"a\ufffdb"),
            (r"\ude00", r"\ufffd"),
            (r"\ud83d\ude00", r"\ud83d\ude00"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            ("\\ü\\", "\\ü\\"),
        ] {
            assert_eq!(without_lone_surrogates(text), expected);
        }
    }

    #[test]
    fn the_id_of_a_long_answer_is_found_at_either_end() {
        let number = |n| Some(RequestId::Number(n));
        assert_eq!(id_at_an_end(br#"{"jsonrpc":"2.0","id":7,"result":{"id":9"#), number(7));
        assert_eq!(id_at_an_end(br#"{"result":{"id":9...}},"jsonrpc":"2.0","id":8}"#), number(8));
        assert_eq!(id_at_an_end(b"no message"), None);
    }
}
