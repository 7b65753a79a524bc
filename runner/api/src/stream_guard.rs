//! Guards an open stream: holds its permit, and ends it with its token or with the API.

use std::{pin::pin, sync::Arc, time::Duration};

use platform_runtime::report;
use runner_store::Error as StoreError;
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;

use crate::{
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
    stream_permits::StreamPermit,
};

/// Interval between two checks of the token of an open stream.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Guard of an open stream.
pub(crate) struct StreamGuard {
    caller: Caller,
    opened: Arc<OpenedStore>,
    stop: CancellationToken,
    /// Times at which the caller's token is checked again.
    check: Interval,
    _permit: StreamPermit,
}

impl StreamGuard {
    /// Returns a guard of a new stream of `caller`.
    ///
    /// # Errors
    /// [`Error::TooManyStreams`].
    pub(crate) fn acquire(
        context: &ApiContext,
        opened: &Arc<OpenedStore>,
        caller: Caller,
    ) -> Result<Self, Error> {
        let permit = context.stream_permits.acquire(caller.name()).ok_or(Error::TooManyStreams)?;
        let check = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
        let opened = Arc::clone(opened);
        Ok(Self { caller, opened, stop: context.stop.clone(), check, _permit: permit })
    }

    /// Waits for the next item. Returns `None` at the end of the stream, at a stop, once the token is revoked, and if
    /// the store fails.
    pub(crate) async fn next<T>(
        &mut self,
        next: impl Future<Output = Result<Option<T>, StoreError>>,
    ) -> Option<T> {
        let mut next = pin!(next);
        let next = loop {
            tokio::select! {
                next = next.as_mut() => break next,
                () = self.stop.cancelled() => return None,
                _ = self.check.tick() => match self.caller.is_still_valid(&self.opened.store).await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => break Err(error),
                },
            }
        };
        or_end(next)
    }
}

/// Returns the item; `None` ends the stream after an error, which is logged.
pub(crate) fn or_end<T>(next: Result<Option<T>, StoreError>) -> Option<T> {
    next.unwrap_or_else(|error| {
        tracing::warn!(error = report::chain(&error), "a stream breaks off");
        None
    })
}
