//! Repeats operations of the store whose failures are transient.
//!
//! Unlike [`platform_runtime::retry`], a repeated operation learns whether an earlier try may have been committed.

use std::time::{Duration, Instant};

use platform_runtime::{report, retry::Transient};

use super::{
    error::{Committed, Error},
    meter::Meter,
};

/// Delays before the retries of a failed operation.
const RETRY_DELAYS: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(500), MAX_RETRY_DELAY];
/// Longest delay, and the one before each further retry while an unavailable store is waited for.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Condition under which an operation is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryWhen {
    /// The operation is idempotent.
    Always,
    /// The operation is not idempotent: it is retried only if it was certainly not done.
    UnlessDone,
}

/// Retries the operations of one store, and measures them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retrier<'s> {
    /// Address of the store, as shown in logs.
    pub(super) store: &'s str,
    pub(super) meter: &'s Meter,
    /// Time for which an unavailable store is waited for, at least.
    pub(super) max_wait: Duration,
}

impl Retrier<'_> {
    /// Does `operation` until it succeeds, fails for good, or its retries are used up. `operation` receives whether an
    /// earlier try may have been committed.
    pub(super) async fn run<T>(
        self,
        when: RetryWhen,
        operation: impl AsyncFn(Committed) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let done = self.repeat(when, operation).await;
        self.meter.record(began.elapsed(), done.as_ref().err());
        done
    }

    async fn repeat<T>(
        self,
        when: RetryWhen,
        operation: impl AsyncFn(Committed) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + self.max_wait;
        let mut before = Committed::No;
        let mut delays = RETRY_DELAYS.into_iter();
        loop {
            let error = match operation(before).await {
                Err(error) if when == RetryWhen::Always || !error.may_be_done() => error,
                result => return result,
            };
            let delay = match delays.next() {
                Some(delay) if error.is_short_lived() => delay,
                _ if error.is_transient() && Instant::now() < deadline => {
                    tracing::warn!(store = %self.store, error = report::chain(&error), "store unavailable; waiting for it");
                    MAX_RETRY_DELAY
                }
                _ => return Err(error),
            };
            if error.may_be_done() {
                before = Committed::Perhaps;
            }
            tracing::debug!(store = %self.store, error = report::chain(&error), "store operation is retried");
            self.meter.count_retry();
            tokio::time::sleep(delay).await;
        }
    }
}
