//! Executes one run, from its row to the removal of everything it needed.
//!
//! [`execute`] creates a `RunExecutor`. Its phases are one file each, in this order:
//!
//! * `resume`: what previous workers left
//! * `provision`: workspace, grant and socket, image
//! * `launch`: the container, and the start of the agent
//! * `supervise`: to the agent's end
//! * `settle`: close the grant, remove everything, report the usage
//!
//! A run on a gateway has `turn` in the place of the first four. Each step is a transition of `lifecycle`, stored before
//! it is made. The row of a resource is stored with the transition that precedes its creation. `settle` happens on every
//! path, also after Ctrl-C and after a step that failed. A worker that takes over a run continues where the previous
//! worker stopped: everything known of a run is in its rows.

mod activity;
mod admission;
mod context;
mod error;
mod event_recorder;
mod executor;
mod launch;
mod leased_run;
mod plan;
mod preflight;
mod provision;
mod registration;
mod resources;
mod result;
mod resume;
mod settle;
mod supervise;
mod tap_relay;
mod turn;

use platform_core::event::AgentEvent;
use runner_store as store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::{
    admission::NotAdmitted,
    leased_run::{LeaseError, LeasedRun},
    result::RunResult,
};
use self::{context::RunContext, executor::RunExecutor};
use crate::context::EngineHandles;

/// Capacity of the channel for events that have no reader.
const DISCARDED_EVENTS_CAPACITY: usize = 16;

/// Executes `run` and sends its events to `events`. A slow reader misses live pieces, never the end.
/// Returns when nothing of the run is left, or another worker has taken it over. Triggering `cancel` ends the run.
/// Dropping this future leaves the run as it is, for another worker to take over.
///
/// # Errors
/// The store's answer which shows that another worker has taken the run over and continues it.
pub async fn execute(
    engine: &EngineHandles,
    run: &LeasedRun,
    events: &mpsc::Sender<AgentEvent>,
    cancel: &CancellationToken,
) -> Result<RunResult, store::Error> {
    let ctx = RunContext::new(engine, run, events, cancel);
    let result = tokio::select! {
        result = Box::pin(RunExecutor::new(&ctx).execute()) => result?,
        // From here on the new owner decides about everything of the run, also what is half created.
        lost = run.keep_lease(&ctx.cancel) => return Err(lost),
    };
    result.announce(events).await;
    Ok(result)
}

/// Executes the run as [`execute`] does, without a reader of its events: the end is stored.
///
/// # Errors
/// The same as those of [`execute`].
pub async fn execute_without_reader(
    engine: &EngineHandles,
    run: &LeasedRun,
    cancel: &CancellationToken,
) -> Result<RunResult, store::Error> {
    let (events, mut discarded) = mpsc::channel(DISCARDED_EVENTS_CAPACITY);
    let execute = async {
        let events = events;
        Box::pin(execute(engine, run, &events, cancel)).await
    };
    let discard = async { while discarded.recv().await.is_some() {} };
    let (result, ()) = tokio::join!(execute, discard);
    result
}
