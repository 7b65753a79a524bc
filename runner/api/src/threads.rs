//! Serves the routes of threads: lists, shows and removes them.
//!
//! A thread is shown as messages in the AI SDK's form (`message_page`).

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::id::{AccountId, ExternalId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    message_page::{MessagePage, UiMessageView},
    operation::{AnswerSpec, Operation, schemas},
    paging::{cut_page, invalid_cursor, page_size, read_cursor, write_cursor},
    problem::Problem,
    rfc3339::rfc3339,
};

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

/// Query of the messages of a thread.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct MessagesQuery {
    /// Account of the thread, which only operators choose.
    #[param(value_type = Option<schemas::AccountId>, nullable = false)]
    account: Option<AccountId>,
    /// Value of `nextCursor` of the page before, which has newer messages.
    #[param(value_type = Option<schemas::RunId>, nullable = false)]
    cursor: Option<RunId>,
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
    #[schema(value_type = Vec<UiMessageView>)]
    messages: Vec<Value>,
    /// Value of `cursor` for the messages before these; null if there are none.
    #[schema(required = true, value_type = Option<schemas::RunId>)]
    next_cursor: Option<RunId>,
}

/// Lists threads, the last changed first.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let query: ListQuery = read_query(request.uri())?;
    let account = account(&caller, query.account)?;
    let before = read_cursor(query.cursor.as_deref(), |key| ExternalId::parse(key).ok())?;
    let limit = page_size(query.limit)?;
    let opened = context.opened().await?;
    let mut threads = opened.store.threads(&account, before.as_ref(), limit + 1).await?;
    let next = cut_page(&mut threads, limit).map(|thread| write_cursor(thread.changed, &thread.key));
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

/// Answers with a page of the messages of a thread, the oldest first. The first page has the last messages.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(thread): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: MessagesQuery = read_query(request.uri())?;
    let account = account(&caller, query.account)?;
    let thread = known_key(&thread)?;
    let store = &context.opened().await?.store;
    let last = store.last_turn(&account, &thread).await?.ok_or(Error::Route)?;
    let upto = query.cursor.unwrap_or(last.run.run_id);
    let MessagePage { messages, before } = MessagePage::read(store, &account, &thread, upto).await?;
    if messages.is_empty() {
        return Err(invalid_cursor());
    }
    Ok(json_response(&ThreadMessagesView {
        state_key: &thread,
        account: &account,
        messages,
        next_cursor: before,
    }))
}

pub(crate) fn show_operation() -> Operation {
    let description = "At most 100 turns, and at most 1 MiB of messages unless one turn alone has more.";
    let messages = AnswerSpec::json::<ThreadMessagesView<'_>>(StatusCode::OK, description);
    Operation::new("getThread", "Answers with the messages of a thread, the oldest first.", messages)
        .described("The first page has the last messages, and `nextCursor` leads to those before them.")
        .query::<MessagesQuery>()
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

/// Returns the account that a query names, or the caller's.
fn account(caller: &Caller, named: Option<AccountId>) -> Result<AccountId, Error> {
    Ok(caller.account_of_query(named)?.unwrap_or_else(|| caller.account().clone()))
}

/// Returns the key of a thread. A text that can be no key names no thread.
fn known_key(text: &str) -> Result<ExternalId, Error> {
    ExternalId::parse(text).map_err(|_invalid| Error::Route)
}
