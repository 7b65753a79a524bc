//! Executes queued runs and takes over runs that other workers left, while `sluice up` supervises the proxy. It also
//! runs the reaper, the pool and the removal of old events.
//!
//! Claiming runs (`claim`) and executing them (`active`) are separate, so that a slow store does not delay the output
//! of containers. The modules `run` and `reaper` define the execution of a run and the removal of leftovers.

mod active;
mod claim;
mod presence;

use std::{cell::RefCell, sync::Arc, time::Duration};

use platform_core::{id::RunId, limit::Millis};
use platform_runtime::{report, settings::Settings};
use runner_docker::{self as docker, Docker};
use runner_store::{self as store, Store};
use runner_workspace::{self as workspace, Workspaces};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

pub use self::presence::Presence;
use crate::{
    agents::Catalog,
    context::EngineHandles,
    lease_clock,
    pool::Pool,
    reaper::{Mode, Reaper},
    relay::continue_relays,
    retention,
    run::LeasedRun,
};

/// Delay after a failure that would repeat at once.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Treatment of the runs in progress when work stops.
#[derive(Debug, Clone)]
pub enum AtEnd {
    /// The runs continue; the next worker takes them over.
    Leave,
    /// The runs are cancelled; those that have not ended when the token is triggered are left to the next worker.
    Cancel(CancellationToken),
}

/// Reason why no run can be executed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error("cannot use the store")]
    Store(#[from] store::Error),
    /// Docker does not answer.
    #[error("cannot use Docker")]
    Docker(#[from] docker::Error),
    /// The directory of workspaces cannot be used.
    #[error("cannot use the workspaces")]
    Workspaces(#[from] workspace::Error),
}

/// Executor of the runs of this process.
struct WorkLoop<'e> {
    engine: &'e EngineHandles,
    /// Permits for runs that are executed at the same time.
    permits: Arc<Semaphore>,
    /// Runs that this process executes.
    active_runs: RefCell<Vec<RunId>>,
    /// Token that stops the claiming of runs.
    stop: &'e CancellationToken,
}

/// A run to execute, with its permit under the limit on concurrent runs. A run that is taken over has no permit, and is
/// not limited.
struct Work {
    run: LeasedRun,
    permit: Option<OwnedSemaphorePermit>,
}

/// Opens the store, trying again until it is there; `None` once `stop` is triggered.
///
/// # Errors
/// If the store serves another host: trying again would not change that.
pub async fn open_store(
    open: impl AsyncFn() -> Result<Store, store::Error>,
    stop: &CancellationToken,
) -> Result<Option<Store>, store::Error> {
    connect(async || Ok(open().await?), stop).await
}

/// Connects to Docker and opens the directory of workspaces, trying again until both are there; `None` once `stop` is
/// triggered. Meanwhile reports to the store that this host is active.
///
/// # Errors
/// If the store was moved to another host meanwhile.
pub async fn connect_engine(
    settings: &Settings,
    store: &Store,
    stop: &CancellationToken,
) -> Result<Option<EngineHandles>, store::Error> {
    let engine = async || {
        let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
        let workspaces = Workspaces::open(&settings.sandbox)?;
        Ok(EngineHandles::of(settings, docker, store.clone(), workspaces))
    };
    tokio::select! {
        connected = connect(engine, stop) => connected,
        moved = keep_serving(store, settings.worker.lease_duration) => Err(moved),
    }
}

/// Tries until `attempt` succeeds; returns `None` once `stop` is triggered.
async fn connect<T>(
    attempt: impl AsyncFn() -> Result<T, Error>,
    stop: &CancellationToken,
) -> Result<Option<T>, store::Error> {
    let mut last_error = String::new();
    loop {
        let error = tokio::select! {
            connected = attempt() => match connected {
                Ok(connected) => return Ok(Some(connected)),
                Err(Error::Store(error)) if error.serves_another() => return Err(error),
                Err(error) => report::chain(&error),
            },
            () = stop.cancelled() => return Ok(None),
        };
        if error != last_error {
            tracing::warn!(error, "runs cannot be executed until this is fixed; trying again");
            last_error = error;
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY_DELAY) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}

/// Executes runs and removes what they leave behind, until `stop` is triggered.
///
/// # Errors
/// If the store was moved to another host meanwhile, which then owns its runs.
pub async fn work(
    engine: &EngineHandles,
    settings: &Settings,
    catalog: &Catalog,
    stop: &CancellationToken,
    at_end: AtEnd,
) -> Result<(), store::Error> {
    let permits = Arc::new(Semaphore::new(settings.worker.max_concurrent_runs as usize));
    let work_loop = WorkLoop { engine, permits, active_runs: RefCell::default(), stop };
    let (to_execute, claimed) = mpsc::channel(1);
    let reaper = Reaper::of(settings, engine.store.clone());
    let gc_interval = settings.worker.gc_interval.duration();
    let pool = Pool::new(engine, catalog);
    let work_ended = CancellationToken::new();
    let working = async {
        let moved = tokio::select! {
            () = work_loop.claim_runs(to_execute) => None,
            () = work_loop.execute_runs(claimed, at_end) => None,
            () = continue_relays(&engine.store, || engine.relays()) => None,
            () = reap(engine, &reaper, gc_interval) => None,
            () = retention::prune_store(&engine.store, settings, gc_interval) => None,
            moved = keep_serving(&engine.store, engine.lease) => Some(moved),
        };
        work_ended.cancel();
        moved
    };
    let (moved, ()) = tokio::join!(working, pool.maintain(&work_ended));
    if let Err(error) = engine.store.release(&engine.worker).await {
        let error = report::chain(&error);
        tracing::warn!(error, "leases on runs not released; other workers wait until they expire");
    }
    moved.map_or(Ok(()), Err)
}

/// Reports to the store that this host is active, until the store serves another host.
async fn keep_serving(store: &Store, lease: Millis) -> store::Error {
    loop {
        match store.keep_serving(lease).await {
            Err(moved) if moved.serves_another() => return moved,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "presence of this host not stored");
            }
            Ok(()) => {}
        }
        tokio::time::sleep(lease.duration() / lease_clock::RENEWALS_PER_LEASE).await;
    }
}

/// Runs the reaper at once, and then each time that `interval` has passed.
async fn reap(engine: &EngineHandles, reaper: &Reaper, interval: Duration) {
    loop {
        // The reaper itself logs removals and problems.
        engine.observer.metrics.reaped(Box::pin(reaper.pass(Mode::default())).await.counts());
        tokio::time::sleep(interval).await;
    }
}
