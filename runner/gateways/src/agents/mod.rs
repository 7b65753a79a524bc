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
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use platform_core::id::GatewayId;
use platform_runtime::{
    report,
    settings::{Gateway, Settings},
};
use runner_model::gateway_agent::{AgentName, AvatarSeed, Capabilities};
use runner_store::{
    Error as StoreError, GatewayAgent, GatewayAgentKey, GatewayAgentSettings, NewGatewayAgent, Store,
};
use tokio::time::sleep;

pub use self::step::AgentStep;
use self::{error::ApplyError, managed_gateway::ManagedAgents, remote_gateway::RemoteAgents};
use crate::{GatewayPool, managed};

/// Interval between looks for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which a failed step, or a failed repair, is tried again. A new change is tried at once.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// Longest reason that is stored, in characters. Gateways choose parts of it.
const MAX_PROBLEM: usize = 500;

/// Returns an agent that is to be made in `gateway`. It may do all that the gateway's policy allows.
#[must_use]
pub fn new_agent(
    gateway: &Gateway,
    key: GatewayAgentKey,
    name: AgentName,
    avatar: Option<AvatarSeed>,
) -> NewGatewayAgent {
    // A gateway elsewhere says where it keeps its state, once it is asked for the agent.
    let workspace = match gateway.is_managed() {
        true => managed::agent_workspace(key.agent.as_str()),
        false => String::new(),
    };
    let settings = GatewayAgentSettings { name, avatar, model: None, capabilities: Capabilities::default() };
    NewGatewayAgent { key, account: gateway.account.clone(), workspace, settings }
}

/// Applies changes of agents in the gateways of the `current` settings, for as long as it is polled. A gateway that does not
/// answer holds up no other.
pub async fn apply_changes(current: impl Fn() -> Arc<Settings>, store: &Store) -> Infallible {
    let mut work = FuturesUnordered::<LocalBoxFuture<'_, Ended>>::new();
    let mut at_work = BTreeSet::new();
    let mut last_tries = BTreeMap::<GatewayId, Instant>::new();
    let settings = current();
    for (id, _) in settings.gateways.iter().filter(|(_, gateway)| !gateway.is_managed()) {
        let applier = AgentApplier { settings: Arc::clone(&settings), store };
        work.push(applier.repair(id.clone()).boxed_local());
    }
    work.push(find_changed(store).boxed_local());
    while let Some(ended) = work.next().await {
        match ended {
            Ended::Repair => {}
            Ended::Pass { gateway, tried } => {
                at_work.remove(&gateway);
                last_tries.extend(tried.map(|at| (gateway, at)));
            }
            Ended::Look(changed) => {
                for id in changed {
                    let is_due = last_tries.get(&id).is_none_or(|last| last.elapsed() >= RETRY_INTERVAL);
                    let failed = if is_due { FailedStep::TryAgain } else { FailedStep::Leave };
                    if at_work.insert(id.clone()) {
                        let applier = AgentApplier { settings: current(), store };
                        work.push(applier.apply(id, failed).boxed_local());
                    }
                }
                work.push(find_changed(store).boxed_local());
            }
        }
    }
    unreachable!("a look always follows a look")
}

/// Work that has ended.
enum Ended {
    /// Gateways were found that lack the newest revision of an agent.
    Look(Vec<GatewayId>),
    /// A pass over the changes of one gateway.
    Pass {
        gateway: GatewayId,
        /// Time at which they were tried; absent if the pass had nothing to try.
        tried: Option<Instant>,
    },
    /// A repair of a gateway elsewhere.
    Repair,
}

/// Treatment of a step that has failed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedStep {
    /// The step is tried again.
    TryAgain,
    /// The step waits.
    Leave,
}

/// Waits a moment, and finds the gateways that lack the newest revision of an agent.
async fn find_changed(store: &Store) -> Ended {
    sleep(CHECK_INTERVAL).await;
    Ended::Look(store.gateways_with_changed_agents().await.unwrap_or_else(|error| {
        tracing::warn!(error = report::chain(&error), "changes of agents in gateways cannot be read");
        Vec::new()
    }))
}

/// Application of changes to gateways.
struct AgentApplier<'s> {
    settings: Arc<Settings>,
    store: &'s Store,
}

impl AgentApplier<'_> {
    /// Applies all changes of one gateway. Those that failed before are tried again if `failed` says so.
    async fn apply(self, gateway: GatewayId, failed: FailedStep) -> Ended {
        let tried = self.try_to_apply(&gateway, failed).await.unwrap_or_else(|error| {
            tracing::warn!(%gateway, error = report::chain(&error), "agents of the gateway not stored");
            Some(Instant::now())
        });
        Ended::Pass { gateway, tried }
    }

    async fn try_to_apply(&self, id: &GatewayId, failed: FailedStep) -> Result<Option<Instant>, StoreError> {
        let stored = self.store.gateway_agents(id).await?;
        let is_new = stored.iter().any(|agent| !agent.is_applied() && agent.problem.is_none());
        let Some(gateway) = self.gateway(id).filter(|_| is_new || failed == FailedStep::TryAgain) else {
            return Ok(None);
        };
        let pool = GatewayPool::of(&self.settings);
        if gateway.is_managed() {
            ManagedAgents { applier: self, pool: &pool, id, stored: &stored }.apply().await?;
        } else {
            RemoteAgents { applier: self, pool: &pool, id, gateway, stored: &stored }.apply().await?;
        }
        Ok(Some(Instant::now()))
    }

    /// Repairs a gateway elsewhere, once it answers.
    async fn repair(self, id: GatewayId) -> Ended {
        while let Some(gateway) = self.gateway(&id) {
            let pool = GatewayPool::of(&self.settings);
            let agents = RemoteAgents { applier: &self, pool: &pool, id: &id, gateway, stored: &[] };
            match agents.repair().await {
                Ok(()) => break,
                Err(error) => {
                    tracing::debug!(gateway = %id, error = report::chain(&error), "gateway not repaired yet");
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
        Ended::Repair
    }

    fn gateway(&self, id: &GatewayId) -> Option<&Gateway> {
        self.settings.gateways.get(id)
    }

    /// Stores that `step` of `agent` is being taken.
    async fn begin(&self, agent: &GatewayAgent, step: AgentStep) -> Result<(), StoreError> {
        self.store.store_gateway_agent_step(&agent.agent.key, agent.revision, step.word(), None).await
    }

    /// Stores why `step` of `agent` failed. The log has the causes, which may name files of this host.
    async fn fail(
        &self,
        agent: &GatewayAgent,
        step: AgentStep,
        error: &ApplyError,
    ) -> Result<(), StoreError> {
        let key = &agent.agent.key;
        let error_chain = report::chain(error);
        tracing::warn!(gateway = %key.gateway, agent = %key.agent, step = step.word(), error = error_chain, "agent not applied");
        let problem: String =
            error.to_string().chars().filter(|c| !c.is_control()).take(MAX_PROBLEM).collect();
        self.store.store_gateway_agent_step(key, agent.revision, step.word(), Some(&problem)).await
    }

    /// Stores that its gateway has `agent` as it was read.
    async fn finish(&self, agent: &GatewayAgent) -> Result<(), StoreError> {
        let key = &agent.agent.key;
        tracing::info!(gateway = %key.gateway, agent = %key.agent, revision = agent.revision, "agent applied");
        self.store.store_gateway_agent_applied(key, agent.revision).await
    }
}
