//! Spawns tasks, each with a name.
//!
//! `tokio::spawn` is banned by lint so that every task passes through here. A panic in a task is logged with the task's
//! name and ends that task only. A caller that needs the outcome keeps the handle.

use std::future::Future;

use tokio::task::JoinHandle;
use tracing::Instrument;

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
