//! Work that may block its thread, without holding up the runtime's other tasks.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Handle, RuntimeFlavor};

/// A future whose polls may block: while one blocks, the runtime uses another thread in place of
/// its own. On a single-threaded runtime it is polled like any other.
pub struct Blocking<F>(pub F);

impl<F: Future + Unpin> Future for Blocking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        run_blocking(|| Pin::new(&mut self.0).poll(context))
    }
}

/// Does something that may block on a thread for blocking work. A panic of it continues here; while the runtime shuts down,
/// the future stays pending.
pub async fn run_elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

/// Does something that may block. See [`Blocking`].
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
