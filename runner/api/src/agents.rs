//! Serves the lists of agents: those that can run here, and all of them with the reasons that block them.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::id::{AgentId, GatewayId, ToolName};
use runner_engine::agents::{AgentStatus, default_agent};
use serde::Serialize;
use serde_json::json;
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
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentList)]
pub struct AgentListView<'a> {
    agents: Vec<AgentView<'a>>,
    /// Agent of an order that names none; null if that one cannot run.
    #[serde(rename = "defaultAgentId")]
    #[schema(value_type = Option<schemas::AgentId>, required = true)]
    default_agent_id: Option<&'a AgentId>,
}

/// Agent that can run here.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
#[serde(rename_all = "camelCase")]
pub struct AgentView<'a> {
    #[schema(value_type = schemas::AgentId)]
    agent_id: &'a AgentId,
    /// The agent's id under its name in the specification.
    #[schema(value_type = schemas::AgentId)]
    graph_id: &'a AgentId,
    /// Name for people.
    name: &'a str,
    description: &'a str,
    /// Tools that the agent's entry lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    tools: Option<&'a [ToolName]>,
}

/// All agents.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentStatusList)]
struct StatusListView<'a> {
    agents: Vec<StatusView<'a>>,
    /// Agent of an order that names none; null if that one cannot run.
    #[serde(rename = "defaultAgentId")]
    #[schema(value_type = Option<schemas::AgentId>, required = true)]
    default_agent_id: Option<&'a AgentId>,
}

/// Agent, with what blocks it.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentStatus)]
#[serde(rename_all = "camelCase")]
struct StatusView<'a> {
    #[schema(value_type = schemas::AgentId)]
    agent_id: &'a AgentId,
    /// The agent's id under its name in the specification.
    #[schema(value_type = schemas::AgentId)]
    graph_id: &'a AgentId,
    /// Name for people.
    name: &'a str,
    description: &'a str,
    /// Tools that the agent's entry lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    tools: Option<&'a [ToolName]>,
    /// Gateways at which its runs are sessions; empty if each of its runs has a container.
    #[schema(value_type = Vec<String>)]
    gateways: &'a [GatewayId],
    /// True if the agent can run here.
    can_run: bool,
    /// True if the caller may order the agent.
    may_order: bool,
    /// Reasons why the agent cannot run.
    reasons: Vec<BlockReasonView>,
}

/// Reason why an agent cannot run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BlockReason)]
pub struct BlockReasonView {
    code: &'static str,
    /// Reason, for people.
    message: String,
}

impl<'a> AgentListView<'a> {
    /// Describes those of the agents that can run.
    #[must_use]
    pub fn of(statuses: &'a [AgentStatus]) -> Self {
        let runnable = statuses.iter().filter(|agent| agent.can_run());
        Self { agents: runnable.map(AgentView::of).collect(), default_agent_id: default_agent(statuses) }
    }
}

impl<'a> AgentView<'a> {
    /// Describes an agent without its reasons.
    #[must_use]
    pub fn of(AgentStatus { id, agent, .. }: &'a AgentStatus) -> Self {
        Self {
            agent_id: id,
            graph_id: id,
            name: &agent.name,
            description: &agent.description,
            tools: agent.tools.as_deref(),
        }
    }
}

impl<'a> StatusView<'a> {
    fn of(status: &'a AgentStatus, caller: &Caller) -> Self {
        let AgentView { agent_id, graph_id, name, description, tools } = AgentView::of(status);
        Self {
            agent_id,
            graph_id,
            name,
            description,
            tools,
            gateways: &status.agent.gateways,
            can_run: status.can_run(),
            may_order: caller.may_run(&status.id).is_ok(),
            reasons: BlockReasonView::all(status),
        }
    }
}

impl BlockReasonView {
    /// Describes the reasons that block an agent, and the notes on one that can run.
    #[must_use]
    pub fn all(status: &AgentStatus) -> Vec<Self> {
        let reasons = status.block_reasons.iter();
        reasons.map(|reason| Self { code: reason.code(), message: reason.to_string() }).collect()
    }
}

/// Answers with the agents that can run here, and the default one.
pub(crate) async fn list_runnable(State(context): State<ApiContext>) -> Response {
    json_response(&json!(AgentListView::of(&context.catalog.statuses().await)))
}

pub(crate) fn list_runnable_operation() -> Operation {
    let agents = AnswerSpec::json::<AgentListView<'_>>(StatusCode::OK, "The agents, and the default one.");
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
    let agents = statuses.iter().map(|status| StatusView::of(status, &caller)).collect();
    Ok(json_response(&json!(StatusListView { agents, default_agent_id: default_agent(&statuses) })))
}

pub(crate) fn list_operation() -> Operation {
    let agents = AnswerSpec::json::<StatusListView<'_>>(StatusCode::OK, "The agents, and the default one.");
    Operation::new("listAllAgents", "Lists all agents, with the reasons why one cannot run.", agents)
        .without_query()
}
