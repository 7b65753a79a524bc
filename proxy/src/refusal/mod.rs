//! Defines what each refusal looks like over HTTP: one table, because clients act on it.
//!
//! Measured: SDKs repeat 429 and 5xx unless `x-should-retry: false` forbids it; OpenClaw locks a provider
//! for everyone on 401, 402 and 403. The table is the only place that turns a refusal into a status.

mod words;

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use platform_core::{
    budget::Limit, json as bounded, name, record::Timeout, refusal::Refusal, route::Dialect,
    untrusted::JournalText,
};
use serde_json::{Value, json};

pub(crate) use self::words::Late;
use self::words::message;
use crate::{
    budget::{LimitOwner, QuotaError, QuotaShortfall, ToolQuotaError},
    freezes::Stop,
    policy::{Label, Reason, Rejection, Rejections},
};

/// A refusal, with its message to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Refusal,
    /// Rule that decided it, for the record: a limit, a field, a model, a capability.
    pub(crate) rule: Option<JournalText>,
    /// Timeout that has passed, if the refusal is for one.
    pub(crate) timeout: Option<Timeout>,
    message: Cow<'static, str>,
    /// Seconds after which the call may pass, if they are known better than by the reason alone.
    wait: Option<u64>,
    audience: Audience,
    /// Id of the JSON-RPC message that is refused, as its sender wrote it.
    rpc_id: Option<Box<str>>,
}

/// Audience of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// A client that called for itself.
    Client,
    /// A gateway that serves many, and would lock its provider for all of them.
    Gateway,
}

impl From<Refusal> for Refused {
    fn from(reason: Refusal) -> Self {
        Self {
            reason,
            rule: None,
            timeout: None,
            message: Cow::Borrowed(message(reason)),
            wait: None,
            audience: Audience::Client,
            rpc_id: None,
        }
    }
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Self {
        Self { rule: Some(JournalText::of(stop.word())), ..Refusal::Frozen.into() }
    }
}

impl Refused {
    /// Creates a refusal for a `reason` that ends after `wait`.
    pub(crate) fn until(reason: Refusal, wait: Duration) -> Self {
        Self { wait: Some(wait.as_secs() + 1), ..reason.into() }
    }

    /// Creates a refusal that `rule` decided.
    pub(crate) fn by_rule(reason: Refusal, rule: &str) -> Self {
        Self { rule: Some(JournalText::of(rule)), ..reason.into() }
    }

    /// Returns the refusal with another message.
    pub(crate) fn saying(self, message: String) -> Self {
        Self { message: Cow::Owned(message), ..self }
    }

    /// Returns the refusal as the answer to the JSON-RPC message with `id`.
    pub(crate) fn answering(self, id: Option<String>) -> Self {
        Self { rpc_id: id.map(String::into_boxed_str), ..self }
    }

    /// Creates a refusal because a timeout has passed.
    pub(crate) fn late(reason: Refusal, late: Late) -> Self {
        Self { timeout: Some(late.timeout), message: Cow::Owned(late.message()), ..reason.into() }
    }

    /// Creates a refusal because this proxy stops. It will have stopped after `left`: until then another call makes no
    /// sense.
    pub(crate) fn draining(left: Duration) -> Self {
        Self { wait: Some(left.as_secs() + 1), ..Refusal::Draining.into() }
    }

    /// Returns the refusal for a gateway that serves many. It never contains words of an agent, because a gateway sorts
    /// errors by their words. All failures to attribute a call become one.
    pub(crate) fn for_gateway(&self) -> Self {
        let reason = match self.reason {
            Refusal::TokenMissing
            | Refusal::TokenMalformed
            | Refusal::TokenExpired
            | Refusal::TokenInvalid
            | Refusal::TokenRevoked
            | Refusal::RunUnknown
            | Refusal::IdentityConflict => Refusal::Unattributed,
            other => other,
        };
        let rpc_id = self.rpc_id.clone();
        Self { wait: self.wait, audience: Audience::Gateway, rpc_id, ..reason.into() }
    }

    /// Returns the status it is sent with.
    pub(crate) fn status(&self) -> StatusCode {
        match (row(self.reason).0, self.audience) {
            // OpenClaw 2026.9.6 locks its profile at the provider on 429, and on 503 tries again.
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, Audience::Gateway) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            // Only tool calls get it, and the whole gateway is not to lose its provider by one of them.
            (StatusCode::FORBIDDEN, Audience::Gateway) => StatusCode::BAD_REQUEST,
            (status, _) => status,
        }
    }
}

