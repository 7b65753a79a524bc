//! Executes one run, from its row to the removal of all its resources.
//!
//! [`execute`] creates a `RunExecutor`. Its phases are one file each, in this order:
//!
//! * `resume`: takes over the state that previous workers left
//! * `provision`: creates the workspace, the grant and the socket
//! * `launch`: creates the container and starts the agent
//! * `supervise`: watches the agent to its end
//! * `collect`: takes the agent's commits out of its workspace, if the run has a repository
//! * `settle`: closes the grant, removes all resources, reports the usage
//!
//! A run on a gateway has `turn` in the place of the first four. Each step is a transition of `lifecycle`, stored
//! before its effects begin. The row of a resource is stored with the transition that precedes its creation. `settle`
//! runs on every path, also after Ctrl-C and after a step that failed. A worker that takes over a run continues where
//! the previous worker stopped: the rows hold everything that is known of a run.

mod activity;
mod admission;
mod agent_container;
mod collect;
mod context;
mod error;
mod event_recorder;
mod executor;
mod launch;
mod leased_run;
mod next_attempt;
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
mod thread_workspace;
mod turn;

use platform_core::event::AgentEvent;
use runner_store as store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::{
    admission::NotAdmitted,
    leased_run::{LeaseError, LeasedRun},
    next_attempt::{NotAttempted, start_next_attempt},
    result::RunResult,
};
use self::{context::RunContext, executor::RunExecutor};
use crate::context::EngineHandles;
pub use crate::outcome::container::AGENT_SAID;

/// Capacity of the channel for events that have no reader.
const DISCARDED_EVENTS_CAPACITY: usize = 16;

/// Executes `run` and sends its events to `events`. A slow reader misses live events, never the last ones. Returns when
/// the run has settled, or another worker has taken it over. Triggering `cancel` ends the run. Dropping this future
/// leaves the run as it is, for another worker to take over.
///
/// # Errors
/// The store's error that shows that another worker has taken the run over.
pub async fn execute(
    engine: &EngineHandles,
    run: &LeasedRun,
    events: &mpsc::Sender<AgentEvent>,
    cancel: &CancellationToken,
) -> Result<RunResult, store::Error> {
    let ctx = RunContext::new(engine, run, events, cancel);
    let result = tokio::select! {
        result = Box::pin(RunExecutor::new(&ctx).execute()) => result?,
        // The new holder of the lease now decides about all resources, including those that are half created.
        lost = run.keep_lease(&ctx.cancel) => return Err(lost),
    };
    result.announce(events).await;
    Ok(result)
}

/// Executes `run` as [`execute`] does, without a reader of its events. Readers find the completion in the store.
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
