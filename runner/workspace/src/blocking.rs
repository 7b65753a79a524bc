//! Runs work on file systems on a thread that may block.

use tokio::task::spawn_blocking;

use super::error::Error;

/// Runs `work` on its own thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or(Err(Error::Thread))
}
