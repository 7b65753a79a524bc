//! Serves the routes of runs: lists, orders and cancels them.

mod again;
mod calls;
mod changes;
mod download;
pub(crate) mod event_source;
mod event_view;
mod events;
mod file_view;
mod files;
mod logs;
pub(crate) mod operations;
mod order_body;
mod repository;
mod submit;
mod tool_calls;
mod view;

use axum::{
    Extension,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use platform_core::id::{AccountId, AgentId, RunId};
use runner_model::lifecycle::State as RunState;
use runner_store::{Created, Filter, Run, Store};
use serde::Deserialize;
use utoipa::IntoParams;

pub(crate) use self::{
    again::{again, may_order},
    calls::list_calls,
    changes::changes,
    download::download,
    events::follow,
    files::{diff, list_files},
    logs::logs,
    order_body::{
        IDEMPOTENCY_KEY, MAX_KEY, derived_run_id, hash, hash_of_key, hash_of_value, idempotency_key,
        new_run_id,
    },
    repository::RepositoryBody,
    submit::submit,
    tool_calls::list_tool_calls,
};
use self::{
    order_body::OrderBody,
    view::{RunDetailsView, RunPageView, RunView},
};
use crate::{
    body::{ObjectId, parse, read_json_bytes, read_query, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::schemas,
    paging::{page_size, read_cursor, write_cursor},
    trace_parent::trace_parent,
};

/// Path of the list of runs.
pub(crate) const RUNS: &str = "/api/v1/runs";
/// Largest body of an order: a long conversation.
pub(crate) const MAX_ORDER: usize = 16 << 20;

/// Query of the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Names of states, separated by commas.
    #[param(value_type = Option<schemas::RunStates>, inline, example = "succeeded,failed", nullable = false)]
    state: Option<String>,
    /// Agent of the runs.
    #[param(value_type = Option<schemas::AgentId>, nullable = false)]
    agent: Option<AgentId>,
    /// Account of the runs, which only operators choose.
    #[param(value_type = Option<schemas::AccountId>, nullable = false)]
    account: Option<AccountId>,
    /// Beginning of the ids of the runs.
    #[param(value_type = Option<schemas::RunId>, nullable = false)]
    #[serde(rename = "idPrefix")]
    id_prefix: Option<RunId>,
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9]{1,18}\.[a-z0-9][a-z0-9-]{0,62}$", nullable = false)]
    cursor: Option<String>,
    /// Most runs of a page; 50 if absent.
    #[param(minimum = 1, maximum = 200, nullable = false)]
    limit: Option<u32>,
}

impl ListQuery {
    fn filter(&self, caller: &Caller) -> Result<Filter, Error> {
        let states = self.state.as_deref().map_or_else(|| Ok(Vec::new()), states)?;
        let account = match caller.account_of_query(self.account.clone())? {
            None if !caller.is_operator() => Some(caller.account().clone()),
            account => account,
        };
        let before = read_cursor(self.cursor.as_deref(), |run| RunId::parse(run).ok())?;
        Ok(Filter {
            states,
            account,
            left_out: None,
            agent: self.agent.clone(),
            id_prefix: self.id_prefix.clone(),
            before,
        })
    }
}

fn states(text: &str) -> Result<Vec<&'static str>, Error> {
    let known = |name: &str| {
        let state = RunState::NAMES.into_iter().find(|state| *state == name);
        state.ok_or_else(|| {
            Error::Invalid(format!("no state `{name}`; there are: {}", RunState::NAMES.join(", ")))
        })
    };
    text.split(',').map(known).collect()
}

/// Lists runs, the newest first.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let query: ListQuery = read_query(request.uri())?;
    let opened = context.opened().await?;
    let page = opened.store.list(&query.filter(&caller)?, page_size(query.limit)?).await?;
    let sums = opened.store.receipt_sums(&page.runs).await?;
    let facts = opened.store.list_facts(&page.runs).await?;
    let view = |run| {
        RunView::of(run, &caller).with_receipts(sums.get(&run.run_id)).with_facts(facts.get(&run.run_id))
    };
    let runs = page.runs.iter().map(view).collect();
    let next_cursor = page.next.map(|(created, run)| write_cursor(created, run));
    Ok(json_response(&RunPageView { runs, next_cursor }))
}

