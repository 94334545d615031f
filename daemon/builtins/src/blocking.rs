//! Work that computes or waits for the disk, away from the tasks that serve connections.

use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::tool::ToolError;

/// Runs `work` on a thread for blocking work. It gets the call's token and must look at it often: the
/// caller does not wait for it once the call is cancelled.
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &Cx,
    work: impl FnOnce(&CancellationToken) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let token = cx.cancel.clone();
    let work = tokio::task::spawn_blocking(move || work(&token));
    match work.await {
        // Whatever broke off when the token fired, that was the reason.
        Ok(Err(_)) if cx.is_cancelled() => Err(ToolError::Cancelled.into()),
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime stops.
        Err(_) => Err(ToolError::Cancelled.into()),
    }
}

/// An error when the call is cancelled.
pub(crate) fn check(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() { Err(ToolError::Cancelled) } else { Ok(()) }
}
