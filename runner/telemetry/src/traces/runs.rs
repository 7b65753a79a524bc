//! Creates the spans of a run from its stored record.

use std::time::Duration;

use platform_core::{
    control::Usage,
    event::{AgentEvent, Phase},
};
use runner_store::{Event, RunHistory, RunRecord, UnixMillis};

use super::{
    span::{AttributeValue, Span, SpanKind},
    trace_context::TraceContext,
};

/// Name of the run's own span.
pub(super) const RUN_SPAN: &str = "run";
/// Name of the span in which the run's agent ran, the parent of model calls.
pub(super) const AGENT_SPAN: &str = "agent";

/// Returns the name of the span of a phase.
const fn span_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "queued",
        Phase::Preparing => "prepare",
        Phase::Starting => "start",
        Phase::Running => AGENT_SPAN,
        Phase::Collecting => "collect",
        Phase::Settling => "settle",
    }
}

/// Returns a span of the run from its request to its end, and one of each phase. Returns no span if the run has not
/// ended, or if its trace is not sampled.
pub(super) fn spans(RunHistory { record, events }: &RunHistory) -> Vec<Span> {
    let run = &record.run;
    let context = TraceContext::recorded(record);
    let Some(end) = run.ended.filter(|_| context.sampled) else { return Vec::new() };
    let phases = phases(record, events);
    let root = context.span(RUN_SPAN);
    let start = phases.first().map_or(run.created, |(_, at)| *at);
    let mut spans = vec![Span {
        trace: context.trace,
        id: root,
        parent: context.caller,
        name: format!("invoke_agent {}", run.agent),
        kind: SpanKind::Internal,
        start: since_epoch(start),
        end: since_epoch(end),
        attributes: attributes(record),
        failure: run.error.as_ref().map(|failure| failure.code.code()),
    }];
    let ends = phases.iter().skip(1).map(|(_, at)| *at).chain([end]);
    spans.extend(phases.iter().zip(ends).map(|((phase, start), end)| Span {
        trace: context.trace,
        id: context.span(span_name(*phase)),
        parent: Some(root),
        name: span_name(*phase).to_owned(),
        kind: SpanKind::Internal,
        start: since_epoch(*start),
        end: since_epoch(end),
        attributes: vec![("sluicegate.run_id", run.run_id.as_str().into())],
        failure: None,
    }));
    spans
}

/// Returns the times at which the present attempt entered each phase, beginning with the queue.
fn phases(record: &RunRecord, events: &[Event]) -> Vec<(Phase, UnixMillis)> {
    let mut phases = vec![(Phase::Queued, record.run.created)];
    for event in events {
        match event.event() {
            Ok(AgentEvent::Status { phase: Phase::Queued }) => phases = vec![(Phase::Queued, event.at)],
            Ok(AgentEvent::Status { phase }) => phases.push((phase, event.at)),
            _ => {}
        }
    }
    phases
}

fn attributes(record: &RunRecord) -> Vec<(&'static str, AttributeValue)> {
    let run = &record.run;
    let mut attributes = vec![
        ("gen_ai.operation.name", "invoke_agent".into()),
        ("gen_ai.agent.id", run.agent.as_str().into()),
        ("sluicegate.run_id", run.run_id.as_str().into()),
        ("sluicegate.attempt", AttributeValue::Number(run.attempt.into())),
        ("sluicegate.epoch", AttributeValue::Number(run.epoch)),
        ("sluicegate.account", run.account.as_str().into()),
        ("sluicegate.outcome", run.state.name().into()),
    ];
    if let Some(failure) = &run.error {
        attributes.push(("error.type", failure.code.code().into()));
    }
    if let Some(code) = run.exit_code {
        attributes.push(("sluicegate.exit_code", AttributeValue::Signed(code)));
    }
    if let Some(Usage { calls, refused, tokens, .. }) = run.usage {
        attributes.extend([
            ("sluicegate.calls", AttributeValue::Number(calls)),
            ("sluicegate.refused_calls", AttributeValue::Number(refused)),
            ("gen_ai.usage.input_tokens", AttributeValue::Number(tokens.input)),
            ("gen_ai.usage.output_tokens", AttributeValue::Number(tokens.output)),
        ]);
    }
    attributes
}

fn since_epoch(at: UnixMillis) -> Duration {
    Duration::from_millis(u64::try_from(at.0).unwrap_or_default())
}
