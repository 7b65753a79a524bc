//! Holds the lease on a run. Transitions are stored in this process's name and the lease is renewed meanwhile. No
//! action starts once the lease may have been lost.
//!
//! `acquire` creates or loads such a run, `perform` acts in its name.

mod acquire;
mod perform;

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use platform_core::limit::Millis;
use platform_runtime::{
    report,
    retry::{Backoff, Transient, retry_transient},
};
use runner_docker::KilledBy;
use runner_model::lifecycle::{Completion, StartKind, State, Transition};
use runner_store::{
    self as store, Batch, EventCursor, FencingToken, ResourceChange, Step, Store, WarmContainer,
};
use tokio::time::Instant;

pub use self::acquire::LeaseError;
use super::resources::RunResources;
use crate::{
    observer::{ContainerStart, Observer, Starting},
    request::RunRequest,
};

/// Delay before a failed request is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// A stored run on which this process holds the lease.
#[derive(Debug)]
pub struct LeasedRun {
    /// Request that is stored for the run.
    pub request: RunRequest,
    store: Store,
    hold: FencingToken,
    lease: Millis,
    state: Cell<State>,
    /// Moment of the boot clock before which no other worker can have taken the run over.
    held_until: Cell<Duration>,
    recovered: RecoveredState,
    observer: Observer,
    /// Guard that exists from the preparation of the run until its agent is started.
    starting: RefCell<Option<Starting>>,
    /// Moment at which the lease was acquired.
    acquired: Instant,
    /// Time from the request to that moment.
    age_when_acquired: Duration,
    /// Start of the container; absent if it was not started, or not here.
    start: Cell<Option<ContainerStart>>,
}

/// State that previous workers left for a run.
#[derive(Debug, Default)]
pub(super) struct RecoveredState {
    /// Resources that they created and did not remove.
    pub(super) resources: RunResources,
    /// Time since they started the agent.
    pub(super) started: Option<Duration>,
    /// Reason for which they were about to end the agent, if they were.
    pub(super) stopping: Option<KilledBy>,
    /// Completion that they stored.
    pub(super) completion: Option<Completion>,
    /// Id of the image that they prepared the run with.
    pub(super) image: Option<String>,
    /// Position up to which they recorded events.
    pub(super) recorded: EventCursor,
}

impl LeasedRun {
    pub(super) const fn epoch(&self) -> u64 {
        self.hold.epoch
    }

    pub(super) const fn state(&self) -> State {
        self.state.get()
    }

    pub(super) const fn recovered(&self) -> &RecoveredState {
        &self.recovered
    }

    /// Returns the start of the container; absent if it was not started, or not here.
    pub(super) const fn start(&self) -> Option<ContainerStart> {
        self.start.get()
    }

    /// Records that its container was started just now.
    pub(super) fn record_start(&self, kind: StartKind) {
        let after = self.age_when_acquired + self.acquired.elapsed();
        self.start.set(Some(ContainerStart { kind, after }));
        self.observer.metrics.started(kind, after);
    }

    /// Stores a transition and retries while the store is unavailable; only then may the step be done. A transition
    /// that a previous worker stored is not stored again.
    pub(super) async fn step(
        &self,
        transition: Transition,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        let state = self.state.get();
        let was_made =
            state.can_allocate() && transition.is_on_the_way() && state.after(&transition).is_err();
        let step = if was_made { Step::default() } else { Step::from(transition) };
        self.store_step(step.with(changes)).await
    }

    /// Starts the preparation with a warm container.
    ///
    /// # Errors
    /// [`store::Error::NotWarm`] if another run was faster.
    pub(super) async fn prepare_with(
        &self,
        warm: WarmContainer,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::from(Transition::Prepare).with(changes).taking(warm)).await?;
        self.observer.metrics.pool_claimed(&self.request.agent_id);
        Ok(())
    }

    /// Stores how the run ends, after the events that are still `pending`.
    pub(super) async fn settle(
        &self,
        completion: Completion,
        pending: Vec<Batch>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::from(Transition::Settle(completion)).after(pending)).await
    }

    /// Stores a batch of the run's events.
    pub(super) async fn record_events(&self, batch: &Batch) -> Result<(), store::Error> {
        self.store.record_events(&self.hold, batch).await
    }

    /// Stores changes of resources, without a transition.
    pub(super) async fn change(
        &self,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::default().with(changes)).await
    }

    /// Stores that the agent is about to be ended, and why: a worker that finds it ended could not know the reason.
    pub(super) async fn record_stop_reason(&self, by: KilledBy) -> Result<(), store::Error> {
        let reason = serde_json::to_string(&by).unwrap_or_default();
        match self.store.stopping(&self.hold, &reason).await {
            // The agent is ended all the same.
            Err(error) if error.is_transient() => {
                let run = &self.hold.run_id;
                tracing::warn!(%run, error = report::chain(&error), "reason for ending the agent not stored");
                Ok(())
            }
            stored => stored,
        }
    }

    /// Stores the id of the image that containers are created from, for a worker that takes the run over.
    pub(super) async fn record_image(&self, id: &str) -> Result<(), store::Error> {
        retry_transient(Backoff::constant(RETRY_DELAY), async || self.store.image(&self.hold, id).await).await
    }

    /// Stores a step, and reports its transition to operators.
    async fn store_step(&self, step: Step) -> Result<(), store::Error> {
        if matches!(step.makes, Some(Transition::Prepare)) {
            self.starting.replace(Some(self.observer.starting()));
        }
        let run = self.store.insist(&self.hold, &step).await?;
        self.state.set(run.state);
        match &step.makes {
            None | Some(Transition::Prepare | Transition::Start) => {}
            Some(transition) => {
                self.starting.take();
                self.observer.on_transition(&self.request, &run, transition, self.start.get());
            }
        }
        Ok(())
    }
}
