//! Holds the code that Sluicegate's processes share: it reads configuration, stops in time, binds private sockets,
//! logs, and prints untrusted text safely.
//!
//! This crate knows nothing of proxies, containers or agents beyond the names of their settings.

pub mod accept;
mod clock;
pub mod config;
pub mod file;
pub mod lock;
pub mod metrics;
pub mod notify;
pub mod poll;
pub mod random;
pub mod report;
pub mod retry;
pub mod settings;
pub mod shutdown;
pub mod socket;
pub mod state_file;
pub mod sync;
pub mod task;
pub mod telemetry;
pub mod terminal;
pub mod trust;
