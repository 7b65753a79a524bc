//! Keeps a live run: its grant, its usage, and the stages of its close.
//!
//! The thread that serves it and control share it. All state is atomics and tokens; nothing here locks and nothing
//! here does I/O.

mod key;
mod trace_watcher;

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
    grant::{CallLimits, Correlation, Listener, RunGrant, Tap, UngrantedTools},
    host_tools::{HostTools, ToolLimits},
    id::{AccountId, AgentId, RunId},
    limit::ByteSize,
    record::{Correction, ExchangeRecord},
    refusal::Refusal,
};
use platform_runtime::shutdown::{Drain, drain};
use tokio::sync::{Notify, watch};

pub(crate) use self::{
    key::{KeyHolder, RunKey, RunKeySlot},
    trace_watcher::TraceWatcher,
};
use crate::{
    body_memory::BodyMemory,
    budget::{Spending, ToolSpending},
    policy::{Identification, Policy},
    refusal::Refused,
    run_usage::{RunUsage, UsageCounters},
    tap,
    trace::Trace,
};

/// Id and account under which unattributed calls are recorded.
pub(crate) const UNATTRIBUTED: &str = "unattributed";

/// A run that is or was open.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) grant: RunGrant,
    /// Headers that are the same for every call of the run.
    pub(crate) identification: Identification,
    /// Rules for request bodies.
    pub(crate) policy: ArcSwap<Policy>,
    /// Memory for request bodies.
    pub(crate) body_memory: Arc<BodyMemory>,
    /// Usage and reservations under its budget.
    pub(crate) spending: Arc<Spending>,
    /// Usage and reservations of its account, which it shares with other runs.
    pub(crate) account: Arc<Spending>,
    /// Its own key at the upstream, if runs have one.
    pub(crate) key: RunKeySlot,
    /// Its calls of host tools, under limits of their own.
    pub(crate) tool_spending: Arc<ToolSpending>,
    usage_counters: Arc<UsageCounters>,
    in_flight: AtomicU64,
    idle: Notify,
    /// Stage of the run; the tasks that carry its calls wait for changes.
    stage: watch::Sender<RunStage>,
    /// Set once the tokens of its id are revoked.
    is_revoked: AtomicBool,
    /// Time at which a stopping proxy will have stopped.
    stopped_at: OnceLock<Instant>,
    tap: Option<tap::Tap>,
    /// Progress of its calls, for watchers of its trace.
    pub(crate) trace: Trace,
}

/// Defaults that are the same for all runs.
#[derive(Debug, Clone)]
pub(crate) struct RunDefaults {
    /// Body fields that pass besides the listed ones.
    pub(crate) extra_fields: Vec<String>,
    /// Memory for the bodies of one run.
    pub(crate) body_memory: ByteSize,
}

/// Spending and usage of a run: shared by all runs with its id, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct RunBudget {
    spending: Arc<Spending>,
    tool_spending: Arc<ToolSpending>,
    usage_counters: Arc<UsageCounters>,
}

impl From<RunUsage> for RunBudget {
    /// Continues the usage of a run under an earlier proxy, without limits yet.
    fn from(run_usage: RunUsage) -> Self {
        let spending = Arc::new(Spending::new(&Budget::default(), &run_usage.usage));
        let tool_spending = ToolSpending::new(&ToolLimits::default(), run_usage.usage.tool_calls);
        Self { spending, tool_spending: Arc::new(tool_spending), usage_counters: Arc::new(run_usage.into()) }
    }
}

/// Budgets that a run draws on.
#[derive(Debug)]
pub(crate) struct RunAndAccountBudgets {
    /// The run's own.
    pub(crate) by_run: RunBudget,
    /// The account's, which other runs draw on too.
    pub(crate) by_account: Arc<Spending>,
}

/// Stage of a run's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunStage {
    /// Calls pass.
    Open,
    /// New calls are refused; new connections too, unless the proxy stops.
    Closing(Closing),
    /// Calls in flight end now.
    Cut(Closing),
    /// All calls are recorded.
    Ended(Closing),
}

impl RunStage {
    /// Returns whether connections are accepted. A stopping proxy accepts them, to refuse their calls with a reason.
    pub(crate) const fn listens(&self) -> bool {
        matches!(self, Self::Open | Self::Closing(Closing::Shutdown))
    }

