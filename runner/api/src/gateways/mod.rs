//! Serves configured gateways, with the state of each, and their agents. Starts none of them.

mod agent_files;
mod agent_view;
mod agents;
mod explain;
mod lifecycle;
mod sessions;
mod socket;
mod workspace;

use std::time::Duration;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use futures_util::future::join_all;
use platform_core::id::{AccountId, GatewayId};
use platform_runtime::{
    report,
    settings::{Attribution, Gateway, Settings},
};
use runner_gateways::managed::{self, Finding};
use runner_model::principal::PrincipalRole;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::{
    body::{ObjectId, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
};

pub(crate) use self::{
    agent_files::{
        list as list_files, list_operation as list_files_operation, put as put_file,
        put_operation as put_file_operation, remove as remove_file,
        remove_operation as remove_file_operation,
    },
    agents::{
        change as change_agent, change_operation as change_agent_operation, create as create_agent,
        create_operation as create_agent_operation, list as list_agents,
        list_operation as list_agents_operation, remove as remove_agent,
        remove_operation as remove_agent_operation, show as show_agent,
        show_operation as show_agent_operation,
    },
    explain::{explain as explain_agent, explain_operation as explain_agent_operation},
    lifecycle::{show_log, show_log_operation, start, start_operation, stop, stop_operation},
    sessions::{list as list_sessions, list_operation as list_sessions_operation},
    socket::{open as open_socket, open_operation as open_socket_operation},
    workspace::{
        list as list_workspace, list_operation as list_workspace_operation, read as read_workspace_file,
        read_operation as read_workspace_file_operation,
    },
};

/// Longest wait for the state of a gateway.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the check of a gateway.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// Gateways of the configuration.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayList)]
struct GatewayListView<'g> {
    gateways: Vec<GatewayView<'g>>,
}

/// Gateway of the configuration, with its state.
#[derive(Serialize, ToSchema)]
#[schema(as = Gateway)]
#[serde(rename_all = "camelCase")]
struct GatewayView<'g> {
    id: &'g str,
    /// True if `sluice gateway` runs its container.
    managed: bool,
    /// Address of the gateway; null for a managed one, and for callers that are no operators.
    #[schema(required = true)]
    url: Option<&'g str>,
    /// The only account that the gateway serves; null if it is shared.
    #[schema(value_type = Option<schemas::AccountId>, required = true)]
    account: Option<&'g AccountId>,
    max_concurrent_sessions: u32,
    /// Way in which calls of the gateway are matched to runs: `trace`, `slot`, `headers` or `plugin`.
    #[schema(value_type = String)]
    attribution: Attribution,
    /// True if the caller may make and change agents in it.
    manageable: bool,
    /// Agents of a managed gateway in the configuration; null for another one.
    #[schema(value_type = Option<Vec<String>>, required = true)]
    agents: Option<&'g [String]>,
    /// `up`, `starting`, `down` or `unknown`.
    state: &'static str,
    /// Reason why the state is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
}

impl<'g> GatewayView<'g> {
    /// Asks a gateway for its state, and describes it.
    async fn read(settings: &Settings, caller: &Caller, id: &'g GatewayId, gateway: &'g Gateway) -> Self {
        let state = timeout(STATE_TIMEOUT, managed::state(settings, id, gateway)).await;
        let (state, reason) = match state {
            Ok(Ok(state)) => (state.word(), None),
            Ok(Err(error)) => ("unknown", Some(report::chain(&error))),
            Err(_elapsed) => ("unknown", Some("it did not answer in time".to_owned())),
        };
        Self {
            id: id.as_str(),
            managed: gateway.is_managed(),
            url: gateway.url.as_deref().filter(|_| caller.is_operator()),
            account: gateway.account.as_ref(),
            max_concurrent_sessions: gateway.max_concurrent_sessions,
            attribution: gateway.attribution,
            manageable: caller.refuse_limited().is_ok() && caller.role() >= PrincipalRole::Member,
            agents: gateway.is_managed().then_some(&gateway.managed.agents),
            state,
            // It may name files of the host.
            reason: reason.filter(|_| caller.is_operator()),
        }
    }
}

/// Lists the gateways of the configuration that exist for the caller.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let existing = settings.gateways.iter().filter(|(_, gateway)| agents::exists_for(&caller, gateway));
    let views = existing.map(|(id, gateway)| GatewayView::read(&settings, &caller, id, gateway));
    Ok(json_response(&json!(GatewayListView { gateways: join_all(views).await })))
}

pub(crate) fn list_operation() -> Operation {
    let gateways = AnswerSpec::json::<GatewayListView<'_>>(StatusCode::OK, "The gateways.");
    Operation::new("listGateways", "Lists the configured gateways, with the state of each.", gateways)
        .described("Operators see all; others see those of their account.")
        .without_query()
}

/// Findings about a gateway.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GatewayCheck)]
struct GatewayCheckView {
    gateway: String,
    /// `ok`, `untested` if only its version was not tested, `wrong`, or `not_known` if it could not be examined.
    state: &'static str,
    findings: Vec<GatewayFindingView>,
}

/// Finding about a gateway.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GatewayFinding)]
struct GatewayFindingView {
    code: &'static str,
    /// `wrong`, `untested` or `not_known`.
    kind: &'static str,
    /// Defect, and how to fix it.
    message: String,
}

impl GatewayFindingView {
    fn of(finding: &Finding) -> Self {
        let kind = match finding {
            finding if finding.is_unknown() => "not_known",
            finding if finding.is_untested() => "untested",
            _ => "wrong",
        };
        Self { code: finding.code(), kind, message: finding.to_string() }
    }
}

impl GatewayCheckView {
    fn of(id: &GatewayId, findings: &[Finding]) -> Self {
        let findings: Vec<_> = findings.iter().map(GatewayFindingView::of).collect();
        let worst = ["wrong", "not_known", "untested"]
            .into_iter()
            .find(|kind| findings.iter().any(|finding| finding.kind == *kind));
        Self { gateway: id.to_string(), state: worst.unwrap_or("ok"), findings }
    }
}

/// Checks a gateway, as `sluice gateway check` does.
pub(crate) async fn check(
    State(context): State<ApiContext>,
    ObjectId(id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let id = GatewayId::parse(&id).map_err(|_invalid| Error::Route)?;
    let gateway = settings.gateways.get(&id).ok_or(Error::Route)?;
    let checked = timeout(CHECK_TIMEOUT, managed::check(&settings, &id, gateway)).await;
    let late = || vec![Finding::Unknown(format!("the check took longer than {} s", CHECK_TIMEOUT.as_secs()))];
    let findings = checked.unwrap_or_else(|_elapsed| late());
    Ok(json_response(&GatewayCheckView::of(&id, &findings)))
}

pub(crate) fn check_operation() -> Operation {
    let findings = AnswerSpec::json::<GatewayCheckView>(StatusCode::OK, "The findings; none if all is well.");
    Operation::new("checkGateway", "Checks a gateway, as `sluice gateway check` does.", findings)
        .without_query()
}
