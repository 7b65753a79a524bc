//! Serves the lists of agents: those that can run here, and all of them with the reasons that block them.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use platform_runtime::settings::DEFAULT_AGENT;
use runner_engine::agents::{self, AgentStatus};
use serde_json::{Value, json};

use crate::{body::refuse_query, caller::Caller, context::ApiContext, error::Error, json_response};

/// Answers with the agents that can run here, and the default one.
pub(crate) async fn list_runnable(State(context): State<ApiContext>) -> Response {
    json_response(&agents::listing(&context.catalog.statuses().await))
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
