//! Reads files on threads for blocking work, so that the thread of the API waits for no disk.

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::{caller::Caller, context::ApiContext, error::Error};

/// Does `work` for `caller` on its own thread, one of a few at a time. Cancels the token if the request is given up.
pub(crate) async fn do_blocking<T: Send + 'static>(
    context: &ApiContext,
    caller: &Caller,
    work: impl FnOnce(&CancellationToken) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let permit = context.file_jobs.acquire(caller.account()).await?;
    let given_up = CancellationToken::new();
    let _cancel = given_up.clone().drop_guard();
    let job = move || {
        // Held until the work ends, even if the client does not wait for it.
        let _permit = permit;
        work(&given_up)
    };
    spawn_blocking(job).await.unwrap_or(Err(Error::Internal))
}
