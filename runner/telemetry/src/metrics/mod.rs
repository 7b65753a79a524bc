//! Counts runs, warm containers, passes of the reaper and spans, for Prometheus to read from `sluice up`. The crate
//! `runner-api` serves the metrics.
//!
//! Labels are closed sets: configured agents, states, kinds and fixed words. Runs of an agent that was not configured
//! in this process so far are counted under `other`. No run, no account and no text of an agent or a caller is ever a
//! label. There are thus at most 40 series for each agent, and some 150 besides.
//!
//! Counters belong to this process, and begin at zero with it. The process that stored the end of a run counts it, so
//! all workers together count each run once. A worker that is killed right after storing a run's end does not count it;
//! then only the store has that run. The numbers of queued and active runs are read from the store when metrics are
//! read, at most once a second. Every worker reports the same numbers.

mod agents;
mod api;
mod present;
mod reaper;
mod render;
mod sign_ins;
mod spans;
#[cfg(test)]
mod tests;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use platform_core::id::AgentId;
use platform_runtime::metrics::{Bound, Cells, Histograms};
use runner_model::{
    connection_refresh::RefreshResult,
    lifecycle::{Outcome, StartKind},
    receipt::ChargeReason,
    reconciliation::Finding,
};
use runner_store::Store;

use self::{
    agents::Agents, api::ApiTimes, present::StoreSampler, reaper::ReaperCounters, sign_ins::BrowserCounters,
    spans::Spans,
};
pub use self::{
    reaper::GcCounts,
    sign_ins::{CspReportFate, SignInResult, SignInWay},
    spans::Dropped,
};

/// Bounds of start times: from a warm container to a long queue.
const START_BOUNDS: [Bound; 14] = [
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (300_000_000, "300"),
    (900_000_000, "900"),
    (1_800_000_000, "1800"),
    (3_600_000_000, "3600"),
];

/// Kinds of containers by their start.
const START_KINDS: [StartKind; 2] = [StartKind::Cold, StartKind::Warm];

/// Counters of this process, and values that are read from the store with the metrics.
#[derive(Debug)]
pub struct Metrics {
    agents: Agents,
    /// Times from the request to the start of the container.
    starts: Histograms,
    starting: AtomicU64,
    /// Limit of concurrent starts; 0 for none.
    starting_at_most: AtomicU64,
    reaped: ReaperCounters,
    /// Receipts by the reason of their amount.
    receipts: Cells,
    /// Rows and calls by what their reconciliation has found.
    reconciled: Cells,
    /// Time of the last reconciliation, in seconds since the epoch; 0 before the first.
    last_reconciliation: AtomicU64,
    /// Interval of reconciliations in seconds; 0 if there are none.
    reconciliation_interval: AtomicU64,
    /// Refreshes of connections by their result.
    refreshes: Cells,
    /// Answers of tool servers that had a credential in them.
    credential_echoes: AtomicU64,
    /// Accounts with a balance below their floor.
    below_floor: AtomicU64,
    browsers: BrowserCounters,
    api: ApiTimes,
    spans: Spans,
    sampler: StoreSampler,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            agents: Agents::default(),
            starts: Histograms::new(START_KINDS.len(), &START_BOUNDS),
            starting: AtomicU64::new(0),
            starting_at_most: AtomicU64::new(0),
            reaped: ReaperCounters::default(),
            receipts: Cells::new(ChargeReason::ALL.len()),
            reconciled: Cells::new(Finding::ALL.len()),
            last_reconciliation: AtomicU64::new(0),
            reconciliation_interval: AtomicU64::new(0),
            refreshes: Cells::new(RefreshResult::ALL.len()),
            credential_echoes: AtomicU64::new(0),
            below_floor: AtomicU64::new(0),
            browsers: BrowserCounters::default(),
            api: ApiTimes::default(),
            spans: Spans::default(),
            sampler: StoreSampler::default(),
        }
    }
}