impl From<Rejections> for Refused {
    fn from(rejections: Rejections) -> Self {
        // Code and rule are those of the first reason; the message names all.
        let first = &rejections.first;
        let reason = match first.reason {
            Reason::UnknownField(_) => Refusal::FieldUnknown,
            Reason::NotGranted { .. } | Reason::ToolNotGranted(_) | Reason::ToolUnnamed => {
                Refusal::NotGranted
            }
            Reason::ModelNotGranted(_) => Refusal::ModelNotGranted,
            Reason::NoRoute => Refusal::RouteUnknown,
            Reason::Syntax(_)
            | Reason::Duplicate(_)
            | Reason::Crowded
            | Reason::WrongType { .. }
            | Reason::ModelMissing
            | Reason::ModelMalformed => Refusal::BodyInvalid,
        };
        Self { rule: rule(first), message: Cow::Owned(rejections.to_string()), ..reason.into() }
    }
}

/// Returns the rules of all reasons of a refusal in one line, as a record would name each.
pub(crate) fn rules(rejections: &Rejections) -> String {
    let all = std::iter::once(&rejections.first).chain(&rejections.others);
    let rules = all.map(|rejection| rule(rejection).map_or_else(|| "-".to_owned(), |rule| rule.to_string()));
    rules.collect::<Vec<_>>().join(", ")
}

/// Returns the part of a body that caused its refusal. Names come from an agent: they are written as the journal may
/// contain them.
fn rule(rejection: &Rejection) -> Option<JournalText> {
    let field = |name: &Label| format!("field:{}", name.as_str());
    let named = match &rejection.reason {
        Reason::UnknownField(name) | Reason::Duplicate(name) | Reason::WrongType { what: name, .. } => {
            Some(field(name))
        }
        Reason::NotGranted { capability, .. } => Some(format!("capability:{capability}")),
        Reason::ModelNotGranted(name) => Some(format!("model:{}", name.as_str())),
        Reason::ToolNotGranted(name) => Some(format!("tool:{}", name.as_str())),
        Reason::ToolUnnamed => Some("tool:-".to_owned()),
        Reason::ModelMissing | Reason::ModelMalformed => Some("field:model".to_owned()),
        Reason::Syntax(_) | Reason::Crowded | Reason::NoRoute => rejection.field.as_ref().map(field),
    };
    named.map(|named| JournalText::of(&named))
}

impl From<ToolQuotaError> for Refused {
    fn from(error: ToolQuotaError) -> Self {
        match error {
            ToolQuotaError::RateLimited(wait) => {
                let refused = Self::by_rule(Refusal::RateLimited, "tools.calls_per_minute");
                Self { wait: Some(wait.as_secs() + 1), ..refused }
            }
            ToolQuotaError::InFlight => Self::by_rule(Refusal::ConcurrencyLimited, "tools.calls_in_flight"),
            ToolQuotaError::Calls(QuotaShortfall::Reserved) => {
                Self::by_rule(Refusal::QuotaReserved, "tools.calls")
            }
            ToolQuotaError::Calls(QuotaShortfall::Exhausted) => {
                Self::by_rule(Refusal::QuotaExhausted, "tools.calls")
            }
        }
    }
}

impl From<QuotaError> for Refused {
    fn from(error: QuotaError) -> Self {
        let (owner, limit, reason) = match error {
            QuotaError::RateLimited(owner, _) => (owner, Limit::RequestsPerMinute, Refusal::RateLimited),
            QuotaError::Exceeded(owner, Limit::CallsInFlight, _) => {
                (owner, Limit::CallsInFlight, Refusal::ConcurrencyLimited)
            }
            QuotaError::Exceeded(owner, limit, QuotaShortfall::Reserved) => {
                (owner, limit, Refusal::QuotaReserved)
            }
            QuotaError::Exceeded(owner, limit, QuotaShortfall::Exhausted) => {
                (owner, limit, Refusal::QuotaExhausted)
            }
            QuotaError::BelowLeast { owner, limit, .. } => (owner, limit, Refusal::QuotaExhausted),
            QuotaError::Unpriced(owner) => (owner, Limit::CostNanodollars, Refusal::ModelUnpriced),
        };
        let wait = match error {
            QuotaError::RateLimited(_, wait) => Some(wait.as_secs() + 1),
            QuotaError::Exceeded(..) | QuotaError::BelowLeast { .. } | QuotaError::Unpriced(_) => None,
        };
        let (whose, owner) = match owner {
            LimitOwner::Run => ("this run", "run"),
            LimitOwner::Account => ("this account", "account"),
        };
        let rule = Some(JournalText::of(&format!("{owner}.{}", limit.setting())));
        let message = match error {
            QuotaError::Exceeded(_, limit, QuotaShortfall::Exhausted) => {
                format!("the limit of {limit} of {whose} is used up")
            }
            QuotaError::Exceeded(_, limit, QuotaShortfall::Reserved) => {
                format!("the rest of the limit of {limit} of {whose} is reserved for calls in progress")
            }
            QuotaError::BelowLeast { limit, least, left, .. } => format!(
                "this call may answer with {least} tokens, and the limit of {limit} of {whose} leaves {left}"
            ),
            QuotaError::RateLimited(..) | QuotaError::Unpriced(_) => {
                message(reason).replace("this run or account", whose)
            }
        };
        Self { rule, message: Cow::Owned(message), wait, ..reason.into() }
    }
}

