//! Guards an open stream: holds its permit, and ends it with its token or with the API.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

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
        loop {
            tokio::select! {
                next = next.as_mut() => return or_end(next),
                () = self.stop.cancelled() => return None,
                _ = self.check.tick() => {}
            }
            let check = self.caller.is_still_valid(&self.opened.store);
            let (is_valid, item) = tokio::select! {
                checked = check_beside(check, next.as_mut()) => checked,
                () = self.stop.cancelled() => return None,
            };
            or_end(is_valid.map(|is_valid| is_valid.then_some(())))?;
            if let Some(item) = item {
                return or_end(item);
            }
        }
    }
}

/// Returns the result of `check`, and the item if it comes meanwhile. It is waited for beside the check, because it may
/// hold the connection to the store that the check needs.
async fn check_beside<C, T>(
    check: impl Future<Output = C>,
    next: Pin<&mut impl Future<Output = T>>,
) -> (C, Option<T>) {
    let mut check = pin!(check);
    tokio::select! {
        checked = check.as_mut() => (checked, None),
        item = next => (check.await, Some(item)),
    }
}

/// Returns the item; `None` ends the stream after an error, which is logged.
fn or_end<T>(next: Result<Option<T>, StoreError>) -> Option<T> {
    next.unwrap_or_else(|error| {
        tracing::warn!(error = report::chain(&error), "a stream breaks off");
        None
    })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::{sync::Semaphore, task::yield_now, time::timeout};

    use super::*;

    #[tokio::test]
    async fn a_check_needs_no_second_connection() {
        let connections = Semaphore::new(1);
        let uses = async |answer: bool| {
            let _connection = connections.acquire().await.unwrap();
            yield_now().await;
            answer
        };
        let mut next = pin!(uses(true));
        assert_eq!(next.as_mut().now_or_never(), None, "it holds the connection");
        let checked = timeout(CHECK_INTERVAL, check_beside(uses(false), next)).await;
        assert_eq!(checked, Ok((false, Some(true))));
    }
}
