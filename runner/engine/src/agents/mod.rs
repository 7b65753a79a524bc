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
use serde_json::{Value, json};

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

    /// Returns the agent as an entry of the catalogue.
    pub fn to_json(&self) -> Value {
        let Self { id, agent: Agent { name, description, tools, .. }, .. } = self;
        let mut entry = json!({ "agentId": id, "graphId": id, "name": name, "description": description });
        if let Some(tools) = tools {
            entry["tools"] = json!(tools);
        }
        entry
    }

    /// Returns the agent's reasons, each with its code and its text.
    pub fn reasons_json(&self) -> Value {
        let reason_json =
            |reason: &BlockReason| json!({ "code": reason.code(), "message": reason.to_string() });
        self.block_reasons.iter().map(reason_json).collect()
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

/// Returns the catalogue: the agents that can run, and the default one.
pub fn listing(statuses: &[AgentStatus]) -> Value {
    let runnable: Vec<_> = statuses.iter().filter(|agent| agent.can_run()).collect();
    let default = runnable.iter().map(|agent| &agent.id).find(|id| id.as_str() == DEFAULT_AGENT);
    json!({
        "agents": runnable.iter().map(|agent| agent.to_json()).collect::<Vec<_>>(),
        "defaultAgentId": default,
    })
}
