//! Serves the overview: what calls used, what was refused, how runs ended and how long they waited, in a span of time.
//!
//! A caller that is not an operator sees its own account's figures, as it sees no other account's runs.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use runner_store::{AccountScope, Store, SumSpan, TimeGrid};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use self::view::{Figures, OverviewView};
use crate::{
    body::read_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
};

mod view;

/// Most accounts, models and reasons that are listed.
const MAX_LINES: u32 = 100;
/// Most calls of host tools that are counted as waiting.
const MAX_APPROVALS: u32 = 200;

/// Query of an overview.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct OverviewQuery {
    /// Span of time; a day if absent.
    #[param(inline, nullable = false)]
    range: Option<OverviewRange>,
}

/// Span of time that an overview covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
enum OverviewRange {
    #[serde(rename = "1h")]
    Hour,
    #[default]
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
    #[serde(rename = "90d")]
    Quarter,
}

impl OverviewRange {
    /// Returns the spans that the range is shown in, and their number.
    const fn spans(self) -> (SumSpan, u32) {
        match self {
            Self::Hour => (SumSpan::FiveMinutes, 12),
            Self::Day => (SumSpan::Hour, 24),
            Self::Week => (SumSpan::Day, 7),
            Self::Month => (SumSpan::Day, 30),
            Self::Quarter => (SumSpan::Day, 90),
        }
    }
}

/// Answers with the figures of the caller's accounts.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let OverviewQuery { range } = read_query(request.uri())?;
    let range = range.unwrap_or_default();
    let (span, spans) = range.spans();
    let opened = context.opened().await?;
    let grid = opened.store.grid_up_to_now(span, spans).await?;
    let figures = read_figures(&opened.store, &grid, &caller.scope()).await?;
    Ok(json_response(&OverviewView::of(range, &grid, &figures)))
}

/// Reads each figure by its own statement, so that other requests come between.
async fn read_figures(store: &Store, grid: &TimeGrid, scope: &AccountScope) -> Result<Figures, Error> {
    Ok(Figures {
        by_time: store.usage_by_time(grid, scope).await?,
        by_account: store.usage_by_account(grid, scope, MAX_LINES).await?,
        by_model: store.usage_by_model(grid, scope, MAX_LINES).await?,
        refusals: store.refusals_by_reason(grid, scope, MAX_LINES).await?,
        ended: store.runs_ended(grid, scope).await?,
        waits: store.run_waits(grid, scope).await?,
        approvals: store.waiting_tool_calls(scope, MAX_APPROVALS).await?,
    })
}

pub(crate) fn show_operation() -> Operation {
    let overview = AnswerSpec::json::<OverviewView<'static>>(StatusCode::OK, "The figures.");
    Operation::new(
        "getOverview",
        "Answers with what calls used, what was refused, how runs ended and how long they waited.",
        overview,
    )
    .described(
        "Operators see the figures of all accounts, others those of their own. Spans begin at full five minutes, hours or \
         days in UTC, and the last one is under way. A call counts when it began, a run when it ended. At most 100 \
         accounts, models and reasons are listed, those with the greatest figures.",
    )
    .query::<OverviewQuery>()
}
