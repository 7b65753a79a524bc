//! Executes queued runs and takes over runs that other workers left, while `sluice up` supervises the proxy. It also
//! has leftovers removed and old events of ended runs deleted.
//!
//! Claiming runs and executing them are separate, so that a slow store does not hold up what containers print. Not
//! here: how a run is executed (`run`), and what may be removed (`reaper`).

use std::{
    cell::RefCell,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use platform_core::id::RunId;
use platform_runtime::{report, settings::Settings};
use runner_docker::{self as docker, Docker};
use runner_store::{self as store, Run, Store};
use runner_workspace::{self as workspace, Workspaces};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    agents::Catalog,
    context::EngineHandles,
    lease_clock,
    pool::Pool,
    reaper::{Mode, Reaper},
    retention,
    run::{self, Booked, BookingError, Finished},
};

/// Interval between polls of the queue: on average a queued run waits half of that.
const GLANCE: Duration = Duration::from_millis(25);
/// Interval between looks for runs that other workers left, and for obstacles.
const LOOK: Duration = Duration::from_millis(250);
/// Delay after a failure that would repeat at once.
const PAUSE: Duration = Duration::from_secs(2);

/// Treatment of the runs in progress when work stops.
#[derive(Debug, Clone)]
pub enum AtEnd {
    /// The runs go on; the next worker takes them over.
    Leave,
    /// The runs are cancelled; those that have not ended when the token is triggered are left after all.
    Cancel(CancellationToken),
}

/// Runs that this process executes.
type Lived = RefCell<Vec<RunId>>;

