//! Stdin and stdout as one client's stream.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;

use crate::rpc::byte_stream::{ByteStream, fd_hung_up};

/// Pipes are read without blocking, which is faster; all else goes through tokio's threads.
pub enum Stdio {
    Pipes { input: pipe::Receiver, output: pipe::Sender, restore: RestoreFlags },
    Other { input: tokio::io::Stdin, output: tokio::io::Stdout },
}

/// Puts the flags of the descriptors back, which the parent's other children may share.
pub struct RestoreFlags(Vec<(OwnedFd, OFlags)>);

impl Stdio {
    pub fn open() -> io::Result<Self> {
        let (input, output) = (io::stdin(), io::stdout());
        let pipe =
            |fd: &dyn AsFd| fstat(fd.as_fd()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        if !pipe(&input) || !pipe(&output) {
            return Ok(Self::Other { input: tokio::io::stdin(), output: tokio::io::stdout() });
        }
        let mut restore = Vec::new();
        for fd in [input.as_fd(), output.as_fd()] {
            let flags = fcntl_getfl(fd)?;
            restore.push((fd.try_clone_to_owned()?, flags));
            fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self::Pipes {
            input: pipe::Receiver::from_file(File::from(input.as_fd().try_clone_to_owned()?))?,
            output: pipe::Sender::from_file(File::from(output.as_fd().try_clone_to_owned()?))?,
            restore: RestoreFlags(restore),
        })
    }
}

impl Drop for RestoreFlags {
    fn drop(&mut self) {
        for (fd, flags) in &self.0 {
            // Nothing can be done about it at this point.
            let _ = fcntl_setfl(fd, *flags);
        }
    }
}

impl ByteStream for Stdio {
    fn hung_up(&self) -> bool {
        match self {
            Self::Pipes { output, restore: _, .. } => fd_hung_up(output),
            Self::Other { .. } => fd_hung_up(&io::stdout()),
        }
    }
}

impl AsyncRead for Stdio {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipes { input, .. } => Pin::new(input).poll_read(context, buffer),
            Self::Other { input, .. } => Pin::new(input).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stdio {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipes { output, .. } => Pin::new(output).poll_write(context, bytes),
            Self::Other { output, .. } => {
                // Tokio keeps what it took until it is flushed.
                let written = std::task::ready!(Pin::new(&mut *output).poll_write(context, bytes));
                let _ = Pin::new(output).poll_flush(context)?;
                Poll::Ready(written)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipes { output, .. } => Pin::new(output).poll_flush(context),
            Self::Other { output, .. } => Pin::new(output).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipes { output, .. } => Pin::new(output).poll_shutdown(context),
            Self::Other { output, .. } => Pin::new(output).poll_shutdown(context),
        }
    }
}
