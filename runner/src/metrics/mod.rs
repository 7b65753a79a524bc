//! Metrics of the control plane: what Prometheus may read of `sluice up`. Served by `api`; nothing here listens.
//!
//! Labels are closed sets: agents of the configuration, states, kinds, words of ours. A run of an agent that is not, or was not
//! when this process first heard of it, is one of `other`; no run, no account, and nothing an agent or a caller chose is ever a
//! label. So there are at most 40 series for each agent, and some 90 besides.
//!
//! Counters are this process's, and begin at zero with it: a run is counted by whoever stored its end, so over all workers each one
//! once. What was not counted because a worker was killed right then is in the store. How many runs wait and work is asked of the
//! store whenever somebody wants to know, at most once a second, and is the same of whichever worker is asked.

mod agents;
mod present;
mod reaper;
mod render;
mod spans;
#[cfg(test)]
mod tests;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use platform_core::id::AgentId;
use platform_runtime::metrics::{Bound, Histograms};

pub(crate) use self::spans::Dropped;
use self::{agents::Agents, present::Looked, reaper::Reaped, spans::Spans};
use crate::{lifecycle::Outcome, reaper::Report, run::Start, store::Store};

/// Of starts: from a container that waits for its run to a queue that is long.
const STARTS: [Bound; 14] = [
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

/// Where containers come from.
const FROM: [Start; 2] = [Start::Cold, Start::Warm];

/// What is counted, and what is looked at when somebody asks.
#[derive(Debug)]
pub(crate) struct Metrics {
    agents: Agents,
    /// From the order to the start of the container.
    starts: Histograms,
    starting: AtomicU64,
    /// How many may be; 0 for as many as like.
    starting_at_most: AtomicU64,
    reaped: Reaped,
    spans: Spans,
    looked: Looked,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            agents: Agents::default(),
            starts: Histograms::new(FROM.len(), &STARTS),
            starting: AtomicU64::new(0),
            starting_at_most: AtomicU64::new(0),
            reaped: Reaped::default(),
            spans: Spans::default(),
            looked: Looked::default(),
        }
    }
}

impl Metrics {
    /// From now on these agents have series of their own; others keep those they have.
    pub(crate) fn know<'a>(&self, agents: impl Iterator<Item = &'a AgentId>) {
        self.agents.know(agents);
    }

    /// Asks `store` how many runs there are whenever somebody wants to know, for as long as this is polled.
    pub(crate) async fn ask(&self, store: &Store) {
        self.looked.answer(store).await;
    }

    /// From now on so many runs are prepared and started at a time.
    pub(crate) fn starting_at_most(&self, bound: u64) {
        self.starting_at_most.store(bound, Ordering::Relaxed);
    }

    /// A run's container was begun to be made, or claimed; until [`Metrics::started_or_not`].
    pub(crate) fn starting(&self) {
        self.starting.fetch_add(1, Ordering::Relaxed);
    }

    /// It runs, or will not.
    pub(crate) fn started_or_not(&self) {
        self.starting.fetch_sub(1, Ordering::Relaxed);
    }

    /// A container was started, so long after its run was ordered.
    pub(crate) fn started(&self, start: Start, after: Duration) {
        self.starts.observe(start as usize, micros(after));
    }

    /// A run is over, so long after it was ordered.
    pub(crate) fn ended(&self, agent: &AgentId, outcome: Outcome, after: Duration) {
        self.agents.of(agent).ended(outcome, after);
    }

    /// What the pool has of an agent now: containers that wait, and those that are being made.
    pub(crate) fn pool_has(&self, agent: &AgentId, ready: u64, filling: u64) {
        self.agents.of(agent).pool_has(ready, filling);
    }

    /// One of the pool's was claimed.
    pub(crate) fn pool_claimed(&self, agent: &AgentId) {
        self.agents.of(agent).claimed();
    }

    /// One of the pool's was removed unused: its image or entry changed, or it was too old, or broken.
    pub(crate) fn pool_expired(&self, agent: &AgentId) {
        self.agents.of(agent).expired();
    }

    /// Somebody has looked for what runs have left.
    pub(crate) fn reaped(&self, report: &Report) {
        self.reaped.count(report);
    }

    /// What is counted of traces.
    pub(crate) const fn spans(&self) -> &Spans {
        &self.spans
    }

    /// The exposition. Of a store that does not answer soon it tells that it does not.
    pub(crate) async fn render(&self) -> String {
        render::render(self, self.looked.look().await)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
