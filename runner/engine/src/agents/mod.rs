//! Decides which agents can run here, and why the others cannot.
//!
//! Facts about this host are looked up first ([`facts`]) and then judged ([`obstacle`], pure). A result holds for the
//! moment: a run looks again by itself. Running an agent is not part of this module.

mod catalog;
mod facts;
mod obstacle;

use std::collections::BTreeMap;

use platform_core::id::AgentId;
use platform_runtime::settings::{Agent, DEFAULT_AGENT};
use serde_json::{Value, json};

pub use self::{
    catalog::Catalog,
    facts::{Facts, Places},
    obstacle::{Obstacle, obstacles},
};

/// An agent with its obstacles.
#[derive(Debug, Clone)]
pub struct Looked {
    /// Id of the agent in the configuration.
    pub id: AgentId,
    /// Settings of the agent.
    pub agent: Agent,
    /// Reasons why it cannot run; it can if there are only notes.
    pub obstacles: Vec<Obstacle>,
}

impl Looked {
    /// Returns whether the agent can run here: it has no obstacles except notes.
    pub fn can_run(&self) -> bool {
        self.obstacles.iter().all(Obstacle::is_note)
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
}

/// Judges all `agents` by `facts`, in the order of their ids. `model` serves agents that name none.
pub fn judge(agents: &BTreeMap<AgentId, Agent>, model: Option<&str>, facts: &Facts) -> Vec<Looked> {
    let looked = |(id, agent): (&AgentId, &Agent)| Looked {
        id: id.clone(),
        agent: agent.clone(),
        obstacles: obstacles(agent, model, facts),
    };
    agents.iter().map(looked).collect()
}

/// Returns the catalogue: the agents that can run, and the default one.
pub fn listing(looked: &[Looked]) -> Value {
    let runnable: Vec<_> = looked.iter().filter(|agent| agent.can_run()).collect();
    let default = runnable.iter().map(|agent| &agent.id).find(|id| id.as_str() == DEFAULT_AGENT);
    json!({
        "agents": runnable.iter().map(|agent| agent.to_json()).collect::<Vec<_>>(),
        "defaultAgentId": default,
    })
}
