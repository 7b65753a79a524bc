//! Tests what operators see of the control plane: lines of its log, metrics, traces.

mod alerts;
mod logs;
mod metrics;
mod traces;
