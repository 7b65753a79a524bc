//! Claims queued runs, and takes over runs that other workers left.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use platform_runtime::report;
use runner_store::Run;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::{RETRY_DELAY, Work, WorkLoop};
use crate::{
    lease_clock,
    run::{LeaseError, LeasedRun},
};

/// Interval between polls of the queue: a queued run waits half of this on average.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Interval between polls for runs that other workers left, and for backends that were unavailable.
const ABANDONED_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Result of a poll for runs.
enum Polled {
    Work(Box<Work>),
    /// No run is available.
    NoRun,
    /// Runs may be available, but none can be started at the moment.
    NotNow,
}

impl WorkLoop<'_> {
    /// Claims runs, abandoned ones first, and sends them to be executed.
    pub(super) async fn claim_runs(&self, to_execute: mpsc::Sender<Work>) {
        let mut polled_abandoned = None::<Instant>;
        while !self.stop.is_cancelled() {
            let claim = match polled_abandoned {
                Some(at) if at.elapsed() < ABANDONED_POLL_INTERVAL => self.claim_queued().await,
                _ => {
                    polled_abandoned = Some(Instant::now());
                    self.take_over().await
                }
            };
            match claim {
                Ok(Polled::Work(work)) => {
                    self.active_runs.borrow_mut().push(work.run.request.run_id.clone());
                    // A run without a permit was abandoned: other abandoned runs are looked for at once.
                    polled_abandoned = polled_abandoned.filter(|_| work.permit.is_some());
                    // The receiver lives as long as this future.
                    drop(to_execute.send(*work).await);
                }
                Ok(Polled::NoRun) => tokio::time::sleep(QUEUE_POLL_INTERVAL).await,
                Ok(Polled::NotNow) => tokio::time::sleep(ABANDONED_POLL_INTERVAL).await,
                Err(error) => {
                    tracing::warn!(error = report::chain(&error), "no runs claimed");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
        std::future::pending().await
    }

    /// Takes over a run that another worker has left. Runs that this process executes are excluded.
    async fn take_over(&self) -> Result<Polled, LeaseError> {
        let engine = self.engine;
        let active_runs = self.active_runs.borrow().clone();
        let since = lease_clock::boot_now();
        let abandoned = engine.store.take_over(&engine.worker, engine.lease, &active_runs).await;
        let Some(run) = abandoned.map_err(LeaseError::NotStored)? else { return Ok(Polled::NoRun) };
        tracing::info!(run = %run.run_id, state = %run.state, epoch = run.epoch, "taken over");
        self.load(&run, since, None).await
    }

    /// Claims a queued run, if a permit is available. A poll that finds none costs one small query.
    async fn claim_queued(&self) -> Result<Polled, LeaseError> {
        let engine = self.engine;
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else { return Ok(Polled::NoRun) };
        if !engine.store.is_anything_queued().await.map_err(LeaseError::NotStored)? {
            return Ok(Polled::NoRun);
        }
        if let Err(error) = engine.workspaces.disk_space().and_then(|space| Ok(space.enough()?)) {
            tracing::warn!(error = report::chain(&error), "not claiming runs: insufficient disk space");
            return Ok(Polled::NotNow);
        }
        if !self.are_backends_available().await {
            return Ok(Polled::NotNow);
        }
        let since = lease_clock::boot_now();
        let claimed = engine.store.claim(&engine.worker, engine.lease).await;
        match claimed.map_err(LeaseError::NotStored)? {
            Some(run) => self.load(&run, since, Some(permit)).await,
            None => Ok(Polled::NoRun),
        }
    }

    /// Returns whether the backends could start a run now. A queued run waits for them instead of failing.
    async fn are_backends_available(&self) -> bool {
        let engine = self.engine;
        let (data_plane, docker) = tokio::join!(engine.data_plane.health(), engine.docker.version());
        let errors = [
            data_plane.err().map(|error| report::chain(&error)),
            docker.err().map(|error| report::chain(&error)),
        ];
        let errors: Vec<_> = errors.into_iter().flatten().collect();
        if !errors.is_empty() {
            tracing::warn!(away = errors.join("; "), "not claiming runs: backend unavailable");
        }
        errors.is_empty()
    }

    /// Prepares a leased run for execution, unless its stored request cannot be read.
    async fn load(
        &self,
        run: &Run,
        since: Duration,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Polled, LeaseError> {
        match LeasedRun::load(self.engine, run, since).await {
            Ok(run) => Ok(Polled::Work(Box::new(Work { run, permit }))),
            Err(error @ LeaseError::Unreadable(_)) => {
                tracing::error!(run = %run.run_id, error = report::chain(&error), "run not executed");
                Ok(Polled::NoRun)
            }
            Err(error) => Err(error),
        }
    }
}
