//! Explains what an agent of a gateway may do, and which layer decides.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
};
use platform_runtime::report::ErrorText;
use runner_gateways::{
    Explanation, ToolExplanation,
    managed::{self, ConfigSource, ReadConfig},
};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::agents::FoundGateway;
use crate::{
    body::refuse_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

/// Longest wait for the gateway's configuration.
const READ_TIMEOUT: Duration = Duration::from_secs(8);

/// Tools of an agent, with the reasons.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAgentExplanation)]
#[serde(rename_all = "camelCase")]
struct ExplanationView {
    gateway: String,
    agent: String,
    /// True if OpenClaw puts the agent's sessions into containers.
    is_sandboxed: bool,
    /// The same in words.
    sandbox: &'static str,
    /// Directory of the agent's files, at its gateway.
    workspace: String,
    /// `gateway`, or `file` if the gateway does not answer.
    source: &'static str,
    tools: Vec<ToolView>,
}

/// Verdict about one tool.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayToolExplanation)]
struct ToolView {
    tool: &'static str,
    /// `allowed`, `asks` or `denied`.
    verdict: &'static str,
    /// Layer that decides: `host policy`, `gateway tools`, `sandbox tools` or `approvals`.
    layer: &'static str,
    reason: String,
    /// Setting that changes it; null where none does.
    #[schema(required = true)]
    setting: Option<String>,
}

impl ToolView {
    fn of(explained: ToolExplanation) -> Self {
        let ToolExplanation { tool, verdict, layer, reason, setting } = explained;
        Self { tool, verdict: verdict.word(), layer: layer.name(), reason, setting }
    }
}

/// Explains what an agent may do.
pub(crate) async fn explain(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key(&agent)?;
    let read = timeout(READ_TIMEOUT, managed::read_config(&settings, found.id, found.gateway)).await;
    let late = || Err(ErrorText(format!("it did not answer within {} s", READ_TIMEOUT.as_secs())));
    let read: ReadConfig = read
        .unwrap_or_else(|_elapsed| late())
        .map_err(|ErrorText(why)| Error::GatewayUnavailable { gateway: found.id.clone(), why })?;
    let explained = runner_gateways::explain(found.id.as_str(), found.gateway, &read, &key.agent);
    let Explanation { sandbox, workspace, tools } = explained.ok_or(Error::Route)?;
    Ok(json_response(&ExplanationView {
        gateway: key.gateway.to_string(),
        agent: key.agent.to_string(),
        is_sandboxed: sandbox.is_on(),
        sandbox: sandbox.words(),
        workspace,
        source: match read.source {
            ConfigSource::Gateway => "gateway",
            ConfigSource::File => "file",
        },
        tools: tools.into_iter().map(ToolView::of).collect(),
    }))
}

pub(crate) fn explain_operation() -> Operation {
    let explained = AnswerSpec::json::<ExplanationView>(StatusCode::OK, "The tools, with the reasons.");
    Operation::new("explainGatewayAgent", "Explains what an agent of a gateway may do.", explained)
        .described("For each tool: whether the agent may use it, the layer that decides, and the setting that changes it.")
        .without_query()
        .refuses([Problem::GATEWAY_UNAVAILABLE])
}
