//! A live run: its grant, what it has used, and how it is closed.
//!
//! Shared by the thread that serves it and by control. All state is atomics and tokens; nothing here locks
//! and nothing here does I/O.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use platform_core::{
    budget::Budget,
    capability::Capabilities,
    control::{RunState, RunView, Usage},
    grant::{CallLimits, Correlation, Listener, RunGrant, Tap},
    id::{AccountId, AgentId, RunId},
    limit::ByteSize,
    record::ExchangeRecord,
    refusal::Refusal,
};
use platform_runtime::shutdown::{Drain, drain};
use tokio::sync::{Notify, watch};

use crate::{
    bodies::Allowance,
    budget::Spending,
    exchange::{Identification, Policy},
    refusal::Refused,
    runs::NOBODY,
    tally::{Counters, Tally},
    tap,
    trace::Trace,
};

/// A run that is or was open.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) grant: RunGrant,
    /// Headers that are the same for every call of the run.
    pub(crate) identification: Identification,
    /// What bodies may ask for.
    pub(crate) policy: ArcSwap<Policy>,
    /// Memory for bodies.
    pub(crate) bodies: Arc<Allowance>,
    /// What it used and holds of its budget.
    pub(crate) spending: Arc<Spending>,
    /// The same of its account, which it shares with other runs.
    pub(crate) account: Arc<Spending>,
    counted: Arc<Counters>,
    in_flight: AtomicU64,
    idle: Notify,
    /// Those who carry its calls wait for this to change.
    stage: watch::Sender<Stage>,
    /// No token of its id holds any more.
    is_revoked: AtomicBool,
    /// When a proxy that goes down will have gone.
    gone: OnceLock<Instant>,
    tap: Option<tap::Tap>,
    /// How far its calls have come, for whoever traces it.
    pub(crate) trace: Trace,
}

/// What is the same for all runs.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Body fields that pass besides the listed ones.
    pub(crate) extra_fields: Vec<String>,
    /// Memory for the bodies of one run.
    pub(crate) bodies: ByteSize,
}

/// What a run has spent, and holds: the same for all that have its id, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Purse {
    spending: Arc<Spending>,
    counted: Arc<Counters>,
}

impl From<Tally> for Purse {
    /// The purse of a run that had such calls with a proxy before, without limits yet.
    fn from(tally: Tally) -> Self {
        let spending = Arc::new(Spending::new(&Budget::default(), &tally.usage));
        Self { spending, counted: Arc::new(tally.into()) }
    }
}

/// What a run spends from.
#[derive(Debug)]
pub(crate) struct Spent {
    /// Its own purse.
    pub(crate) by_run: Purse,
    /// Its account's, of which others hold some.
    pub(crate) by_account: Arc<Spending>,
}

/// How far a run has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Calls pass.
    Open,
    /// No new connections and no new calls.
    Closing(Closing),
    /// Calls in flight end now.
    Cut(Closing),
    /// All of them are recorded.
    Ended(Closing),
}

impl Stage {
    /// Whether connections are taken. Of a proxy that goes down they are, to be told so.
    pub(crate) const fn listens(&self) -> bool {
        matches!(self, Self::Open | Self::Closing(Closing::Shutdown))
    }

    /// The first reason stays.
    const fn close(&mut self, reason: Closing) {
        if let Self::Open = self {
            *self = Self::Closing(reason);
        }
    }

    const fn cut(&mut self) {
        if let Self::Closing(reason) = self {
            *self = Self::Cut(*reason);
        }
    }

    const fn end(&mut self) {
        if let Self::Cut(reason) = self {
            *self = Self::Ended(*reason);
        }
    }
}

/// Why a run is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Somebody closed the run.
    Closed,
    /// Its time is over.
    Over,
    /// Another run of this id has taken its place.
    Replaced,
    /// The proxy goes down; the next one opens the run again.
    Shutdown,
}

/// A call's place among those in flight. Given back on drop.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Run>);

impl Run {
    /// A run that just opened.
    ///
    /// # Errors
    /// If its identity cannot be written as headers, which parsed ids make impossible.
    pub(crate) fn new(grant: RunGrant, terms: &Terms, spent: Spent) -> Result<Self, http::Error> {
        let Purse { spending, counted } = spent.by_run;
        spending.allow(&grant.budget);
        Ok(Self {
            spending,
            account: spent.by_account,
            counted,
            identification: Identification::of(&grant)?,
            policy: ArcSwap::from_pointee(Policy::of(&grant, &terms.extra_fields)),
            bodies: Arc::new(Allowance::new(terms.bodies)),
            tap: (grant.tap == Tap::Text).then(tap::Tap::default),
            grant,
            in_flight: AtomicU64::new(0),
            idle: Notify::new(),
            stage: watch::Sender::new(Stage::Open),
            is_revoked: AtomicBool::new(false),
            gone: OnceLock::new(),
            trace: Trace::default(),
        })
    }

    /// What it spends from, for the run that takes its place.
    pub(crate) fn purse(&self) -> Purse {
        Purse { spending: Arc::clone(&self.spending), counted: Arc::clone(&self.counted) }
    }

    /// Has other terms hold for calls to come.
    pub(crate) fn reconcile(&self, terms: &Terms) {
        self.policy.store(Arc::new(Policy::of(&self.grant, &terms.extra_fields)));
        self.bodies.allow(terms.bodies);
    }

