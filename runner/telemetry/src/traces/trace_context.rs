//! Places a run's spans in a trace: the one its order came with, or one of its own.

use platform_core::{
    id::{InstallationId, RunId},
    traceparent::{SpanId, TraceId, Traceparent},
};
use runner_store::{Error, Record, Run, Store};

/// Trace context of a run. Every process that knows the run derives the same one.
#[derive(Debug, Clone)]
pub(super) struct TraceContext {
    pub(super) trace: TraceId,
    /// Span of the client that ordered the run.
    pub(super) caller: Option<SpanId>,
    /// Sampled flag of the client's trace: no span is made without it.
    pub(super) sampled: bool,
    /// Seed of the run's span ids: installation, run, attempt.
    of: [String; 3],
}

impl TraceContext {
    /// Returns the context of a run that was ordered as part of `caller`.
    pub(super) fn of(run: &Run, caller: Option<Traceparent>) -> Self {
        let mut context = Self::unknown(&run.installation, &run.run_id, run.attempt);
        let told = run.correlation.existing_trace.as_ref().and_then(|trace| TraceId::parse(trace.as_str()));
        if let Some(trace) = caller.map(|caller| caller.trace).or(told) {
            context.trace = trace;
        }
        context.caller = caller.map(|caller| caller.span);
        context.sampled = caller.is_none_or(|caller| caller.sampled);
        context
    }

    /// Returns the context of a run that is known only by its calls.
    pub(super) fn unknown(installation: &InstallationId, run_id: &RunId, attempt: u32) -> Self {
        let of = [installation.to_string(), run_id.to_string(), attempt.to_string()];
        let trace = TraceId::derived(&of.each_ref().map(String::as_str));
        Self { trace, caller: None, sampled: true, of }
    }

    /// Returns the context of a stored run, for all of its spans.
    pub(super) fn recorded(record: &Record) -> Self {
        Self::of(&record.run, record.trace_parent())
    }

    /// Returns the context of the run with this id; `None` if there is no such run.
    pub(super) async fn find(store: &Store, run_id: &RunId) -> Result<Option<Self>, Error> {
        let found = match store.run(run_id).await {
            Err(Error::Unknown { .. }) => return Ok(None),
            found => found?,
        };
        // Orders may be large, and only those that came with a trace have more to say.
        if found.correlation.existing_trace.is_none() {
            return Ok(Some(Self::of(&found, None)));
        }
        Ok(Some(Self::recorded(&store.record(run_id).await?)))
    }

    /// Returns the id of the run's span with this name.
    pub(super) fn span(&self, name: &str) -> SpanId {
        let [installation, run, attempt] = &self.of;
        SpanId::derived(&[installation, run, attempt, name])
    }
}
