//! Runs CPU-bound or disk-bound work outside the tasks that serve connections.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::tool::ToolError;

/// Runs `work` on a thread for blocking work. `work` gets the call's token and must check it often: the caller does not
/// wait for it once the call is cancelled.
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &Cx,
    work: impl FnOnce(&CancellationToken) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let token = cx.cancel.clone();
    let work = tokio::task::spawn_blocking(move || work(&token));
    match with_heartbeat(cx, work).await {
        // An error after the token fired is a result of the cancellation.
        Ok(Err(_)) if cx.is_cancelled() => Err(ToolError::Cancelled.into()),
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Err(_) => Err(ToolError::Cancelled.into()),
    }
}

/// Waits for `work`, and reports progress to the caller from time to time: clients give up on calls that are silent for
/// long.
pub(crate) async fn with_heartbeat<F: Future>(cx: &Cx, work: F) -> F::Output {
    let heartbeat = cx.engine.settings.load().heartbeat;
    let start = Instant::now();
    let mut beats = tokio::time::interval_at(start + heartbeat, heartbeat);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            output = &mut work => return output,
            _ = beats.tick() => cx.message(format!("running for {} s", start.elapsed().as_secs())),
        }
    }
}

/// Fails if the call is cancelled.
pub(crate) fn check(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() { Err(ToolError::Cancelled) } else { Ok(()) }
}

/// A file whose reads fail once the call is cancelled.
pub(crate) struct CancellableFile<'a> {
    pub(crate) file: File,
    pub(crate) cancel: &'a CancellationToken,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        check(self.cancel).map_err(io::Error::other)?;
        self.file.read(buffer)
    }
}

impl Seek for CancellableFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
