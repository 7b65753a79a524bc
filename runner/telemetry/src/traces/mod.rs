//! Exports traces to an OpenTelemetry collector over OTLP/HTTP. Spans cover runs and their phases, model calls, and
//! requests to the API.
//!
//! A span is created when its work has ended, from times that are stored anyway. The process that stored the end
//! exports the span. No process keeps state for an open span, so a take-over loses none. Span ids that two processes
//! must agree on are derived from the run's id.
//!
//! Spans of runs and requests wait in a bounded queue; spans that do not fit are counted and dropped. Calls are read
//! from the journal after a cursor, which is stored once they are exported. Calls thus wait in the journal while the
//! collector is unavailable. The cursor is not a consumer of the journal, so records may be removed before they are
//! exported.
//!
//! A process that is killed loses its queue. The next process exports up to a batch of calls again, with the same ids.
//! No prompt, answer or secret is in any span.

mod calls;
mod export;
mod otlp;
mod request;
mod runs;
mod span;
mod trace_context;

pub use self::{
    export::{SpanQueue, Traces, export_during, open},
    otlp::Unusable,
    request::ApiRequest,
    trace_context::trace_id,
};
