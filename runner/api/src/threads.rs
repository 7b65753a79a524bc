//! Serves the routes of threads: lists, shows and removes them.
//!
//! A thread is shown as messages in the AI SDK's form. The parts of an answer are made from the same events as its stream.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::id::{AccountId, ExternalId};
use runner_model::lifecycle::State as RunState;
use runner_store::{Store, ThreadTurn, UnixMillis};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    chat,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    runs::rfc3339,
};

/// Threads of a page, if the client names no number, and most that it may name.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;
/// Most turns of a thread that are shown: the last ones.
const MAX_TURNS: u32 = 100;

/// Query of the list of threads.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Account of the threads, which only operators choose.
    #[param(value_type = Option<schemas::AccountId>, nullable = false)]
    account: Option<AccountId>,
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9]{1,18}\.[A-Za-z0-9._:-]{1,128}$", nullable = false)]
    cursor: Option<String>,
    /// Most threads of a page; 50 if absent.
    #[param(minimum = 1, maximum = 200, nullable = false)]
    limit: Option<u32>,
}

/// Query of one thread.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ThreadQuery {
    /// Account of the thread, which only operators choose.
    #[param(value_type = Option<schemas::AccountId>, nullable = false)]
    account: Option<AccountId>,
}

/// Page of the list of threads.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ThreadPage)]
#[serde(rename_all = "camelCase")]
struct ThreadPageView<'t> {
    threads: Vec<ThreadView<'t>>,
    /// Value of `cursor` for the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Thread, as clients see it in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Thread)]
#[serde(rename_all = "camelCase")]
struct ThreadView<'t> {
    #[schema(value_type = schemas::ExternalId)]
    state_key: &'t ExternalId,
    #[schema(value_type = schemas::AccountId)]
    account: &'t AccountId,
    /// Beginning of the first question.
    title: &'t str,
    /// Number of questions.
    turns: u64,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    changed_at: String,
}

/// Messages of a thread.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ThreadMessages)]
#[serde(rename_all = "camelCase")]
struct ThreadMessagesView<'t> {
    #[schema(value_type = schemas::ExternalId)]
    state_key: &'t ExternalId,
    #[schema(value_type = schemas::AccountId)]
    account: &'t AccountId,
    /// Messages, the oldest first. They have the AI SDK's form.
    #[schema(value_type = Vec<UiMessageSchema>)]
    messages: Vec<Value>,
}

/// Message of a thread, in the AI SDK's form.
#[derive(ToSchema)]
#[schema(as = UiMessage)]
#[expect(dead_code, reason = "schema of what `question` and `answer` write")]
struct UiMessageSchema {
    id: String,
    /// `user` or `assistant`.
    role: String,
    /// Parts of the message: texts, and calls of tools.
    #[schema(value_type = Vec<Object>)]
    parts: Vec<Value>,
    /// Time of the message; for an answer also its run, its agent and its state.
    #[schema(value_type = Object)]
    metadata: Value,
}

/// Lists threads, the last changed first.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let query: ListQuery = read_query(request.uri())?;
    let account = account(&caller, query.account)?;
    let before = query.cursor.as_deref().map(cursor).transpose()?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::Invalid(format!("`limit` {limit}: a page has 1 to {MAX_PAGE} threads")));
    }
    let opened = context.opened().await?;
    let mut threads = opened.store.threads(&account, before.as_ref(), limit + 1).await?;
    let has_more = threads.len() > limit as usize;
    threads.truncate(limit as usize);
    let last = threads.last().filter(|_| has_more);
    let next = last.map(|thread| format!("{}.{}", thread.changed.0, thread.key));
    let views = threads.iter().map(|thread| ThreadView {
        state_key: &thread.key,
        account: &thread.account,
        title: &thread.title,
        turns: thread.turns,
        created_at: rfc3339(thread.created),
        changed_at: rfc3339(thread.changed),
    });
    Ok(json_response(&ThreadPageView { threads: views.collect(), next_cursor: next }))
}

