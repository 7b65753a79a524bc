//! Keeps warm containers: started and isolated, each for one run only, with its own workspace and socket directory.
//!
//! `sluice up` keeps as many as agents' entries configure. Each has a row from before its first part is created until
//! its last part is removed. A run claims one by recording its resources as the run's own (`run::provision`). From then
//! on the pool ignores it. The pool removes containers that no longer fit any entry or have ended while they waited. It
//! creates them one after the other, so that their creation does not delay runs.
//!
//! See `reaper` for the removal of other resources that an ended process has left.

mod create;
mod remove;
mod snapshot;
mod template;

use std::{cell::Cell, collections::BTreeMap, convert::Infallible, time::Duration};

use futures_util::{StreamExt, stream};
use platform_runtime::{report, retry::Backoff};
use runner_control_client as data_plane;
use runner_docker as docker;
use runner_store::{self as store, PoolEntry, PoolStage};
use runner_workspace as workspace;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::snapshot::PoolSnapshot;
pub(crate) use self::{remove::remove_parts, template::ContainerTemplate};
use crate::{
    agents::Catalog,
    context::EngineHandles,
    lease_clock::{RENEWALS_PER_LEASE, boot_now, held_until},
};

/// Interval between checks whether a run has claimed a warm container.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between observations of images and containers.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// First delay after a failure.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest delay after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Longest time for removing all warm containers at the end. The next `sluice up` or the reaper removes the rest.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of containers that are removed at the same time.
const MAX_CONCURRENT_REMOVALS: usize = 4;

/// Reason why the pool has no warm container.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] store::Error),
    /// The data plane failed.
    #[error("the data plane failed")]
    DataPlane(#[from] data_plane::Error),
    /// The workspace failed, or the disk has no space for another.
    #[error("the workspace failed")]
    Workspace(#[from] workspace::Error),
    /// Docker failed.
    #[error("the sandbox failed")]
    Docker(#[from] docker::Error),
    /// The image does not support warm containers.
    #[error(
        "containers of image {image} do not wait for a start file: an image that does names its entrypoint on the label `{}` and has no command; or set `warm_pool_size` to 0",
        platform_core::name::label::ENTRYPOINT
    )]
    NeverWaits {
        /// Image in the agent's settings.
        image: String,
    },
    /// Workspaces are directories on this host, so nothing bounds the disk use of a warm container.
    #[error("workspaces are directories here, and nothing would bound what waits: they have to be images")]
    Unbounded,
    /// A warm container ended while it waited for a run.
    #[error("container {container} of image {image} has ended while it waited")]
    Ended {
        /// Name of the container.
        container: String,
        /// Id of its image.
        image: String,
    },
    /// The warm container may belong to another process by now.
    #[error("it is another's by now: this process was held up for longer than its lease")]
    Lost,
}

/// Pool of this process's warm containers.
#[derive(Debug)]
pub(crate) struct Pool<'e> {
    engine: &'e EngineHandles,
    catalog: &'e Catalog,
    /// Moment of the boot clock until which no other process can begin to remove this process's containers.
    held_until: Cell<Duration>,
    /// True if this process has no warm containers, as far as it knows.
    is_empty: Cell<bool>,
}

/// Last snapshot that the pool took.
#[derive(Default)]
struct LastSnapshot {
    snapshot: PoolSnapshot,
    /// Time of the snapshot; absent if a new one is due.
    taken: Option<Instant>,
}

impl<'e> Pool<'e> {
    pub(crate) const fn new(engine: &'e EngineHandles, catalog: &'e Catalog) -> Self {
        Self { engine, catalog, held_until: Cell::new(Duration::ZERO), is_empty: Cell::new(true) }
    }

    /// Keeps the configured number ready until `stop` is triggered; then removes all. The caller must poll this to its
    /// end: dropping it would leave containers that are being created without an owner.
    pub(crate) async fn maintain(&self, stop: &CancellationToken) {
        let give_up = async {
            stop.cancelled().await;
            sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            () = self.fill(stop) => {}
            never = self.renew() => match never {},
            () = give_up => {}
        }
        self.drain().await;
    }

    async fn fill(&self, stop: &CancellationToken) {
        let mut last = LastSnapshot::default();
        let mut backoff = Backoff::new(MIN_RETRY_DELAY, MAX_RETRY_DELAY);
        let mut last_error = String::new();
        while !stop.is_cancelled() {
            let delay = match self.fill_once(&mut last).await {
                Ok(()) => {
                    backoff.reset();
                    last_error.clear();
                    POLL_INTERVAL
                }
                Err(error) => {
                    let error = report::chain(&error);
                    if error != last_error {
                        tracing::warn!(error, "fewer warm containers than configured");
                        last_error = error;
                    }
                    last.taken = None;
                    backoff.next_delay()
                }
            };
            drop(timeout(delay, stop.cancelled()).await);
        }
    }

