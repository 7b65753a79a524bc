//! What operators are told of runs, beside what those who ordered them are told: a line of the log when an agent is let run, one
//! when its run is over, and the same as numbers and spans.
//!
//! A line follows the move that it tells of, once that is stored, and is written by whoever made it. A move is made once, whoever
//! takes the run over, so no line is written twice; who dies between the store's answer and the line has not written it, and then
//! the store alone tells. A run that was cancelled before anybody worked on it was not executed.
//!
//! Nothing here was written by an agent or a model: words of the configuration, codes and numbers, and of who ordered the run its id,
//! account and model.

use std::{sync::Arc, time::Duration};

use platform_core::control::Usage;
use platform_runtime::settings::Settings;

use super::{Order, Start};
use crate::{
    lifecycle::{Move, State},
    metrics::Metrics,
    store::Run,
    traces::{self, Export, Traces},
};

/// Who sees what becomes of the runs of this process, and tells it to operators. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observer {
    pub(crate) metrics: Arc<Metrics>,
    /// Absent if nobody is told of traces.
    pub(crate) traces: Option<Traces>,
}

/// A run on its way to its agent's start, for as long as this is there.
#[derive(Debug)]
pub(super) struct Starting(Arc<Metrics>);

impl Observer {
    /// One that counts runs of the agents in `settings`, and tells of traces if these say so; with what is to be done for that.
    pub(crate) fn of(settings: &Settings) -> Result<(Self, Option<Export>), traces::Unusable> {
        let metrics = Arc::<Metrics>::default();
        metrics.know(settings.agents.keys());
        metrics.starting_at_most(u64::from(settings.worker.starts));
        let (traces, export) = traces::open(settings, &metrics)?.unzip();
        Ok((Self { metrics, traces }, export))
    }

    /// A run is prepared.
    pub(super) fn starting(&self) -> Starting {
        self.metrics.starting();
        Starting(Arc::clone(&self.metrics))
    }

    /// A move that brought `run` where it is was stored by us, who started its container as `start` says, if we did.
    pub(super) fn saw(&self, order: &Order, run: &Run, (made, start): (&Move, Option<(Start, Duration)>)) {
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

fn started(order: &Order, run: &Run) {
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

fn complete(order: &Order, run: &Run, start: Option<(Start, Duration)>) {
    let Usage { calls, refused, tokens, .. } = run.usage.unwrap_or_default();
    // What nobody could tell is left out.
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
