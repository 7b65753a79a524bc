//! Starts the next attempt of an ended run: the same order again, under the same id, with its own grant.

use platform_core::{
    code::{Code, Coded},
    id::{AgentId, RunId},
};
use platform_runtime::settings::Execution;
use runner_model::lifecycle::State;
use runner_store::{self as store, Created, ResourceKind, ResourceState, RunRecord, Store};

use crate::run_request::{RunRequest, RunSpec, Unreadable};

/// Reason why a run is not attempted again.
#[derive(Debug, thiserror::Error)]
pub enum NotAttempted {
    /// The store failed or refused, or has no such run.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The stored order cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The run has not ended.
    #[error("{run_id} is {state}: it can be attempted again when it has ended")]
    NotEnded {
        /// The run.
        run_id: RunId,
        /// State of the run.
        state: State,
    },
    /// Another attempt than the expected one would be the next.
    #[error("the next attempt of {run_id} is {next}, and {expected} was asked for")]
    OtherAttempt {
        /// The run.
        run_id: RunId,
        /// Number of the next attempt.
        next: u32,
        /// Number that was asked for.
        expected: u32,
    },
    /// The files that the run received were removed.
    #[error("the files that {run_id} received are no longer kept: order a new run with them")]
    FilesGone {
        /// The run.
        run_id: RunId,
    },
    /// The agent runs on a gateway, which remembers the turn of the run.
    #[error("{agent_id} runs on a gateway, which answers the same turn once: order a new run")]
    OnGateway {
        /// The agent.
        agent_id: AgentId,
    },
}

impl Coded for NotAttempted {
    fn code(&self) -> Code {
        match self {
            Self::Store(store::Error::Illegal { .. } | store::Error::Fenced { .. })
            | Self::NotEnded { .. } => Code::RunNotEnded,
            Self::Store(error) => error.code(),
            Self::OtherAttempt { .. } => Code::OtherAttempt,
            Self::FilesGone { .. } | Self::OnGateway { .. } => Code::NeverRepeatable,
            Self::Unreadable(_) => Code::Usage,
        }
    }
}

/// Starts the next attempt of `run_id`. With a number of the `expected` attempt, the same request again changes nothing.
///
/// # Errors
/// [`NotAttempted`], with the reason.
pub async fn start_next_attempt(
    store: &Store,
    run_id: &RunId,
    expected: Option<u32>,
) -> Result<Created, NotAttempted> {
    let record = store.record(run_id).await?;
    let run = &record.run;
    if expected == Some(run.attempt) && run.attempt > 0 {
        return Ok(Created::Existing(record.run));
    }
    if !run.state.is_final() {
        return Err(NotAttempted::NotEnded { run_id: run_id.clone(), state: run.state });
    }
    let next = run.attempt.saturating_add(1);
    if let Some(expected) = expected.filter(|expected| *expected != next) {
        return Err(NotAttempted::OtherAttempt { run_id: run_id.clone(), next, expected });
    }
    check_repeatable(&record)?;
    match store.restart(&run.fencing_token()).await {
        Ok(run) => Ok(Created::New(run)),
        Err(error @ (store::Error::Illegal { .. } | store::Error::Fenced { .. })) => {
            // Another request was faster, or an earlier try of this one was stored without an answer.
            let run = store.run(run_id).await?;
            if expected == Some(run.attempt) { Ok(Created::Existing(run)) } else { Err(error.into()) }
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that the order of `record` can be executed a second time.
fn check_repeatable(record: &RunRecord) -> Result<(), NotAttempted> {
    let RunRequest { run_id, agent_id, spec: RunSpec { agent, files, .. }, .. } = RunRequest::stored(record)?;
    if agent.mode == Execution::Gateway {
        return Err(NotAttempted::OnGateway { agent_id });
    }
    let are_removed = record
        .resources
        .iter()
        .any(|resource| resource.kind == ResourceKind::Files && resource.stage == ResourceState::Removed);
    if files.is_some() && are_removed { Err(NotAttempted::FilesGone { run_id }) } else { Ok(()) }
}
