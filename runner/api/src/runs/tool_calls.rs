//! Lists the calls of host tools of a run, with what people may see of each.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use runner_store::{StoredToolCall, ToolCallPlace};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::find;
use crate::rfc3339::rfc3339;
use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::schemas,
    paging::{PageSizes, cut_page, read_cursor, write_cursor},
};

const PAGES: PageSizes = PageSizes { usual: 100, most: 1000, objects: "calls" };

/// Query of the calls of host tools of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallsQuery {
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9]{1,18}\.[!-~]{1,128}$", nullable = false)]
    cursor: Option<String>,
    /// Most calls of a page; 100 if absent.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
}

/// Page of the calls of host tools of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HostToolCallPage)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCallPageView {
    calls: Vec<ToolCallView>,
    /// Value of `cursor` for the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Call of a host tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HostToolCall)]
#[serde(rename_all = "camelCase")]
struct ToolCallView {
    /// Id of the call, as the journal has it.
    call_id: String,
    attempt: u32,
    #[schema(value_type = schemas::ToolName)]
    tool: String,
    /// `reads` or `writes`.
    effect: String,
    #[schema(value_type = schemas::HostToolState)]
    state: &'static str,
    /// Arguments as JSON text, without secrets. They are whole if the call needs an approval; else long texts are
    /// shortened. Null once the texts of the run were removed.
    #[schema(required = true)]
    arguments: Option<String>,
    /// Code of the reason why the call has no result.
    #[schema(required = true)]
    code: Option<String>,
    /// Length of the result, in bytes.
    #[schema(required = true)]
    result_bytes: Option<u64>,
    /// Connection that provided the credential.
    #[schema(required = true)]
    connection: Option<String>,
    #[schema(format = DateTime)]
    began_at: String,
    #[schema(required = true, format = DateTime)]
    ended_at: Option<String>,
    /// Milliseconds that the tool took, without a wait for an approval.
    #[schema(required = true)]
    duration_ms: Option<u64>,
    /// Time at which the call is denied unless a person decides; of calls that need an approval.
    #[schema(required = true, format = DateTime)]
    decide_by: Option<String>,
    #[schema(required = true, format = DateTime)]
    decided_at: Option<String>,
    /// Person or program that decided.
    #[schema(required = true)]
    decided_by: Option<String>,
}

impl ToolCallView {
    fn of(call: StoredToolCall) -> Self {
        let millis = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Self {
            duration_ms: call.duration().map(millis),
            call_id: call.call,
            attempt: call.attempt,
            tool: call.tool.to_string(),
            effect: call.effect,
            state: call.state.word(),
            arguments: call.args,
            code: call.code,
            result_bytes: call.result_bytes,
            connection: call.connection,
            began_at: rfc3339(call.began),
            ended_at: call.ended.map(rfc3339),
            decide_by: call.decide_by.map(rfc3339),
            decided_at: call.decided.map(rfc3339),
            decided_by: call.decided_by,
        }
    }
}

/// Lists the calls of host tools of a run, the oldest first. A call that reads is listed once it has ended.
pub(crate) async fn list_tool_calls(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: ToolCallsQuery = read_query(request.uri())?;
    let limit = PAGES.choose(query.limit)?;
    let after = read_cursor(query.cursor.as_deref(), |call| Some(call.to_owned()))?;
    let after = after.map(|(began, call)| ToolCallPlace { began, call });
    let opened = context.opened().await?;
    let run = find(&opened.store, &caller, &run_id).await?;
    let mut calls = opened.store.tool_calls_after(&run.run_id, after.as_ref(), limit + 1).await?;
    let next_cursor = cut_page(&mut calls, limit).map(|last| write_cursor(last.began, &last.call));
    Ok(json_response(&ToolCallPageView {
        calls: calls.into_iter().map(ToolCallView::of).collect(),
        next_cursor,
    }))
}
