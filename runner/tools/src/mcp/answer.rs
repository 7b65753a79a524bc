//! answer puts answers of the Model Context Protocol into the form of HTTP.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE},
};
use serde_json::{Value, json};

/// Answer to a message.
pub(crate) type McpResponse = Response<Body>;

/// Codes of errors: those of JSON-RPC, and of the protocol.
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
pub(super) const HEADER_MISMATCH: i32 = -32020;
pub(super) const UNSUPPORTED_VERSION: i32 = -32022;

/// Error of the protocol. A failed call is not such an error.
#[derive(Debug)]
pub(super) struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

/// Returns the answer to a notification.
pub(super) fn accepted() -> McpResponse {
    words(StatusCode::ACCEPTED, String::new())
}

/// Returns an answer in words, to a message that cannot be answered in the protocol.
pub(super) fn words(status: StatusCode, text: String) -> McpResponse {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}

pub(super) fn result(id: Value, result: Value) -> McpResponse {
    json_rpc(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Returns an error. One without an id answers a notification.
pub(super) fn error(status: StatusCode, id: Option<Value>, error: RpcError) -> McpResponse {
    let RpcError { code, message, data } = error;
    let mut body = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message } });
    if let Some(id) = id {
        body["id"] = id;
    }
    if let Some(data) = data {
        body["error"]["data"] = data;
    }
    json_rpc(status, &body)
}

fn json_rpc(status: StatusCode, body: &Value) -> McpResponse {
    let mut response = words(status, body.to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
