//! Holds the lease on a run. Stores transitions in this process's name, and renews the lease meanwhile. Starts no
//! action once the lease may have been lost.
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
use runner_control_client::Holder;
use runner_docker::KilledBy;
use runner_model::lifecycle::{Completion, StartKind, State, Transition};
use runner_store::{
    self as store, Batch, EventCursor, FencingToken, ResourceChange, Step, Store, ThreadClaim, WarmContainer,
};
use tokio::time::Instant;

pub use self::acquire::LeaseError;
use super::resources::RunResources;
use crate::{
    observer::{ContainerStart, Observer, Starting},
    run_request::RunRequest,
};

/// Delay before a failed request is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// A stored run on which this process holds the lease.
#[derive(Debug)]
pub struct LeasedRun {
    /// Stored request of the run.
    pub request: RunRequest,
    store: Store,
    token: FencingToken,
    attempt: u32,
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
    /// Time from the request to the acquisition of the lease.
    age_when_acquired: Duration,
    /// Start of the container; absent if this process did not start one.
    start: Cell<Option<ContainerStart>>,
}

/// State that previous workers left for a run.
#[derive(Debug, Default)]
pub(super) struct RecoveredState {
    /// Resources that previous workers created and did not remove.
    pub(super) resources: RunResources,
    /// Time since the start of the agent.
    pub(super) started: Option<Duration>,
    /// Reason for which a previous worker was about to end the agent.
    pub(super) stopping: Option<KilledBy>,
    /// Completion that a previous worker stored.
    pub(super) completion: Option<Completion>,
    /// Id of the image that the first preparation used.
    pub(super) image: Option<String>,
    /// Position up to which events are recorded.
    pub(super) recorded: EventCursor,
}

impl LeasedRun {
    pub(super) const fn epoch(&self) -> u64 {
        self.token.epoch
    }

    /// Returns the number of the attempt.
    pub(super) const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the holder that the data plane knows.
    pub(super) const fn holder(&self) -> Holder {
        Holder { attempt: self.attempt, epoch: self.token.epoch }
    }

    pub(super) const fn state(&self) -> State {
        self.state.get()
    }

    pub(super) const fn recovered(&self) -> &RecoveredState {
        &self.recovered
    }

    /// Returns the start of the container; `None` if this process did not start one.
    pub(super) const fn start(&self) -> Option<ContainerStart> {
        self.start.get()
    }

    /// Records that the run's container was started just now.
    pub(super) fn record_start(&self, kind: StartKind) {
        let after = self.age_when_acquired + self.acquired.elapsed();
        self.start.set(Some(ContainerStart { kind, after }));
        self.observer.metrics.started(kind, after);
    }

    /// Stores a transition, and retries while the store is unavailable. The caller may act on the transition only after
    /// that. A transition that a previous worker stored is not stored again.
    pub(super) async fn step(
        &self,
        transition: Transition,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        self.store_step(self.step_of(transition).with(changes)).await
    }

    /// Stores the preparation of the run with a workspace of its thread. A preparation that a previous worker stored is
    /// not stored again.
    ///
    /// # Errors
    /// [`store::Error::ThreadWorkspaceTaken`] if another run has it.
    pub(super) async fn prepare_in_thread(
        &self,
        claim: ThreadClaim,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        self.store_step(self.step_of(Transition::Prepare).with(changes).claiming(claim)).await
    }

    /// Returns the step of a transition, or an empty one if a previous worker has stored it.
    fn step_of(&self, transition: Transition) -> Step {
        let state = self.state.get();
        let is_stored =
            state.can_allocate() && transition.is_on_the_way() && state.after(&transition).is_err();
        if is_stored { Step::default() } else { Step::from(transition) }
    }

    /// Stores the preparation of the run with a warm container.
    ///
    /// # Errors
    /// [`store::Error::NotWarm`] if another run has claimed the container.
    pub(super) async fn prepare_with(
        &self,
        warm: WarmContainer,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::from(Transition::Prepare).with(changes).taking(warm)).await?;
        self.observer.metrics.pool_claimed(&self.request.agent_id);
        Ok(())
    }

    /// Stores the completion, after the events that are still `pending`.
    pub(super) async fn settle(
        &self,
        completion: Completion,
        pending: Vec<Batch>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::from(Transition::Settle(completion)).after(pending)).await
    }

    /// Stores the completion, after the events that are still `pending`, before the agent's commits are collected.
    pub(super) async fn collect(
        &self,
        completion: Completion,
        pending: Vec<Batch>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::from(Transition::Collect(completion)).after(pending)).await
    }

    /// Stores a batch of the run's events.
    pub(super) async fn record_events(&self, batch: &Batch) -> Result<(), store::Error> {
        self.store.record_events(&self.token, batch).await
    }

    /// Stores changes of resources, without a transition.
    pub(super) async fn store_changes(
        &self,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), store::Error> {
        self.store_step(Step::default().with(changes)).await
    }

    /// Stores the reason for which the agent is about to be ended. A worker that takes the run over could not know it
    /// otherwise.
    pub(super) async fn record_stop_reason(&self, by: KilledBy) -> Result<(), store::Error> {
        let reason = serde_json::to_string(&by).unwrap_or_default();
        match self.store.record_stopping(&self.token, &reason).await {
            // The agent must end even if the reason is not stored.
            Err(error) if error.is_transient() => {
                let run = &self.token.run_id;
                tracing::warn!(%run, error = report::chain(&error), "reason for ending the agent not stored");
                Ok(())
            }
            stored => stored,
        }
    }

    /// Stores the id of the run's image, for a worker that takes the run over.
    pub(super) async fn record_image(&self, id: &str) -> Result<(), store::Error> {
        retry_transient(Backoff::constant(RETRY_DELAY), async || {
            self.store.record_image(&self.token, id).await
        })
        .await
    }

    /// Stores a step, and passes its transition to the observer.
    async fn store_step(&self, step: Step) -> Result<(), store::Error> {
        if matches!(step.transition, Some(Transition::Prepare)) {
            self.starting.replace(Some(self.observer.starting()));
        }
        let run = self.store.insist(&self.token, &step).await?;
        self.state.set(run.state);
        match &step.transition {
            None | Some(Transition::Prepare | Transition::Start) => {}
            Some(transition) => {
                self.starting.take();
                self.observer.on_transition(&self.request, &run, transition, self.start.get());
            }
        }
        Ok(())
    }
}
