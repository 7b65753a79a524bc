//! Derives the trace context of a run's spans: from the trace in its request, or from its id.

use platform_core::{
    id::{InstallationId, RunId},
    traceparent::{SpanId, TraceId, Traceparent},
};
use runner_store::{Error, Run, RunRecord, Store};

/// Trace context of a run. Every process that knows the run derives the same one.
#[derive(Debug, Clone)]
pub(super) struct TraceContext {
    pub(super) trace: TraceId,
    /// Span of the client that requested the run.
    pub(super) caller: Option<SpanId>,
    /// Sampled flag of the client's trace; without it, no span is created.
    pub(super) sampled: bool,
    /// Seed of the run's span ids: installation, run, attempt.
    seed: [String; 3],
}

/// Returns the id of a stored run's trace.
#[must_use]
pub fn trace_id(record: &RunRecord) -> String {
    TraceContext::recorded(record).trace.to_string()
}

impl TraceContext {
    /// Returns the context of a run that was requested as part of `caller`'s trace.
    pub(super) fn of(run: &Run, caller: Option<Traceparent>) -> Self {
        let mut context = Self::unknown(&run.installation, &run.run_id, run.attempt);
        let requested =
            run.correlation.existing_trace.as_ref().and_then(|trace| TraceId::parse(trace.as_str()));
        if let Some(trace) = caller.map(|caller| caller.trace).or(requested) {
            context.trace = trace;
        }
        context.caller = caller.map(|caller| caller.span);
        context.sampled = caller.is_none_or(|caller| caller.sampled);
        context
    }

    /// Returns the context of a run that the store does not have, and that is known only by its calls.
    pub(super) fn unknown(installation: &InstallationId, run_id: &RunId, attempt: u32) -> Self {
        let seed = [installation.to_string(), run_id.to_string(), attempt.to_string()];
        let trace = TraceId::derived(&seed.each_ref().map(String::as_str));
        Self { trace, caller: None, sampled: true, seed }
    }

    /// Returns the context of a stored run, for all of its spans.
    pub(super) fn recorded(record: &RunRecord) -> Self {
        Self::of(&record.run, record.trace_parent())
    }

    /// Returns the context of the run with this id; `None` if the run does not exist.
    pub(super) async fn find(store: &Store, run_id: &RunId) -> Result<Option<Self>, Error> {
        let run = match store.run(run_id).await {
            Err(Error::Unknown { .. }) => return Ok(None),
            run => run?,
        };
        // Records may be large. Only a request with a trace needs its record, which contains the caller's span.
        if run.correlation.existing_trace.is_none() {
            return Ok(Some(Self::of(&run, None)));
        }
        Ok(Some(Self::recorded(&store.record(run_id).await?)))
    }

    /// Returns the id of the run's span with this name.
    pub(super) fn span(&self, name: &str) -> SpanId {
        let [installation, run, attempt] = &self.seed;
        SpanId::derived(&[installation, run, attempt, name])
    }
}