pub(crate) fn list_operation() -> Operation {
    let page = AnswerSpec::json::<ThreadPageView<'_>>(StatusCode::OK, "A page of threads.");
    Operation::new("listThreads", "Lists threads, the last changed first.", page)
        .query::<ListQuery>()
        .refuses([Problem::NOT_FOUND])
}

/// Answers with the messages of a thread, the oldest first.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(thread): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: ThreadQuery = read_query(request.uri())?;
    let account = account(&caller, query.account)?;
    let thread = known_key(&thread)?;
    let store = &context.opened().await?.store;
    let last = store.last_turn(&account, &thread).await?.ok_or(Error::Route)?;
    let turns = store.turns(&account, &thread, &last.run.run_id, MAX_TURNS).await?;
    let mut messages = Vec::new();
    for turn in &turns {
        messages.push(question(turn));
        messages.push(answer(store, turn).await?);
    }
    Ok(json_response(&ThreadMessagesView { state_key: &thread, account: &account, messages }))
}

pub(crate) fn show_operation() -> Operation {
    let messages = AnswerSpec::json::<ThreadMessagesView<'_>>(StatusCode::OK, "The last 100 turns.");
    Operation::new("getThread", "Answers with the messages of a thread, the oldest first.", messages)
        .query::<ThreadQuery>()
}

/// Removes a thread, with the questions and answers of its runs.
pub(crate) async fn remove(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(thread): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: ThreadQuery = read_query(request.uri())?;
    let account = account(&caller, query.account)?;
    context.opened().await?.store.remove_thread(&account, &known_key(&thread)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) fn remove_operation() -> Operation {
    let removed = AnswerSpec::empty(StatusCode::NO_CONTENT, "The thread is removed.");
    Operation::new("removeThread", "Removes a thread, with the texts of its runs.", removed)
        .query::<ThreadQuery>()
        .refuses([Problem::RUN_ACTIVE])
}

/// Returns the account that a query names, or the caller's. Others do not exist for a caller that is no operator.
fn account(caller: &Caller, named: Option<AccountId>) -> Result<AccountId, Error> {
    match named {
        Some(account) if account != *caller.account() && !caller.is_operator() => Err(Error::Route),
        named => Ok(named.unwrap_or_else(|| caller.account().clone())),
    }
}

/// Returns the key of a thread. A text that can be no key names no thread.
fn known_key(text: &str) -> Result<ExternalId, Error> {
    ExternalId::parse(text).map_err(|_invalid| Error::Route)
}

fn cursor(text: &str) -> Result<(UnixMillis, ExternalId), Error> {
    let parts = text.split_once('.');
    let parsed = parts.and_then(|(changed, key)| Some((changed.parse().ok()?, ExternalId::parse(key).ok()?)));
    parsed
        .map(|(changed, key)| (UnixMillis(changed), key))
        .ok_or_else(|| Error::Invalid("`cursor` is not a `nextCursor` of this API".to_owned()))
}

/// Returns the message of the user. Without an id of the client's, it has one that is made from the run's.
fn question(turn: &ThreadTurn) -> Value {
    let own = || format!("{}-question", turn.run.run_id);
    json!({
        "id": turn.question_id.as_ref().map_or_else(own, ToString::to_string),
        "role": "user",
        "parts": [{ "type": "text", "text": turn.question }],
        "metadata": { "createdAt": rfc3339(turn.run.created) },
    })
}

/// Returns the message of the agent.
async fn answer(store: &Store, turn: &ThreadTurn) -> Result<Value, Error> {
    let run = &turn.run;
    let mut metadata = json!({
        "runId": run.run_id, "agentId": run.agent, "state": run.state.name(), "createdAt": rfc3339(run.created),
    });
    if let Some(failure) = &run.error {
        metadata["error"] = json!({ "code": failure.code, "message": failure.message });
    }
    let parts = if run.state == RunState::Queued { Vec::new() } else { chat::parts(store, run).await? };
    Ok(json!({ "id": run.run_id, "role": "assistant", "parts": parts, "metadata": metadata }))
}
