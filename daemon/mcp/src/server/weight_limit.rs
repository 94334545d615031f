//! Lines of a client before the SDK reads them: those that would take too much memory once parsed are removed, and requests
//! that it could not read are replaced.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use tokio::io::{AsyncRead, ReadBuf};
use toold_proto::weight::Weigher;

use crate::server::misfits;

/// Bytes that are read at a time.
const CHUNK: usize = 16 * 1024;
/// Replaces the rest of a line: the part before it is not JSON and is ignored, and this is answered as an invalid
/// request.
const REPLACEMENT: &[u8] = b"\n{}";

/// A longer line is passed on as it comes: what the SDK cannot read of it is answered without its id.
const MAX_CHECKED: usize = 1 << 20;

/// Passes on lines up to a weight. The rest of a heavier line is replaced, so that the client gets
/// the error for an invalid request.
pub(super) struct WeightLimited<R> {
    inner: R,
    max: u64,
    weigher: Weigher,
    /// The rest of the line is skipped.
    skips: bool,
    /// A line that has not ended, of at most [`MAX_CHECKED`] bytes.
    line: Vec<u8>,
    /// The line is longer, and its beginning has been passed on.
    is_long: bool,
    /// The bytes to pass on next, and how many have been passed on.
    ready: Vec<u8>,
    passed: usize,
}

impl<R> WeightLimited<R> {
    /// `max`: bytes of memory, by the estimate of [`Weigher`].
    pub(super) fn new(inner: R, max: u64) -> Self {
        Self {
            inner,
            max,
            weigher: Weigher::default(),
            skips: false,
            line: Vec::new(),
            is_long: false,
            ready: Vec::new(),
            passed: 0,
        }
    }

    fn take(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let end = memchr(b'\n', piece);
            let (line, rest) = piece.split_at(end.map_or(piece.len(), |end| end + 1));
            if !self.skips && self.weigher.add(line) > self.max {
                tracing::debug!("a message of an MCP client would take too much memory: it is not read");
                self.skips = true;
                self.pass_line();
                self.ready.extend_from_slice(REPLACEMENT);
            }
            if !self.skips {
                self.line.extend_from_slice(line);
            }
            if end.is_some() {
                if self.skips {
                    self.ready.push(b'\n');
                } else {
                    self.check_line();
                    self.pass_line();
                }
                self.skips = false;
                self.is_long = false;
                self.weigher = Weigher::default();
            } else if self.line.len() > MAX_CHECKED {
                self.is_long = true;
                self.pass_line();
            }
            piece = rest;
        }
    }

    /// Replaces a whole line that is a request which the SDK cannot read.
    fn check_line(&mut self) {
        if !self.is_long
            && let Some(mut stand_in) = misfits::readable(&self.line)
        {
            stand_in.push(b'\n');
            self.line = stand_in;
        }
    }

    fn pass_line(&mut self) {
        self.ready.append(&mut self.line);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for WeightLimited<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.passed == self.ready.len() {
            self.ready.clear();
            self.passed = 0;
            let mut space = [0; CHUNK];
            let mut piece = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                // The end of the input ends a line too.
                self.check_line();
                self.pass_line();
                if self.ready.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                break;
            }
            self.take(piece.filled());
        }
        let next = &self.ready[self.passed..];
        let length = next.len().min(buffer.remaining());
        buffer.put_slice(&next[..length]);
        self.passed += length;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn heavy_lines_are_replaced_and_the_others_pass() {
        let heavy = format!("[{}1]", "1,".repeat(20_000));
        let text = format!("{{\"a\":1}}\n{heavy}\n{{\"b\":[1,2]}}\n");
        let mut read = String::new();
        WeightLimited::new(text.as_bytes(), 100_000).read_to_string(&mut read).await.unwrap();
        let lines: Vec<&str> = read.lines().collect();
        assert_eq!((lines[0], lines[2], lines[3]), ("{\"a\":1}", "{}", "{\"b\":[1,2]}"));
        assert!(heavy.starts_with(lines[1]) && lines[1].len() < heavy.len() / 2, "{}", lines[1].len());
        let mut all = String::new();
        WeightLimited::new(text.as_bytes(), u64::MAX).read_to_string(&mut all).await.unwrap();
        assert_eq!(all, text);
    }
}