/// Reason why no run can be executed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error("the store")]
    Store(#[from] store::Error),
    /// Docker does not answer.
    #[error("Docker")]
    Docker(#[from] docker::Error),
    /// There is no place for workspaces.
    #[error("workspaces")]
    Workspaces(#[from] workspace::Error),
}

/// A run to execute, and its permit of the limit on concurrent runs. A run that is taken over needs no permit, and is
/// beyond that limit.
struct Work {
    booked: Booked,
    place: Option<OwnedSemaphorePermit>,
}

/// Connects to all backends, trying again until they are available; `None` once `stop` is triggered.
///
/// # Errors
/// If the store serves another host: trying again would not change that.
pub async fn surroundings(
    settings: &Settings,
    open: impl AsyncFn() -> Result<Store, store::Error>,
    stop: &CancellationToken,
) -> Result<Option<EngineHandles>, store::Error> {
    let mut said = String::new();
    loop {
        let host = async {
            let store = open().await?;
            let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
            Ok::<_, Error>(EngineHandles::of(settings, docker, store, Workspaces::open(&settings.sandbox)?))
        };
        let error = tokio::select! {
            host = host => match host {
                Ok(host) => return Ok(Some(host)),
                Err(Error::Store(error)) if error.serves_another() => return Err(error),
                Err(error) => report::chain(&error),
            },
            () = stop.cancelled() => return Ok(None),
        };
        if error != said {
            tracing::warn!(error, "no run can be worked on until this is mended; it is tried again");
            said = error;
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}

/// Executes runs and removes what they leave behind, until `stop` is triggered.
///
/// # Errors
/// If the store was moved to another host meanwhile: its runs are that host's.
pub async fn work(
    host: &EngineHandles,
    (settings, catalog): (&Settings, &Catalog),
    stop: &CancellationToken,
    at_end: AtEnd,
) -> Result<(), store::Error> {
    let places = Arc::new(Semaphore::new(settings.worker.runs as usize));
    let (to, from) = mpsc::channel(1);
    let lived = RefCell::default();
    let reaper = Reaper::of(settings, host.store.clone());
    let (pool, over) = (Pool::new(host, catalog), CancellationToken::new());
    let working = async {
        let moved = tokio::select! {
            () = take(host, places, (to, &lived), stop) => None,
            () = live(host, (from, &lived), stop, at_end) => None,
            () = reap(host, &reaper, settings.worker.reap_every.duration()) => None,
            () = retention::keep(&host.store, &settings.store, settings.worker.reap_every.duration()) => None,
            moved = keep_serving(host) => Some(moved),
        };
        over.cancel();
        moved
    };
    let (moved, ()) = tokio::join!(working, pool.keep(&over));
    if let Err(error) = host.store.release(&host.worker).await {
        tracing::warn!(error = %report::chain(&error), "runs are not given back: others wait until their leases are over");
    }
    moved.map_or(Ok(()), Err)
}

/// Reports to the store that this host is at work, until the store serves another one.
async fn keep_serving(host: &EngineHandles) -> store::Error {
    loop {
        match host.store.keep_serving(host.lease).await {
            Err(moved) if moved.serves_another() => return moved,
            Err(error) => {
                tracing::warn!(error = %report::chain(&error), "the store is not told that this host is at work")
            }
            Ok(()) => {}
        }
        tokio::time::sleep(host.lease.duration() / lease_clock::RENEWALS_PER_LEASE).await;
    }
}

/// Runs the reaper at once and then every so often.
async fn reap(host: &EngineHandles, reaper: &Reaper, every: Duration) {
    loop {
        // The reaper logs what it did, and what is wrong.
        host.observer.metrics.reaped(Box::pin(reaper.pass(Mode::default())).await.counts());
        tokio::time::sleep(every).await;
    }
}

/// Claims runs, abandoned ones first, and hands them on.
async fn take(
    host: &EngineHandles,
    places: Arc<Semaphore>,
    (to, lived): (mpsc::Sender<Work>, &Lived),
    stop: &CancellationToken,
) {
    let mut left = None::<Instant>;
    while !stop.is_cancelled() {
        let known = lived.borrow().clone();
        let taken = match left {
            Some(at) if at.elapsed() < LOOK => queued(host, &places).await,
            _ => {
                left = Some(Instant::now());
                abandoned(host, &known).await
            }
        };
        match taken {
            Ok(Taken::Work(work)) => {
                lived.borrow_mut().push(work.booked.order.run_id.clone());
                // The receiver exists for as long as this does. Other abandoned runs are looked for at once.
                left = left.filter(|_| work.place.is_some());
                drop(to.send(*work).await);
            }
            Ok(Taken::Nothing) => tokio::time::sleep(GLANCE).await,
            Ok(Taken::NotNow) => tokio::time::sleep(LOOK).await,
            Err(error) => {
                tracing::warn!(error = %report::chain(&error), "runs cannot be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    std::future::pending().await
}

/// Result of a look for runs.
enum Taken {
    Work(Box<Work>),
    /// There is no run.
    Nothing,
    /// There may be runs, and something is in the way.
    NotNow,
}

/// Takes over a run that another worker has left. Those in `lived` are executed here and are not taken.
async fn abandoned(host: &EngineHandles, lived: &[RunId]) -> Result<Taken, BookingError> {
    let since = lease_clock::boot_now();
    let left =
        host.store.take_over(&host.worker, host.lease, lived).await.map_err(BookingError::NotStored)?;
    let Some(run) = left else { return Ok(Taken::Nothing) };
    tracing::info!(run = %run.run, state = %run.state, epoch = run.epoch, "taken over");
    book(host, &run, (since, None)).await
}

/// Claims a queued run, if a permit is available. A look that finds none costs one small query.
async fn queued(host: &EngineHandles, places: &Arc<Semaphore>) -> Result<Taken, BookingError> {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else { return Ok(Taken::Nothing) };
    if !host.store.is_anything_queued().await.map_err(BookingError::NotStored)? {
        return Ok(Taken::Nothing);
    }
    if let Err(error) = host.workspaces.disk_space().and_then(|space| Ok(space.enough()?)) {
        tracing::warn!(error = %report::chain(&error), "runs wait");
        return Ok(Taken::NotNow);
    }
    if !is_there(host).await {
        return Ok(Taken::NotNow);
    }
    let since = lease_clock::boot_now();
    let claimed = host.store.claim(&host.worker, host.lease).await.map_err(BookingError::NotStored)?;
    match claimed {
        Some(run) => book(host, &run, (since, Some(place))).await,
        None => Ok(Taken::Nothing),
    }
}

/// Returns whether a run could be started now: a queued run does not fail because a backend is unavailable.
async fn is_there(host: &EngineHandles) -> bool {
    let (data_plane, docker) = tokio::join!(host.data_plane.health(), host.docker.version());
    let away = [
        data_plane.err().map(|error| report::chain(&error)),
        docker.err().map(|error| report::chain(&error)),
    ];
    let away: Vec<_> = away.into_iter().flatten().collect();
    if !away.is_empty() {
        tracing::warn!(away = away.join("; "), "runs wait");
    }
    away.is_empty()
}

/// Prepares a leased run for execution, unless its stored request cannot be read.
async fn book(
    host: &EngineHandles,
    run: &Run,
    (since, place): (Duration, Option<OwnedSemaphorePermit>),
) -> Result<Taken, BookingError> {
    match Booked::taken(host, run, since).await {
        Ok(booked) => Ok(Taken::Work(Box::new(Work { booked, place }))),
        Err(error @ BookingError::Unreadable(_)) => {
            tracing::error!(run = %run.run, error = %report::chain(&error), "it stays as it is");
            Ok(Taken::Nothing)
        }
        Err(error) => Err(error),
    }
}

/// Executes the runs that come from `from`.
async fn live(
    host: &EngineHandles,
    (mut from, lived): (mpsc::Receiver<Work>, &Lived),
    stop: &CancellationToken,
    at_end: AtEnd,
) {
    let cancel = CancellationToken::new();
    let mut lives = FuturesUnordered::new();
    loop {
        tokio::select! {
            work = from.recv() => match work {
                Some(work) => lives.push(one(host, work, &cancel)),
                None => return,
            },
            Some((run, finished)) = lives.next(), if !lives.is_empty() => {
                // If its end is not stored, any worker may take it over, this one as well.
                lived.borrow_mut().retain(|other| *other != run);
                tell(&run, &finished);
            }
            () = stop.cancelled() => break,
        }
    }
    let AtEnd::Cancel(leave) = at_end else { return };
    cancel.cancel();
    let ending = async {
        while let Some((run, finished)) = lives.next().await {
            tell(&run, &finished);
        }
    };
    tokio::select! {
        () = ending => {}
        () = leave.cancelled() => tracing::warn!("runs are left as they are, for whoever starts next"),
    }
}

async fn one(
    host: &EngineHandles,
    work: Work,
    cancel: &CancellationToken,
) -> (RunId, Result<Finished, store::Error>) {
    let Work { booked, place } = work;
    let finished = run::execute_unheard(host, &booked, cancel).await;
    drop(place);
    (booked.order.run_id.clone(), finished)
}

/// Logs a run that another worker has taken over; the result of any other run is in the store.
fn tell(run: &RunId, finished: &Result<Finished, store::Error>) {
    if let Err(lost) = finished {
        tracing::info!(%run, "no longer ours: {lost}");
    }
}