/// Answers with one run.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
) -> Result<Response, Error> {
    let opened = context.opened().await?;
    let store = &opened.store;
    let run = find(store, &caller, &run_id).await?;
    let record = store.record(&run.run_id).await?;
    let position = store.queue_position(&record.run).await?;
    let sums = store.receipt_sums([&record.run]).await?;
    let relay = store.relay(&record.run.run_id).await?;
    let calls = store.waiting_tool_calls_of(&record.run.run_id).await?;
    let view = RunDetailsView::of(&record, position, &caller)
        .with_receipts(sums.get(&record.run.run_id))
        .with_commits(relay.as_ref(), &caller)
        .with_waiting_tool_calls(&calls);
    Ok(json_response(&view))
}

/// Asks for the end of a run. Its state changes once its agent has been stopped.
pub(crate) async fn cancel(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
) -> Result<Response, Error> {
    let opened = context.opened().await?;
    let run = find(&opened.store, &caller, &run_id).await?;
    let run = opened.store.request_cancel(&run.run_id).await?;
    let response = json_response(&RunView::of(&run, &caller));
    Ok((StatusCode::ACCEPTED, response).into_response())
}

/// Removes the question, the answer and the output of a run that has ended.
pub(crate) async fn forget(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let run_id = known_id(&run_id)?;
    context.opened().await?.store.forget_run(&run_id, &caller.scope()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Orders a run. The same `Idempotency-Key` of a caller orders the same run.
pub(crate) async fn create(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let run_id = order_body::new_run_id(request.headers(), &caller)?;
    order_run(&context, &caller, run_id, request).await
}

/// Orders a run under the client's own id. The same order again answers with the same run.
pub(crate) async fn create_named(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let run_id = RunId::parse(&run_id).map_err(|error| Error::Invalid(error.to_string()))?;
    if order_body::is_derived(&run_id) {
        let problem = format!("{run_id} has the form of an id that the API makes itself");
        return Err(Error::Invalid(problem));
    }
    order_run(&context, &caller, run_id, request).await
}

async fn order_run(
    context: &ApiContext,
    caller: &Caller,
    run_id: RunId,
    request: Request,
) -> Result<Response, Error> {
    let _permit = context.orders.acquire(caller.account()).await?;
    let trace = trace_parent(request.headers());
    let body = read_json_bytes(request, MAX_ORDER).await?;
    let order =
        parse::<OrderBody>(&body, MAX_ORDER)?.order(run_id, order_body::hash(&body, MAX_ORDER)?, caller)?;
    let opened = context.opened().await?;
    Ok(match &submit(context, &opened, caller, order, trace).await? {
        Created::New(run) => (StatusCode::CREATED, created_response(run, caller)).into_response(),
        Created::Existing(run) => created_response(run, caller),
    })
}

/// Returns the order of a body.
#[cfg(test)]
pub(crate) fn order_of(
    run_id: RunId,
    body: &[u8],
    caller: &Caller,
) -> Result<runner_engine::run_order::RunOrder, Error> {
    parse::<OrderBody>(body, MAX_ORDER)?.order(run_id, order_body::hash(body, MAX_ORDER)?, caller)
}

fn created_response(run: &Run, caller: &Caller) -> Response {
    let location = [(LOCATION, format!("{RUNS}/{}", run.run_id))];
    (location, json_response(&RunView::of(run, caller))).into_response()
}

/// Finds the run `run_id`, if it exists for `caller`.
async fn find(store: &Store, caller: &Caller, run_id: &str) -> Result<Run, Error> {
    Ok(store.run_within(&known_id(run_id)?, &caller.scope()).await?)
}

/// Returns the id of a run. A text that can be no id names no run.
fn known_id(text: &str) -> Result<RunId, Error> {
    RunId::parse(text).map_err(|_invalid| Error::Route)
}
