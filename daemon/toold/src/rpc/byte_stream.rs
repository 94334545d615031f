//! A client's stream of bytes, which a transport accepts, frames, and may hand over to the Model Context Protocol.

use std::os::fd::AsFd;

use tokio::io::{AsyncRead, AsyncWrite};

/// A stream, and a way to see that the other end is gone for good.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Called only after the end of what can be read: true when nobody can read our answers any more.
    fn hung_up(&self) -> bool;
}

/// Whether a descriptor's other end is closed both ways.
pub(crate) fn fd_hung_up(fd: &impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(_) => fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
        Err(_) => true,
    }
}
