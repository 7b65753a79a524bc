//! The right to act for a run: its steps are stored in our name, its lease is renewed meanwhile, and nothing is done once
//! it may be another's.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use platform_core::limit::Millis;
use platform_runtime::{report, settings::Accounts};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Host, Order, Start,
    admission::{Refused, admit},
    execution::{Observer, Starting},
    order::Unreadable,
    things::Things,
};
use crate::{
    away::Away,
    failpoint::Point,
    lifecycle::{Ending, Move, State},
    sandbox::KilledBy,
    store::{self, Batch, Change, Created, For, Hold, Run, Spare, Step, Store, Told},
};

/// Renewals in the time of a lease: some may fail.
pub(crate) const RENEWALS: u32 = 4;
/// How often it is looked whether somebody wants the run to stop.
const LOOK: Duration = Duration::from_millis(500);
/// Pause before something is asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long the store may be away before a run that cannot go on without it fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Why a run is not ours to live.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It is none to store.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is not stored, so nothing may act.
    #[error("the run is not stored, and nothing acts before it is")]
    NotStored(#[source] store::Error),
    /// It cannot be stored.
    #[error("the order cannot be written down")]
    Unwritable(#[from] serde_json::Error),
    /// It was ordered before, in just this way.
    #[error("run {} was ordered before and is {}", .0.run, .0.state)]
    Before(Box<Run>),
    /// It is ours, and nobody knows what it is.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// A run that is stored, and ours.
#[derive(Debug)]
pub(crate) struct Booked {
    pub(crate) order: Order,
    store: Store,
    hold: Hold,
    lease: Millis,
    state: Cell<State>,
    /// Nobody else can have taken the run over before this moment of the boot clock.
    sure_until: Cell<Duration>,
    past: Past,
    observer: Observer,
    /// There from when it is prepared until its agent is let run.
    starting: RefCell<Option<Starting>>,
    /// When it was ours, and how long after the order that was.
    since: (Instant, Duration),
    /// Where its container came from, and how long after the order that was started; absent if it was not, or not here.
    start: Cell<Option<(Start, Duration)>>,
}

/// What others did for a run before it was ours.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// What they made, and did not remove.
    pub(super) things: Things,
    /// How long ago they let the agent run.
    pub(super) started: Option<Duration>,
    /// Why they were about to end the agent, if they were.
    pub(super) stopping: Option<KilledBy>,
    /// How they found that it ends.
    pub(super) ending: Option<Ending>,
    /// Id of the image they prepared it with.
    pub(super) image: Option<String>,
    /// How far they told what happens.
    pub(super) told: Told,
}

impl Booked {
    /// Stores `order` as a run of this process. Nothing acts before.
    pub(crate) async fn book(host: &Host, order: Order) -> Result<Self, Error> {
        admit(&order, &host.accounts)?;
        let before = now();
        let who = For::Me(&host.worker, host.lease);
        match create(&host.store, &order, who).await? {
            Created::New(run) => Ok(Self::ours(host, order, &run, before)),
            Created::Before(run) => Err(Error::Before(Box::new(run))),
        }
    }

    /// Stores `order` as a run for whoever claims it.
    pub(crate) async fn leave(store: &Store, order: &Order, accounts: &Accounts) -> Result<Created, Error> {
        admit(order, accounts)?;
        create(store, order, For::Anybody).await
    }

    /// A run that this process has just got, not before `since` of [`now`].
    pub(crate) async fn taken(host: &Host, run: &Run, since: Duration) -> Result<Self, Error> {
        let record = host.store.record(&run.run).await.map_err(Error::NotStored)?;
        let order = Order::stored(&record)?;
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

    fn ours(host: &Host, order: Order, run: &Run, since: Duration) -> Self {
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

    /// Stores a step, however long the store is away; only then may it be done. A move that others made before is not made
    /// again.
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

    /// Where its container came from, and how long after the order that was started; absent if it was not, or not here.
    pub(super) const fn start(&self) -> Option<(Start, Duration)> {
        self.start.get()
    }

    /// Its container was started just now.
    pub(super) fn started(&self, start: Start) {
        let (at, before) = self.since;
        let after = before + at.elapsed();
        self.start.set(Some((start, after)));
        self.observer.metrics.started(start, after);
    }

    /// Begins to prepare, with a container that waited for a run.
    ///
    /// # Errors
    /// [`store::Error::NotSpare`] if another run was faster.
    pub(super) async fn prepare_with(
        &self,
        spare: Spare,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<(), store::Error> {
        self.take(Step::from(Move::Prepare).with(changes).taking(spare)).await?;
        self.observer.metrics.pool_claimed(&self.order.agent_id);
        Ok(())
    }

    /// Stores how it ends, once it has told what it has `untold`.
    pub(super) async fn settle(&self, ending: Ending, untold: Vec<Batch>) -> Result<(), store::Error> {
        self.take(Step::from(Move::Settle(ending)).after(untold)).await
    }

    /// Stores what the run tells.
    pub(super) async fn tell(&self, batch: &Batch) -> Result<(), store::Error> {
        self.store.tell(&self.hold, batch).await
    }

    /// Stores what becomes of things, without a move.
    pub(super) async fn change(&self, changes: impl IntoIterator<Item = Change>) -> Result<(), store::Error> {
        self.take(Step::default().with(changes)).await
    }

    /// Stores that the agent is about to be ended, and why: whoever finds it ended could not tell.
    pub(super) async fn stopping(&self, by: KilledBy) -> Result<(), store::Error> {
        let why = serde_json::to_string(&by).unwrap_or_default();
        match self.store.stopping(&self.hold, &why).await {
            // It is ended all the same.
            Err(error) if error.is_transient() => {
                tracing::warn!(run = %self.hold.run, error = %report::chain(&error), "why its agent is ended is not stored");
                Ok(())
            }
            stored => stored,
        }
    }

    /// Stores the id of the image that containers are made from, for whoever takes the run over.
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

    /// Does `act` in the run's name: at once while nobody else can have taken the run over, else once the store has said
    /// that nobody has. Whoever was stopped and goes on later is stopped here.
    pub(super) async fn act<T>(&self, act: impl Future<Output = T>) -> Result<T, store::Error> {
        while now() >= self.sure_until.get() {
            match self.renew().await {
                Err(error) if error.is_transient() => sleep(PAUSE).await,
                renewed => renewed?,
            }
        }
        Ok(act.await)
    }

    /// The same of what may be away for a while; then it is asked again, still only as long as the run is ours.
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
        let before = now();
        self.store.renew(&self.hold, self.lease).await?;
        self.sure_from(before);
        Ok(())
    }

    /// The lease was got, or renewed, not before `since`.
    fn sure_from(&self, since: Duration) {
        self.sure_until.set(sure_until(since, self.lease));
    }

    /// Renews the lease until somebody else has taken the run over; returns how that was found out. While the store
    /// cannot be asked the run goes on: it is ours until somebody else says otherwise. Triggers `cancel` when somebody asks
    /// for that.
    pub(super) async fn keep(&self, cancel: &CancellationToken) -> store::Error {
        let renewing = async {
            loop {
                sleep(self.lease.duration() / RENEWALS).await;
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

/// Stores `order`. One that an earlier program stored in other words, because an agent's entry had fewer fields, is the same; and
/// who asks again does so as part of another trace.
async fn create(store: &Store, order: &Order, who: For<'_>) -> Result<Created, Error> {
    let conflict = match store.create(&order.row()?, who).await {
        Err(error @ store::Error::Conflict { .. }) => error,
        created => return created.map_err(Error::NotStored),
    };
    match store.record(&order.run_id).await {
        Ok(record) if Order::stored(&record).is_ok_and(|before| before.is_same(order)) => {
            Ok(Created::Before(record.run))
        }
        _ => Err(Error::NotStored(conflict)),
    }
}

/// Until when nobody else can have taken over what was leased, or renewed, not before `since` of [`now`].
pub(crate) fn sure_until(since: Duration, lease: Millis) -> Duration {
    let lease = lease.duration();
    // Clocks run at slightly different speeds.
    since + lease - lease / 8
}

/// Time since the host was started, its sleep included.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
