//! Acquires the lease on a run: stores a new one, or loads one that this process has claimed.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use platform_core::{
    code::{Code, Coded},
    json::{self, Bounds},
};
use platform_runtime::settings::Accounts;
use runner_model::{
    failpoint::Point,
    lifecycle::{Completion, State},
};
use runner_store::{self as store, Claimant, Created, Run, RunRecord, Store};
use tokio::time::Instant;

use super::{LeasedRun, RecoveredState};
use crate::{
    context::EngineHandles,
    lease_clock::boot_now,
    run::{
        admission::{NotAdmitted, admit},
        resources::RunResources,
    },
    run_request::{RunRequest, Unreadable},
};

/// Reason why this process does not execute a run.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The request is not admitted.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// The run is not stored, so nothing may act for it.
    #[error("the run is not stored, and nothing acts before it is")]
    NotStored(#[source] store::Error),
    /// The request cannot be serialized.
    #[error("the request cannot be serialized")]
    Unwritable(#[from] serde_json::Error),
    /// The same request was stored before.
    #[error("run {} was submitted before and is {}", .0.run_id, .0.state)]
    Exists(Box<Run>),
    /// The run is leased here, and its stored request cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl Coded for LeaseError {
    fn code(&self) -> Code {
        match self {
            Self::NotAdmitted(NotAdmitted::TooUrgent { .. }) => Code::PriorityTooHigh,
            Self::NotStored(error) => error.code(),
            Self::Unwritable(_) | Self::Exists(_) | Self::Unreadable(_) => Code::Internal,
        }
    }
}

impl LeasedRun {
    /// Stores `request` as a run of this process. Nothing may act for the run before.
    pub async fn create(engine: &EngineHandles, request: RunRequest) -> Result<Self, LeaseError> {
        admit(&request, &engine.settings.get().accounts)?;
        let since = boot_now();
        let claimant = Claimant::Worker(&engine.worker, engine.lease);
        match store_request(&engine.store, &request, claimant).await? {
            Created::New(run) => {
                let acquired = Acquired { since, age: Duration::ZERO, recovered: RecoveredState::default() };
                Ok(Self::acquired(engine, request, &run, acquired))
            }
            Created::Existing(run) => Err(LeaseError::Exists(Box::new(run))),
        }
    }

    /// Stores `request` as a queued run that any worker may claim.
    pub async fn enqueue(
        store: &Store,
        request: &RunRequest,
        accounts: &Accounts,
    ) -> Result<Created, LeaseError> {
        admit(request, accounts)?;
        store_request(store, request, Claimant::AnyWorker).await
    }

    /// Loads a run just after this process has acquired its lease. `since` is a moment of [`boot_now`] before that.
    pub(crate) async fn load(engine: &EngineHandles, run: &Run, since: Duration) -> Result<Self, LeaseError> {
        let record = engine.store.record(&run.run_id).await.map_err(LeaseError::NotStored)?;
        let request = RunRequest::stored(&record)?;
        let age = run.queued.until(record.now);
        let acquired = Acquired { since, age, recovered: RecoveredState::of(run, record) };
        Ok(Self::acquired(engine, request, run, acquired))
    }

    fn acquired(engine: &EngineHandles, request: RunRequest, run: &Run, acquired: Acquired) -> Self {
        let Acquired { since, age, recovered } = acquired;
        let run = Self {
            request,
            store: engine.store.clone(),
            token: run.fencing_token(),
            attempt: run.attempt,
            lease: engine.lease,
            state: Cell::new(run.state),
            held_until: Cell::new(Duration::ZERO),
            recovered,
            observer: engine.observer.clone(),
            starting: RefCell::default(),
            acquired: Instant::now(),
            age_when_acquired: age,
            start: Cell::default(),
        };
        run.extend_lease(since);
        Point::Booked.reach();
        run
    }
}

/// A lease that this process has just acquired.
struct Acquired {
    /// Moment of the boot clock shortly before the acquisition.
    since: Duration,
    /// Time from the request to the acquisition.
    age: Duration,
    recovered: RecoveredState,
}

impl RecoveredState {
    /// Returns the state that previous workers left for `run`, according to its `record`.
    fn of(run: &Run, record: RunRecord) -> Self {
        let completion = matches!(run.state, State::Collecting(_) | State::Settling(_)).then(|| Completion {
            exit_code: run.exit_code,
            oom_seen: run.oom_seen,
            answer: run.error.clone().map_or_else(|| Ok(record.answer.clone().unwrap_or_default()), Err),
        });
        Self {
            resources: RunResources::from_rows(&record.resources),
            started: run.started.map(|started| started.until(record.now)),
            stopping: record
                .stopping
                .as_deref()
                .and_then(|reason| json::from_str(reason, Bounds::STORED).ok()),
            completion,
            image: record.image,
            recorded: record.event_cursor,
        }
    }
}

/// Stores `request`. A stored request with the same meaning counts as existing, even if an earlier version wrote other
/// JSON, or if it belongs to another trace.
async fn store_request(
    store: &Store,
    request: &RunRequest,
    claimant: Claimant<'_>,
) -> Result<Created, LeaseError> {
    let conflict = match store.create(&request.row()?, claimant).await {
        Err(error @ store::Error::Conflict { .. }) => error,
        created => return created.map_err(LeaseError::NotStored),
    };
    match store.record(&request.run_id).await {
        Ok(record) if RunRequest::stored(&record).is_ok_and(|stored| stored.is_same(request)) => {
            Ok(Created::Existing(record.run))
        }
        _ => Err(LeaseError::NotStored(conflict)),
    }
}
