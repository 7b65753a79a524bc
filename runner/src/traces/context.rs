//! Where a run's spans belong: the trace of whoever ordered it, or one of its own.

use platform_core::{
    id::{InstallationId, RunId},
    traceparent::{SpanId, TraceId, Traceparent},
};

use crate::{
    run::Order,
    store::{Error, Record, Run, Store},
};

/// A run's place among traces. The same for every process that knows the run.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) trace: TraceId,
    /// The span of whoever ordered it.
    pub(super) caller: Option<SpanId>,
    /// Whether its trace is kept at all.
    pub(super) sampled: bool,
    /// What tells the run's spans from others': installation, run, attempt.
    of: [String; 3],
}

impl Context {
    /// Of a run that was ordered as part of `caller`.
    pub(super) fn of(run: &Run, caller: Option<Traceparent>) -> Self {
        let mut context = Self::unknown(&run.installation, &run.run, run.attempt);
        let told = run.correlation.existing_trace.as_ref().and_then(|trace| TraceId::parse(trace.as_str()));
        if let Some(trace) = caller.map(|caller| caller.trace).or(told) {
            context.trace = trace;
        }
        context.caller = caller.map(|caller| caller.span);
        context.sampled = caller.is_none_or(|caller| caller.sampled);
        context
    }

    /// Of a run that only its calls tell of.
    pub(super) fn unknown(installation: &InstallationId, run: &RunId, attempt: u32) -> Self {
        let of = [installation.to_string(), run.to_string(), attempt.to_string()];
        let trace = TraceId::derived(&of.each_ref().map(String::as_str));
        Self { trace, caller: None, sampled: true, of }
    }

    /// The one that everything of a run that is on record belongs to.
    pub(super) fn recorded(record: &Record) -> Self {
        // Nothing else of an order that cannot be read matters here.
        let caller = Order::stored(record).ok().and_then(|order| order.wanted.caller);
        Self::of(&record.run, caller)
    }

    /// The same, asked for by the run's id; `None` if there is no such run.
    pub(super) async fn find(store: &Store, run: &RunId) -> Result<Option<Self>, Error> {
        let found = match store.run(run).await {
            Err(Error::Unknown { .. }) => return Ok(None),
            found => found?,
        };
        // Orders may be large, and only those say more that were part of something.
        if found.correlation.existing_trace.is_none() {
            return Ok(Some(Self::of(&found, None)));
        }
        Ok(Some(Self::recorded(&store.record(run).await?)))
    }

    /// Id of the run's span that is called `name`.
    pub(super) fn span(&self, name: &str) -> SpanId {
        let [installation, run, attempt] = &self.of;
        SpanId::derived(&[installation, run, attempt, name])
    }
}
