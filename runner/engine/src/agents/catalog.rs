//! Keeps the agents of `sluice up`: the latest configuration, and the recent findings about it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use platform_core::id::AgentId;
use platform_runtime::settings::{Agent, Settings};
use tokio::{sync::Mutex, time::Instant};

use super::{Looked, Places, judge};

/// Time for which findings are reused, however many requests come.
const FRESH: Duration = Duration::from_secs(2);

/// Agents that `sluice up` reports.
#[derive(Debug)]
pub struct Catalog {
    /// Locked during a look, so that concurrent callers share its result.
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    agents: BTreeMap<AgentId, Agent>,
    model: Option<String>,
    places: Places,
    seen: Option<(Instant, Arc<Vec<Looked>>)>,
}

impl Known {
    fn of(settings: &Settings) -> Self {
        Self {
            agents: settings.agents.clone(),
            model: settings.upstream.default_model.clone(),
            places: Places::of(settings),
            seen: None,
        }
    }
}

impl Catalog {
    /// Returns a catalog of the agents in `settings`; nothing is looked up yet.
    pub fn of(settings: &Settings) -> Self {
        Self { known: Mutex::new(Known::of(settings)) }
    }

    /// Replaces the agents with those in `settings`. Addresses of Docker, proxy and gateways stay until a restart.
    pub async fn replace(&self, settings: &Settings) {
        let mut known = self.known.lock().await;
        let places = known.places.clone();
        *known = Known { places, ..Known::of(settings) };
    }

    /// Returns all agents as they are configured.
    pub(crate) async fn agents(&self) -> BTreeMap<AgentId, Agent> {
        self.known.lock().await.agents.clone()
    }

    /// Returns all agents with their obstacles, looked up at most once per `FRESH`.
    pub async fn looked(&self) -> Arc<Vec<Looked>> {
        let mut known = self.known.lock().await;
        if let Some((at, looked)) = &known.seen
            && at.elapsed() < FRESH
        {
            return Arc::clone(looked);
        }
        let facts = known.places.look(&known.agents).await;
        let looked = Arc::new(judge(&known.agents, known.model.as_deref(), &facts));
        known.seen = Some((Instant::now(), Arc::clone(&looked)));
        looked
    }
}
