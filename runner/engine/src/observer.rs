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
use runner_model::lifecycle::{Move, StartKind, State};
use runner_store::Run;
use runner_telemetry::{
    metrics::Metrics,
    traces::{self, Export, Traces},
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

/// A run that is being started, for as long as this guard exists.
#[derive(Debug)]
pub(crate) struct Starting(Arc<Metrics>);

impl Observer {
    /// Builds an observer that counts runs of the agents in `settings`, and exports traces if they say so; with the
    /// export task to run for that.
    pub fn of(settings: &Settings) -> Result<(Self, Option<Export>), traces::Unusable> {
        let metrics = Arc::<Metrics>::default();
        metrics.know(settings.agents.keys());
        metrics.starting_at_most(u64::from(settings.worker.starts));
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
    pub(crate) fn saw(
        &self,
        order: &RunRequest,
        run: &Run,
        (made, start): (&Move, Option<(StartKind, Duration)>),
    ) {
        match (made, run.state) {
            (Move::Run, _) => started(order, run),
            (Move::Finish(_) | Move::Withdraw(_), State::Ended(outcome)) => {
                complete(order, run, start);
                let after = run.ended.map(|ended| run.created.until(ended));
                self.metrics.ended(&run.agent, outcome, after.unwrap_or_default());
                if let Some(traces) = &self.traces {
                    traces.ended(&run.run);
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

fn started(order: &RunRequest, run: &Run) {
    tracing::info!(
        target: "sandbox",
        run_id = %run.run,
        attempt = run.attempt,
        epoch = run.epoch,
        agent_variant = %run.agent,
        execution_mode = order.wanted.agent.mode.word(),
        account = %run.account,
        model = order.wanted.model,
        "sandbox.execution.started"
    );
}

fn complete(order: &RunRequest, run: &Run, start: Option<(StartKind, Duration)>) {
    let Usage { calls, refused, tokens, .. } = run.usage.unwrap_or_default();
    // Values that are not known are left out.
    let known = |count: u64| run.usage.map(|_usage| count);
    tracing::info!(
        target: "sandbox",
        run_id = %run.run,
        attempt = run.attempt,
        epoch = run.epoch,
        agent_variant = %run.agent,
        execution_mode = order.wanted.agent.mode.word(),
        account = %run.account,
        model = order.wanted.model,
        outcome = run.state.name(),
        error_code = run.error.as_ref().map(|failure| failure.code.code()),
        exit_code = run.exit_code,
        start = start.map(|(start, _)| start.name()),
        start_ms = start.map(|(_, after)| millis(after)),
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
