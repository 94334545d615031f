//! The stream of a connection that ends when its token is revoked.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Reads to its end once the token is revoked: to the connection, its client is gone then.
pub(super) struct RevocableStream<S> {
    stream: S,
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
    is_over: bool,
}

impl<S> RevocableStream<S> {
    pub(super) fn new(stream: S, revoked: CancellationToken) -> Self {
        Self { stream, revoked: Box::pin(revoked.cancelled_owned()), is_over: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RevocableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over || self.revoked.as_mut().poll(context).is_ready() {
            self.is_over = true;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RevocableStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_over {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
