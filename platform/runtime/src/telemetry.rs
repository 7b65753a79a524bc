//! Writes operational logs to stderr. They are not the journal: logs may be lost, sampled or switched off.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::report;

/// Starts logging: readable lines on a terminal, JSON lines elsewhere. Has no effect if logging is already running.
///
/// An unparsable `filter` falls back to `info`, and the first line reports it.
pub fn init(filter: Option<&str>) {
    let requested = filter.unwrap_or("info");
    let (filter, invalid) = match EnvFilter::try_new(requested) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let registry = tracing_subscriber::registry().with(filter);
    let started = if std::io::stderr().is_terminal() {
        registry.with(fmt::layer().with_writer(std::io::stderr).with_target(false)).try_init()
    } else {
        registry.with(fmt::layer().with_writer(std::io::stderr).json().flatten_event(true)).try_init()
    };
    if let (Ok(()), Some(error)) = (started, invalid) {
        tracing::warn!(
            filter = requested,
            error = report::chain(&error),
            "log filter is not valid, using info"
        );
    }
}
