//! Serves the list of configured gateways, with the state of each. Starts none of them.

use std::time::Duration;

use axum::{
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
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::{
    body::{ObjectId, refuse_query},
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
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
    /// Address of the gateway; null for a managed one.
    #[schema(required = true)]
    url: Option<&'g str>,
    /// The only account that the gateway serves; null if it is shared.
    #[schema(value_type = Option<schemas::AccountId>, required = true)]
    account: Option<&'g AccountId>,
    max_concurrent_sessions: u32,
    /// Way in which calls of the gateway are matched to runs: `trace`, `slot`, `headers` or `plugin`.
    #[schema(value_type = String)]
    attribution: Attribution,
    /// Agents of a managed gateway; null for another one.
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
    async fn read(settings: &Settings, id: &'g GatewayId, gateway: &'g Gateway) -> Self {
        let state = timeout(STATE_TIMEOUT, managed::state(settings, id, gateway)).await;
        let (state, reason) = match state {
            Ok(Ok(state)) => (state.word(), None),
            Ok(Err(error)) => ("unknown", Some(report::chain(&error))),
            Err(_elapsed) => ("unknown", Some("it did not answer in time".to_owned())),
        };
        Self {
            id: id.as_str(),
            managed: gateway.is_managed(),
            url: gateway.url.as_deref(),
            account: gateway.account.as_ref(),
            max_concurrent_sessions: gateway.max_concurrent_sessions,
            attribution: gateway.attribution,
            agents: gateway.is_managed().then_some(&gateway.managed.agents),
            state,
            reason,
        }
    }
}

/// Lists the gateways of the configuration.
pub(crate) async fn list(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let views = settings.gateways.iter().map(|(id, gateway)| GatewayView::read(&settings, id, gateway));
    Ok(json_response(&json!(GatewayListView { gateways: join_all(views).await })))
}

pub(crate) fn list_operation() -> Operation {
    let gateways = AnswerSpec::json::<GatewayListView<'_>>(StatusCode::OK, "The gateways.");
    Operation::new("listGateways", "Lists the configured gateways, with the state of each.", gateways)
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
