//! Keeps the agents of `sluice up`, according to the latest configuration, and their recent statuses.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use platform_core::id::AgentId;
use platform_runtime::settings::{Agent, Settings};
use tokio::{sync::Mutex, time::Instant};

use super::{AgentStatus, Probes, judge};

/// Longest time for which statuses are reused. Probes thus stay rare, however many requests arrive.
const MAX_STATUS_AGE: Duration = Duration::from_secs(2);

/// Catalog of the agents that `sluice up` reports.
#[derive(Debug)]
pub struct Catalog {
    /// Locked during a probe, so that concurrent callers share its result.
    state: Mutex<CatalogState>,
}

#[derive(Debug)]
struct CatalogState {
    agents: BTreeMap<AgentId, Agent>,
    model: Option<String>,
    probes: Probes,
    last: Option<LastStatuses>,
}

/// Latest statuses, and the time of their probe.
#[derive(Debug)]
struct LastStatuses {
    at: Instant,
    statuses: Arc<Vec<AgentStatus>>,
}

impl CatalogState {
    fn of(settings: &Settings) -> Self {
        Self {
            agents: settings.agents.clone(),
            model: settings.upstream.default_model.clone(),
            probes: Probes::of(settings),
            last: None,
        }
    }
}

impl Catalog {
    /// Returns a catalog of the agents in `settings`; probes nothing yet.
    pub fn of(settings: &Settings) -> Self {
        Self { state: Mutex::new(CatalogState::of(settings)) }
    }

    /// Replaces the agents with those in `settings`. The addresses of Docker, proxy and gateways change only with a
    /// restart.
    pub async fn replace(&self, settings: &Settings) {
        let mut state = self.state.lock().await;
        let probes = state.probes.clone();
        *state = CatalogState { probes, ..CatalogState::of(settings) };
    }

    /// Returns all agents as they are configured.
    pub(crate) async fn agents(&self) -> BTreeMap<AgentId, Agent> {
        self.state.lock().await.agents.clone()
    }

    /// Returns all agents with the reasons that block them, probed at most once per `MAX_STATUS_AGE`.
    pub async fn statuses(&self) -> Arc<Vec<AgentStatus>> {
        let mut state = self.state.lock().await;
        if let Some(LastStatuses { at, statuses }) = &state.last
            && at.elapsed() < MAX_STATUS_AGE
        {
            return Arc::clone(statuses);
        }
        let facts = state.probes.probe(&state.agents).await;
        let statuses = Arc::new(judge(&state.agents, state.model.as_deref(), &facts));
        state.last = Some(LastStatuses { at: Instant::now(), statuses: Arc::clone(&statuses) });
        statuses
    }
}
