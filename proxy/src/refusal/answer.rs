//! Writes refusals as answers, in the dialect of the route that was called.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header};
use platform_core::{json, name, refusal::Refusal, route::Dialect};
use serde_json::{Value, json};

use super::{
    Refused,
    table::{Retry, row},
};

/// Returns the answer that reports `refused` to a client, in the dialect of the route it called.
pub(crate) fn respond(refused: &Refused, dialect: Dialect) -> Response<Bytes> {
    let (_, _, retry) = row(refused.reason);
    let mut response = Response::new(Bytes::from(error_json(refused, dialect)));
    *response.status_mut() = refused.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let (advice, value) = advice(retry, refused.wait);
    headers.insert(advice, value);
    if refused.reason == Refusal::MethodNotAllowed {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    // A request that readers may frame differently has no certain end. When draining, the next one goes to another proxy.
    if matches!(refused.reason, Refusal::HeadInvalid | Refusal::Draining) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if refused.reason == Refusal::WebsocketUnsupported {
        // RFC 9110, 15.5.22: the protocol to speak instead.
        headers.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    response
}

/// Returns the header that advises a client on sending the call again.
fn advice(retry: Retry, wait: Option<u64>) -> (HeaderName, HeaderValue) {
    let should_retry = HeaderName::from_static(name::header::SHOULD_RETRY);
    match retry {
        Retry::Never => (should_retry, HeaderValue::from_static("false")),
        Retry::Safe => (should_retry, HeaderValue::from_static("true")),
        Retry::After(seconds) => (header::RETRY_AFTER, HeaderValue::from(wait.unwrap_or(seconds))),
    }
}

/// Returns the error event that ends a stream which broke off, in the dialect of its route.
pub(crate) fn error_event(refused: &Refused, dialect: Dialect) -> String {
    let json = error_json(refused, dialect);
    match dialect {
        Dialect::OpenAi | Dialect::ToolExec | Dialect::JsonRpc => format!("data: {json}\n\n"),
        Dialect::Anthropic => format!("event: error\ndata: {json}\n\n"),
    }
}

/// Returns the whole answer that ends a connection on which no call can be answered.
pub(crate) fn raw(reason: Refusal) -> String {
    let (status, _, retry) = row(reason);
    let body = error_json(&reason.into(), Dialect::OpenAi);
    let (advice, value) = advice(retry, None);
    let value = value.to_str().unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{advice}: {value}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Returns the code of JSON-RPC 2.0 (section 5.1): that of an invalid request, or one that the server defines.
const fn rpc_code(reason: Refusal) -> i32 {
    match reason {
        Refusal::BodyInvalid => -32600,
        _ => -32000,
    }
}

/// Returns the body that reports `refused` to a client.
pub(crate) fn error_json(refused: &Refused, dialect: Dialect) -> String {
    let (_, kind, _) = row(refused.reason);
    let message = &refused.message;
    let code = refused.reason.code();
    match dialect {
        Dialect::OpenAi => {
            json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
        }
        Dialect::Anthropic => {
            json!({ "type": "error", "error": { "type": kind, "message": message, "code": code } })
        }
        Dialect::ToolExec => json!({ "ok": false, "error": { "code": code, "message": message } }),
        Dialect::JsonRpc => {
            let id: Value = refused
                .rpc_id
                .as_ref()
                .and_then(|id| json::from_str(id, json::Bounds::STORED).ok())
                .unwrap_or_default();
            let error =
                json!({ "code": rpc_code(refused.reason), "message": message, "data": { "code": code } });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
    .to_string()
}
