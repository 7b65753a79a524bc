//! Gives gateways the agents that people made, and takes removed ones from them.
//!
//! The store has what is wanted, with a revision. One process of an installation applies it, step by step. Each step compares
//! before it changes anything, so a process that takes over after a kill begins at the first step again.

mod error;
mod managed_gateway;
mod remote_config;
mod remote_gateway;
mod step;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Settings};
use runner_store::{GatewayAgent, Store};
use tokio::time::{MissedTickBehavior, interval};

use self::{error::ApplyError, managed_gateway::ManagedAgents, remote_gateway::RemoteAgents};
pub use self::{managed_gateway::live_agents, step::AgentStep};
use crate::GatewayPool;

/// Interval between looks for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which a failed step is tried again. A new change is tried at once.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);

/// Applies changes of agents in the gateways of `settings`, for as long as it is polled. One gateway that does not answer
/// holds up no other.
pub async fn apply_changes(settings: &Settings, store: &Store) -> Infallible {
    let pool = GatewayPool::of(settings);
    let applier = AgentApplier { settings, store, pool: &pool };
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut at_work = BTreeSet::new();
    let mut last_tries = BTreeMap::new();
    let mut passes = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(ended) = passes.next(), if !passes.is_empty() => {
                let EndedPass { gateway, tried } = ended;
                at_work.remove(&gateway);
                last_tries.extend(tried.map(|at| (gateway, at)));
            }
            _ = ticks.tick() => {
                for id in applier.changed_gateways().await {
                    if !at_work.insert(id.clone()) {
                        continue;
                    }
                    let last_try: Option<&Instant> = last_tries.get(&id);
                    let is_due = last_try.is_none_or(|last| last.elapsed() >= RETRY_INTERVAL);
                    passes.push(applier.apply(id, if is_due { FailedStep::TryAgain } else { FailedStep::Leave }));
                }
            }
        }
    }
}

/// Treatment of a step that has failed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedStep {
    /// The step is tried again.
    TryAgain,
    /// The step waits.
    Leave,
}

/// End of a pass over the changes of one gateway.
struct EndedPass {
    gateway: GatewayId,
    /// Time at which they were tried; absent if the pass had nothing to try.
    tried: Option<Instant>,
}

/// Application of changes to gateways.
struct AgentApplier<'s> {
    settings: &'s Settings,
    store: &'s Store,
    pool: &'s GatewayPool,
}

impl AgentApplier<'_> {
    /// Returns the configured gateways that lack the newest revision of an agent.
    async fn changed_gateways(&self) -> Vec<GatewayId> {
        let changed = self.store.gateways_with_changed_agents().await.unwrap_or_else(|error| {
            tracing::warn!(error = report::chain(&error), "changes of agents in gateways cannot be read");
            Vec::new()
        });
        changed.into_iter().filter(|id| self.settings.gateways.contains_key(id)).collect()
    }

    /// Applies all changes of one gateway. Those that failed before are tried again if `failed` says so.
    async fn apply(&self, id: GatewayId, failed: FailedStep) -> EndedPass {
        let tried = match self.try_to_apply(&id, failed).await {
            Ok(tried) => tried,
            Err(error) => {
                tracing::warn!(gateway = %id, error = report::chain(&error), "agents of the gateway not stored");
                Some(Instant::now())
            }
        };
        EndedPass { gateway: id, tried }
    }

    async fn try_to_apply(
        &self,
        id: &GatewayId,
        failed: FailedStep,
    ) -> Result<Option<Instant>, runner_store::Error> {
        let stored = self.store.gateway_agents(id).await?;
        let is_new = stored.iter().any(|agent| !agent.is_applied() && agent.problem.is_none());
        let Some(gateway) =
            self.settings.gateways.get(id).filter(|_| is_new || failed == FailedStep::TryAgain)
        else {
            return Ok(None);
        };
        if gateway.is_managed() {
            ManagedAgents { applier: self, id, stored: &stored }.apply().await?;
        } else {
            RemoteAgents { applier: self, id, stored: &stored }.apply().await?;
        }
        Ok(Some(Instant::now()))
    }

    /// Stores that `step` of `agent` is being taken.
    async fn begin(&self, agent: &GatewayAgent, step: AgentStep) -> Result<(), runner_store::Error> {
        self.store.store_gateway_agent_step(&agent.agent.key, step.word(), None).await
    }

    /// Stores why `step` of `agent` failed.
    async fn fail(
        &self,
        agent: &GatewayAgent,
        step: AgentStep,
        error: &ApplyError,
    ) -> Result<(), runner_store::Error> {
        let problem = report::chain(error);
        let key = &agent.agent.key;
        tracing::warn!(gateway = %key.gateway, agent = %key.agent, step = step.word(), problem, "agent not applied");
        self.store.store_gateway_agent_step(key, step.word(), Some(&problem)).await
    }

    /// Stores that its gateway has `agent` as it was read.
    async fn finish(&self, agent: &GatewayAgent) -> Result<(), runner_store::Error> {
        let key = &agent.agent.key;
        tracing::info!(gateway = %key.gateway, agent = %key.agent, revision = agent.revision, "agent applied");
        self.store.store_gateway_agent_applied(key, agent.revision).await
    }
}
