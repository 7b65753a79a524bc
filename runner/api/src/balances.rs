//! Serves the balances of accounts: what they were given, what their calls cost, and what is left.
//!
//! Other accounts than its own do not exist for a caller that is not an operator. Only operators give credits.

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use platform_core::{
    credits::Credits,
    id::{AccountId, ExternalId, RunId, TopUpNote},
    record::Tokens,
    untrusted::JournalText,
};
use runner_model::receipt::{CallReference, Receipt, ReceiptSource};
use runner_store::{
    Balance, Month, NewTopUp, ReceiptFilter, ReceiptPlace, Statement, StatementLine, StoredReceipt, TopUp,
    TopUpAdded, UnixMillis,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::{
    body::{ObjectId, read_json, read_query, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    paging::{PageSizes, cut_page, invalid_cursor},
    problem::Problem,
    rfc3339::rfc3339,
    runs::IDEMPOTENCY_KEY,
};

/// Largest body of a top-up.
const MAX_TOP_UP: usize = 4 << 10;
const PAGES: PageSizes = PageSizes { usual: 100, most: 1000, objects: "receipts" };

/// Balance of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Balance)]
#[serde(rename_all = "camelCase")]
struct BalanceView<'b> {
    #[schema(value_type = schemas::AccountId)]
    account: &'b AccountId,
    /// Credits that are left; negative if more was used than was given.
    #[schema(value_type = i64)]
    credits: Credits,
    /// Balance below which calls are refused; null if the account has no floor.
    #[schema(required = true, value_type = Option<i64>)]
    floor: Option<Credits>,
    /// True if the balance is below the floor.
    exhausted: bool,
}

/// Top-up, as a client sends it.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewCredits)]
#[serde(deny_unknown_fields)]
struct TopUpBody {
    #[schema(inline, value_type = schemas::TopUpCredits)]
    credits: i64,
    /// Note, for the statement.
    #[schema(value_type = Option<schemas::ExternalId>)]
    note: Option<TopUpNote>,
}

/// Top-up of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = TopUp)]
#[serde(rename_all = "camelCase")]
struct TopUpView<'t> {
    /// Idempotency key.
    #[schema(value_type = schemas::ExternalId)]
    key: &'t ExternalId,
    #[schema(value_type = i64)]
    credits: Credits,
    #[schema(required = true, value_type = Option<String>)]
    note: Option<&'t TopUpNote>,
    /// Principal or user that gave the credits.
    #[schema(value_type = String)]
    author: &'t ExternalId,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Top-up that was made, with the balance after it.
#[derive(Serialize, ToSchema)]
#[schema(as = CreditedAccount)]
#[serde(rename_all = "camelCase")]
struct CreditedView<'t> {
    top_up: TopUpView<'t>,
    balance: BalanceView<'t>,
}

/// Query of a statement.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct StatementQuery {
    /// Month, in UTC.
    #[param(inline, value_type = schemas::Month, example = "2026-11")]
    month: String,
}

/// Statement of an account for a month. A receipt belongs to the month in which it was stored.
#[derive(Serialize, ToSchema)]
#[schema(as = Statement)]
#[serde(rename_all = "camelCase")]
struct StatementView<'s> {
    #[schema(value_type = schemas::AccountId)]
    account: &'s AccountId,
    #[schema(value_type = String)]
    month: Month,
    /// Balance before the month.
    #[schema(value_type = i64)]
    opening: Credits,
    top_ups: Vec<TopUpView<'s>>,
    /// Credits of all top-ups.
    #[schema(value_type = i64)]
    paid_in: Credits,
    lines: Vec<StatementLineView<'s>>,
    /// Credits of all lines.
    #[schema(value_type = i64)]
    charged: Credits,
    /// Balance after the month: `opening` + `paidIn` - `charged`.
    #[schema(value_type = i64)]
    closing: Credits,
}