    /// Begins to close; the first reason stays.
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

/// Reason that a run is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Control closed the run.
    Closed,
    /// The run expired.
    Expired,
    /// Another run of this id has taken its place.
    Replaced,
    /// The proxy stops; the next one opens the run again.
    Shutdown,
}

/// A counted call in flight. Counted down on drop.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Run>);

impl Run {
    /// Returns an open run.
    ///
    /// # Errors
    /// If its identity cannot be written as headers, which parsed ids make impossible.
    pub(crate) fn new(
        grant: RunGrant,
        run_defaults: &RunDefaults,
        spent: RunAndAccountBudgets,
    ) -> Result<Self, http::Error> {
        let RunBudget { spending, tool_spending, usage_counters } = spent.by_run;
        spending.set_limits(&grant.budget);
        tool_spending.set_limits(&grant.host_tools.limits);
        Ok(Self {
            spending,
            account: spent.by_account,
            tool_spending,
            usage_counters,
            key: RunKeySlot::default(),
            identification: Identification::of(&grant)?,
            policy: ArcSwap::from_pointee(Policy::of(&grant, &run_defaults.extra_fields)),
            body_memory: Arc::new(BodyMemory::new(run_defaults.body_memory)),
            tap: (grant.tap == Tap::Text).then(tap::Tap::default),
            grant,
            in_flight: AtomicU64::new(0),
            idle: Notify::new(),
            stage: watch::Sender::new(RunStage::Open),
            is_revoked: AtomicBool::new(false),
            stopped_at: OnceLock::new(),
            trace: Trace::default(),
        })
    }

    /// Returns its spending and usage, for the run that replaces it.
    pub(crate) fn budget(&self) -> RunBudget {
        RunBudget {
            spending: Arc::clone(&self.spending),
            tool_spending: Arc::clone(&self.tool_spending),
            usage_counters: Arc::clone(&self.usage_counters),
        }
    }

    /// Applies other defaults to later calls.
    pub(crate) fn set_defaults(&self, run_defaults: &RunDefaults) {
        self.policy.store(Arc::new(Policy::of(&self.grant, &run_defaults.extra_fields)));
        self.body_memory.set_limit(run_defaults.body_memory);
    }

    /// Returns the run under which unattributed calls are recorded. It is never entered.
    pub(crate) fn unattributed(run_defaults: &RunDefaults) -> Result<Self, http::Error> {
        let known = "an id that follows its own rule";
        let grant = RunGrant {
            run_id: RunId::parse(UNATTRIBUTED).expect(known),
            attempt: 0,
            account: AccountId::parse(UNATTRIBUTED).expect(known),
            graph: AgentId::parse("unattributed:none").expect(known),
            correlation: Correlation::default(),
            listener: Listener::Shared,
            limits: CallLimits::default(),
            budget: Budget::default(),
            expires: None,
            models: Some(Vec::new()),
            tools: None,
            host_tools: HostTools::default(),
            capabilities: Capabilities::default(),
            ungranted_tools: UngrantedTools::Refuse,
            tap: Tap::Off,
        };
        let by_account = Arc::new(Spending::new(&Budget::default(), &Usage::default()));
        Self::new(
            grant,
            run_defaults,
            RunAndAccountBudgets { by_run: RunUsage::default().into(), by_account },
        )
    }

