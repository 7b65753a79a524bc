//! Reads the settings of the worker in `sluice up`, which executes runs.

use platform_core::limit::{self, Millis};

use crate::config::settings;

/// Shortest interval between two rounds of a repeated task.
const MIN_INTERVAL: Millis = Millis::seconds(1);

settings! {
    /// `[worker]`
    #[derive(Debug, Clone)]
    pub struct Worker read from section {
        /// Runs that `sluice up` processes at a time; others wait. With 0 it only takes over abandoned runs.
        pub max_concurrent_runs: u32 => may_be_zero().or(limit::worker::RUNS),
        /// Number of those that are prepared and started at a time; the others are claimed and wait.
        pub max_concurrent_starts: u32 => or(limit::worker::STARTS),
        /// Queued runs in the whole installation; further requests are refused, with the time after which to try again.
        pub max_queued: u32 => or(limit::worker::QUEUE),
        /// Queued runs of one account.
        pub max_queued_per_account: u32 => or(limit::worker::QUEUE_PER_ACCOUNT),
        /// Time after the last renewal at which another worker takes a run over, also a run of `sluice run`. Longer
        /// than any pause of the host.
        pub lease_duration: Millis => at_least(&MIN_INTERVAL).or(limit::worker::LEASE),
        /// Interval at which `sluice up` looks for resources that runs have left behind, and removes those that are
        /// certainly dead.
        pub gc_interval: Millis => at_least(&MIN_INTERVAL).or(limit::worker::REAP_EVERY),
    }
}
