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
use serde::Deserialize;
use serde_json::{Map, Value, json};
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
#[derive(ToSchema)]
#[schema(as = AccountList)]
#[expect(dead_code, reason = "schema of what `list` writes")]
struct AccountListSchema {
    accounts: Vec<AccountSchema>,
}

/// Account, with what its runs have used at the data plane.
#[derive(ToSchema)]
#[schema(as = Account, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `account_json` writes")]
struct AccountSchema {
    #[schema(value_type = schemas::AccountId)]
    account: String,
    limits: AccountLimitsSchema,
    inexact_calls: InexactCallsSchema,
}

/// Use of each limit of an account.
#[derive(ToSchema)]
#[schema(as = AccountLimits, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `account_json` writes")]
struct AccountLimitsSchema {
    requests: LimitSchema,
    requests_per_minute: LimitSchema,
    calls_in_flight: LimitSchema,
    input_tokens: LimitSchema,
    output_tokens: LimitSchema,
    total_tokens: LimitSchema,
    cost: CostLimitSchema,
}

/// Use of a limit.
#[derive(ToSchema)]
#[schema(as = LimitUse)]
#[expect(dead_code, reason = "schema of what `limit_json` writes")]
struct LimitSchema {
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
#[derive(ToSchema)]
#[schema(as = CostUse)]
#[expect(dead_code, reason = "schema of what `limit_json` writes")]
struct CostLimitSchema {
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
#[derive(ToSchema)]
#[schema(as = InexactCalls)]
#[expect(dead_code, reason = "schema of what `account_json` writes")]
struct InexactCallsSchema {
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
    Ok(json_response(&json!({ "accounts": views.iter().map(account_json).collect::<Vec<_>>() })))
}

pub(crate) fn list_operation() -> Operation {
    let accounts = AnswerSpec::json::<AccountListSchema>(StatusCode::OK, "The accounts.");
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
    Ok(json_response(&account_json(&view.ok_or(Error::Route)?)))
}

pub(crate) fn show_operation() -> Operation {
    let account = AnswerSpec::json::<AccountSchema>(StatusCode::OK, "The account.");
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
    Ok(json_response(&account_json(&view)))
}

pub(crate) fn limit_operation() -> Operation {
    let account = AnswerSpec::json::<AccountSchema>(StatusCode::OK, "The account, with its new limits.");
    Operation::new("limitAccount", "Replaces the limits of an account.", account)
        .described(
            "They hold until the configuration changes its own for the account. A limit that is left out does not apply.",
        )
        .asking_data_plane()
        .body::<LimitsBody>(&json!({ "totalTokens": 1_000_000, "cost": "2.50" }))
}

/// Returns an account of which the data plane knows nothing yet.
fn unused(account: &AccountId) -> AccountView {
    let limits = Limit::ALL.map(|limit| LimitView { limit, allowed: None, used: 0, reserved: 0 });
    AccountView { account: account.clone(), limits: limits.into(), inexact: InexactCalls::default() }
}

fn account_json(AccountView { account, limits, inexact }: &AccountView) -> Value {
    let limits: Map<_, _> =
        limits.iter().map(|view| (limit_key(view.limit).to_owned(), limit_json(view))).collect();
    let InexactCalls { unpriced, estimated } = inexact;
    json!({
        "account": account,
        "limits": limits,
        "inexactCalls": { "unpriced": unpriced, "estimated": estimated },
    })
}

/// Returns the use of a limit. Costs are dollars as text, as in orders.
fn limit_json(view: &LimitView) -> Value {
    let amount = |amount: u64| match view.limit {
        Limit::CostNanodollars => json!(NanoDollars(amount).to_plain_text()),
        _ => json!(amount),
    };
    json!({
        "allowed": view.allowed.map(amount),
        "used": amount(view.used),
        "reserved": amount(view.reserved),
        "left": view.left().map(amount),
    })
}

const fn limit_key(limit: Limit) -> &'static str {
    match limit {
        Limit::Requests => "requests",
        Limit::RequestsPerMinute => "requestsPerMinute",
        Limit::CallsInFlight => "callsInFlight",
        Limit::InputTokens => "inputTokens",
        Limit::OutputTokens => "outputTokens",
        Limit::TotalTokens => "totalTokens",
        Limit::CostNanodollars => "cost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_read_under_the_name_it_is_shown() {
        for limit in Limit::ALL {
            let (sent, allowed) = match limit {
                Limit::CostNanodollars => (json!("0.50"), 500_000_000),
                _ => (json!(7), 7),
            };
            let body: LimitsBody = serde_json::from_value(json!({ limit_key(limit): sent })).unwrap();
            assert_eq!(body.budget().unwrap().allows(limit), Some(allowed), "{limit}");
            let view = LimitView { limit, allowed: Some(allowed), used: 0, reserved: 0 };
            assert_eq!(limit_json(&view)["left"], sent, "{limit}");
        }
        assert!(serde_json::from_value::<LimitsBody>(json!({ "total_tokens": 1 })).is_err());
    }
}
