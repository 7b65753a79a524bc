//! Serves accounts: what their runs have used at the data plane, and their limits.
//!
//! Other accounts than its own do not exist for a caller that is not an operator.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::{
    budget::{Budget, Limit, LimitView},
    control::{AccountBudget, AccountView, InexactCalls},
    id::AccountId,
    money::NanoDollars,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{ToSchema, openapi::Object};

use crate::{
    body::{ObjectId, read_json, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
};

/// Largest body with limits.
const MAX_LIMITS: usize = 64 << 10;

/// Limits of an account, as a client sends them. An absent limit does not apply any more.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = LimitsOfAccount)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LimitsBody {
    #[schema(schema_with = limit_schema)]
    requests: Option<u64>,
    #[schema(schema_with = limit_schema)]
    requests_per_minute: Option<u64>,
    #[schema(schema_with = limit_schema)]
    calls_in_flight: Option<u64>,
    #[schema(schema_with = limit_schema)]
    input_tokens: Option<u64>,
    #[schema(schema_with = limit_schema)]
    output_tokens: Option<u64>,
    #[schema(schema_with = limit_schema)]
    total_tokens: Option<u64>,
    /// Dollars, as text, so that no float rounds them: "0.50".
    #[schema(value_type = Option<schemas::Dollars>)]
    cost: Option<String>,
}

fn limit_schema() -> Object {
    schemas::large_number(0).build()
}

/// Accounts that exist for the caller.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountList)]
struct AccountListView {
    accounts: Vec<AccountUseView>,
}

/// Account, with what its runs have used at the data plane.
#[derive(Serialize, ToSchema)]
#[schema(as = Account)]
#[serde(rename_all = "camelCase")]
struct AccountUseView {
    #[schema(value_type = schemas::AccountId)]
    account: AccountId,
    limits: AccountLimitsView,
    inexact_calls: InexactCallsView,
}

/// Use of each limit of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountLimits)]
#[serde(rename_all = "camelCase")]
struct AccountLimitsView {
    requests: LimitUseView,
    requests_per_minute: LimitUseView,
    calls_in_flight: LimitUseView,
    input_tokens: LimitUseView,
    output_tokens: LimitUseView,
    total_tokens: LimitUseView,
    cost: CostUseView,
}

/// Use of a limit.
#[derive(Serialize, ToSchema)]
#[schema(as = LimitUse)]
struct LimitUseView {
    /// The limit; null if unlimited.
    #[schema(required = true)]
    allowed: Option<u64>,
    used: u64,
    /// Part that calls in flight may still use.
    reserved: u64,
    #[schema(required = true)]
    left: Option<u64>,
}

/// Use of the limit of cost, in dollars.
#[derive(Serialize, ToSchema)]
#[schema(as = CostUse)]
struct CostUseView {
    /// The limit; null if unlimited.
    #[schema(required = true)]
    allowed: Option<String>,
    used: String,
    /// Part that calls in flight may still use.
    reserved: String,
    #[schema(required = true)]
    left: Option<String>,
}

/// Calls with a use that is not known exactly.
#[derive(Serialize, ToSchema)]
#[schema(as = InexactCalls)]
struct InexactCallsView {
    unpriced: u64,
    estimated: u64,
}

impl LimitsBody {
    fn budget(&self) -> Result<Budget, Error> {
        let cost = self.cost.as_deref().map(str::parse::<NanoDollars>).transpose();
        Ok(Budget {
            requests: self.requests,
            requests_per_minute: self.requests_per_minute,
            calls_in_flight: self.calls_in_flight,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            total_tokens: self.total_tokens,
            cost_nanodollars: cost.map_err(|error| Error::Invalid(format!("`cost`: {error}")))?,
        })
    }
}

impl From<AccountView> for AccountUseView {
    fn from(AccountView { account, limits, inexact }: AccountView) -> Self {
        let InexactCalls { unpriced, estimated } = inexact;
        Self {
            account,
            limits: AccountLimitsView::of(&limits),
            inexact_calls: InexactCallsView { unpriced, estimated },
        }
    }
}

impl AccountLimitsView {
    /// Describes the use of each limit. One that the data plane does not list is unused.
    fn of(limits: &[LimitView]) -> Self {
        let find = |limit| {
            let listed = limits.iter().find(|view| view.limit == limit).copied();
            listed.unwrap_or(LimitView { limit, allowed: None, used: 0, reserved: 0 })
        };
        let amounts = |limit| LimitUseView::of(find(limit));
        Self {
            requests: amounts(Limit::Requests),
            requests_per_minute: amounts(Limit::RequestsPerMinute),
            calls_in_flight: amounts(Limit::CallsInFlight),
            input_tokens: amounts(Limit::InputTokens),
            output_tokens: amounts(Limit::OutputTokens),
            total_tokens: amounts(Limit::TotalTokens),
            cost: CostUseView::of(find(Limit::CostNanodollars)),
        }
    }
}

