//! Holds the lease on a run. Transitions are stored in this process's name and the lease is renewed meanwhile. No
//! action starts once the lease may have been lost.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use platform_core::limit::Millis;
use platform_runtime::{report, settings::Accounts};
use runner_docker::KilledBy;
use runner_model::{
    away::Away,
    failpoint::Point,
    lifecycle::{Ending, Move, StartKind, State},
};
use runner_store::{self as store, Batch, Change, Created, For, Hold, Run, Step, Store, Told, WarmContainer};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    admission::{Refused, admit},
    things::Things,
};
use crate::{
    context::EngineHandles,
    lease_clock::{RENEWALS_PER_LEASE, boot_now, held_until},
    observer::{Observer, Starting},
    request::{RunRequest, Unreadable},
};

/// Interval between checks whether a cancel was requested.
const LOOK: Duration = Duration::from_millis(500);
/// Delay before a failed request is repeated.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest time without a store before a run that needs it fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Reason why this process does not execute a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is not admitted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The run is not stored, so nothing may act for it.
    #[error("the run is not stored, and nothing acts before it is")]
    NotStored(#[source] store::Error),
    /// The request cannot be serialized.
    #[error("the order cannot be written down")]
    Unwritable(#[from] serde_json::Error),
    /// The same request was stored before.
    #[error("run {} was ordered before and is {}", .0.run, .0.state)]
    Before(Box<Run>),
    /// The run is leased here, and its stored request cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// A stored run on which this process holds the lease.
#[derive(Debug)]
pub struct Booked {
    /// Request that is stored for the run.
    pub order: RunRequest,
    store: Store,
    hold: Hold,
    lease: Millis,
    state: Cell<State>,
    /// Moment of the boot clock before which no other worker can have taken the run over.
    sure_until: Cell<Duration>,
    past: Past,
    observer: Observer,
    /// Guard that exists from the preparation of the run until its agent is started.
    starting: RefCell<Option<Starting>>,
    /// Moment at which the lease was acquired, and the time from the request to that moment.
    since: (Instant, Duration),
    /// Origin of the container, and the time from the request to its start; absent if it was not started, or not here.
    start: Cell<Option<(StartKind, Duration)>>,
}

/// State that previous workers left for a run.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Resources that they created and did not remove.
    pub(super) things: Things,
    /// Time since they started the agent.
    pub(super) started: Option<Duration>,
    /// Reason for which they were about to end the agent, if they were.
    pub(super) stopping: Option<KilledBy>,
    /// Ending that they stored.
    pub(super) ending: Option<Ending>,
    /// Id of the image that they prepared the run with.
    pub(super) image: Option<String>,
    /// Position up to which they recorded events.
    pub(super) told: Told,
}

impl Booked {
    /// Stores `order` as a run of this process. Nothing may act for it before.
    pub async fn book(host: &EngineHandles, order: RunRequest) -> Result<Self, Error> {
        admit(&order, &host.accounts)?;
        let before = boot_now();
        let who = For::Me(&host.worker, host.lease);
        match create(&host.store, &order, who).await? {
            Created::New(run) => Ok(Self::ours(host, order, &run, before)),
            Created::Before(run) => Err(Error::Before(Box::new(run))),
        }
    }

    /// Stores `order` as a queued run that any worker may claim.
    pub async fn leave(store: &Store, order: &RunRequest, accounts: &Accounts) -> Result<Created, Error> {
        admit(order, accounts)?;
        create(store, order, For::Anybody).await
    }

    /// Loads a run whose lease this process has just acquired, not before `since` of [`boot_now`].
    pub(crate) async fn taken(host: &EngineHandles, run: &Run, since: Duration) -> Result<Self, Error> {
        let record = host.store.record(&run.run).await.map_err(Error::NotStored)?;
        let order = RunRequest::stored(&record)?;
        let ending = matches!(run.state, State::Settling(_)).then(|| Ending {
            exit_code: run.exit_code,
            oom_seen: run.oom_seen,
            answer: run.error.clone().map_or_else(|| Ok(record.answer.clone().unwrap_or_default()), Err),
        });
        let started = run.started.map(|started| started.until(record.now));
        let stopping = record.stopping.as_deref().and_then(|why| serde_json::from_str(why).ok());
        let things = Things::of(&record.resources);
        let past = Past { things, started, stopping, ending, image: record.image, told: record.told };
        let since_order = (Instant::now(), run.created.until(record.now));
        Ok(Self { past, since: since_order, ..Self::ours(host, order, run, since) })
    }

    fn ours(host: &EngineHandles, order: RunRequest, run: &Run, since: Duration) -> Self {
        let booked = Self {
            order,
            store: host.store.clone(),
            hold: run.hold(),
            lease: host.lease,
            state: Cell::new(run.state),
            sure_until: Cell::new(Duration::ZERO),
            past: Past::default(),
            observer: host.observer.clone(),
            starting: RefCell::default(),
            since: (Instant::now(), Duration::ZERO),
            start: Cell::default(),
        };
        booked.sure_from(since);
        Point::Booked.reach();
        booked
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.hold.epoch
    }

    pub(super) const fn state(&self) -> State {
        self.state.get()
    }

    pub(super) const fn past(&self) -> &Past {
        &self.past
    }

    /// Stores a transition and retries while the store is unavailable; only then may the step be done. A transition
    /// that a previous worker stored is not stored again.
    pub(super) async fn step(
        &self,
        makes: Move,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<(), store::Error> {
        let state = self.state.get();
        let was_made = state.makes() && makes.is_on_the_way() && state.after(&makes).is_err();
        let step = if was_made { Step::default() } else { Step::from(makes) };
        self.take(step.with(changes)).await
    }

    /// Returns the origin of the container, and the time from the request to its start; absent if it was not started,
    /// or not here.
    pub(super) const fn start(&self) -> Option<(StartKind, Duration)> {
        self.start.get()
    }

    /// Records that its container was started just now.
    pub(super) fn started(&self, start: StartKind) {
        let (at, before) = self.since;
        let after = before + at.elapsed();
        self.start.set(Some((start, after)));
        self.observer.metrics.started(start, after);
    }

    /// Starts the preparation with a warm container.
    ///
    /// # Errors
    /// [`store::Error::NotWarm`] if another run was faster.
    pub(super) async fn prepare_with(
        &self,
        warm: WarmContainer,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<(), store::Error> {
        self.take(Step::from(Move::Prepare).with(changes).taking(warm)).await?;
        self.observer.metrics.pool_claimed(&self.order.agent_id);
        Ok(())
    }

    /// Stores how the run ends, after the events that are still `untold`.
    pub(super) async fn settle(&self, ending: Ending, untold: Vec<Batch>) -> Result<(), store::Error> {
        self.take(Step::from(Move::Settle(ending)).after(untold)).await
    }

    /// Stores a batch of the run's events.
    pub(super) async fn tell(&self, batch: &Batch) -> Result<(), store::Error> {
        self.store.tell(&self.hold, batch).await
    }

    /// Stores changes of resources, without a transition.
    pub(super) async fn change(&self, changes: impl IntoIterator<Item = Change>) -> Result<(), store::Error> {
        self.take(Step::default().with(changes)).await
    }

    /// Stores that the agent is about to be ended, and why: a worker that finds it ended could not know the reason.
    pub(super) async fn stopping(&self, by: KilledBy) -> Result<(), store::Error> {
        let why = serde_json::to_string(&by).unwrap_or_default();
        match self.store.stopping(&self.hold, &why).await {
            // The agent is ended all the same.
            Err(error) if error.is_transient() => {
                tracing::warn!(run = %self.hold.run, error = %report::chain(&error), "why its agent is ended is not stored");
                Ok(())
            }
            stored => stored,
        }
    }

    /// Stores the id of the image that containers are created from, for a worker that takes the run over.
    pub(super) async fn image(&self, id: &str) -> Result<(), store::Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.store.image(&self.hold, id).await {
                Err(error) if error.is_transient() && Instant::now() < deadline => sleep(PAUSE).await,
                stored => return stored,
            }
        }
    }

    async fn take(&self, step: Step) -> Result<(), store::Error> {
        if matches!(step.makes, Some(Move::Prepare)) {
            self.starting.replace(Some(self.observer.starting()));
        }
        let run = self.store.insist(&self.hold, &step).await?;
        self.state.set(run.state);
        match &step.makes {
            None | Some(Move::Prepare | Move::Start) => {}
            Some(made) => {
                self.starting.take();
                self.observer.saw(&self.order, &run, (made, self.start.get()));
            }
        }
        Ok(())
    }

    /// Performs `act` in the run's name: at once while no other worker can have taken the run over, otherwise after the
    /// store has confirmed the lease. A process that was suspended and resumes later is stopped here.
    pub(super) async fn act<T>(&self, act: impl Future<Output = T>) -> Result<T, store::Error> {
        while boot_now() >= self.sure_until.get() {
            match self.renew().await {
                Err(error) if error.is_transient() => sleep(PAUSE).await,
                renewed => renewed?,
            }
        }
        Ok(act.await)
    }

    /// Performs `act` under the lease as [`Self::act`] does. Repeats it while its backend is unavailable, and only as
    /// long as the lease holds.
    pub(super) async fn ask<T, E: Away>(&self, act: impl AsyncFn() -> Result<T, E>) -> Result<T, super::Error>
    where
        super::Error: From<E>,
    {
        let deadline = Instant::now() + E::PATIENCE;
        loop {
            match self.act(act()).await? {
                Err(error) if error.is_away() && Instant::now() < deadline => sleep(PAUSE).await,
                done => return Ok(done?),
            }
        }
    }

    async fn renew(&self) -> Result<(), store::Error> {
        let before = boot_now();
        self.store.renew(&self.hold, self.lease).await?;
        self.sure_from(before);
        Ok(())
    }

    /// Records that the lease was acquired or renewed not before `since`.
    fn sure_from(&self, since: Duration) {
        self.sure_until.set(held_until(since, self.lease));
    }

    /// Renews the lease until another worker has taken the run over; returns the error that shows it. While the store
    /// is unavailable the run continues: the lease counts as held until the store says otherwise. Triggers `cancel`
    /// when a cancel is requested.
    pub(super) async fn keep(&self, cancel: &CancellationToken) -> store::Error {
        let renewing = async {
            loop {
                sleep(self.lease.duration() / RENEWALS_PER_LEASE).await;
                match self.renew().await {
                    Err(lost @ (store::Error::Fenced { .. } | store::Error::Unknown { .. })) => return lost,
                    Err(error) => {
                        tracing::warn!(run = %self.hold.run, error = %report::chain(&error), "lease is not renewed");
                    }
                    Ok(()) => {}
                }
            }
        };
        let looking = async {
            while !self.store.is_cancel_asked(&self.hold.run).await.unwrap_or(false) {
                sleep(LOOK).await;
            }
            cancel.cancel();
            std::future::pending().await
        };
        tokio::select! {
            lost = renewing => lost,
            never = looking => never,
        }
    }
}

/// Stores `order`. A request that an earlier program stored in other words, because an agent's entry had fewer fields,
/// counts as the same. A repeated request counts as the same also when it is part of another trace.
async fn create(store: &Store, order: &RunRequest, who: For<'_>) -> Result<Created, Error> {
    let conflict = match store.create(&order.row()?, who).await {
        Err(error @ store::Error::Conflict { .. }) => error,
        created => return created.map_err(Error::NotStored),
    };
    match store.record(&order.run_id).await {
        Ok(record) if RunRequest::stored(&record).is_ok_and(|before| before.is_same(order)) => {
            Ok(Created::Before(record.run))
        }
        _ => Err(Error::NotStored(conflict)),
    }
}
