//! routes answers the requests on the tool socket: `POST /tool/exec` and `POST /mcp`.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use platform_core::{
    host_tools::{
        EXEC_PATH, MCP_PATH,
        exec::{ExecAnswer, ExecRequest},
        header,
    },
    limit::ByteSize,
};

use crate::{
    caller::CallingRun,
    execute::{Call, Executed, Executor},
    mcp::McpServer,
    tool::{ToolCode, ToolError},
};

/// State that requests use.
#[derive(Clone)]
struct Routes {
    executor: Executor,
    mcp: McpServer,
    max_body: usize,
}

/// Returns the routes of the tool socket.
pub(crate) fn router(executor: &Executor, max_request: ByteSize) -> Router {
    let routes = Routes {
        executor: executor.clone(),
        mcp: McpServer::new(executor.clone()),
        max_body: usize::try_from(max_request.0).unwrap_or(usize::MAX),
    };
    Router::new().route(EXEC_PATH, post(exec)).route(MCP_PATH, post(mcp)).with_state(routes)
}

async fn exec(State(routes): State<Routes>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let caller = match CallingRun::read(&parts.headers) {
        Ok(caller) => caller,
        Err(error) => return refused(error.status(), "protocol_error", &error.to_string()),
    };
    let Ok(body) = axum::body::to_bytes(body, routes.max_body).await else {
        return answered(too_large(routes.max_body).into());
    };
    match read(caller, &body) {
        Ok(call) => answered(routes.executor.execute(call).await),
        Err(error) => answered(error.into()),
    }
}

/// Reads a call. The run is that of the headers: a body that names another is refused.
fn read(caller: CallingRun, body: &[u8]) -> Result<Call, ToolError> {
    let request = ExecRequest::read(body).map_err(|error| {
        ToolError::new(ToolCode::InvalidRequest, format!("the body is not a call: {error}"))
    })?;
    if request.run_id != caller.run_id {
        return Err(ToolError::new(ToolCode::RunMismatch, "`runId` is not the run that calls"));
    }
    Ok(Call {
        caller,
        id: request.call_id.as_str().to_owned(),
        tool: request.tool,
        args: request.args.get().to_owned(),
    })
}

async fn mcp(State(routes): State<Routes>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let caller = match CallingRun::read(&parts.headers) {
        Ok(caller) => caller,
        Err(error) => return refused(error.status(), "protocol_error", &error.to_string()),
    };
    let Ok(body) = axum::body::to_bytes(body, routes.max_body).await else {
        return answered(too_large(routes.max_body).into());
    };
    respond(&routes.mcp, caller, &parts.headers, body).await
}

async fn respond(mcp: &McpServer, caller: CallingRun, headers: &HeaderMap, body: Bytes) -> Response {
    match mcp.respond(caller, headers, &body).await {
        Ok(answer) => {
            let (mut response, executed) = answer;
            if let Some(executed) = executed {
                mark(response.headers_mut(), &executed);
            }
            response
        }
        Err(error) => refused(StatusCode::BAD_REQUEST, "invalid_request", &error.to_string()),
    }
}

/// Returns the answer to a call, with its outcome in the headers.
fn answered(executed: Executed) -> Response {
    let mut headers = HeaderMap::new();
    mark(&mut headers, &executed);
    let answer = match executed.result {
        Ok(result) => ExecAnswer::done(result),
        Err(error) => ExecAnswer::failed(error.code, error.message),
    };
    (headers, json(&answer)).into_response()
}

fn mark(headers: &mut HeaderMap, executed: &Executed) {
    let outcome = HeaderValue::from_static(executed.outcome().word());
    headers.insert(HeaderName::from_static(header::OUTCOME), outcome);
    // The id of a connection fits a header.
    if let Some(Ok(connection)) = executed.connection.as_ref().map(|id| HeaderValue::from_str(id.as_str())) {
        headers.insert(HeaderName::from_static(header::CONNECTION), connection);
    }
}

/// Returns an answer as JSON, with its type.
fn json(answer: &ExecAnswer) -> impl IntoResponse + use<> {
    // Texts and JSON values are always serializable.
    let body = serde_json::to_vec(answer).unwrap_or_default();
    ([(CONTENT_TYPE, "application/json")], body)
}

fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    (status, json(&ExecAnswer::failed(code, message))).into_response()
}

fn too_large(max_body: usize) -> ToolError {
    ToolError::new(ToolCode::RequestTooLarge, format!("the body has more than {max_body} bytes"))
}