impl Metrics {
    /// Adds series for these agents. Agents from earlier calls keep their series.
    pub fn register_agents<'a>(&self, agents: impl Iterator<Item = &'a AgentId>) {
        self.agents.know(agents);
    }

    /// Reads the numbers of runs from `store` when metrics are read, for as long as this is polled.
    pub async fn query_store(&self, store: &Store) {
        self.sampler.serve_samples(store).await;
    }

    /// Sets the limit of runs that are prepared and started at a time.
    pub fn starting_at_most(&self, bound: u64) {
        self.starting_at_most.store(bound, Ordering::Relaxed);
    }

    /// Counts a run while its container is being created or claimed, until [`Metrics::started_or_not`].
    pub fn starting(&self) {
        self.starting.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the count of a starting run, after a success or a failure.
    pub fn started_or_not(&self) {
        self.starting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a started container, and the time since the request for its run.
    pub fn started(&self, start: StartKind, after: Duration) {
        self.starts.observe(start as usize, micros(after));
    }

    /// Counts an ended run, and the time since its request.
    pub fn ended(&self, agent: &AgentId, outcome: Outcome, after: Duration) {
        self.agents.of(agent).ended(outcome, after);
    }

    /// Sets the numbers of an agent's warm containers: those that are ready, and those that are being created.
    pub fn set_pool(&self, agent: &AgentId, ready: u64, filling: u64) {
        self.agents.of(agent).pool_has(ready, filling);
    }

    /// Counts a warm container that a run claimed.
    pub fn pool_claimed(&self, agent: &AgentId) {
        self.agents.of(agent).claimed();
    }

    /// Counts a warm container that was removed unused: its image or entry changed, or it was too old, or broken.
    pub fn pool_expired(&self, agent: &AgentId) {
        self.agents.of(agent).expired();
    }

    /// Counts a pass of the reaper.
    pub fn reaped(&self, counts: GcCounts) {
        self.reaped.count(counts);
    }

    /// Counts a receipt that this process stored.
    pub fn receipt_stored(&self, reason: ChargeReason) {
        self.receipts.add(reason as usize, 1);
    }

    /// Counts rows of the upstream's ledger, or calls that have none, by what this process has found.
    pub fn reconciled(&self, finding: Finding, count: u64) {
        self.reconciled.add(finding as usize, count);
    }

    /// Records a reconciliation that began at this second since the epoch.
    pub fn reconciliation_succeeded(&self, second: u64) {
        self.last_reconciliation.store(second, Ordering::Relaxed);
    }

    /// Sets the interval of reconciliations; zero if there are none.
    pub fn set_reconciliation_interval(&self, interval: Duration) {
        self.reconciliation_interval.store(interval.as_secs(), Ordering::Relaxed);
    }

    /// Counts a refresh of a connection by this process.
    pub fn connection_refreshed(&self, result: RefreshResult) {
        self.refreshes.add(result as usize, 1);
    }

    /// Counts an answer of a tool server that had a credential in it, and was not passed on.
    pub fn credential_echoed(&self) {
        self.credential_echoes.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the number of accounts with a balance below their floor.
    pub fn set_below_floor(&self, accounts: u64) {
        self.below_floor.store(accounts, Ordering::Relaxed);
    }

    /// Counts an attempt to sign in.
    pub fn signed_in(&self, way: SignInWay, result: SignInResult) {
        self.browsers.signed_in(way, result);
    }

    /// Counts a browser's report of what a page's policy has blocked.
    pub fn csp_reported(&self, fate: CspReportFate) {
        self.browsers.csp_reported(fate);
    }

    /// Counts an answer of the API with this status, which began `time` after the request.
    pub fn api_answered(&self, status: u16, time: Duration) {
        self.api.answered(status, time);
    }

    /// Returns the counters of spans.
    pub(crate) const fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Renders the exposition. Reports a store that does not answer in time as unavailable.
    pub async fn render(&self) -> String {
        render::render(self, self.sampler.sample().await)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
