//! Lines of a client, without those that would take too much memory once they are parsed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use tokio::io::{AsyncRead, ReadBuf};
use toold_proto::weight::Weigher;

/// Bytes that are read at a time.
const PIECE: usize = 16 * 1024;
/// Takes the place of what is left out: the part before it is no JSON, which is passed over without a word, and this is
/// answered as an invalid request.
const INSTEAD: &[u8] = b"\n{}";

/// Passes lines on, up to a weight each. Of a heavier one the rest is left out, and the client is told that the request is
/// invalid.
pub(super) struct Weighed<R> {
    inner: R,
    max: u64,
    weigher: Weigher,
    /// The rest of the line is left out.
    skips: bool,
    /// What is passed on next, and how much of it was.
    ready: Vec<u8>,
    given: usize,
}

impl<R> Weighed<R> {
    /// `max`: bytes of memory, by the estimate of [`Weigher`].
    pub(super) fn new(inner: R, max: u64) -> Self {
        Self { inner, max, weigher: Weigher::default(), skips: false, ready: Vec::new(), given: 0 }
    }

    fn take(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let end = memchr(b'\n', piece);
            let (line, rest) = piece.split_at(end.map_or(piece.len(), |end| end + 1));
            if !self.skips && self.weigher.add(line) > self.max {
                tracing::debug!("a message of an MCP client has too many values, and is not read");
                self.skips = true;
                self.ready.extend_from_slice(INSTEAD);
            }
            match end {
                None if self.skips => {}
                None => self.ready.extend_from_slice(line),
                Some(_) => {
                    self.ready.extend_from_slice(if self.skips { b"\n" } else { line });
                    self.skips = false;
                    self.weigher = Weigher::default();
                }
            }
            piece = rest;
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Weighed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.given == self.ready.len() {
            self.ready.clear();
            self.given = 0;
            let mut space = [0; PIECE];
            let mut piece = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.take(piece.filled());
        }
        let next = &self.ready[self.given..];
        let length = next.len().min(buffer.remaining());
        buffer.put_slice(&next[..length]);
        self.given += length;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn heavy_lines_are_left_out_and_the_others_pass() {
        let heavy = format!("[{}1]", "1,".repeat(20_000));
        let text = format!("{{\"a\":1}}\n{heavy}\n{{\"b\":[1,2]}}\n");
        let mut passed = String::new();
        Weighed::new(text.as_bytes(), 100_000).read_to_string(&mut passed).await.unwrap();
        let lines: Vec<&str> = passed.lines().collect();
        assert_eq!((lines[0], lines[2], lines[3]), ("{\"a\":1}", "{}", "{\"b\":[1,2]}"));
        assert!(heavy.starts_with(lines[1]) && lines[1].len() < heavy.len() / 2, "{}", lines[1].len());
        let mut all = String::new();
        Weighed::new(text.as_bytes(), u64::MAX).read_to_string(&mut all).await.unwrap();
        assert_eq!(all, text);
    }
}
