//! Passes bytes on between a program and a host, and counts them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use toold_proto::audit::HostTraffic;

/// A larger one is no faster.
const BUFFER: usize = 128 * 1024;

/// What a call has exchanged with a host so far.
#[derive(Default)]
pub(super) struct TrafficCounter {
    pub(super) connections: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

impl TrafficCounter {
    pub(super) fn total(&self) -> HostTraffic {
        HostTraffic {
            connections: self.connections.load(Ordering::Relaxed),
            sent_bytes: self.sent.load(Ordering::Relaxed),
            received_bytes: self.received.load(Ordering::Relaxed),
        }
    }
}

/// Passes everything on in both directions, until both have ended or one has failed. One that ends first stays closed
/// while the other goes on.
pub(super) async fn both_ways(client: &mut TcpStream, host: &mut TcpStream, counter: &TrafficCounter) {
    let (from_client, to_client) = client.split();
    let (from_host, to_host) = host.split();
    // An error is the end of the connection, of which both sides learn.
    let _ = tokio::try_join!(
        pass_on(from_client, to_host, &counter.sent),
        pass_on(from_host, to_client, &counter.received),
    );
}

async fn pass_on(from: ReadHalf<'_>, to: WriteHalf<'_>, counter: &AtomicU64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Ok(pipe) = kernel::pipe() {
        return kernel::pass_on(pipe, from, to, counter).await;
    }
    copy(from, to, counter).await
}

async fn copy(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, counter: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
        counter.fetch_add(read as u64, Ordering::Relaxed);
    }
}

/// Moves bytes inside the kernel, which copies less.
#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::OwnedFd;

    use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
    use tokio::io::Interest;

    use super::{AsyncWriteExt, AtomicU64, Ordering, ReadHalf, TcpStream, WriteHalf, io};

    /// The most that is between the two sides.
    const PIPE: usize = 256 * 1024;

    pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
        let (end, start) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one is slower, and works.
        let _ = fcntl_setpipe_size(&start, PIPE);
        Ok((end, start))
    }

    pub(super) async fn pass_on(
        (end, start): (OwnedFd, OwnedFd),
        from: ReadHalf<'_>,
        mut to: WriteHalf<'_>,
        counter: &AtomicU64,
    ) -> io::Result<()> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        loop {
            let source: &TcpStream = from.as_ref();
            // The pipe is empty, so only the source lets this wait.
            let take = || splice(source, None, &start, None, PIPE, flags).map_err(io::Error::from);
            let mut left = source.async_io(Interest::READABLE, take).await?;
            if left == 0 {
                return to.shutdown().await;
            }
            while left > 0 {
                let target: &TcpStream = to.as_ref();
                let give = || splice(&end, None, target, None, left, flags).map_err(io::Error::from);
                let given = target.async_io(Interest::WRITABLE, give).await?;
                if given == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                left -= given;
                counter.fetch_add(given as u64, Ordering::Relaxed);
            }
        }
    }
}
