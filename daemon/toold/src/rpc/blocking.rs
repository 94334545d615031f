//! Work of methods that may block.

use jsonrpsee::types::ErrorObjectOwned;

use crate::rpc::error::internal;

/// Runs the work on a thread for blocking work.
///
/// # Errors
/// It panics, which is an internal error for the client, or the runtime is shutting down.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorObjectOwned> {
    tokio::task::spawn_blocking(work).await.map_err(|error| internal(&error.to_string()))
}
