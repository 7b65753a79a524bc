//! Lists the sessions of a gateway's agent, with what they cost.

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::id::{AccountId, ExternalId, RunId};
use runner_store::GatewaySession;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::agents::FoundGateway;
use crate::{
    body::read_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    paging::{cut_page, page_size, read_cursor, write_cursor},
    rfc3339::rfc3339,
};

/// Query of the list of sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct SessionsQuery {
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9]{1,18}\.agent:[a-z0-9_:-]{1,400}$", nullable = false)]
    cursor: Option<String>,
    /// Most sessions of a page; 50 if absent.
    #[param(minimum = 1, maximum = 200, nullable = false)]
    limit: Option<u32>,
}

/// Page of the list of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GatewaySessionPage)]
#[serde(rename_all = "camelCase")]
struct SessionPageView {
    sessions: Vec<SessionView>,
    /// Value of `cursor` for the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Session of an agent: a conversation at its gateway.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GatewaySession)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    /// Its name at the gateway.
    session: String,
    #[schema(value_type = schemas::AccountId)]
    account: AccountId,
    /// Thread that it continues; null if it has one run alone.
    #[schema(required = true, value_type = Option<schemas::ExternalId>)]
    state_key: Option<ExternalId>,
    /// Beginning of the last question; null once the texts of the run were removed.
    #[schema(required = true)]
    question: Option<String>,
    runs: u64,
    /// Cost of all its calls, in dollars.
    cost: String,
    /// The last run. Its events are the transcript, also while it is being written.
    #[schema(value_type = schemas::RunId)]
    last_run: RunId,
    /// State of that run.
    state: &'static str,
    #[schema(format = DateTime)]
    created_at: String,
    /// Time at which the last run was ordered.
    #[schema(format = DateTime)]
    changed_at: String,
}

impl SessionView {
    fn of(session: GatewaySession) -> Self {
        Self {
            session: session.name,
            account: session.account,
            state_key: session.thread,
            question: session.question,
            runs: session.runs,
            cost: session.cost.to_plain_text(),
            last_run: session.last_run,
            state: session.state.name(),
            created_at: rfc3339(session.began),
            changed_at: rfc3339(session.changed),
        }
    }
}

/// Lists the sessions of an agent, the last changed first.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    let query: SessionsQuery = read_query(request.uri())?;
    let before = read_cursor(query.cursor.as_deref(), session_name)?;
    let limit = page_size(query.limit)?;
    let settings = context.settings().get();
    let key = FoundGateway::find(&settings, &caller, &gateway)?.key(&agent)?;
    let store = &context.opened().await?.store;
    let mut sessions = store.gateway_sessions(&key, &caller.scope(), before.as_ref(), limit + 1).await?;
    let next = cut_page(&mut sessions, limit);
    let next_cursor = next.map(|session| write_cursor(session.changed, &session.name));
    let sessions = sessions.into_iter().map(SessionView::of).collect();
    Ok(json_response(&SessionPageView { sessions, next_cursor }))
}

/// Reads the name of a session.
fn session_name(text: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_:-".contains(&byte);
    (text.starts_with("agent:") && text.len() <= 400 && text.bytes().all(is_plain)).then(|| text.to_owned())
}

pub(crate) fn list_operation() -> Operation {
    let page = AnswerSpec::json::<SessionPageView>(StatusCode::OK, "A page of sessions.");
    Operation::new("listGatewaySessions", "Lists the sessions of an agent, the last changed first.", page)
        .described("A session is known once its first run has begun, and for as long as its runs are kept.")
        .query::<SessionsQuery>()
}
