//! Reports runs to operators, beside the events that callers read. A log line is written when an agent is started, and
//! another when its run is over. The same goes into metrics and spans.
//!
//! A line follows its transition once that is stored, and the worker that stored the transition writes it. A transition
//! is stored once, also across a take-over, so no line is written twice. A worker that dies between the store's answer
//! and the line has not written it; then only the store has the fact. A run that was cancelled before a worker began it
//! was not executed.
//!
//! Nothing here was written by an agent or a model: it consists of words of the configuration, codes and numbers. From
//! the caller come the run's id, account and model.

use std::{sync::Arc, time::Duration};

use platform_core::control::Usage;
use platform_runtime::settings::Settings;
use runner_model::lifecycle::{StartKind, State, Transition};
use runner_store::Run;
use runner_telemetry::{
    metrics::Metrics,
    traces::{self, SpanQueue, Traces},
};

use crate::request::RunRequest;

/// Observer that reports the runs of this process to operators. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    /// Metrics in which the runs are counted.
    pub metrics: Arc<Metrics>,
    /// Absent if traces are not exported.
    pub traces: Option<Traces>,
}

/// Start of a run's container by this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerStart {
    pub(crate) kind: StartKind,
    /// Time from the request to the start.
    pub(crate) after: Duration,
}

/// A run that is being started, for as long as this guard exists.
#[derive(Debug)]
pub(crate) struct Starting(Arc<Metrics>);

impl Observer {
    /// Builds an observer that counts runs of the agents in `settings`, and exports traces if they say so; with the
    /// export task to run for that.
    pub fn of(settings: &Settings) -> Result<(Self, Option<SpanQueue>), traces::Unusable> {
        let metrics = Arc::<Metrics>::default();
        metrics.know(settings.agents.keys());
        metrics.starting_at_most(u64::from(settings.worker.max_concurrent_starts));
        let (traces, export) = traces::open(settings, &metrics)?.unzip();
        Ok((Self { metrics, traces }, export))
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
    // Values that are not known are left out.
    let known = |count: u64| run.usage.map(|_usage| count);
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
        calls = known(calls),
        refused_calls = known(refused),
        input_tokens = known(tokens.input),
        output_tokens = known(tokens.output),
        "sandbox.execution.complete"
    );
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
