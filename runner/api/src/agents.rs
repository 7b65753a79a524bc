//! Serves the lists of agents: those that can run here, and all of them with the reasons that block them.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_runtime::settings::DEFAULT_AGENT;
use runner_engine::agents::{self, AgentStatus};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    body::refuse_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
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

/// All agents.
#[derive(ToSchema)]
#[schema(as = AgentStatusList)]
#[expect(dead_code, reason = "the engine writes the agents; this is the schema of their list")]
struct StatusListSchema {
    agents: Vec<StatusSchema>,
    /// Agent of an order that names none; null if that one cannot run.
    #[schema(rename = "defaultAgentId", value_type = Option<schemas::AgentId>, required = true)]
    default_agent_id: Option<String>,
}

/// Agent, with what blocks it.
#[derive(ToSchema)]
#[schema(as = AgentStatus, rename_all = "camelCase")]
#[expect(dead_code, reason = "the engine writes the agent; this is its schema")]
struct StatusSchema {
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
    /// True if the agent can run here.
    can_run: bool,
    /// True if the caller may order the agent.
    may_order: bool,
    /// Reasons why the agent cannot run.
    reasons: Vec<ReasonSchema>,
}

/// Reason why an agent cannot run.
#[derive(ToSchema)]
#[schema(as = BlockReason)]
#[expect(dead_code, reason = "the engine writes the reason; this is its schema")]
struct ReasonSchema {
    code: String,
    /// Reason, for people.
    message: String,
}

/// Answers with the agents that can run here, and the default one.
pub(crate) async fn list_runnable(State(context): State<ApiContext>) -> Response {
    json_response(&agents::listing(&context.catalog.statuses().await))
}

pub(crate) fn list_runnable_operation() -> Operation {
    let agents = AnswerSpec::json::<AgentListSchema>(StatusCode::OK, "The agents, and the default one.");
    Operation::new("listAgents", "Lists the agents that can run here.", agents)
}

/// Answers with all agents: whether each can run here, and why not. What the caller may not order is marked.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let statuses = context.catalog.statuses().await;
    let view = |agent: &AgentStatus| -> Value {
        let mut view = agent.to_json();
        view["canRun"] = agent.can_run().into();
        view["mayOrder"] = caller.may_run(&agent.id).is_ok().into();
        view["reasons"] = agent.reasons_json();
        view
    };
    let default = statuses.iter().find(|agent| agent.id.as_str() == DEFAULT_AGENT && agent.can_run());
    Ok(json_response(&json!({
        "agents": statuses.iter().map(view).collect::<Vec<_>>(),
        "defaultAgentId": default.map(|agent| &agent.id),
    })))
}

pub(crate) fn list_operation() -> Operation {
    let agents = AnswerSpec::json::<StatusListSchema>(StatusCode::OK, "The agents, and the default one.");
    Operation::new("listAllAgents", "Lists all agents, with the reasons why one cannot run.", agents)
        .without_query()
}
