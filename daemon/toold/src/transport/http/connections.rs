//! The connections on HTTP that are open at one time. Those that have not shown a token cost nobody else anything: when
//! there is no place left, the oldest of them is closed, and a header that was begun must arrive soon.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// The places for all connections together.
pub(super) struct Connections {
    places: Arc<Semaphore>,
    waiting: Arc<WithoutToken>,
    next_number: u64,
}

/// The connections that have shown no token yet, the oldest first, and what closes each.
type WithoutToken = Mutex<BTreeMap<u64, CancellationToken>>;

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max)), waiting: Arc::default(), next_number: 0 }
    }

    /// A place for a connection that has just come. When there is none, the oldest connection without a token is closed;
    /// when all have shown one, waits until one of them ends.
    pub(super) async fn place(&mut self) -> Arc<ConnectionPlace> {
        let permit = match self.places.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                if let Some((_, oldest)) = self.waiting.lock().pop_first() {
                    tracing::debug!("an HTTP connection without a token is closed to make room");
                    oldest.cancel();
                }
                self.places.clone().acquire_owned().await.expect("nobody closes it")
            }
        };
        let (number, closing) = (self.next_number, CancellationToken::new());
        self.next_number += 1;
        self.waiting.lock().insert(number, closing.clone());
        Arc::new(ConnectionPlace { number, closing, waiting: self.waiting.clone(), _permit: permit })
    }
}

/// A connection's place. Free again once nobody holds it.
pub(super) struct ConnectionPlace {
    number: u64,
    closing: CancellationToken,
    waiting: Arc<WithoutToken>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPlace {
    /// From now on the connection is never closed to make room.
    pub(super) fn has_shown_a_token(&self) {
        self.waiting.lock().remove(&self.number);
    }

    /// Waits until the connection must make room for another one.
    pub(super) fn closing(&self) -> WaitForCancellationFuture<'_> {
        self.closing.cancelled()
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.number);
    }
}

/// A client's stream, and how many bytes came on it so far.
pub(super) struct CountedStream<S> {
    stream: S,
    received: Arc<AtomicU64>,
}

impl<S> CountedStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, received: Arc::default() }
    }

    /// The timer for this stream's headers: each must arrive within `header` of its first byte, and the first one of
    /// the connection's beginning. Between two requests the client may be idle for as long as Hyper's own
    /// `header_read_timeout` says, which is the only thing that Hyper's server asks this timer for.
    pub(super) fn header_timer(&self, header: Duration) -> HeaderTimer {
        HeaderTimer { received: self.received.clone(), header }
    }
}

/// Made by [`CountedStream::header_timer`].
pub(super) struct HeaderTimer {
    received: Arc<AtomicU64>,
    header: Duration,
}

impl Timer for HeaderTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let before = self.received.load(Ordering::Relaxed);
        let mut wait = HeaderWait {
            received: self.received.clone(),
            header: self.header,
            idle_since: Some(before),
            end: Box::pin(tokio::time::sleep_until(deadline.into())),
        };
        if before == 0 {
            wait.begin();
        }
        Box::pin(wait)
    }
}

/// Ends when a client has taken too long for a header.
struct HeaderWait {
    received: Arc<AtomicU64>,
    header: Duration,
    /// What had been received when the wait began; `None` once the header has begun.
    idle_since: Option<u64>,
    end: Pin<Box<tokio::time::Sleep>>,
}

impl HeaderWait {
    fn begin(&mut self) {
        self.idle_since = None;
        let end = self.end.deadline().min(tokio::time::Instant::now() + self.header);
        self.end.as_mut().reset(end);
    }
}

impl Sleep for HeaderWait {}

impl Future for HeaderWait {
    type Output = ();

    /// Hyper polls it after each read that did not complete the header.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.idle_since.is_some_and(|before| before != self.received.load(Ordering::Relaxed)) {
            self.begin();
        }
        self.end.as_mut().poll(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.received.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_oldest_without_a_token_makes_room() {
        let mut connections = Connections::new(3);
        let (first, second) = (connections.place().await, connections.place().await);
        let third = connections.place().await;
        first.has_shown_a_token();
        assert!(connections.place().now_or_never().is_none(), "the place is not free before its connection has ended");
        assert!(second.closing().now_or_never().is_some());
        assert!(third.closing().now_or_never().is_none());
        drop(second);
        let fourth = connections.place().await;
        third.has_shown_a_token();
        fourth.has_shown_a_token();
        assert!(connections.place().now_or_never().is_none());
        for place in [&first, &third, &fourth] {
            assert!(place.closing().now_or_never().is_none(), "connections with a token stay");
        }
        drop(first);
        assert!(connections.place().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_that_was_begun_must_arrive_and_an_idle_client_may_wait() {
        let received = Arc::new(AtomicU64::new(0));
        let timer = HeaderTimer { received: received.clone(), header: Duration::from_secs(2) };
        let took = async |wait: Pin<Box<dyn Sleep>>| {
            let start = tokio::time::Instant::now();
            wait.await;
            start.elapsed().as_secs()
        };
        let idle = || tokio::time::Instant::now().into_std() + Duration::from_secs(60);
        assert_eq!(took(timer.sleep_until(idle())).await, 2, "the first header");
        received.store(10, Ordering::Relaxed);
        assert_eq!(took(timer.sleep_until(idle())).await, 60, "no byte of the next one");
        let mut begun = timer.sleep_until(idle());
        assert!(begun.as_mut().now_or_never().is_none());
        received.store(11, Ordering::Relaxed);
        assert!(begun.as_mut().now_or_never().is_none());
        // Further bytes give no further time.
        received.store(12, Ordering::Relaxed);
        assert_eq!(took(begun).await, 2, "a byte of the next one");
    }
}
