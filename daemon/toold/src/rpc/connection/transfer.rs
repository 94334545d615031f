//! Bytes in and out of a stream, without a buffer while nothing comes.

use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use tokio::io::ReadBuf;

use super::ClientStream;

thread_local! {
    /// Bytes are read here first, so that idle connections hold no buffer.
    static SCRATCH: std::cell::RefCell<Box<[u8]>> = std::cell::RefCell::new(vec![0; 64 * 1024].into_boxed_slice());
}

pub(super) enum Moved {
    /// Bytes that were read; none at the end.
    In(usize),
    /// Bytes that were written.
    Out(usize),
}

/// Writes some of `out`, or reads what is there and appends it, whichever can be done first.
/// Waits for ever when there is nothing to write and reading is not wanted. Cancel-safe.
pub(super) async fn exchange(
    stream: &mut impl ClientStream,
    inbox: &mut Vec<u8>,
    reading: bool,
    out: &[u8],
) -> io::Result<Moved> {
    std::future::poll_fn(|context| {
        if !out.is_empty()
            && let Poll::Ready(written) = Pin::new(&mut *stream).poll_write(context, out)
        {
            let written = written?;
            return Poll::Ready(if written == 0 {
                Err(io::ErrorKind::WriteZero.into())
            } else {
                Ok(Moved::Out(written))
            });
        }
        if !reading {
            return Poll::Pending;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
            inbox.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(Moved::In(buffer.filled().len())))
        })
    })
    .await
}

/// Writes some. Cancel-safe: what was written is told.
pub(super) async fn write(stream: &mut impl ClientStream, bytes: &[u8]) -> io::Result<usize> {
    let written = std::future::poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
    if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
}

/// Whether a descriptor's other end is closed both ways.
pub(crate) fn fd_hung_up(fd: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(_) => fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
        Err(_) => true,
    }
}
