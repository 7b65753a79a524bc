//! Reads the settings of the worker in `sluice up`, which executes runs.

use platform_core::limit::{self, Millis};

use crate::config::Section;

/// Shortest interval between two rounds of a repeated task.
const MIN_INTERVAL: Millis = Millis::seconds(1);

/// `[worker]`
#[derive(Debug, Clone)]
pub struct Worker {
    /// Most active runs at a time.
    pub max_concurrent_runs: u32,
    /// Most of those runs that are prepared and started at a time.
    pub max_concurrent_starts: u32,
    /// Most queued runs of the installation.
    pub max_queued: u32,
    /// Most queued runs of one account.
    pub max_queued_per_account: u32,
    /// Time without a renewal of a run's lease after which another worker takes the run over.
    pub lease_duration: Millis,
    /// Interval between searches for resources left behind.
    pub gc_interval: Millis,
}

impl Worker {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            max_concurrent_runs: field("max_concurrent_runs", "Runs that `sluice up` processes at a time; others wait. With 0 it only takes over abandoned runs.")
                .may_be_zero().or(limit::worker::RUNS),
            max_concurrent_starts: field(
                "max_concurrent_starts",
                "Number of those that are prepared and started at a time; the others are claimed and wait.",
            )
            .or(limit::worker::STARTS),
            max_queued: field(
                "max_queued",
                "Queued runs in the whole installation; further requests are refused, with the time after which to try again.",
            )
            .or(limit::worker::QUEUE),
            max_queued_per_account: field("max_queued_per_account", "Queued runs of one account.")
                .or(limit::worker::QUEUE_PER_ACCOUNT),
            lease_duration: field(
                "lease_duration",
                "Time after the last renewal at which another worker takes a run over, also a run of `sluice run`. Longer than any pause of the host.",
            )
            .at_least(&MIN_INTERVAL)
            .or(limit::worker::LEASE),
            gc_interval: field(
                "gc_interval",
                "Interval at which `sluice up` looks for resources that runs have left behind, and removes those that are certainly dead.",
            )
            .at_least(&MIN_INTERVAL)
            .or(limit::worker::REAP_EVERY),
        }
    }
}
