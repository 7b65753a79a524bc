//! Exports traces to an OpenTelemetry collector over OTLP/HTTP. Spans cover runs and their phases, model calls, and
//! requests to the API.
//!
//! A span is made when it is over, from times that are stored anyway. The process that stored its end exports it. No
//! state lives as long as a span, so a process that takes a run over needs none. Ids that two processes must agree on
//! are derived from the run's.
//!
//! Spans of runs and requests wait in a bounded queue; what does not fit is counted and dropped. Calls are read from
//! the journal by a cursor, which is stored once they are exported. So they wait there while the collector is
//! unavailable. The cursor is no consumer of the journal, because that would keep the journal from being tidied.
//!
//! A process that is killed loses its queue. It exports up to a batch of calls twice, with the same ids. No prompt,
//! answer or secret is in any span.

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
};