    /// Takes a new snapshot if the last one is old, and removes and creates containers accordingly.
    async fn fill_once(&self, last: &mut LastSnapshot) -> Result<(), Error> {
        if last.taken.is_none_or(|at| at.elapsed() >= REFRESH_INTERVAL) {
            let now = self.observe().await?;
            now.log_new_problems(&last.snapshot);
            for removed in last.snapshot.agents.iter().filter(|agent| !now.agents.contains(agent)) {
                self.engine.observer.metrics.set_pool(removed, 0, 0);
            }
            *last = LastSnapshot { snapshot: now, taken: Some(Instant::now()) };
        }
        // Most installations have no warm containers; for them a pass costs nothing.
        if last.snapshot.targets.is_empty() && self.is_empty.get() {
            return Ok(());
        }
        self.reconcile(&mut last.snapshot).await
    }

    /// Removes containers that are no longer wanted, and creates at most one that is missing. A failure with one does
    /// not stop the removal of the others.
    async fn reconcile(&self, snapshot: &mut PoolSnapshot) -> Result<(), Error> {
        let managed = self.managed_entries().await?;
        self.is_empty.set(managed.is_empty());
        self.update_metrics(snapshot, &managed);
        let targets = snapshot.targets.iter();
        let mut missing: BTreeMap<_, _> =
            targets.map(|(template, target)| (template.as_str(), target.count)).collect();
        let mut failures = Vec::new();
        for entry in &managed {
            let shortfall = missing.get_mut(entry.warm.template.as_str()).filter(|shortfall| **shortfall > 0);
            match shortfall {
                Some(shortfall) if entry.stage == PoolStage::Ready && self.is_own(entry) => {
                    if snapshot.may_run(entry) {
                        *shortfall -= 1;
                        continue;
                    }
                    failures.push(snapshot.ended_error(entry));
                }
                _ => {}
            }
            failures.extend(self.release(entry).await.err());
        }
        if let Some(error) = failures.into_iter().next() {
            return Err(error);
        }
        if snapshot.insufficient_disk.is_some() {
            return self.free_disk_space(&managed).await;
        }
        let next = missing.into_iter().find(|(_, shortfall)| *shortfall > 0);
        let next = next.and_then(|(template, _)| snapshot.targets.get_key_value(template));
        if let Some((template, target)) = next {
            let created = self.create(template, target).await?;
            self.is_empty.set(false);
            snapshot.running.iter_mut().for_each(|running| running.push(created.container.clone()));
        }
        Ok(())
    }

    /// Removes one warm container, so that runs that cannot use it have disk space.
    async fn free_disk_space(&self, managed: &[PoolEntry]) -> Result<(), Error> {
        match managed.iter().find(|entry| entry.stage == PoolStage::Ready) {
            Some(entry) => {
                tracing::warn!(
                    container = entry.warm.container,
                    "warm container removed to free disk space for runs"
                );
                self.release(entry).await
            }
            None => Ok(()),
        }
    }

    /// Removes all warm containers of this process.
    async fn drain(&self) {
        let removed = timeout(DRAIN_TIMEOUT, async {
            let managed = self.managed_entries().await?;
            let removing = managed.iter().map(|entry| self.release(entry));
            let ended: Vec<_> =
                stream::iter(removing).buffer_unordered(MAX_CONCURRENT_REMOVALS).collect().await;
            ended.into_iter().collect::<Result<Vec<()>, Error>>()
        });
        match removed.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = report::chain(&error), "warm container not removed; left for gc");
            }
            Err(_elapsed) => tracing::warn!("removing warm containers took too long; they are left for gc"),
        }
    }

    /// Renews the lease on the warm containers, so that no other process judges them as abandoned.
    async fn renew(&self) -> Infallible {
        let EngineHandles { store, worker, lease, .. } = self.engine;
        loop {
            let since = boot_now();
            if !self.is_empty.get() {
                match store.keep_warm_containers(worker, *lease).await {
                    Ok(()) => self.extend_lease(since),
                    Err(error) => {
                        tracing::warn!(error = report::chain(&error), "lease on warm containers not renewed");
                    }
                }
            }
            sleep(lease.duration() / RENEWALS_PER_LEASE).await;
        }
    }

    /// Extends the time for which the lease is held, after an acquisition or renewal not before `since`.
    fn extend_lease(&self, since: Duration) {
        self.held_until.set(held_until(since, self.engine.lease));
    }

    /// Returns the entries that this process manages: its own, and those that an ended process has left.
    async fn managed_entries(&self) -> Result<Vec<PoolEntry>, Error> {
        let mut rows = self.engine.store.pool().await?;
        rows.retain(|row| row.stage != PoolStage::Gone && (self.is_own(row) || row.lease_expired));
        Ok(rows)
    }

    fn is_own(&self, entry: &PoolEntry) -> bool {
        entry.owner == self.engine.worker.to_string()
    }

    /// Updates the metrics of the pool.
    fn update_metrics(&self, snapshot: &PoolSnapshot, managed: &[PoolEntry]) {
        for agent in &snapshot.agents {
            let count = |stage| {
                let is_counted = |entry: &&PoolEntry| entry.stage == stage && entry.warm.agent == *agent;
                managed.iter().filter(is_counted).count() as u64
            };
            self.engine.observer.metrics.set_pool(agent, count(PoolStage::Ready), count(PoolStage::Wanted));
        }
    }
}
