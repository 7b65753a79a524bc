//! Repeats operations of the store after transient failures.
//!
//! Unlike [`platform_runtime::retry`], passes to a repeated operation whether an earlier try may have been committed.

use std::time::{Duration, Instant};

use platform_runtime::{report, retry::Transient};

use super::{
    Store, Tx,
    error::{Committed, Error},
    meter::Meter,
};

/// Delays before the retries of a failed operation.
const RETRY_DELAYS: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(500), MAX_RETRY_DELAY];
/// Longest delay; also the delay before each further retry within `max_wait`.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Condition under which an operation is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryWhen {
    /// The operation is idempotent.
    Always,
    /// The operation is not idempotent: it is retried only if it was certainly not committed.
    UnlessDone,
}

/// Retries for the operations of one store, with their measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retrier<'s> {
    /// Address of the store, as shown in logs.
    pub(super) store: &'s str,
    pub(super) meter: &'s Meter,
    /// Time during which an operation is retried while the store is unavailable; zero for only the first four retries.
    pub(super) max_wait: Duration,
}

impl Store {
    /// Gives `work` a transaction that sees one state of the store. Repeats both after transient failures.
    pub(super) async fn read<T, F: Future<Output = Result<T, Error>>>(
        &self,
        work: impl Fn(Tx) -> F,
    ) -> Result<T, Error> {
        self.retry(async || work(self.begin_with(self.backend.begin_snapshot()).await?).await).await
    }

    /// Gives idempotent `work` a transaction that may write. Repeats both after transient failures.
    pub(super) async fn write<T, F: Future<Output = Result<T, Error>>>(
        &self,
        work: impl Fn(Tx) -> F,
    ) -> Result<T, Error> {
        self.retry(async || work(self.begin().await?).await).await
    }

    /// Repeats an idempotent `operation` a few times while its failures are transient.
    pub(super) async fn retry<T, F: Future<Output = Result<T, Error>>>(
        &self,
        operation: impl Fn() -> F,
    ) -> Result<T, Error> {
        self.retrier(Duration::ZERO).run(RetryWhen::Always, |_| operation()).await
    }

    /// Repeats an `operation` that is not idempotent: only while it was certainly not committed.
    pub(super) async fn retry_unless_done<T, F: Future<Output = Result<T, Error>>>(
        &self,
        operation: impl Fn() -> F,
    ) -> Result<T, Error> {
        self.retrier(Duration::ZERO).run(RetryWhen::UnlessDone, |_| operation()).await
    }

    /// Returns a retrier that waits up to `max_wait` for an unavailable store.
    pub(super) fn retrier(&self, max_wait: Duration) -> Retrier<'_> {
        Retrier { store: &self.address, meter: &self.meter, max_wait }
    }
}

impl Retrier<'_> {
    /// Repeats `operation` until it succeeds, fails permanently, or has no retries left. Passes to it whether an
    /// earlier try may have been committed.
    pub(super) async fn run<T, F: Future<Output = Result<T, Error>>>(
        self,
        when: RetryWhen,
        operation: impl Fn(Committed) -> F,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let result = self.repeat(when, operation).await;
        self.meter.record(started.elapsed(), result.as_ref().err());
        result
    }

    async fn repeat<T, F: Future<Output = Result<T, Error>>>(
        self,
        when: RetryWhen,
        operation: impl Fn(Committed) -> F,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + self.max_wait;
        let mut earlier_try = Committed::No;
        let mut delays = RETRY_DELAYS.into_iter();
        loop {
            let error = match operation(earlier_try).await {
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
                earlier_try = Committed::Perhaps;
            }
            tracing::debug!(store = %self.store, error = report::chain(&error), "store operation is retried");
            self.meter.count_retry();
            tokio::time::sleep(delay).await;
        }
    }
}
