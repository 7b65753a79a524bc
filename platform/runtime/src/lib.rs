//! What Sluicegate's processes do alike: read configuration, stop in time, bind private sockets, log, and
//! print text they do not trust.
//!
//! Knows nothing of proxies, containers or agents beyond the names of their settings.

pub mod config;
pub mod file;
pub mod lock;
pub mod metrics;
pub mod notify;
pub mod random;
pub mod report;
pub mod settings;
pub mod shutdown;
pub mod socket;
pub mod task;
pub mod telemetry;
pub mod terminal;
pub mod trust;
