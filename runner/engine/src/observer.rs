//! Reports runs to operators, separately from the events that callers read. Writes a log line when an agent is started,
//! and another when its run has ended. Updates metrics and spans as well.
//!
//! The worker that stored a transition writes its line afterwards. A transition is stored once, even across a
//! take-over, so no line is written twice. If a worker dies between the store's answer and the line, the line is
//! missing and only the store has the fact. A run that was cancelled before a worker claimed it has no line.
//!
//! Lines contain no text of agents or models: only words of the configuration, codes and numbers. The caller provides
//! the run's id, account and model.

use std::{sync::Arc, time::Duration};

use platform_core::control::Usage;
use platform_runtime::settings::Settings;
use runner_model::lifecycle::{StartKind, State, Transition};
use runner_store::Run;
use runner_telemetry::{
    metrics::Metrics,
    traces::{self, SpanQueue, Traces},
};

use crate::run_request::RunRequest;

/// Observer that reports the runs of this process to operators. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    /// Metrics that count the runs.
    pub metrics: Arc<Metrics>,
    /// Traces of the runs; absent if traces are not exported.
    pub traces: Option<Traces>,
}

/// Start of a run's container by this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerStart {
    pub(crate) kind: StartKind,
    /// Time from the request to the start.
    pub(crate) after: Duration,
}

/// Guard that counts a run as being started, until it is dropped.
#[derive(Debug)]
pub(crate) struct Starting(Arc<Metrics>);

impl Observer {
    /// Builds an observer for the agents in `settings`. If `settings` name a trace collector, also returns the queue to
    /// export.
    pub fn of(settings: &Settings) -> Result<(Self, Option<SpanQueue>), traces::Unusable> {
        let metrics = Arc::<Metrics>::default();
        metrics.register_agents(settings.agents.keys());
        metrics.starting_at_most(u64::from(settings.worker.max_concurrent_starts));
        let (traces, span_queue) = traces::open(settings, &metrics)?.unzip();
        Ok((Self { metrics, traces }, span_queue))
    }

    /// Counts a run that is being prepared, until the guard is dropped.
    pub(crate) fn starting(&self) -> Starting {
        self.metrics.starting();
        Starting(Arc::clone(&self.metrics))
    }

    /// Reports a transition that this process stored for `run`. `start` is present if this process started its
    /// container.
    pub(crate) fn on_transition(
        &self,
        request: &RunRequest,
        run: &Run,
        transition: &Transition,
        start: Option<ContainerStart>,
    ) {
        match (transition, run.state) {
            (Transition::Run, _) => log_started(request, run),
            (Transition::Finish(_) | Transition::Withdraw(_), State::Ended(outcome)) => {
                log_complete(request, run, start);
                let after = run.ended.map(|ended| run.created.until(ended));
                self.metrics.ended(&run.agent, outcome, after.unwrap_or_default());
                if let Some(traces) = &self.traces {
                    traces.ended(&run.run_id);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.started_or_not();
    }
}

fn log_started(request: &RunRequest, run: &Run) {
    tracing::info!(
        target: "sandbox",
        run_id = %run.run_id,
        attempt = run.attempt,
        epoch = run.epoch,
        agent_variant = %run.agent,
        execution_mode = request.spec.agent.mode.word(),
        account = %run.account,
        model = request.spec.model,
        "sandbox.execution.started"
    );
}

fn log_complete(request: &RunRequest, run: &Run, start: Option<ContainerStart>) {
    let Usage { calls, refused, tokens, .. } = run.usage.unwrap_or_default();
    // Unknown values are left out.
    let if_known = |count: u64| run.usage.map(|_usage| count);
    tracing::info!(
        target: "sandbox",
        run_id = %run.run_id,
        attempt = run.attempt,
        epoch = run.epoch,
        agent_variant = %run.agent,
        execution_mode = request.spec.agent.mode.word(),
        account = %run.account,
        model = request.spec.model,
        outcome = run.state.name(),
        error_code = run.error.as_ref().map(|failure| failure.code.code()),
        exit_code = run.exit_code,
        start = start.map(|start| start.kind.name()),
        start_ms = start.map(|start| millis(start.after)),
        duration_ms = run.ended.map(|ended| millis(run.created.until(ended))),
        calls = if_known(calls),
        refused_calls = if_known(refused),
        input_tokens = if_known(tokens.input),
        output_tokens = if_known(tokens.output),
        "sandbox.execution.complete"
    );
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
