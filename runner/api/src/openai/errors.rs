//! Writes errors in OpenAI's form, for clients that know no other.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    middleware::Next,
    response::Response,
};
use platform_core::event::RunErrorCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::SHOULD_RETRY;
use crate::body::parse;

/// Largest problem that is read: the API writes them itself, and they are short.
const MAX_PROBLEM: usize = 64 << 10;

/// Answer to a request that fails, in OpenAI's form.
#[derive(Serialize, ToSchema)]
pub(crate) struct OpenAiError<'e> {
    error: OpenAiErrorDetails<'e>,
}

/// Problem, in OpenAI's form.
#[derive(Serialize, ToSchema)]
struct OpenAiErrorDetails<'e> {
    /// Explanation for people, with what would change the outcome.
    message: &'e str,
    /// Kind of the problem, such as `invalid_request_error`.
    r#type: &'static str,
    /// Always null.
    #[schema(required = true)]
    param: Option<&'static str>,
    /// Code of the problem, on which programs may act.
    code: &'e str,
}

/// Answers with the errors of other layers in OpenAI's form.
pub(crate) async fn in_openai_form(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    if status.is_success() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let problem = to_bytes(body, MAX_PROBLEM).await.unwrap_or_default();
    let problem: Value = parse(&problem, MAX_PROBLEM).unwrap_or_default();
    let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    let message = [text("detail"), text("help")]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Another try would order another run, though this one failed or is stored.
    if status == StatusCode::BAD_GATEWAY || text("code") == "timed_out" {
        parts.headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(error(kind(status), &text("code"), &message).to_string()))
}

/// Returns the chunk for the stream of a failed run.
pub(super) fn of_run(code: RunErrorCode, message: &str) -> Value {
    error("server_error", code.code(), message)
}

fn error(kind: &'static str, code: &str, message: &str) -> Value {
    json!(OpenAiError { error: OpenAiErrorDetails { message, r#type: kind, param: None, code } })
}

fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}
