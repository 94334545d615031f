//! A WebSocket (RFC 6455) as a stream of lines, so that code for one JSON text per line works with
//! WebSockets too.
//!
//! One text frame is one message, in both directions. A write completes only when the socket has
//! taken the data, so that back-pressure is the socket's; nothing is buffered beyond one piece.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use memchr::{memchr, memrchr};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
pub use tokio_tungstenite::tungstenite::handshake::derive_accept_key as accept_key;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error};
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
const PIECE: usize = 64 * 1024;

/// How messages are bounded: a longer one ends the connection.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub max_message: usize,
    /// The message that is sent before such an end, to explain it.
    pub too_large: Option<String>,
}

/// A WebSocket that is read and written in lines. Each line is sent as a text frame, each text
/// frame is read as a line; line breaks within a frame are read as blanks, which is the same in
/// JSON.
pub struct WebSocketLines<S> {
    socket: WebSocketStream<S>,
    too_large: Option<String>,
    /// A received message, and how much of it has been read.
    ahead: Vec<u8>,
    taken: usize,
    /// An incomplete line.
    partial: Vec<u8>,
    /// This many bytes of the current write are with the socket, which has not sent them all yet.
    handed: Option<usize>,
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

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketLines<S> {
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
            ahead: Vec::new(),
            taken: 0,
            partial: Vec::new(),
            handed: None,
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

    fn take(&mut self, message: Message) {
        self.heard = Instant::now();
        match message {
            Message::Text(text) => {
                self.ahead = Vec::from(text.as_bytes());
                self.taken = 0;
                for byte in self.ahead.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
                    *byte = b' ';
                }
                self.ahead.push(b'\n');
            }
            Message::Binary(_) => {
                self.goodbye = Some(Goodbye::new(None, CloseCode::Unsupported, "messages are text frames"));
            }
            // Answered by the socket; its pending output is sent at the next poll.
            Message::Close(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
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

    /// Passes whole lines to the socket, and returns their number of bytes; keeps an incomplete
    /// line.
    fn hand(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        let end = match memrchr(b'\n', piece) {
            Some(end) => end + 1,
            None => match memchr(b'\n', &bytes[piece.len()..]) {
                Some(end) => piece.len() + end + 1,
                None => {
                    self.partial.extend_from_slice(bytes);
                    return Ok(bytes.len());
                }
            },
        };
        for line in bytes[..end].split_inclusive(|byte| *byte == b'\n') {
            let mut text = std::mem::take(&mut self.partial);
            text.extend_from_slice(&line[..line.len() - 1]);
            let text = String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if !text.trim().is_empty() {
                self.socket.start_send_unpin(Message::text(text)).map_err(broken)?;
            }
        }
        Ok(end)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocketLines<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.taken < self.ahead.len() {
                let rest = &self.ahead[self.taken..];
                let now = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..now]);
                self.taken += now;
                if self.taken == self.ahead.len() {
                    self.ahead = Vec::new();
                    self.taken = 0;
                }
                return Poll::Ready(Ok(()));
            }
            if self.over {
                return Poll::Ready(Ok(()));
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
                Poll::Ready(Some(Ok(message))) => self.take(message),
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
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocketLines<S> {
    /// Ready when the socket has taken the data that is then reported as written. Until then it is
    /// called with the same bytes, perhaps with more behind them.
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.over {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let handed = match self.handed {
            Some(handed) => handed,
            None => {
                let free = self.socket.poll_ready_unpin(context);
                ready!(self.poll_stuck(context, free))?;
                let handed = self.hand(bytes)?;
                self.handed = Some(handed);
                handed
            }
        };
        let flushed = self.socket.poll_flush_unpin(context);
        ready!(self.poll_stuck(context, flushed))?;
        self.handed = None;
        Poll::Ready(Ok(handed.min(bytes.len())))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.socket.poll_flush_unpin(context);
        self.poll_stuck(context, flushed)
    }

    /// Sends a close frame, and does not wait for an answer.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.over {
            if self.goodbye.is_none() {
                self.goodbye = Some(Goodbye::new(None, CloseCode::Away, ""));
            }
            ready!(self.poll_goodbye(context));
            self.over = true;
        }
        Poll::Ready(Ok(()))
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

    use super::*;

    fn bounds() -> Bounds {
        Bounds { max_message: 1000, too_large: Some("too large".into()) }
    }

    /// A server's end as lines, and a client's end as frames.
    async fn ends() -> (WebSocketLines<DuplexStream>, WebSocketStream<DuplexStream>) {
        let (server, client) = duplex(64);
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        (WebSocketLines::server(server, bounds()).await, client)
    }

    #[tokio::test]
    async fn frames_are_lines_either_way() {
        let (server, mut client) = ends().await;
        let talk = async {
            client.send(Message::text("{\n\"a\":\r\n1}")).await.unwrap();
            client.send(Message::Ping(Bytes::new())).await.unwrap();
            client.send(Message::text("second")).await.unwrap();
            let long = "x".repeat(500);
            for expected in ["{ \"a\":  1}", "second", &long] {
                let message = loop {
                    match client.next().await.unwrap().unwrap() {
                        Message::Pong(_) => {}
                        message => break message,
                    }
                };
                assert_eq!(message.to_text().unwrap(), expected);
            }
            client.close(None).await.unwrap();
            while let Some(Ok(_)) = client.next().await {}
        };
        let serve = async {
            let mut lines = BufReader::new(server);
            for _ in 0..2 {
                let mut line = String::new();
                lines.read_line(&mut line).await.unwrap();
                lines.get_mut().write_all(line.as_bytes()).await.unwrap();
            }
            // In pieces, longer than what the stream holds.
            lines.get_mut().write_all("x".repeat(300).as_bytes()).await.unwrap();
            lines.get_mut().write_all(format!("{}\n", "x".repeat(200)).as_bytes()).await.unwrap();
            let mut line = String::new();
            assert_eq!(lines.read_line(&mut line).await.unwrap(), 0);
            assert!(lines.get_ref().is_over());
        };
        tokio::join!(talk, serve);
    }

    async fn check_refused(sent: Message, words: Option<&str>, code: CloseCode) {
        let (mut server, client) = ends().await;
        let (mut sender, mut client) = client.split();
        let talk = async {
            let received = async {
                let mut received = Vec::new();
                while let Some(Ok(message)) = client.next().await {
                    received.push(message);
                }
                received
            };
            let (_, mut received) = tokio::join!(sender.send(sent), received);
            let close = received.pop().unwrap();
            assert!(matches!(&close, Message::Close(Some(frame)) if frame.code == code), "{close:?}");
            assert_eq!(received.first().map(|message| message.to_text().unwrap()), words);
        };
        let serve = async {
            let mut read = Vec::new();
            server.read_to_end(&mut read).await.unwrap();
            assert!(read.is_empty() && server.is_over());
            drop(server);
        };
        tokio::join!(talk, serve);
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_message_ends_the_connection_with_the_reason() {
        check_refused(Message::Binary(Bytes::from_static(b"{}")), None, CloseCode::Unsupported).await;
        check_refused(Message::text("x".repeat(2000)), Some("too large"), CloseCode::Size).await;
    }

    #[tokio::test(start_paused = true)]
    async fn silent_end_is_pinged_and_then_given_up() {
        let (mut server, mut client) = ends().await;
        let mut read = [0; 8];
        let asked = tokio::select! {
            _ = server.read(&mut read) => panic!("it is not over"),
            asked = client.next() => asked.unwrap().unwrap(),
        };
        assert!(matches!(asked, Message::Ping(_)));
        // It does not send its answer.
        assert_eq!(server.read(&mut read).await.unwrap(), 0);
        assert!(server.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_reads_nothing_holds_the_writer_up_and_is_given_up() {
        let (mut server, _client) = ends().await;
        let line = format!("{}\n", "x".repeat(500));
        let error = server.write_all(line.as_bytes()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(server.is_over());
    }
}