/// Sums of receipts of one kind for one model.
#[derive(Serialize, ToSchema)]
#[schema(as = StatementLine)]
#[serde(rename_all = "camelCase")]
struct StatementLineView<'s> {
    /// `model_call` or `adjustment`.
    kind: &'static str,
    #[schema(required = true)]
    model: Option<&'s str>,
    receipts: u64,
    tokens: ReceiptTokensView,
    /// Dollars, as text, so that no float rounds them; negative if corrections lower earlier costs.
    cost: String,
    #[schema(value_type = i64)]
    credits: Credits,
}

/// Tokens of calls.
#[derive(Serialize, ToSchema)]
#[schema(as = ReceiptTokens)]
struct ReceiptTokensView {
    input: u64,
    output: u64,
}

/// Query of the receipts of an account.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ReceiptsQuery {
    /// Only receipts of this run.
    #[param(value_type = Option<schemas::RunId>, nullable = false)]
    run: Option<RunId>,
    /// Only receipts that were stored in this month, in UTC.
    #[param(inline, value_type = Option<schemas::Month>, nullable = false)]
    month: Option<String>,
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9]{1,18}\.(sluicegate|litellm)\.[a-z0-9/#-]{1,128}$", nullable = false)]
    cursor: Option<String>,
    /// Most receipts of a page; 100 if absent.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
}

/// Page of receipts.
#[derive(Serialize, ToSchema)]
#[schema(as = ReceiptPage)]
#[serde(rename_all = "camelCase")]
struct ReceiptPageView<'r> {
    receipts: Vec<ReceiptView<'r>>,
    /// Value of `cursor` for the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Receipt of a call. Never changed: a correction is its own receipt, with the difference.
#[derive(Serialize, ToSchema)]
#[schema(as = Receipt)]
#[serde(rename_all = "camelCase")]
struct ReceiptView<'r> {
    /// System that wrote the figures: `sluicegate`, or `litellm` for a correction.
    source: &'static str,
    /// Reference, unique within its source.
    reference: String,
    /// `model_call` or `adjustment`.
    kind: &'static str,
    /// Reference of the receipt that this one corrects.
    #[schema(required = true)]
    corrects: Option<String>,
    #[schema(value_type = schemas::RunId)]
    run_id: &'r RunId,
    attempt: u32,
    call_id: String,
    #[schema(required = true)]
    user: Option<&'r str>,
    agent_id: &'r str,
    #[schema(required = true)]
    model: Option<&'r str>,
    tokens: ReceiptTokensView,
    #[schema(value_type = schemas::TokensAccuracy)]
    tokens_source: &'static str,
    /// Dollars, as text, so that no float rounds them; negative if it lowers an earlier cost.
    cost: String,
    #[schema(value_type = i64)]
    credits: Credits,
    /// Factor between the cost and what the account pays, as text.
    markup: String,
    credits_per_dollar: u32,
    /// Place that the run was executed at: `sandbox` or `gateway`.
    executor: &'static str,
    /// Reason for the cost.
    reason: &'static str,
    #[schema(format = DateTime)]
    called_at: String,
    #[schema(format = DateTime)]
    created_at: String,
}

impl<'t> TopUpView<'t> {
    fn of(TopUp { top_up, created }: &'t TopUp) -> Self {
        let NewTopUp { key, credits, note, author, .. } = top_up;
        Self { key, credits: *credits, note: note.as_ref(), author, created_at: rfc3339(*created) }
    }
}

impl ReceiptTokensView {
    const fn of(tokens: Tokens) -> Self {
        Self { input: tokens.input, output: tokens.output }
    }
}

impl<'s> StatementLineView<'s> {
    fn of(line: &'s StatementLine) -> Self {
        Self {
            kind: line.kind.word(),
            model: line.model.as_ref().map(JournalText::as_str),
            receipts: line.receipts,
            tokens: ReceiptTokensView::of(line.tokens),
            cost: line.cost.to_plain_text(),
            credits: line.credits,
        }
    }
}