impl LimitUseView {
    fn of(view: LimitView) -> Self {
        Self { allowed: view.allowed, used: view.used, reserved: view.reserved, left: view.left() }
    }
}

impl CostUseView {
    /// Describes the use of a cost, in dollars as text, as in orders.
    fn of(view: LimitView) -> Self {
        let dollars = |amount| NanoDollars(amount).to_plain_text();
        Self {
            allowed: view.allowed.map(dollars),
            used: dollars(view.used),
            reserved: dollars(view.reserved),
            left: view.left().map(dollars),
        }
    }
}

/// Lists the accounts that the data plane knows, as far as they exist for the caller.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let mut views = context.ask_data_plane(async |data_plane| data_plane.accounts().await).await?;
    if !caller.is_operator() {
        views.retain(|view| view.account == *caller.account());
        if views.is_empty() {
            views.push(unused(caller.account()));
        }
    }
    views.sort_by(|one, other| one.account.cmp(&other.account));
    let accounts = views.into_iter().map(AccountUseView::from).collect();
    Ok(json_response(&json!(AccountListView { accounts })))
}

pub(crate) fn list_operation() -> Operation {
    let accounts = AnswerSpec::json::<AccountListView>(StatusCode::OK, "The accounts.");
    Operation::new("listAccounts", "Lists accounts, with their limits.", accounts)
        .described("An account that is not an operator's sees itself alone.")
        .asking_data_plane()
}

/// Answers with one account.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(account): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let account = caller.find_account(&account)?;
    let views = context.ask_data_plane(async |data_plane| data_plane.accounts().await).await?;
    let view = views.into_iter().find(|view| view.account == account);
    // The account of a principal exists, even if no run of it has called a model.
    let view = view.or_else(|| (account == *caller.account()).then(|| unused(&account)));
    Ok(json_response(&json!(AccountUseView::from(view.ok_or(Error::Route)?))))
}

pub(crate) fn show_operation() -> Operation {
    let account = AnswerSpec::json::<AccountUseView>(StatusCode::OK, "The account.");
    Operation::new("getAccount", "Answers with one account.", account).asking_data_plane()
}

/// Replaces the limits of an account, until the configuration has others for it.
pub(crate) async fn limit(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(account): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let account = caller.find_account(&account)?;
    let limits: LimitsBody = read_json(request, MAX_LIMITS).await?;
    let budget = AccountBudget { account, budget: limits.budget()? };
    let view = context.ask_data_plane(async |data_plane| data_plane.limit_account(&budget).await).await?;
    tracing::info!(account = %budget.account, by = caller.name(), "limits of an account replaced");
    Ok(json_response(&json!(AccountUseView::from(view))))
}

pub(crate) fn limit_operation() -> Operation {
    let account = AnswerSpec::json::<AccountUseView>(StatusCode::OK, "The account, with its new limits.");
    Operation::new("limitAccount", "Replaces the limits of an account.", account)
        .described(
            "They hold until the configuration changes its own for the account. A limit that is left out does not apply.",
        )
        .asking_data_plane()
        .body::<LimitsBody>(&json!({ "totalTokens": 1_000_000, "cost": "2.50" }))
}

/// Returns an account of which the data plane knows nothing yet.
fn unused(account: &AccountId) -> AccountView {
    AccountView { account: account.clone(), limits: Vec::new(), inexact: InexactCalls::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_read_under_the_name_it_is_shown() {
        for limit in Limit::ALL {
            let (key, sent, allowed) = match limit {
                Limit::Requests => ("requests", json!(7), 7),
                Limit::RequestsPerMinute => ("requestsPerMinute", json!(7), 7),
                Limit::CallsInFlight => ("callsInFlight", json!(7), 7),
                Limit::InputTokens => ("inputTokens", json!(7), 7),
                Limit::OutputTokens => ("outputTokens", json!(7), 7),
                Limit::TotalTokens => ("totalTokens", json!(7), 7),
                Limit::CostNanodollars => ("cost", json!("0.50"), 500_000_000),
            };
            let body: LimitsBody = serde_json::from_value(json!({ key: sent })).unwrap();
            assert_eq!(body.budget().unwrap().allows(limit), Some(allowed), "{limit}");
            let limits =
                AccountLimitsView::of(&[LimitView { limit, allowed: Some(allowed), used: 0, reserved: 0 }]);
            assert_eq!(json!(limits)[key]["left"], sent, "{limit}");
        }
        assert!(serde_json::from_value::<LimitsBody>(json!({ "total_tokens": 1 })).is_err());
    }
}
