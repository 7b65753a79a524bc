//! Builds error objects as the two families of APIs publish them. As LiteLLM passes them on, their `code` is a string.

use http::StatusCode;
use serde_json::{Value, json};

use super::Api;

pub(super) fn object(api: Option<Api>, status: StatusCode, message: &str) -> Value {
    match api {
        Some(Api::Messages) => {
            json!({ "type": "error", "error": { "type": anthropic_type(status), "message": message } })
        }
        Some(Api::Chat | Api::Completions | Api::Responses | Api::Compact | Api::Embeddings) | None => {
            json!({ "error": {
            "message": message, "type": openai_type(status), "param": null, "code": status.as_str() } })
        }
    }
}

fn openai_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

fn anthropic_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
