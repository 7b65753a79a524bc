//! Defines a run's life and the words that all crates of the control plane share.
//!
//! Does no I/O, with one exception: [`failpoint`] stops this process where a test requests it. Knows neither the store
//! nor Docker.
//!
//! Start reading at [`lifecycle`]: the states of a run, and every transition between them.
//!
//! Invariants: a run's outcome is decided when it begins to settle, and never changes afterwards. A run's state changes
//! only as [`lifecycle`] allows.

pub mod agent_line;
pub mod behaviour;
pub mod connection_refresh;
pub mod conversation;
pub mod failpoint;
pub mod gateway_agent;
pub mod json_len;
pub mod lifecycle;
pub mod line_buffer;
pub mod principal;
pub mod receipt;
pub mod reconciliation;
pub mod tap_event;