    /// The run under which calls are recorded that are nobody's. It is never entered.
    pub(crate) fn nobody(terms: &Terms) -> Result<Self, http::Error> {
        let known = "an id that follows its own rule";
        let grant = RunGrant {
            run_id: RunId::parse(NOBODY).expect(known),
            attempt: 0,
            account: AccountId::parse(NOBODY).expect(known),
            graph: AgentId::parse("unattributed:none").expect(known),
            correlation: Correlation::default(),
            listener: Listener::Shared,
            limits: CallLimits::default(),
            budget: Budget::default(),
            expires: None,
            models: Some(Vec::new()),
            tools: None,
            capabilities: Capabilities::default(),
            tap: Tap::Off,
        };
        let by_account = Arc::new(Spending::new(&Budget::default(), &Usage::default()));
        Self::new(grant, terms, Spent { by_run: Tally::default().into(), by_account })
    }

    /// Takes a place among the calls in flight.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<InFlight, Refused> {
        // Counted first, checked second: a close that sees zero afterwards has seen everyone who got in.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let place = InFlight(Arc::clone(self));
        match self.closing() {
            None => Ok(place),
            Some(Closing::Closed) => Err(Refusal::RunClosed.into()),
            Some(Closing::Over) => Err(Refusal::RunOver.into()),
            Some(Closing::Replaced) => Err(Refusal::Draining.into()),
            Some(Closing::Shutdown) => {
                let left = self.gone.get().map(|gone| gone.saturating_duration_since(Instant::now()));
                Err(Refused::draining(left.unwrap_or_default()))
            }
        }
    }

    /// Whether its time is over at `now`, since the epoch.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.grant.expires.is_some_and(|expires| now.as_secs() >= expires.0)
    }

    /// Adds a finished call to what the run has used.
    pub(crate) fn count(&self, record: &ExchangeRecord) {
        self.counted.add(record);
    }

    /// Refuses new calls, waits at most `grace` for those in flight, then cuts what is left. Idempotent: a
    /// second close waits for the first one's end.
    pub(crate) async fn close(&self, reason: Closing, grace: Duration) -> Drain {
        self.stage.send_modify(|stage| stage.close(reason));
        let outcome = drain(self.until_idle(), grace).await;
        self.cut_now().await;
        outcome
    }

    /// Refuses new calls, because the proxy will be gone after `grace`.
    pub(crate) fn leave(&self, grace: Duration) {
        self.gone.get_or_init(|| Instant::now() + grace);
        self.stage.send_modify(|stage| stage.close(Closing::Shutdown));
    }

    /// Cuts what a run that is closing has still in flight, and waits until all of it is recorded.
    pub(crate) async fn cut_now(&self) {
        self.stage.send_modify(Stage::cut);
        self.until_idle().await;
        self.stage.send_modify(Stage::end);
    }

    /// Has whoever carries a call of the run look again whether it may go on.
    pub(crate) fn stir(&self) {
        self.stage.send_modify(|_stage| {});
    }

    /// Ends the calls in flight that came by token, and has no token hold any more.
    pub(crate) fn revoke_tokens(&self) {
        self.is_revoked.store(true, Ordering::Release);
        self.stir();
    }

    /// Returns whether its tokens were revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::Acquire)
    }

    /// Waits until no call is in flight.
    pub(crate) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Why the run is closing or closed, if it is.
    pub(crate) fn closing(&self) -> Option<Closing> {
        match *self.stage.borrow() {
            Stage::Open => None,
            Stage::Closing(reason) | Stage::Cut(reason) | Stage::Ended(reason) => Some(reason),
        }
    }

    /// Whether it takes connections.
    pub(crate) fn listens(&self) -> bool {
        self.stage.borrow().listens()
    }

    /// Why calls in flight must end, if they must.
    pub(crate) fn cut(&self) -> Option<Closing> {
        match *self.stage.borrow() {
            Stage::Open | Stage::Closing(_) => None,
            Stage::Cut(reason) | Stage::Ended(reason) => Some(reason),
        }
    }

    /// Told when the run begins to close, when it is cut, and when it is stirred.
    pub(crate) fn changes(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Where to tell what streams by, if the grant allows it and somebody has ever watched.
    pub(crate) fn watched(&self) -> Option<&tap::Tap> {
        self.tap.as_ref().filter(|tap| tap.is_open())
    }

    /// A new watcher, who has seen the line numbered `after`; if the grant allows one.
    pub(crate) fn watch(&self, rings: &Arc<tap::Rings>, after: u64) -> Option<tap::Watcher> {
        self.tap.as_ref().map(|tap| tap.watch(rings, after))
    }

    /// Nobody is told anything any more: every call has ended.
    pub(crate) fn stop_telling(&self) {
        if let Some(tap) = &self.tap {
            tap.close();
        }
    }

    /// How many watch.
    pub(crate) fn watchers(&self) -> usize {
        self.tap.as_ref().map_or(0, tap::Tap::watchers)
    }

    /// Calls in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// The run as control shows it, but for who holds it and where it is called.
    pub(crate) fn view(&self) -> RunView {
        let in_flight = self.in_flight();
        let state = match self.closing() {
            None => RunState::Open,
            Some(_) if in_flight > 0 => RunState::Closing,
            Some(_) => RunState::Closed,
        };
        let limits = self.spending.view();
        let (grant, Tally { usage, last }) = (self.grant.clone(), self.counted.tally());
        RunView { grant, state, in_flight, usage, last, limits, epoch: 0, socket: None }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
