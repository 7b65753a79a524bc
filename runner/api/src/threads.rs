//! Serves the routes of threads: lists, shows and removes them.
//!
//! A thread is shown as messages in the AI SDK's form. The parts of an answer are made from the same events as its stream.

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::id::{AccountId, ExternalId};
use runner_model::lifecycle::State as RunState;
use runner_store::{Store, ThreadTurn, UnixMillis};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    body::read_query, caller::Caller, chat, context::ApiContext, error::Error, json_response, runs::rfc3339,
};

/// Threads of a page, if the client names no number, and most that it may name.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;
/// Most turns of a thread that are shown: the last ones.
const MAX_TURNS: u32 = 100;

/// Query of the list of threads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Account of the threads, which only operators choose.
    account: Option<AccountId>,
    /// Value of `nextCursor` of the page before.
    cursor: Option<String>,
    limit: Option<u32>,
}

/// Query of one thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadQuery {
    /// Account of the thread, which only operators choose.
    account: Option<AccountId>,
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
    let views: Vec<_> = threads
        .iter()
        .map(|thread| {
            json!({
                "stateKey": thread.key, "account": thread.account, "title": thread.title, "turns": thread.turns,
                "createdAt": rfc3339(thread.created), "changedAt": rfc3339(thread.changed),
            })
        })
        .collect();
    Ok(json_response(&json!({ "threads": views, "nextCursor": next })))
}

/// Answers with the messages of a thread, the oldest first.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path(thread): Path<String>,
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
    Ok(json_response(&json!({ "stateKey": thread, "account": account, "messages": messages })))
}

/// Removes a thread, with the questions and answers of its runs.
pub(crate) async fn remove(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path(thread): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let query: ThreadQuery = read_query(request.uri())?;
    let account = account(&caller, query.account)?;
    context.opened().await?.store.remove_thread(&account, &known_key(&thread)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
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