/// Advice to a client on sending the call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// The call can only fail again.
    Never,
    /// The call was not worked on; after so many seconds it may pass.
    After(u64),
}

/// The kinds of error that official SDKs know.
const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

/// Returns the status, kind and retry of each refusal.
const fn row(refusal: Refusal) -> (StatusCode, &'static str, Retry) {
    match refusal {
        Refusal::RouteUnknown => (StatusCode::NOT_FOUND, INVALID, Retry::Never),
        // Codex then sends the call over HTTP at once; on 404 it tries seven times before.
        Refusal::WebsocketUnsupported => (StatusCode::UPGRADE_REQUIRED, INVALID, Retry::Never),
        Refusal::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, INVALID, Retry::Never),
        Refusal::HeadTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, INVALID, Retry::Never),
        // Nothing was worked on: SDKs send it again.
        Refusal::HeadTooSlow | Refusal::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, SERVER, Retry::After(1)),
        Refusal::TooManyConnections => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::UpstreamBusy => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::UpstreamRefused
        | Refusal::ContextOverflow
        | Refusal::HeadInvalid
        | Refusal::BodyInvalid
        | Refusal::BodyEncoded
        | Refusal::FieldUnknown
        | Refusal::NotGranted
        | Refusal::ModelNotGranted
        | Refusal::IdentityConflict
        | Refusal::Unattributed => (StatusCode::BAD_REQUEST, INVALID, Retry::Never),
        Refusal::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, INVALID, Retry::Never),
        Refusal::PolicyDenied | Refusal::RunMismatch => (StatusCode::FORBIDDEN, INVALID, Retry::Never),
        Refusal::ToolsUnavailable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::ToolTimeout => (StatusCode::GATEWAY_TIMEOUT, SERVER, Retry::Never),
        // The tool may have had its effect, so no client may repeat the call by itself.
        Refusal::OutcomeUnknown | Refusal::ToolAnswerTooLarge => {
            (StatusCode::BAD_GATEWAY, SERVER, Retry::Never)
        }
        // Only clients with a token of their own ever see these: a gateway would lock its provider.
        Refusal::TokenMissing
        | Refusal::TokenMalformed
        | Refusal::TokenExpired
        | Refusal::TokenInvalid
        | Refusal::TokenRevoked
        | Refusal::RunUnknown => (StatusCode::UNAUTHORIZED, INVALID, Retry::Never),
        Refusal::BodyMemoryExhausted => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::RateLimited | Refusal::ConcurrencyLimited | Refusal::QuotaReserved => {
            (StatusCode::TOO_MANY_REQUESTS, SERVER, Retry::After(1))
        }
        Refusal::QuotaExhausted
        | Refusal::BalanceExhausted
        | Refusal::ModelUnpriced
        | Refusal::RunDeadlineExceeded
        | Refusal::Frozen
        | Refusal::RunClosed => (StatusCode::BAD_REQUEST, INVALID, Retry::Never),
        Refusal::Draining => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::JournalUnavailable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(5)),
        Refusal::UpstreamUnreachable | Refusal::UpstreamUnavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1))
        }
        Refusal::UpstreamFailed => (StatusCode::BAD_GATEWAY, SERVER, Retry::Never),
        Refusal::UpstreamTimeout => (StatusCode::GATEWAY_TIMEOUT, SERVER, Retry::Never),
        // This kind shows OpenClaw that the call can only fail again, whatever the status.
        Refusal::UpstreamAuth => (StatusCode::BAD_GATEWAY, INVALID, Retry::Never),
    }
}

/// Returns the status of `refusal`.
pub(crate) const fn status(refusal: Refusal) -> StatusCode {
    row(refusal).0
}

