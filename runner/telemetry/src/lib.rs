//! Metrics and traces of the control plane, both from stored transitions and the journal.
//!
//! Does not listen (`runner-api` serves the metrics), and does not delay a run for a collector. No label and no word of
//! a span comes from an agent.
//!
//! Start reading at [`metrics`]; [`traces`] exports spans over OTLP.
//!
//! Invariants: each step of a run is counted once, by the process that stored it. Labels are closed sets.

pub mod metrics;
pub mod traces;
