//! Creates the runtime of a command, which a signal cancels.

use std::io;

use platform_runtime::{shutdown, task};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// Returns the runtime of a command.
pub(super) fn create_runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Returns a token that the first SIGINT, SIGTERM or SIGHUP cancels. Later signals change nothing, because clean-up is
/// short.
pub(super) fn cancel_on_signals() -> io::Result<CancellationToken> {
    let cancel = CancellationToken::new();
    let signalled = shutdown::signalled(shutdown::RunBy::Person)?;
    let cancelled = cancel.clone();
    task::spawn("signals", async move {
        signalled.await;
        cancelled.cancel();
        // The handlers stay installed as long as this task exists.
        std::future::pending::<()>().await;
    });
    Ok(cancel)
}