/// Returns the answer that reports `refused` to a client, in the dialect of the route it called.
pub(crate) fn respond(refused: &Refused, dialect: Dialect) -> Response<Bytes> {
    let (_, _, retry) = row(refused.reason);
    let mut response = Response::new(Bytes::from(error_json(refused, dialect)));
    *response.status_mut() = refused.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    match retry {
        Retry::Never => headers
            .insert(HeaderName::from_static(name::header::SHOULD_RETRY), HeaderValue::from_static("false")),
        Retry::After(seconds) => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(refused.wait.unwrap_or(seconds)))
        }
    };
    if refused.reason == Refusal::MethodNotAllowed {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    if refused.reason == Refusal::Draining {
        // The next request goes to the next proxy.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if refused.reason == Refusal::WebsocketUnsupported {
        // RFC 9110, 15.5.22: the protocol to speak instead.
        headers.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    response
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
    let retry = match retry {
        Retry::Never => format!("{}: false", name::header::SHOULD_RETRY),
        Retry::After(seconds) => format!("retry-after: {seconds}"),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{retry}\r\nconnection: close\r\n\r\n{body}"
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
                .and_then(|id| bounded::from_str(id, bounded::Bounds::STORED).ok())
                .unwrap_or_default();
            let error =
                json!({ "code": rpc_code(refused.reason), "message": message, "data": { "code": code } });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use platform_core::route::Route;

    use super::*;

    #[test]
    fn every_refusal_has_one_shape_per_dialect() {
        for refusal in Refusal::ALL {
            for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
                let refused = Refused::from(refusal);
                let response = respond(&refused, dialect);
                let json: serde_json::Value = serde_json::from_str(&error_json(&refused, dialect)).unwrap();
                assert_eq!(json["error"]["code"], refusal.code());
                assert_eq!(
                    response.headers().contains_key("retry-after"),
                    [408, 429, 503].contains(&response.status().as_u16()),
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
    fn tool_clients_get_shapes_of_their_own() {
        for refusal in Refusal::ALL {
            let refused = Refused::from(refusal).answering(Some("\"a\"".to_owned()));
            let json = |dialect| -> Value { serde_json::from_str(&error_json(&refused, dialect)).unwrap() };
            let exec = json(Dialect::ToolExec);
            assert_eq!((&exec["ok"], &exec["error"]["code"]), (&json!(false), &json!(refusal.code())));
            let rpc = json(Dialect::JsonRpc);
            assert_eq!((&rpc["id"], &rpc["error"]["data"]["code"]), (&json!("a"), &json!(refusal.code())));
            assert!(rpc["error"]["code"].as_i64().unwrap() < 0);
        }
        let unread: Value =
            serde_json::from_str(&error_json(&Refusal::BodyInvalid.into(), Dialect::JsonRpc)).unwrap();
        assert_eq!((&unread["id"], &unread["error"]["code"]), (&Value::Null, &json!(-32600)));
        let response = respond(&Refusal::MethodNotAllowed.into(), Dialect::JsonRpc);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"]),
            (405, &"POST".parse().unwrap())
        );
    }

    #[test]
    fn an_unknown_route_is_told_of_all_others() {
        let text = message(Refusal::RouteUnknown);
        for path in Route::ALL.into_iter().filter_map(Route::upstream_path) {
            let is_named = |word: &str| {
                path.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            assert!(text.split([' ', ',']).any(is_named), "{path}: {text}");
        }
    }

    #[test]
    fn gateways_get_no_provider_locking_status() {
        for refusal in Refusal::ALL {
            let refused = Refused::from(refusal).for_gateway();
            assert!(![401, 402, 403, 429].contains(&refused.status().as_u16()), "{refusal:?}");
        }
    }

    /// Keeps the file that `tests/clients/openclaw.rs` shows to the classifier of the real OpenClaw. Delete the file to
    /// write it again.
    #[test]
    fn refusals_are_as_they_were_shown_to_openclaw() {
        let row = |(refusal, dialect, api): (Refusal, Dialect, &str)| {
            let refused = Refused::from(refusal).for_gateway();
            let status = refused.status();
            let (_, _, retry) = row(refused.reason);
            let body = error_json(&refused, dialect);
            json!({ "code": refusal.code(), "status": status.as_u16(), "api": api, "final": retry == Retry::Never, "body": body })
        };
        let both = |refusal| {
            [
                (refusal, Dialect::OpenAi, "openai-completions"),
                (refusal, Dialect::Anthropic, "anthropic-messages"),
            ]
        };
        let rows: String =
            Refusal::ALL.into_iter().flat_map(both).map(|pair| row(pair).to_string() + "\n").collect();
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/refusals.jsonl");
        let Ok(shown) = std::fs::read_to_string(golden) else {
            std::fs::write(golden, &rows).unwrap();
            panic!("{golden} is written anew: read it, then run this again");
        };
        assert_eq!(rows, shown);
    }
}
