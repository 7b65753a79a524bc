//! Counts runs and warm containers of each agent.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use platform_core::id::AgentId;
use platform_runtime::{
    metrics::{Bound, Cells, Distribution, Histograms},
    sync::RwLock,
};
use runner_model::lifecycle::Outcome;

use super::micros;

/// Bounds of run times: from an agent that prints a word to one that runs for an hour.
const RUN_BOUNDS: [Bound; 14] = [
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (120_000_000, "120"),
    (300_000_000, "300"),
    (600_000_000, "600"),
    (1_200_000_000, "1200"),
    (1_800_000_000, "1800"),
    (3_600_000_000, "3600"),
];

/// Counters of the configured agents, and of all others.
#[derive(Debug, Default)]
pub(super) struct Agents {
    named: RwLock<BTreeMap<AgentId, Arc<AgentCounters>>>,
    other: Arc<AgentCounters>,
}

/// Counters of one agent.
#[derive(Debug)]
pub(super) struct AgentCounters {
    /// Ended runs by outcome.
    ended: Cells,
    durations: Histograms,
    /// Warm containers that were claimed or expired, by index.
    pool: Cells,
    ready: AtomicU64,
    filling: AtomicU64,
}

/// Index of claimed warm containers.
const CLAIMED: usize = 0;
/// Index of expired warm containers.
const EXPIRED: usize = 1;

impl Default for AgentCounters {
    fn default() -> Self {
        Self {
            ended: Cells::new(Outcome::ALL.len()),
            durations: Histograms::new(1, &RUN_BOUNDS),
            pool: Cells::new(2),
            ready: AtomicU64::new(0),
            filling: AtomicU64::new(0),
        }
    }
}

impl Agents {
    pub(super) fn know<'a>(&self, agents: impl Iterator<Item = &'a AgentId>) {
        let mut named = self.named.write();
        for agent in agents {
            named.entry(agent.clone()).or_default();
        }
    }

    pub(super) fn of(&self, agent: &AgentId) -> Arc<AgentCounters> {
        let named = self.named.read();
        Arc::clone(named.get(agent).unwrap_or(&self.other))
    }

    /// Returns each agent's counters with their label. No agent is called `other`, because agent ids contain a colon.
    pub(super) fn all(&self) -> Vec<(String, Arc<AgentCounters>)> {
        let named = self.named.read();
        let named = named.iter().map(|(agent, counters)| (agent.to_string(), Arc::clone(counters)));
        named.chain([("other".to_owned(), Arc::clone(&self.other))]).collect()
    }
}

impl AgentCounters {
    pub(super) fn ended(&self, outcome: Outcome, after: Duration) {
        self.ended.add(outcome as usize, 1);
        self.durations.observe(0, micros(after));
    }

    pub(super) fn pool_has(&self, ready: u64, filling: u64) {
        self.ready.store(ready, Ordering::Relaxed);
        self.filling.store(filling, Ordering::Relaxed);
    }

    pub(super) fn claimed(&self) {
        self.pool.add(CLAIMED, 1);
    }

    pub(super) fn expired(&self) {
        self.pool.add(EXPIRED, 1);
    }

    /// Returns the number of ended runs with this outcome.
    pub(super) fn runs(&self, outcome: Outcome) -> u64 {
        self.ended.get(outcome as usize)
    }

    /// Returns the distribution of run times.
    pub(super) fn durations(&self) -> Distribution {
        self.durations.read(0)
    }

    /// Returns the numbers of warm containers, each with the name of its state.
    pub(super) fn pool(&self) -> [(&'static str, u64); 2] {
        [("ready", self.ready.load(Ordering::Relaxed)), ("filling", self.filling.load(Ordering::Relaxed))]
    }

    /// Returns the numbers of claimed and of expired warm containers.
    pub(super) fn pool_gone(&self) -> (u64, u64) {
        (self.pool.get(CLAIMED), self.pool.get(EXPIRED))
    }
}
