//! Tests the proxy: how it serves calls, counts and limits them, times them out, starts and stops.

mod answers;
mod bodies;
mod control;
mod drain;
mod endings;
mod epochs;
mod fairness;
pub(crate) mod framing;
mod freeze;
mod image;
mod limits;
mod metrics;
mod operation;
mod path;
mod refusals;
mod reload;
pub(crate) mod shared;
mod shutdown;
mod slow_clients;
mod soak;
mod standalone;
mod streaming;
mod tap;
pub(crate) mod timeouts;
mod upstream;
mod upstream_errors;
mod upstream_tls;
