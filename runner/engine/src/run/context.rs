//! Holds everything that one run needs while it executes.

use std::time::Instant;

use platform_core::{event::AgentEvent, id::RunId};
use platform_runtime::{
    report,
    settings::{Agent, Execution, Protocol, Stream},
};
use tokio::sync::{SemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    error::Error,
    event_recorder::{EventRecorder, OutputRules, Reporter},
    leased_run::LeasedRun,
};
use crate::{
    context::EngineHandles,
    run_request::{RunRequest, RunSpec},
};

/// Everything that one run needs while it executes.
pub(super) struct RunContext<'r> {
    pub(super) engine: &'r EngineHandles,
    pub(super) run: &'r LeasedRun,
    pub(super) events: EventRecorder<'r>,
    /// Token that cancels the run.
    pub(super) cancel: CancellationToken,
    /// Moment at which this process began to execute the run.
    pub(super) began: Instant,
}

impl<'r> RunContext<'r> {
    pub(super) fn new(
        engine: &'r EngineHandles,
        run: &'r LeasedRun,
        events: &'r mpsc::Sender<AgentEvent>,
        cancel: &CancellationToken,
    ) -> Self {
        let cancel = cancel.child_token();
        let began = Instant::now();
        let agent = &run.request.spec.agent;
        // The gateway sends the answer itself. Models there also write text that is not part of it.
        let (reporter, stream) = match (agent.mode, agent.protocol) {
            (Execution::Gateway, _) => (Reporter::Gateway, Stream::Answer),
            (Execution::Ephemeral, Protocol::Events) => (Reporter::Agent, agent.stream),
            (Execution::Ephemeral, _) => (Reporter::DataPlane, agent.stream),
        };
        let output = OutputRules { reporter, stream, capture_limit: agent.output_capture_limit };
        let events = EventRecorder::new(run.recovered().recorded, events, output);
        Self { engine, run, events, cancel, began }
    }

    pub(super) const fn request(&self) -> &'r RunRequest {
        &self.run.request
    }

    pub(super) const fn run_id(&self) -> &'r RunId {
        &self.request().run_id
    }

    pub(super) const fn spec(&self) -> &'r RunSpec {
        &self.request().spec
    }

    pub(super) const fn agent(&self) -> &'r Agent {
        &self.spec().agent
    }

    /// Waits for a permit to provision and start a container. Permits are granted in order of arrival; a cancelled run
    /// stops waiting.
    pub(super) async fn start_permit(&self) -> Result<Option<SemaphorePermit<'r>>, Error> {
        tokio::select! {
            // The semaphore is never closed.
            permit = self.engine.starts.acquire() => Ok(permit.ok()),
            () = self.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Ends the requests for approvals that a turn has left open: nothing waits for them any more.
    pub(super) async fn close_gateway_calls(&self) {
        if let Err(error) = self.engine.store.close_gateway_calls(self.run_id()).await {
            let error = report::chain(&error);
            tracing::warn!(run = %self.run_id(), error, "requests for approvals not closed");
        }
    }

    /// Fails if the run is cancelled.
    pub(super) fn check_cancelled(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
