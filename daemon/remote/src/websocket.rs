//! A WebSocket (RFC 6455) as a stream of messages: one text frame is one message, either way. [`lines`] makes lines of
//! them, for those that speak one JSON text a line.
//!
//! Back-pressure is the socket's: it takes a message when it is ready, and is flushed before the message counts as sent.

pub mod lines;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
pub use tokio_tungstenite::tungstenite::handshake::derive_accept_key as accept_key;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The other end is pinged after this long without data.
pub const ASK_AFTER: Duration = Duration::from_secs(30);
/// An end that stays silent for this long, despite a ping, is gone. A message must be complete
/// within this time.
pub const GONE_AFTER: Duration = Duration::from_secs(90);
/// An end that accepts no data for this long is given up.
pub const STUCK_AFTER: Duration = Duration::from_secs(120);
/// Closing a stream with unread bytes resets it, which may lose the last message: so they are read
/// for this long.
const LINGER: Duration = Duration::from_secs(2);
/// The maximum that is passed to the socket at once.
pub const PIECE: usize = 64 * 1024;

/// How messages are bounded: a longer one ends the connection.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub max_message: usize,
    /// The message that is sent before such an end, to explain it.
    pub too_large: Option<String>,
}

/// A WebSocket whose text frames are messages.
pub struct WebSocketMessages<S> {
    socket: WebSocketStream<S>,
    too_large: Option<String>,
    goodbye: Option<Goodbye>,
    heard: Instant,
    clock: Pin<Box<Sleep>>,
    stuck: Option<Pin<Box<Sleep>>>,
    /// All is sent; further input is discarded.
    lingers: bool,
    over: bool,
}

/// The message to send before the end.
struct Goodbye {
    messages: Vec<Message>,
}

impl Goodbye {
    fn new(words: Option<String>, code: CloseCode, reason: &'static str) -> Self {
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        Self { messages: words.into_iter().map(Message::text).chain([close]).rev().collect() }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketMessages<S> {
    /// The server's end of a stream on which the handshake is done.
    pub async fn server(stream: S, bounds: Bounds) -> Self {
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config(&bounds))).await;
        Self::new(socket, bounds)
    }

    /// The client's end: performs the handshake first.
    ///
    /// # Errors
    /// The server's answer in place of an upgrade.
    pub async fn client(request: Request<()>, stream: S, bounds: Bounds) -> Result<Self, Box<Error>> {
        let (socket, _) = client_async_with_config(request, stream, Some(config(&bounds))).await.map_err(Box::new)?;
        Ok(Self::new(socket, bounds))
    }

    fn new(socket: WebSocketStream<S>, bounds: Bounds) -> Self {
        Self {
            socket,
            too_large: bounds.too_large,
            goodbye: None,
            heard: Instant::now(),
            clock: Box::pin(sleep(ASK_AFTER)),
            stuck: None,
            lingers: false,
            over: false,
        }
    }

    /// Whether the other end is known to be gone, so that nobody reads the output.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The next message; `None` at the end, and from then on [`Self::is_over`].
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Utf8Bytes>> {
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            if self.goodbye.is_some() {
                ready!(self.poll_goodbye(context));
                self.clock.as_mut().reset(Instant::now() + LINGER);
                self.lingers = true;
            }
            if self.lingers {
                ready!(self.poll_linger(context));
                self.over = true;
                continue;
            }
            match self.socket.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(message))) => {
                    self.heard = Instant::now();
                    match message {
                        Message::Text(text) => return Poll::Ready(Some(text)),
                        Message::Binary(_) => {
                            let words = "messages are text frames";
                            self.goodbye = Some(Goodbye::new(None, CloseCode::Unsupported, words));
                        }
                        // Answered by the socket; its pending output is sent at the next poll.
                        Message::Close(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                    }
                }
                Poll::Ready(Some(Err(Error::Capacity(_)))) => {
                    let words = self.too_large.take();
                    self.goodbye = Some(Goodbye::new(words, CloseCode::Size, "the message is too long"));
                }
                Poll::Ready(Some(Err(Error::Utf8(_)))) => {
                    self.goodbye = Some(Goodbye::new(None, CloseCode::Invalid, "text is UTF-8"));
                }
                // After a close frame and its answer, or without either.
                Poll::Ready(Some(Err(_)) | None) => self.over = true,
                Poll::Pending => {
                    ready!(self.poll_silence(context));
                    self.over = true;
                }
            }
        }
    }

    /// Ready when [`Self::start_send`] may be called.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let free = self.socket.poll_ready_unpin(context);
        self.poll_stuck(context, free)
    }

    /// Gives a message to the socket, which has sent it when it is flushed.
    pub fn start_send(&mut self, text: impl Into<Utf8Bytes>) -> io::Result<()> {
        self.socket.start_send_unpin(Message::Text(text.into())).map_err(broken)
    }

    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let flushed = self.socket.poll_flush_unpin(context);
        self.poll_stuck(context, flushed)
    }

    /// Sends a close frame, and does not wait for an answer.
    pub fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.over {
            if self.goodbye.is_none() {
                self.goodbye = Some(Goodbye::new(None, CloseCode::Away, ""));
            }
            ready!(self.poll_goodbye(context));
            self.over = true;
        }
        Poll::Ready(())
    }

    /// Sends the last message. Gives up when the other end does.
    fn poll_goodbye(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(goodbye) = &mut self.goodbye {
            if let Some(message) = goodbye.messages.pop() {
                if ready!(self.socket.poll_ready_unpin(context)).is_err()
                    || self.socket.start_send_unpin(message).is_err()
                {
                    self.goodbye = None;
                }
                continue;
            }
            // Nothing can be done about it at this point.
            let _ = ready!(self.socket.poll_flush_unpin(context));
            self.goodbye = None;
        }
        Poll::Ready(())
    }

    /// Discards input, until the end or for a while.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(self.socket.get_mut()).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.clock.as_mut().poll(context),
            }
        }
    }

    /// Pings a silent end; ready when it does not answer.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.clock.as_mut().poll(context).is_ready() {
            let silent = self.heard.elapsed();
            if silent >= GONE_AFTER {
                return Poll::Ready(());
            }
            let next = if silent >= ASK_AFTER {
                // If the ping cannot be sent now, the end is busy or gone, and the timeout decides.
                if self.socket.poll_ready_unpin(context).is_ready() {
                    let _ = self.socket.start_send_unpin(Message::Ping(Bytes::new()));
                    let _ = self.socket.poll_flush_unpin(context);
                }
                Instant::now() + ASK_AFTER
            } else {
                self.heard + ASK_AFTER
            };
            self.clock.as_mut().reset(next);
        }
        Poll::Pending
    }

    /// The timeout for waiting until the other end reads.
    fn poll_stuck<T>(&mut self, context: &mut Context<'_>, waits: Poll<Result<T, Error>>) -> Poll<io::Result<T>> {
        match waits {
            Poll::Ready(done) => {
                self.stuck = None;
                Poll::Ready(done.map_err(broken))
            }
            Poll::Pending => {
                let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(STUCK_AFTER)));
                ready!(stuck.as_mut().poll(context));
                self.over = true;
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

fn config(bounds: &Bounds) -> WebSocketConfig {
    let max = Some(bounds.max_message);
    WebSocketConfig::default().max_message_size(max).max_frame_size(max)
}

fn broken(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::new(io::ErrorKind::BrokenPipe, error),
    }
}
