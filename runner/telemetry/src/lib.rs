//! Provides metrics and traces of the control plane, from stored transitions and the journal.
//!
//! Does not listen (`runner-api` serves the metrics), and does not delay a run for a collector. Labels and spans
//! contain no text of agents.
//!
//! Start reading at [`metrics`]; [`traces`] exports spans over OTLP.
//!
//! Invariants: each step of a run is counted once, by the process that stored it. Labels are closed sets.

pub mod metrics;
pub mod traces;
