//! The messages of a client on a byte stream, one or a batch of them a line. What cannot be read is answered here.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use toold_proto::mcp_line::{LineCollector, LinePart, UnreadableMessage};

use crate::server::misfits;
use crate::server::open_requests::OpenRequests;

pub(super) struct ClientLines<R, W> {
    read: BufReader<R>,
    lines: LineCollector,
    max_weight: u64,
    has_ended: bool,
    /// The messages of lines that were read, as far as nobody has taken them yet.
    parts: VecDeque<LinePart>,
    /// A request was passed on.
    has_begun: bool,
    /// The answer to what could not be read.
    owed: Option<String>,
    /// Such an answer may be in the writer's buffer still.
    is_unsent: bool,
    /// The requests that were passed on and have no answer yet.
    open: Arc<OpenRequests>,
    write: Arc<Mutex<MessageWriter<W>>>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> ClientLines<R, W> {
    /// `max`: bytes of one line. `max_weight`: bytes of memory that one line may take once it is parsed. `open`: the requests
    /// that wait for an answer, as whoever takes the messages keeps them.
    pub(super) fn new(read: R, write: W, max: usize, max_weight: u64, open: Arc<OpenRequests>) -> Self {
        Self {
            read: BufReader::new(read),
            lines: LineCollector::new(max),
            max_weight,
            has_ended: false,
            parts: VecDeque::new(),
            has_begun: false,
            owed: None,
            is_unsent: false,
            open,
            write: Arc::new(Mutex::new(MessageWriter { stream: Some(write), unsent: Vec::new(), sent: 0 })),
        }
    }

    /// The next message or what is none; `None` at the end of the stream. Cancel-safe.
    async fn next_part(&mut self) -> Option<LinePart> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(part);
            }
            if self.has_ended {
                return None;
            }
            let bytes = match self.read.fill_buf().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::debug!(%error, "can't read from an MCP client");
                    &[]
                }
            };
            let (taken, is_complete) = self.lines.take(bytes);
            // The end of the stream ends a line too.
            self.has_ended = bytes.is_empty();
            self.read.consume(taken);
            if is_complete || self.has_ended {
                self.parts.extend(self.lines.end_line(self.max_weight));
            }
        }
    }

    /// Sends what is owed. Cancel-safe.
    async fn settle(&mut self) -> io::Result<()> {
        if self.owed.is_none() && !self.is_unsent {
            return Ok(());
        }
        let mut write = self.write.lock().await;
        if let Some(answer) = self.owed.take() {
            write.put(answer.as_bytes());
            self.is_unsent = true;
        }
        write.flush().await?;
        self.is_unsent = false;
        Ok(())
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for ClientLines<R, W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        async move {
            let line = serde_json::to_vec(&message)?;
            let mut write = write.lock().await;
            write.put(&line);
            write.flush().await
        }
    }

    /// Cancel-safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.settle().await.ok()?;
            match self.next_part().await?.and_then(|message| misfits::read(&message)) {
                Ok(Some(JsonRpcMessage::Request(request))) if self.open.has(&request.id) => {
                    self.owed = Some(UnreadableMessage::sent_twice(request.id.into_json_value()).answer());
                }
                Ok(Some(message)) => {
                    self.has_begun |= matches!(message, JsonRpcMessage::Request(_));
                    // The SDK would end the conversation for another message before the first request.
                    if self.has_begun {
                        return Some(message);
                    }
                }
                Ok(None) => {}
                Err(unreadable) => {
                    tracing::debug!(reason = unreadable.reason, "a message of an MCP client cannot be read");
                    self.owed = Some(unreadable.answer());
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.stream.take();
        Ok(())
    }
}

/// Writes whole lines, also when a write is given up in the middle of one: the next continues there.
struct MessageWriter<W> {
    /// `None` once it is closed.
    stream: Option<W>,
    unsent: Vec<u8>,
    /// The bytes of these that were written.
    sent: usize,
}

impl<W: AsyncWrite + Unpin> MessageWriter<W> {
    fn put(&mut self, line: &[u8]) {
        self.unsent.extend_from_slice(line);
        self.unsent.push(b'\n');
    }

    /// Cancel-safe.
    async fn flush(&mut self) -> io::Result<()> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        while self.sent < self.unsent.len() {
            match stream.write(&self.unsent[self.sent..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.sent += sent,
            }
        }
        self.unsent = Vec::new();
        self.sent = 0;
        stream.flush().await
    }
}
