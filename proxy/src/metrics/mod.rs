//! Keeps the metrics that Prometheus may read of this proxy. `control` serves them; nothing here listens or waits.
//!
//! Labels are closed sets: routes, outcomes, refusals, kinds, threads, and the models that the configuration names.
//! No run, account or text of an agent is ever a label: the journal is for those.
//!
//! The number of series is therefore bounded, whatever agents do. Each route in use has 60 series of histograms, and
//! those of `calls` that have occurred, of some 50 that can. Six series come with each model, 13 with each thread, and
//! there are 55 others. A small installation has about 150.
//!
//! Each data-plane thread counts in its own arrays, indexed by the labels ([`CallCounters`]). A call costs some twenty
//! additions that no other thread contends for. The arrays are summed on each scrape.

mod call_counters;
mod lag;
mod models;
mod render;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use platform_core::{money::NanoDollars, record::ExchangeRecord};

pub(crate) use self::models::Models;
use self::{call_counters::CallCounters, lag::Lag};

/// Counters of all data-plane threads.
#[derive(Debug)]
pub(crate) struct Metrics {
    models: Arc<Models>,
    threads: Vec<Arc<ForThread>>,
}

/// Counters and lag of one data-plane thread.
#[derive(Debug)]
pub(crate) struct ForThread {
    calls: CallCounters,
    lag: Lag,
}

/// Values that are not counted, but read on each scrape.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) runs: u64,
    pub(crate) in_flight: u64,
    /// Number of watchers of taps.
    pub(crate) taps: u64,
    /// Bytes held in taps.
    pub(crate) tap_bytes: u64,
    /// Bytes of request bodies in memory.
    pub(crate) body_bytes: u64,
    pub(crate) head_bytes: u64,
    pub(crate) reserved: Reserved,
    /// Number of idle connections to the upstream.
    pub(crate) idle_connections: u64,
    /// Number of models that the upstream shows a price of.
    pub(crate) shown_prices: u64,
    /// Set if the last attempt to read them succeeded.
    pub(crate) shown_prices_are_read: bool,
    /// State of the upstream's circuit: one of [`platform_core::control::UpstreamState::WORDS`].
    pub(crate) upstream_state: &'static str,
    pub(crate) journal_seq: u64,
    pub(crate) journal_is_open: bool,
    /// Bytes of the journal's files.
    pub(crate) journal_bytes: u64,
    /// Numbers of the journal's consumers, and of lines that the slowest has still to acknowledge.
    pub(crate) consumers: u64,
    pub(crate) consumer_lag: u64,
    /// Number of freezes.
    pub(crate) freezes: u64,
}

/// Reservations of calls in flight, over all accounts.
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
        let for_thread = |_| Arc::new(ForThread { calls: CallCounters::new(&models), lag: Lag::new() });
        Self { threads: (0..threads).map(for_thread).collect(), models }
    }

    /// Returns the counters of each thread.
    pub(crate) fn threads(&self) -> &[Arc<ForThread>] {
        &self.threads
    }

    /// Returns the exposition.
    pub(crate) fn render(&self, gauges: &Gauges) -> String {
        render::render(self, gauges)
    }

    /// Returns the sum over all threads.
    fn calls(&self) -> CallCounters {
        let sum = CallCounters::new(&self.models);
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
