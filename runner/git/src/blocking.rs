//! blocking runs what takes long, or waits for a disk, on a thread that may block.

use tokio::task::spawn_blocking;

use crate::error::Error;

/// Runs `work` on its own thread.
///
/// # Errors
/// [`Error::Thread`] if the thread ended early.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(|_ended| Error::Thread)
}
