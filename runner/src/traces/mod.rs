//! Traces, told to an OpenTelemetry collector over OTLP/HTTP: runs, what they spend their time on, their calls of models, requests
//! to the API.
//!
//! A span is made when it is over, from times that are stored anyway, and told by whoever stored its end: nothing lives as long as
//! a span does, and who takes a run over needs nothing. Ids that two processes must agree on are derived from the run's. Spans of
//! runs and requests wait in a bounded queue; what finds no room is counted and dropped. Calls are read from the journal, by a
//! cursor that is stored once they are told, so they wait there for a collector that is away; it is no consumer of the journal's,
//! which would keep it from being tidied. A process that is killed loses what is in its queue, and tells up to a batch of calls
//! twice, with the same ids. No prompt, answer or secret is in any span.

mod calls;
mod context;
mod export;
mod otlp;
mod request;
mod runs;
mod span;

pub(crate) use self::{
    export::{Export, Traces, beside, open},
    otlp::Unusable,
    request::Asked,
};
