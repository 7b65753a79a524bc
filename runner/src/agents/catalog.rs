//! The agents as `sluice up` has them: what it was configured with last, and what was found of it lately.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use platform_core::id::AgentId;
use platform_runtime::settings::{Agent, Settings};
use tokio::{sync::Mutex, time::Instant};

use super::{Looked, Places, judge};

/// For how long what was found is not looked for again, however often somebody asks.
const FRESH: Duration = Duration::from_secs(2);

/// What `sluice up` tells of agents.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Held while it is looked: who asks meanwhile gets the same.
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
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { known: Mutex::new(Known::of(settings)) }
    }

    /// Has it tell of the agents in `settings` from now on. Where they run stays: that takes a restart.
    pub(crate) async fn replace(&self, settings: &Settings) {
        let mut known = self.known.lock().await;
        let places = known.places.clone();
        *known = Known { places, ..Known::of(settings) };
    }

    /// All agents, as they are configured.
    pub(crate) async fn agents(&self) -> BTreeMap<AgentId, Agent> {
        self.known.lock().await.agents.clone()
    }

    /// All agents, with what is in their way.
    pub(crate) async fn looked(&self) -> Arc<Vec<Looked>> {
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
