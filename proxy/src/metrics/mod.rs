//! Metrics: what Prometheus may read of this proxy. Served by `control`; nothing here listens or waits for anybody.
//!
//! Labels are closed sets: routes, outcomes, refusals, kinds, threads, and the models that the configuration names. No run,
//! no account, and nothing an agent chose is ever a label: that is what the journal is for. So the number of series is
//! bounded whatever agents do: for each route that is used 60 of histograms and those of `calls` that have occurred, of some
//! 50 that can; six for each model, 13 for each thread, 49 besides. A small installation has about 150.
//!
//! Each data-plane thread counts in arrays of its own, indexed by the labels ([`Counts`]): a call costs some twenty additions
//! that no other thread contends for. They are summed when somebody asks.

mod counts;
mod lag;
mod models;
mod render;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use platform_core::{money::NanoDollars, record::ExchangeRecord};

pub(crate) use self::models::Models;
use self::{counts::Counts, lag::Lag};

/// What is counted, by every data-plane thread.
#[derive(Debug)]
pub(crate) struct Metrics {
    models: Arc<Models>,
    threads: Vec<Arc<ForThread>>,
}

/// What one data-plane thread counts, and is watched for.
#[derive(Debug)]
pub(crate) struct ForThread {
    calls: Counts,
    lag: Lag,
}

/// What is not counted but looked at when somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) runs: u64,
    pub(crate) in_flight: u64,
    /// Watchers of taps.
    pub(crate) taps: u64,
    /// Bytes held of what streamed by.
    pub(crate) tap_bytes: u64,
    /// Bytes of request bodies in memory.
    pub(crate) body_bytes: u64,
    pub(crate) head_bytes: u64,
    pub(crate) reserved: Reserved,
    /// Idle connections to the upstream.
    pub(crate) idle_connections: u64,
    /// Whether calls are sent there: one of [`platform_core::control::UpstreamState::WORDS`].
    pub(crate) upstream_state: &'static str,
    pub(crate) journal_seq: u64,
    pub(crate) journal_is_open: bool,
    /// Bytes of the journal's files.
    pub(crate) journal_bytes: u64,
    /// How many consumers the journal has, and how many lines the slowest has still to acknowledge.
    pub(crate) consumers: u64,
    pub(crate) consumer_lag: u64,
    /// How many freezes there are.
    pub(crate) freezes: u64,
}

/// What calls in flight have set aside, over all accounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) requests: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost: NanoDollars,
}

impl Metrics {
    pub(crate) fn new(models: Models, threads: usize) -> Self {
        let models = Arc::new(models);
        let for_thread = |_| Arc::new(ForThread { calls: Counts::new(&models), lag: Lag::new() });
        Self { threads: (0..threads).map(for_thread).collect(), models }
    }

    /// What each thread counts with.
    pub(crate) fn threads(&self) -> &[Arc<ForThread>] {
        &self.threads
    }

    /// The exposition.
    pub(crate) fn render(&self, gauges: &Gauges) -> String {
        render::render(self, gauges)
    }

    /// The sum over all threads.
    fn calls(&self) -> Counts {
        let sum = Counts::new(&self.models);
        self.threads.iter().for_each(|thread| sum.absorb(&thread.calls));
        sum
    }
}

impl ForThread {
    /// Counts a call that has ended.
    pub(crate) fn count(&self, record: &ExchangeRecord) {
        self.calls.count(record);
    }

    /// Watches the thread it is polled on for lag, for ever.
    pub(crate) async fn watch_lag(&self) {
        self.lag.watch().await;
    }
}