impl<'s> StatementView<'s> {
    fn of(statement: &'s Statement) -> Self {
        Self {
            account: &statement.account,
            month: statement.month,
            opening: statement.opening,
            top_ups: statement.top_ups.iter().map(TopUpView::of).collect(),
            paid_in: statement.paid_in(),
            lines: statement.lines.iter().map(StatementLineView::of).collect(),
            charged: statement.charged(),
            closing: statement.closing(),
        }
    }
}

impl<'r> ReceiptView<'r> {
    fn of(StoredReceipt { receipt, created }: &'r StoredReceipt) -> Self {
        let CallReference { run_id, attempt, call_id } = &receipt.reference.call;
        let Receipt { source, reference, kind, user, agent, model, reason, .. } = receipt;
        Self {
            source: source.word(),
            reference: reference.to_string(),
            kind: kind.word(),
            corrects: receipt.corrects().map(ToString::to_string),
            run_id,
            attempt: *attempt,
            call_id: call_id.to_string(),
            user: user.as_ref().map(ExternalId::as_str),
            agent_id: agent.as_str(),
            model: model.as_ref().map(JournalText::as_str),
            tokens: ReceiptTokensView::of(receipt.tokens),
            tokens_source: receipt.tokens_source.word(),
            cost: receipt.amount.to_plain_text(),
            credits: receipt.credits,
            markup: receipt.rate.markup.to_string(),
            credits_per_dollar: receipt.rate.credits_per_dollar.get(),
            executor: receipt.executor.word(),
            reason: reason.word(),
            called_at: rfc3339(UnixMillis(receipt.called_ms)),
            created_at: rfc3339(*created),
        }
    }
}

impl ApiContext {
    fn balance_view<'b>(&self, account: &'b AccountId, stored: Option<&Balance>) -> BalanceView<'b> {
        let credits = stored.map_or(Credits(0), |balance| balance.credits);
        let settings = self.settings().get();
        // An account without a top-up or a receipt has no balance that could be too low.
        let exhausted = stored.is_some() && settings.floor_above(account, credits).is_some();
        BalanceView { account, credits, floor: settings.floor_of(account), exhausted }
    }
}

/// Answers with the balance of an account.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(account): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let account = caller.find_account(&account)?;
    let balances = context.opened().await?.store.balances(Some(&account)).await?;
    Ok(json_response(&context.balance_view(&account, balances.first())))
}

pub(crate) fn show_operation() -> Operation {
    let balance = AnswerSpec::json::<BalanceView<'static>>(StatusCode::OK, "The balance.");
    Operation::new("getBalance", "Answers with the balance of an account.", balance)
        .described("It is 0 for an account that never had a top-up or a receipt.")
        .without_query()
}

/// Gives an account credits. The same key again changes nothing.
pub(crate) async fn credit(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(account): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let account = caller.find_account(&account)?;
    let key = idempotency_key(request.headers())?;
    let TopUpBody { credits, note } = read_json(request, MAX_TOP_UP).await?;
    let credits = Credits(credits);
    if credits.0 == 0 || !credits.is_representable() {
        let problem =
            format!("`credits`: expected a number from 1 to {}, or a negative one", Credits::GREATEST);
        return Err(Error::Invalid(problem));
    }
    let author = ExternalId::parse(&caller.name()).map_err(|_never| Error::Internal)?;
    let store = &context.opened().await?.store;
    let new = NewTopUp { key, account, credits, note, author };
    let added = store.add_top_up(&new).await?;
    let (status, stored) = match &added {
        TopUpAdded::New(stored) => {
            tracing::info!(account = %new.account, %credits, by = caller.name(), "account credited");
            (StatusCode::CREATED, stored)
        }
        TopUpAdded::Before(stored) => (StatusCode::OK, stored),
    };
    let balances = store.balances(Some(&new.account)).await?;
    let balance = context.balance_view(&new.account, balances.first());
    Ok((status, json_response(&CreditedView { top_up: TopUpView::of(stored), balance })).into_response())
}

