//! Runs work that waits for the disk.

use tokio::task::spawn_blocking;

use super::error::RelayError;

/// Runs `work`, which waits for the disk, on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RelayError> + Send + 'static,
) -> Result<T, RelayError> {
    spawn_blocking(work).await.map_err(|_panicked| RelayError::Thread)?
}
