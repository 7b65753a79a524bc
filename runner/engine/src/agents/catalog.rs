//! Keeps the agents of `sluice up`, according to the latest configuration, and their recent statuses.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use platform_core::id::AgentId;
use platform_runtime::settings::{Agent, Settings};
use tokio::{sync::Mutex, time::Instant};

use super::{AgentStatus, Probes, judge};
use crate::current_settings::CurrentSettings;

/// Longest time for which statuses are reused. Probes thus stay rare, however many requests arrive.
const MAX_STATUS_AGE: Duration = Duration::from_secs(2);

/// Catalog of the agents that `sluice up` reports.
#[derive(Debug)]
pub struct Catalog {
    /// Locked during a probe, so that concurrent callers share its result.
    state: Mutex<CatalogState>,
    settings: CurrentSettings,
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

/// Returns each agent that is in one of both lists alone, or differs between them, in words.
fn differences(before: &BTreeMap<AgentId, Agent>, after: &BTreeMap<AgentId, Agent>) -> Vec<String> {
    let ids: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let change = |id: &AgentId| match (before.get(id), after.get(id)) {
        (None, _) => Some(format!("{id} added")),
        (_, None) => Some(format!("{id} removed")),
        (Some(before), Some(after)) => (before != after).then(|| format!("{id} changed")),
    };
    ids.into_iter().filter_map(change).collect()
}

impl Catalog {
    /// Returns a catalog of the agents in `settings`; probes nothing yet.
    pub fn of(settings: &Settings) -> Self {
        Self { state: Mutex::new(CatalogState::of(settings)), settings: CurrentSettings::of(settings) }
    }

    /// Returns the configuration, which [`Self::replace`] replaces, too.
    pub fn settings(&self) -> CurrentSettings {
        self.settings.clone()
    }

    /// Replaces the agents with those in `settings`, and returns the differences in words. The addresses of Docker,
    /// proxy and gateways change only with a restart. So do the settings of host tools: what executes their calls keeps
    /// those of the start, and a grant with others would promise what no call gets.
    pub async fn replace(&self, settings: &Settings) -> Vec<String> {
        let tools = self.settings.get().tools.clone();
        self.settings.replace(&Settings { tools, ..settings.clone() });
        let mut state = self.state.lock().await;
        let probes = state.probes.clone();
        let changes = differences(&state.agents, &settings.agents);
        *state = CatalogState { probes, ..CatalogState::of(settings) };
        changes
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

#[cfg(test)]
mod tests {
    use platform_runtime::config::Sources;

    use super::*;

    fn agents(text: &str) -> BTreeMap<AgentId, Agent> {
        let file = Some(("s.toml".into(), text.to_owned()));
        Settings::read(&Sources { file, ..Sources::default() }).unwrap().agents
    }

    #[tokio::test]
    async fn settings_of_host_tools_stay_until_a_restart() {
        let settings = |text: &str| {
            let file = Some(("s.toml".into(), text.to_owned()));
            Settings::read(&Sources { file, ..Sources::default() }).unwrap()
        };
        let catalog = Catalog::of(&settings("[tools]\nmax_calls = 7\n[relay]\nwait = '7s'"));
        catalog.replace(&settings("[tools]\nmax_calls = 9\n[relay]\nwait = '9s'")).await;
        let current = catalog.settings().get();
        assert_eq!(current.tools.limits(&[]).calls, 7);
        assert_eq!(current.relay.wait.0, 9000, "control: others change");
    }

    #[test]
    fn added_removed_and_changed_agents_are_named() {
        let entry = |id: &str, argv: &str| {
            format!("[agents.'{id}']\nimage = 'team:1'\nprotocol = 'text'\nargv = ['{argv}']\n")
        };
        let before = agents(&(entry("t:gone", "a") + &entry("t:other", "a") + &entry("t:same", "a")));
        let after = agents(&(entry("t:new", "a") + &entry("t:other", "b") + &entry("t:same", "a")));
        assert_eq!(differences(&before, &after), ["t:gone removed", "t:new added", "t:other changed"]);
        assert!(differences(&after, &after).is_empty());
    }
}
