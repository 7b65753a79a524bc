//! Spawns tasks, each with a name.
//!
//! `tokio::spawn` is banned by lint so that every task passes through here. A panic in a task is logged with the task's
//! name and ends that task only. A caller that needs the outcome keeps the handle.

use std::future::Future;

use tokio::task::{JoinHandle, spawn_blocking};
use tracing::Instrument;

/// End of a thread before its work was done.
#[derive(Debug, Clone, Copy)]
pub struct ThreadEnded;

/// Does `work` that takes long, or waits for a disk, on a thread that may block. Without the outcome it is done, too.
///
/// # Errors
/// Those of the work, and [`ThreadEnded`] if it panics.
pub async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<ThreadEnded> + Send + 'static,
{
    spawn_blocking(work).await.unwrap_or_else(|_ended| Err(ThreadEnded.into()))
}

/// Spawns `future` on the current thread's runtime. Dropping the handle lets it run on.
///
/// # Panics
/// Outside a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "the one place that may")]
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::debug_span!("task", name)))
}

/// Spawns `future` on the current thread's runtime, for futures that stay on their thread. Dropping the handle lets it
/// run on.
///
/// # Panics
/// Outside a [`tokio::runtime::LocalRuntime`].
pub fn spawn_local<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    tokio::task::spawn_local(future.instrument(tracing::debug_span!("task", name)))
}
