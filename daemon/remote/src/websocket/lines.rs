//! A WebSocket as a stream of lines.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::{memchr, memrchr};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{PIECE, WebSocketMessages};

/// A WebSocket that is read and written in lines. Each line is sent as a text frame, each text
/// frame is read as a line; line breaks within a frame are read as blanks, which is the same in
/// JSON.
pub struct WebSocketLines<S> {
    messages: WebSocketMessages<S>,
    /// A received message, and how much of it has been read.
    ahead: Vec<u8>,
    taken: usize,
    /// An incomplete line.
    partial: Vec<u8>,
    /// This many bytes of the current write are with the socket, which has not sent them all yet.
    handed: Option<usize>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketLines<S> {
    pub fn new(messages: WebSocketMessages<S>) -> Self {
        Self { messages, ahead: Vec::new(), taken: 0, partial: Vec::new(), handed: None }
    }

    /// Whether the other end is known to be gone: nobody reads what is written.
    pub fn is_over(&self) -> bool {
        self.messages.is_over()
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
                self.messages.start_send(text)?;
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
        if self.ahead.is_empty() {
            let Some(text) = ready!(self.messages.poll_receive(context)) else { return Poll::Ready(Ok(())) };
            self.ahead = Vec::from(text.as_bytes());
            for byte in self.ahead.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
                *byte = b' ';
            }
            self.ahead.push(b'\n');
        }
        let rest = &self.ahead[self.taken..];
        let now = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..now]);
        self.taken += now;
        if self.taken == self.ahead.len() {
            self.ahead = Vec::new();
            self.taken = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocketLines<S> {
    /// Ready when the socket has taken the data that is then reported as written. Until then it is
    /// called with the same bytes, perhaps with more behind them.
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let handed = match self.handed {
            Some(handed) => handed,
            None => {
                ready!(self.messages.poll_ready(context))?;
                let handed = self.hand(bytes)?;
                self.handed = Some(handed);
                handed
            }
        };
        ready!(self.messages.poll_flush(context))?;
        self.handed = None;
        Poll::Ready(Ok(handed.min(bytes.len())))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.messages.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.messages.poll_close(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Bytes;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
    use tokio_tungstenite::tungstenite::protocol::{Message, Role};

    use super::super::Bounds;
    use super::*;

    fn bounds() -> Bounds {
        Bounds { max_message: 1000, too_large: Some("too large".into()) }
    }

    /// A server's end as lines, and a client's end as frames.
    async fn ends() -> (WebSocketLines<DuplexStream>, WebSocketStream<DuplexStream>) {
        let (server, client) = duplex(64);
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        (WebSocketLines::new(WebSocketMessages::server(server, bounds()).await), client)
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
            assert!(lines.get_ref().messages.is_over());
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
            assert!(read.is_empty() && server.messages.is_over());
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
        assert!(server.messages.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_reads_nothing_holds_the_writer_up_and_is_given_up() {
        let (mut server, _client) = ends().await;
        let line = format!("{}\n", "x".repeat(500));
        let error = server.write_all(line.as_bytes()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(server.messages.is_over());
    }
}
