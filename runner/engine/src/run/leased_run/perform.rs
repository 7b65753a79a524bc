//! Acts in a run's name, and renews the lease on it meanwhile.

use std::time::Duration;

use platform_runtime::{
    poll::poll,
    report,
    retry::{Backoff, Transient, retry_until},
};
use runner_docker::KilledBy;
use runner_store as store;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{LeasedRun, RETRY_DELAY};
use crate::{
    lease_clock::{RENEWALS_PER_LEASE, boot_now, held_until},
    run::error::Error,
};

/// Interval between checks whether a cancel was requested.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(500);

impl LeasedRun {
    /// Performs `operation` in the run's name: at once while no other worker can have taken the run over, otherwise
    /// after the store has confirmed the lease. This check stops a process that was suspended beyond its lease.
    pub(in crate::run) async fn perform<T>(
        &self,
        operation: impl Future<Output = T>,
    ) -> Result<T, store::Error> {
        let mut backoff = Backoff::constant(RETRY_DELAY);
        while boot_now() >= self.held_until.get() {
            match self.renew().await {
                Err(error) if error.is_transient() => backoff.wait().await,
                renewed => renewed?,
            }
        }
        Ok(operation.await)
    }

    /// Performs `operation` as [`Self::perform`] does. Repeats it while its backend is unavailable and the lease holds.
    pub(in crate::run) async fn retry<T, E: Transient>(
        &self,
        operation: impl AsyncFn() -> Result<T, E>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        let deadline = Instant::now() + E::RETRY_TIMEOUT;
        let perform = async || Ok(self.perform(operation()).await??);
        retry_until(deadline, Backoff::constant(RETRY_DELAY), Error::is_transient, perform).await
    }

    /// Performs `operation`, which ends the agent, until its backend answers. An agent that exceeds its limits is ended
    /// even if another worker holds the run by now, because that worker would end it too. An unavailable store does not
    /// give the agent more time.
    pub(in crate::run) async fn enforce<T, E: Transient>(
        &self,
        by: KilledBy,
        mut operation: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        let mut backoff = Backoff::constant(RETRY_DELAY);
        loop {
            let result = match by {
                KilledBy::Timeout | KilledBy::Disk => operation().await,
                KilledBy::Cancel => self.perform(operation()).await?,
            };
            match result {
                Err(error) if error.is_transient() => backoff.wait().await,
                result => return Ok(result?),
            }
        }
    }

    /// Renews the lease until another worker has taken the run over; returns the error that shows it. While the store
    /// is unavailable, the run continues. Triggers `cancel` when a cancel is requested.
    pub(in crate::run) async fn keep_lease(&self, cancel: &CancellationToken) -> store::Error {
        let watch_cancel = async {
            let is_requested = async || {
                self.store.is_cancel_requested(&self.token.run_id).await.unwrap_or(false).then_some(())
            };
            poll(CANCEL_POLL_INTERVAL, is_requested).await;
            cancel.cancel();
            std::future::pending().await
        };
        tokio::select! {
            lost = self.renew_until_lost() => lost,
            never = watch_cancel => never,
        }
    }

    async fn renew_until_lost(&self) -> store::Error {
        loop {
            sleep(self.lease.duration() / RENEWALS_PER_LEASE).await;
            match self.renew().await {
                Err(lost @ (store::Error::Fenced { .. } | store::Error::Unknown { .. })) => return lost,
                Err(error) => {
                    tracing::warn!(run = %self.token.run_id, error = report::chain(&error), "lease not renewed");
                }
                Ok(()) => {}
            }
        }
    }

    async fn renew(&self) -> Result<(), store::Error> {
        let since = boot_now();
        self.store.renew(&self.token, self.lease).await?;
        self.extend_lease(since);
        Ok(())
    }

    /// Extends the time for which the lease is held, after an acquisition or renewal not before `since`.
    pub(super) fn extend_lease(&self, since: Duration) {
        self.held_until.set(held_until(since, self.lease));
    }
}
