//! Serves the list of agents.

use axum::{extract::State, http::StatusCode, response::Response};
use runner_engine::agents;
use utoipa::ToSchema;

use crate::{
    context::ApiContext,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
};

/// Agents that can run here.
#[derive(ToSchema)]
#[schema(as = AgentList)]
#[expect(dead_code, reason = "the engine writes the list; this is its schema")]
struct AgentListSchema {
    agents: Vec<AgentSchema>,
    /// Agent of an order that names none; null if that one cannot run.
    #[schema(rename = "defaultAgentId", value_type = Option<schemas::AgentId>, required = true)]
    default_agent_id: Option<String>,
}

/// Agent that can run here.
#[derive(ToSchema)]
#[schema(as = Agent, rename_all = "camelCase")]
#[expect(dead_code, reason = "the engine writes the agent; this is its schema")]
struct AgentSchema {
    #[schema(value_type = schemas::AgentId)]
    agent_id: String,
    /// The agent's id under its name in the specification.
    #[schema(value_type = schemas::AgentId)]
    graph_id: String,
    /// Name for people.
    name: String,
    description: String,
    /// Tools that the agent's entry lists.
    #[schema(nullable = false)]
    tools: Option<Vec<String>>,
}

/// Answers with the agents that can run here, and the default one.
pub(crate) async fn list(State(context): State<ApiContext>) -> Response {
    json_response(&agents::listing(&context.catalog.statuses().await))
}

pub(crate) fn list_operation() -> Operation {
    let agents = AnswerSpec::json::<AgentListSchema>(StatusCode::OK, "The agents, and the default one.");
    Operation::new("listAgents", "Lists the agents that can run here.", agents)
}