    /// Counts a call as in flight.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<InFlight, Refused> {
        // Counted first, checked second: a close that sees zero afterwards has seen every call that was admitted.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let in_flight = InFlight(Arc::clone(self));
        match self.closing() {
            None => Ok(in_flight),
            Some(Closing::Closed) => Err(Refusal::RunClosed.into()),
            Some(Closing::Expired) => Err(Refusal::RunDeadlineExceeded.into()),
            Some(Closing::Replaced) => Err(Refusal::Draining.into()),
            Some(Closing::Shutdown) => {
                let left = self
                    .stopped_at
                    .get()
                    .map(|stopped_at| stopped_at.saturating_duration_since(Instant::now()));
                Err(Refused::draining(left.unwrap_or_default()))
            }
        }
    }

    /// Returns whether the run is expired at `now`, since the epoch.
    pub(crate) fn is_expired(&self, now: Duration) -> bool {
        self.grant.expires.is_some_and(|expires| now.as_secs() >= expires.0)
    }

    /// Adds a finished call to the run's usage.
    pub(crate) fn count(&self, record: &ExchangeRecord) {
        self.usage_counters.add(record);
        self.spending.add_inexact(record.into());
        self.account.add_inexact(record.into());
    }

    /// Corrects the figures of a call that has ended. Its account's are corrected apart.
    pub(crate) fn correct(&self, correction: &Correction) {
        self.usage_counters.correct(correction);
        self.spending.correct(correction);
    }

    /// Refuses new calls, waits at most `grace` for those in flight, then cuts the rest. Idempotent: a second close
    /// waits for the end of the first.
    pub(crate) async fn close(&self, reason: Closing, grace: Duration) -> Drain {
        self.stage.send_modify(|stage| stage.close(reason));
        let outcome = drain(self.until_idle(), grace).await;
        self.cut_now().await;
        outcome
    }

    /// Refuses new calls, because the proxy will have stopped after `grace`.
    pub(crate) fn begin_shutdown(&self, grace: Duration) {
        self.stopped_at.get_or_init(|| Instant::now() + grace);
        self.stage.send_modify(|stage| stage.close(Closing::Shutdown));
    }

    /// Cuts the calls in flight of a closing run, and waits until all of them are recorded.
    pub(crate) async fn cut_now(&self) {
        self.stage.send_modify(RunStage::cut);
        self.until_idle().await;
        self.stage.send_modify(RunStage::end);
    }

    /// Wakes the tasks that carry the run's calls, so that each checks again whether its call may go on.
    pub(crate) fn notify_cuts(&self) {
        self.stage.send_modify(|_stage| {});
    }

    /// Revokes all tokens, and ends the calls in flight that came by token.
    pub(crate) fn revoke_tokens(&self) {
        self.is_revoked.store(true, Ordering::Release);
        self.notify_cuts();
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

    /// Returns the reason that the run is closing or closed, if it is.
    pub(crate) fn closing(&self) -> Option<Closing> {
        match *self.stage.borrow() {
            RunStage::Open => None,
            RunStage::Closing(reason) | RunStage::Cut(reason) | RunStage::Ended(reason) => Some(reason),
        }
    }

    /// Returns whether it accepts connections.
    pub(crate) fn listens(&self) -> bool {
        self.stage.borrow().listens()
    }

    /// Returns the reason that calls in flight must end, if they must.
    pub(crate) fn cut(&self) -> Option<Closing> {
        match *self.stage.borrow() {
            RunStage::Open | RunStage::Closing(_) => None,
            RunStage::Cut(reason) | RunStage::Ended(reason) => Some(reason),
        }
    }

    /// Subscribes to changes: when the run begins to close, when it is cut, and after [`Self::notify_cuts`].
    pub(crate) fn changes(&self) -> watch::Receiver<RunStage> {
        self.stage.subscribe()
    }

    /// Returns the tap, if the grant allows it and it ever had a watcher.
    pub(crate) fn watched(&self) -> Option<&tap::Tap> {
        self.tap.as_ref().filter(|tap| tap.is_open())
    }

    /// Adds a watcher that has seen the line numbered `after`, if the grant allows one.
    pub(crate) fn watch(&self, rings: &Arc<tap::Rings>, after: u64) -> Option<tap::Watcher> {
        self.tap.as_ref().map(|tap| tap.watch(rings, after))
    }

    /// Closes the tap: every call has ended.
    pub(crate) fn close_tap(&self) {
        if let Some(tap) = &self.tap {
            tap.close();
        }
    }

    /// Returns the number of watchers.
    pub(crate) fn watchers(&self) -> usize {
        self.tap.as_ref().map_or(0, tap::Tap::watchers)
    }

    /// Returns the number of calls in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Returns the run's state for control, without its epoch and its socket.
    pub(crate) fn view(&self) -> RunView {
        let in_flight = self.in_flight();
        let state = match self.closing() {
            None => RunState::Open,
            Some(_) if in_flight > 0 => RunState::Closing,
            Some(_) => RunState::Closed,
        };
        let limits = self.spending.view();
        let RunUsage { usage, last } = self.usage_counters.usage(self.spending.inexact());
        let grant = self.grant.clone();
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