pub(crate) fn credit_operation() -> Operation {
    let made = |status, words| AnswerSpec::json::<CreditedView<'static>>(status, words);
    Operation::new(
        "creditAccount",
        "Gives an account credits.",
        made(StatusCode::CREATED, "The top-up was made."),
    )
    .or(made(StatusCode::OK, "The same top-up was made before."))
    .described("Needs an `Idempotency-Key`: repeated with the same key, it counts once.")
    .required_header(IDEMPOTENCY_KEY, "Key of the top-up.", schemas::header_text())
    .body::<TopUpBody>(&json!({ "credits": 5_000_000, "note": "invoice 1037" }))
    .refuses([Problem::IDEMPOTENCY_KEY_TAKEN])
}

/// Answers with the statement of an account for a month.
pub(crate) async fn statement(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(account): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: StatementQuery = read_query(request.uri())?;
    let account = caller.find_account(&account)?;
    let statement = context.opened().await?.store.statement(&account, month(&query.month)?).await?;
    Ok(json_response(&StatementView::of(&statement)))
}

pub(crate) fn statement_operation() -> Operation {
    let statement = AnswerSpec::json::<StatementView<'static>>(StatusCode::OK, "The statement.");
    Operation::new(
        "getStatement",
        "Answers with what an account was given and used within a month.",
        statement,
    )
    .described("The statement of a month that has ended never changes.")
    .query::<StatementQuery>()
}

/// Lists the receipts of an account, those of the newest calls first.
pub(crate) async fn receipts(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(account): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: ReceiptsQuery = read_query(request.uri())?;
    let limit = PAGES.choose(query.limit)?;
    let filter = ReceiptFilter {
        account: Some(caller.find_account(&account)?),
        run_id: query.run,
        month: query.month.as_deref().map(month).transpose()?,
        before: query.cursor.as_deref().map(|text| place(text).ok_or_else(invalid_cursor)).transpose()?,
        ..ReceiptFilter::default()
    };
    let mut receipts = context.opened().await?.store.receipts(&filter, limit + 1).await?;
    let next_cursor = cut_page(&mut receipts, limit).map(StoredReceipt::place).map(|place| cursor(&place));
    let receipts = receipts.iter().map(ReceiptView::of).collect();
    Ok(json_response(&ReceiptPageView { receipts, next_cursor }))
}

pub(crate) fn receipts_operation() -> Operation {
    let page = AnswerSpec::json::<ReceiptPageView<'static>>(StatusCode::OK, "A page of the receipts.");
    Operation::new("listReceipts", "Lists the receipts of an account, those of the newest calls first.", page)
        .query::<ReceiptsQuery>()
}

fn month(text: &str) -> Result<Month, Error> {
    text.parse().map_err(|error| Error::Invalid(format!("`month`: {error}")))
}

fn cursor(place: &ReceiptPlace) -> String {
    format!("{}.{}.{}", place.called.0, place.source.word(), place.reference)
}

/// Returns the place that a cursor names.
fn place(text: &str) -> Option<ReceiptPlace> {
    let (called, rest) = text.split_once('.')?;
    let (source, reference) = rest.split_once('.')?;
    Some(ReceiptPlace {
        called: UnixMillis(called.parse().ok()?),
        reference: reference.to_owned(),
        source: ReceiptSource::ALL.into_iter().find(|known| known.word() == source)?,
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<ExternalId, Error> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = match (keys.next(), keys.next()) {
        (Some(key), None) => key.to_str().ok().and_then(|text| ExternalId::parse(text).ok()),
        _ => None,
    };
    key.ok_or_else(|| {
        Error::Invalid("send one `Idempotency-Key` of 1 to 256 printable ASCII characters".to_owned())
    })
}
