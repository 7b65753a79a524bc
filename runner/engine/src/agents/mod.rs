//! Decides which agents can run on this host, and names the reasons that block the others.
//!
//! Facts about this host are looked up first (`host_facts`) and then judged (`block_reason`, pure). A result is valid
//! only for a moment, so each run checks its needs again. The module `run` executes agents.

mod block_reason;
mod catalog;
mod host_facts;

use std::collections::BTreeMap;

use platform_core::id::AgentId;
use platform_runtime::settings::{Agent, DEFAULT_AGENT, is_optional};

pub use self::{
    block_reason::{BlockReason, block_reasons},
    catalog::Catalog,
    host_facts::{HostFacts, Probes, fetch_offered_models},
};

/// An agent, and the reasons that block it.
#[derive(Debug, Clone)]
pub struct AgentStatus {
    /// Id of the agent in the configuration.
    pub id: AgentId,
    /// Settings of the agent.
    pub agent: Agent,
    /// Reasons why the agent cannot run; if all are advisory, it can.
    pub block_reasons: Vec<BlockReason>,
}

impl AgentStatus {
    /// Returns whether the agent can run here, because it has only advisory reasons.
    pub fn can_run(&self) -> bool {
        self.block_reasons.iter().all(BlockReason::is_advisory)
    }
}

/// Judges all `agents` by `facts`, in the order of their ids. `model` is the default for agents that name none.
pub fn judge(agents: &BTreeMap<AgentId, Agent>, model: Option<&str>, facts: &HostFacts) -> Vec<AgentStatus> {
    let status = |(id, agent): (&AgentId, &Agent)| {
        let mut block_reasons = block_reasons(agent, model, facts);
        if is_optional(id, agent) {
            block_reasons = block_reasons.into_iter().map(BlockReason::of_optional).collect();
        }
        AgentStatus { id: id.clone(), agent: agent.clone(), block_reasons }
    };
    agents.iter().map(status).collect()
}

/// Returns the agent of an order that names none, if it can run.
pub fn default_agent(statuses: &[AgentStatus]) -> Option<&AgentId> {
    statuses.iter().find(|agent| agent.id.as_str() == DEFAULT_AGENT && agent.can_run()).map(|agent| &agent.id)
}
