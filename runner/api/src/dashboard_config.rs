//! Serves what the pages of the dashboard need to know of this installation.

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    body::refuse_query,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
};

/// Facts that pages need of this installation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DashboardSettings)]
#[serde(rename_all = "camelCase")]
struct DashboardView<'s> {
    version: &'static str,
    /// Address of a run's trace, with `{trace}` in place of its `traceId`.
    #[schema(required = true)]
    trace_url: Option<&'s str>,
    /// Host of pull requests: an address of another host is not a link.
    github_host: &'s str,
    /// True if agents can be proposed as pull requests.
    proposes_agents: bool,
    /// True if skills can be, too.
    proposes_skills: bool,
    poll_seconds: PollView,
}

/// Seconds after which a page asks again, where no stream reports changes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PollSeconds)]
struct PollView {
    system: u32,
    gateways: u32,
    approvals: u32,
}

const POLL_SECONDS: PollView = PollView { system: 10, gateways: 30, approvals: 5 };

/// Answers with what the pages need to know.
pub(crate) async fn show(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    Ok(json_response(&DashboardView {
        version: env!("CARGO_PKG_VERSION"),
        trace_url: settings.telemetry.trace_url.as_deref(),
        github_host: &settings.github.url.base.host,
        proposes_agents: settings.agents_repository.is_some(),
        proposes_skills: settings.agents_repository.as_ref().is_some_and(|it| it.skills.is_some()),
        poll_seconds: POLL_SECONDS,
    }))
}

pub(crate) fn show_operation() -> Operation {
    let settings = AnswerSpec::json::<DashboardView<'_>>(StatusCode::OK, "What the pages need to know.");
    Operation::new("getDashboard", "Answers with what the dashboard's pages need to know.", settings)
        .without_query()
}
