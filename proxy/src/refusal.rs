//! What each refusal looks like over HTTP: one table, because clients act on it.
//!
//! Measured: SDKs repeat 429 and 5xx unless `x-should-retry: false` forbids it; OpenClaw locks a provider
//! for everyone on 401, 402 and 403. The table is the only place that turns a refusal into a status.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use platform_core::{name, refusal::Refusal, route::Dialect};
use serde_json::json;

use crate::exchange::Body;

/// Whether a client should send the call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// It can only fail again.
    Never,
    /// It was not worked on; after so many seconds it may pass.
    After(u16),
}

/// The kinds of error that official SDKs know.
const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

/// Status, kind and retry of each refusal.
const fn row(refusal: Refusal) -> (StatusCode, &'static str, Retry) {
    match refusal {
        Refusal::RouteUnknown => (StatusCode::NOT_FOUND, INVALID, Retry::Never),
        Refusal::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, INVALID, Retry::Never),
        Refusal::BodyInvalid => (StatusCode::BAD_REQUEST, INVALID, Retry::Never),
        Refusal::RunClosed => (StatusCode::BAD_REQUEST, INVALID, Retry::Never),
        Refusal::Draining => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::JournalUnavailable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(5)),
        Refusal::UpstreamUnreachable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::UpstreamFailed => (StatusCode::BAD_GATEWAY, SERVER, Retry::Never),
        Refusal::UpstreamTimeout => (StatusCode::GATEWAY_TIMEOUT, SERVER, Retry::Never),
        Refusal::UpstreamAuth => (StatusCode::BAD_GATEWAY, SERVER, Retry::Never),
    }
}

/// What each refusal says to a person.
const fn message(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::RouteUnknown => {
            "no such route: this is a model API with POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages and /v1/embeddings"
        }
        Refusal::BodyTooLarge => "the request body is larger than this run may send",
        Refusal::BodyInvalid => {
            "the request body is not one complete JSON object with `model` a string and `stream` a boolean, each at most once"
        }
        Refusal::RunClosed => "this run is closed and takes no more calls",
        Refusal::Draining => "the gateway is restarting",
        Refusal::JournalUnavailable => "the gateway cannot record calls at the moment",
        Refusal::UpstreamUnreachable => "the model service cannot be reached",
        Refusal::UpstreamFailed => "the model service broke off before its answer was complete",
        Refusal::UpstreamTimeout => "the model service did not answer in the time this run allows",
        Refusal::UpstreamAuth => {
            "the model service does not accept the gateway's own access; its operator has to mend that"
        }
    }
}

/// The status of `refusal`.
pub(crate) const fn status(refusal: Refusal) -> StatusCode {
    row(refusal).0
}

/// The answer that tells a client of `refusal`, in the dialect of the route it called.
pub(crate) fn respond(refusal: Refusal, dialect: Dialect) -> Response<Body> {
    let (status, _, retry) = row(refusal);
    let mut response = Response::new(Body::from(error_json(refusal, dialect)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    match retry {
        Retry::Never => headers
            .insert(HeaderName::from_static(name::header::SHOULD_RETRY), HeaderValue::from_static("false")),
        Retry::After(seconds) => headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds)),
    };
    response
}

/// The error event that ends a stream which broke off, in the dialect of its route.
pub(crate) fn error_event(refusal: Refusal, dialect: Dialect) -> String {
    let json = error_json(refusal, dialect);
    match dialect {
        Dialect::OpenAi => format!("data: {json}\n\n"),
        Dialect::Anthropic => format!("event: error\ndata: {json}\n\n"),
    }
}

fn error_json(refusal: Refusal, dialect: Dialect) -> String {
    let (_, kind, _) = row(refusal);
    let (message, code) = (message(refusal), refusal.code());
    match dialect {
        Dialect::OpenAi => {
            json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
        }
        Dialect::Anthropic => {
            json!({ "type": "error", "error": { "type": kind, "message": message, "code": code } })
        }
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words by which OpenClaw takes an error for one of key, money, rate or time and locks the provider.
    const LOCKING_WORDS: [&str; 12] = [
        "expired",
        "denied",
        "budget",
        "spend",
        "quota",
        "billing",
        "credit",
        "unauthorized",
        "forbidden",
        "invalid api key",
        "rate limit",
        "upstream error",
    ];

    #[test]
    fn every_refusal_has_one_shape_per_dialect() {
        for refusal in Refusal::ALL {
            for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
                let response = respond(refusal, dialect);
                let json: serde_json::Value = serde_json::from_str(&error_json(refusal, dialect)).unwrap();
                assert_eq!(json["error"]["code"], refusal.code());
                assert_eq!(
                    response.headers().contains_key("retry-after"),
                    response.status() == 503,
                    "{refusal:?}"
                );
                assert_ne!(
                    response.headers().contains_key("retry-after"),
                    response.headers().contains_key("x-should-retry")
                );
            }
        }
    }

    #[test]
    fn no_refusal_locks_a_gateways_provider() {
        for refusal in Refusal::ALL {
            assert!(![401, 402, 403].contains(&status(refusal).as_u16()), "{refusal:?}");
            let message = message(refusal);
            for word in LOCKING_WORDS {
                assert!(!message.contains(word), "{refusal:?} says `{word}`");
            }
        }
    }
}
