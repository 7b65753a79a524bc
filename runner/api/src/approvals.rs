//! Serves decisions about calls of host tools that wait for a person.
//!
//! For a caller, calls of other accounts' runs are as absent as the runs. A caller that is bound to agents or repositories
//! sees all calls of its account. It decides about those of runs that it may order.

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::id::RunId;
use runner_store::{DecideError, StoredToolCall, ToolDecision, ToolVerdict};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    body::{read_optional_json, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    rfc3339::rfc3339,
    runs::may_order,
};

/// Most calls that are listed.
const MAX_CALLS: u32 = 200;
/// Largest body of a denial.
const MAX_BODY: usize = 4 << 10;

/// Calls that wait for a decision.
#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalList)]
struct ApprovalListView {
    approvals: Vec<ApprovalView>,
}

/// Call of a host tool that waits for a decision, or was decided.
#[derive(Serialize, ToSchema)]
#[schema(as = Approval)]
#[serde(rename_all = "camelCase")]
struct ApprovalView {
    #[schema(value_type = schemas::RunId)]
    run_id: String,
    /// Id of the call, as the journal has it.
    call_id: String,
    #[schema(value_type = schemas::AccountId)]
    account: String,
    tool: String,
    /// `reads` or `writes`.
    effect: String,
    /// `waiting`, `approved` or `denied`.
    state: &'static str,
    /// Arguments as JSON, without secrets; null once the texts of the run were removed.
    #[schema(required = true)]
    arguments: Option<String>,
    /// Time at which the call was made.
    #[schema(format = DateTime)]
    asked_at: String,
    /// Time at which the call is denied unless a person decides.
    #[schema(required = true, format = DateTime)]
    decide_by: Option<String>,
    /// Person or program that decided.
    #[schema(required = true)]
    decided_by: Option<String>,
    /// Gateway that asks whether a command of its agent may run; null for calls of host tools.
    #[schema(required = true)]
    gateway: Option<String>,
    /// Agent of that gateway.
    #[schema(required = true)]
    gateway_agent: Option<String>,
}

/// Approval of a call.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ToolApproval)]
#[serde(deny_unknown_fields)]
struct ApprovalBody {
    /// True if the agent may run the same command from now on without asking. Only commands of gateways' agents can be
    /// allowed so.
    #[serde(default)]
    always: bool,
}

/// Denial of a call.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ToolDenial)]
#[serde(deny_unknown_fields)]
struct DenialBody {
    /// Reason, which the agent is given.
    #[schema(nullable = false)]
    reason: Option<String>,
}

impl ApprovalView {
    fn of(call: StoredToolCall) -> Self {
        Self {
            run_id: call.run_id.to_string(),
            call_id: call.call,
            account: call.account.to_string(),
            tool: call.tool.to_string(),
            effect: call.effect,
            state: call.state.word(),
            arguments: call.args,
            asked_at: rfc3339(call.began),
            decide_by: call.decide_by.map(rfc3339),
            decided_by: call.decided_by,
            gateway: call.gateway.as_ref().map(|key| key.gateway.to_string()),
            gateway_agent: call.gateway.map(|key| key.agent.to_string()),
        }
    }
}

/// Lists calls that wait for a decision.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let calls = context.opened().await?.store.waiting_tool_calls(&caller.scope(), MAX_CALLS).await?;
    Ok(json_response(&ApprovalListView { approvals: calls.into_iter().map(ApprovalView::of).collect() }))
}

pub(crate) fn list_operation() -> Operation {
    let calls = AnswerSpec::json::<ApprovalListView>(StatusCode::OK, "The calls, the oldest first.");
    Operation::new("listApprovals", "Lists calls of host tools that wait for a person's decision.", calls)
        .described("At most 200 are listed.")
        .without_query()
}

/// Lets a call run.
pub(crate) async fn approve(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((run_id, call_id)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let body: Option<ApprovalBody> = read_optional_json(request, MAX_BODY).await?;
    let verdict = match body {
        Some(ApprovalBody { always: true }) => {
            caller.refuse_limited()?;
            ToolVerdict::ApproveAlways
        }
        _ => ToolVerdict::Approve,
    };
    decide(&context, &caller, &run_id, &call_id, verdict).await
}

pub(crate) fn approve_operation() -> Operation {
    let call = AnswerSpec::json::<ApprovalView>(StatusCode::OK, "The call, which is approved.");
    Operation::new("approveToolCall", "Lets a call of a host tool run.", call)
        .described("One decision is taken for each call. The call runs if its run still runs. With `always`, the same command of the gateway's agent runs without asking from now on: `allowedCommands` of the agent lists it.")
        .without_query()
        .optional_body::<ApprovalBody>(&json!({ "always": false }))
        .refuses([Problem::AGENT_FORBIDDEN, Problem::REPOSITORY_NOT_ALLOWED, Problem::CALL_NOT_WAITING])
}

/// Denies a call.
pub(crate) async fn deny(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((run_id, call_id)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let body: Option<DenialBody> = read_optional_json(request, MAX_BODY).await?;
    let DenialBody { reason } = body.unwrap_or_default();
    decide(&context, &caller, &run_id, &call_id, ToolVerdict::Deny { reason }).await
}

pub(crate) fn deny_operation() -> Operation {
    let call = AnswerSpec::json::<ApprovalView>(StatusCode::OK, "The call, which is denied.");
    Operation::new("denyToolCall", "Denies a call of a host tool.", call)
        .described("One decision is taken for each call. The agent is given the reason.")
        .without_query()
        .optional_body::<DenialBody>(&json!({ "reason": "the comment names a customer" }))
        .refuses([Problem::AGENT_FORBIDDEN, Problem::REPOSITORY_NOT_ALLOWED, Problem::CALL_NOT_WAITING])
}

async fn decide(
    context: &ApiContext,
    caller: &Caller,
    run_id: &str,
    call_id: &str,
    verdict: ToolVerdict,
) -> Result<Response, Error> {
    let run_id = RunId::parse(run_id).map_err(|_invalid| Error::Route)?;
    let store = &context.opened().await?.store;
    let run = store.run_within(&run_id, &caller.scope()).await?;
    // The call acts for the run: a decision about it takes the right to order the run.
    may_order(store, caller, &run).await?;
    let decision = ToolDecision { verdict, by: caller.name() };
    match store.decide_tool_call(&run, call_id, &decision).await {
        Ok(call) => Ok(json_response(&ApprovalView::of(call))),
        Err(DecideError::Store(error)) => Err(error.into()),
        Err(error) => Err(Error::NotDecided(error)),
    }
}
