//! Maps errors of the upstream, and answers that no model API gives.
//!
//! An error is read whole, within a bound, and passed on without details of the upstream's insides. That
//! holds in the middle of a stream, too. An error about Sluicegate's own key or money becomes a refusal.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, response::Parts};
use hyper::body::Incoming;
use memchr::memmem;
use platform_core::{
    json::{self, Bounds},
    record::{Outcome, Timeout},
    refusal::Refusal,
    untrusted::JournalText,
};
use serde::Deserialize;

use super::{
    call::Exchange,
    forward::Answer,
    passed,
    redact::{self, MAX_ERROR},
    rewrite,
};
use crate::{
    refusal::{self, Refused},
    server::Ingress,
    upstream::{Connection, ReadError},
};

#[derive(Deserialize)]
struct ErrorDocument<'a> {
    #[serde(borrow)]
    error: ErrorBody<'a>,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
}

/// Details of an error that clients are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorDetail {
    /// The upstream's words, redacted.
    Upstream,
    /// Sluicegate's words alone.
    Generic,
}

impl ErrorDetail {
    /// Returns the detail for the clients of `ingress`. Providers repeat what an agent wrote, and a gateway sorts
    /// errors by their words.
    pub(super) const fn of(ingress: &Ingress) -> Self {
        if ingress.serves_gateways() { Self::Generic } else { Self::Upstream }
    }
}

/// Returns whether `answer` is not an answer: a redirection, another protocol, or a success in an encoding that was not
/// requested and that neither the agent nor the meter could read.
pub(super) fn is_no_answer(answer: &Response<Incoming>) -> bool {
    let is_readable = answer.status().is_success() && rewrite::is_plain(answer.headers());
    !is_readable && !is_error(answer.status())
}

/// Returns the response in the place of something that is not an answer. Its connection is not used again.
pub(super) async fn refuse(mut exchange: Exchange, answer: &Response<Incoming>) -> Response<Bytes> {
    let encoding = answer
        .headers()
        .get(header::CONTENT_ENCODING)
        .map(|value| JournalText::of(&String::from_utf8_lossy(value.as_bytes())));
    let encoding = encoding.as_ref().map_or("none", JournalText::as_str);
    let status = answer.status().as_u16();
    tracing::warn!(call = %exchange.call_id(), status, encoding, "the upstream's answer is not that of a model API, or is encoded although that was not asked for");
    let dialect = exchange.route().dialect();
    exchange.settle_mapped(Refusal::UpstreamFailed, Outcome::Complete).wait().await;
    refusal::respond(&Refusal::UpstreamFailed.into(), dialect)
}

/// Returns whether an answer with this status is an error.
pub(super) fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Returns the response for the client.
pub(super) async fn respond(
    mut exchange: Exchange,
    (answer, connection): Answer,
    detail: ErrorDetail,
) -> Response<Bytes> {
    let (head, body) = answer.into_parts();
    let dialect = exchange.route().dialect();
    let (text, outcome) = read(&mut exchange, body, connection).await;
    if concerns_own_access(head.status, &text) {
        let refused = refused_access(&exchange, &text, detail);
        return refuse_access(&mut exchange, head.status, &refused, outcome).await;
    }
    if detail == ErrorDetail::Generic {
        let reason = gateway_refusal(head.status, &text);
        let mut response = refusal::respond(&reason.into(), dialect);
        if let Some(when) = passed::retry_after(&head.headers).filter(|_| reason == Refusal::UpstreamBusy) {
            response.headers_mut().insert(header::RETRY_AFTER, when.clone());
        }
        exchange.settle_mapped(reason, outcome).wait().await;
        return response;
    }
    let snapshot = exchange.context().snapshot.load_full();
    // Too long, broken off, not JSON: the agent learns only that there was an error.
    let redacted = redact::document(&text, &snapshot.redacted_terms)
        .unwrap_or_else(|| refusal::error_json(&Refusal::UpstreamFailed.into(), dialect));
    let redacted = exchange.mask().cover(redacted.into());
    exchange.forwarded(redacted.len());
    let settled = if is_too_long(head.status, &text) {
        // In the upstream's words, which say by how much.
        exchange.settle_mapped(Refusal::ContextOverflow, outcome)
    } else {
        exchange.settle(outcome)
    };
    settled.wait().await;
    document(&head, &exchange, redacted)
}

/// Refuses a call that the upstream did not serve because of Sluicegate's own access.
async fn refuse_access(
    exchange: &mut Exchange,
    status: StatusCode,
    refused: &Refused,
    outcome: Outcome,
) -> Response<Bytes> {
    exchange.context().upstream.target().log_refused_access(status);
    exchange.settle_mapped(refused.reason, outcome).wait().await;
    refusal::respond(refused, exchange.route().dialect())
}

/// Returns the refusal for an error about Sluicegate's own access. It names a model that LiteLLM's virtual key lacks,
/// but not to a gateway, which sorts errors by their words.
fn refused_access(exchange: &Exchange, text: &[u8], detail: ErrorDetail) -> Refused {
    let refused = Refused::from(Refusal::UpstreamAuth);
    if detail == ErrorDetail::Generic || !is_model_denied(text) {
        return refused;
    }
    refused.saying(format!(
        "the gateway's key may not use model {}: its operator must add the model to that key, or set another",
        exchange.model()
    ))
}

/// Reads the upstream's error, nothing if that is too long or broke off. Also returns how the call ended.
async fn read(exchange: &mut Exchange, body: Incoming, mut connection: Connection) -> (Bytes, Outcome) {
    let connection_state = exchange.connection_state().clone();
    connection_state.await_upstream(Timeout::BetweenBytes);
    match connection_state.within_timeouts(connection.read_whole(body, MAX_ERROR)).await {
        Ok(Ok(text)) => {
            exchange.context().upstream.give_back(connection);
            (text, Outcome::Complete)
        }
        Ok(Err(ReadError::TooLong { .. })) => (Bytes::new(), Outcome::Complete),
        Ok(Err(ReadError::Broken(_))) => (Bytes::new(), Outcome::UpstreamGone),
        Err(timeout) => {
            exchange.note_timeout(timeout);
            (Bytes::new(), Outcome::TimedOut)
        }
    }
}

/// Returns the response in the place of a document that came with a good status, and is not an answer: `text`, or
/// as much of it as was read.
pub(super) async fn replace_document(
    exchange: &mut Exchange,
    head: &Parts,
    text: Bytes,
    detail: ErrorDetail,
) -> Response<Bytes> {
    let dialect = exchange.route().dialect();
    let snapshot = exchange.context().snapshot.load_full();
    let redacted = match detail {
        ErrorDetail::Upstream if !reports_own_budget(&text) => redact::error(&text, &snapshot.redacted_terms),
        ErrorDetail::Upstream | ErrorDetail::Generic => None,
    };
    let Some(redacted) = redacted else {
        if reports_own_budget(&text) {
            let refused = Refusal::UpstreamAuth.into();
            return refuse_access(exchange, head.status, &refused, Outcome::StreamError).await;
        }
        let reason = match detail {
            ErrorDetail::Generic if reports_too_long(&text) => Refusal::ContextOverflow,
            ErrorDetail::Generic | ErrorDetail::Upstream => Refusal::UpstreamFailed,
        };
        exchange.settle_mapped(reason, Outcome::StreamError).wait().await;
        return refusal::respond(&reason.into(), dialect);
    };
    let redacted = exchange.mask().cover(redacted.into());
    exchange.forwarded(redacted.len());
    exchange.settle(Outcome::StreamError).wait().await;
    document(head, exchange, redacted)
}

/// Returns a response with the upstream's status and the redacted error `redacted`.
fn document(head: &Parts, exchange: &Exchange, redacted: Bytes) -> Response<Bytes> {
    let mut response = exchange.passed_head(head);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.map(|()| redacted)
}

/// Returns the event that replaces an `event` with an error in the middle of a stream.
pub(super) fn replace_event(exchange: &Exchange, detail: ErrorDetail, event: &[u8]) -> Bytes {
    let dialect = exchange.route().dialect();
    let redacted = match detail {
        ErrorDetail::Upstream => redact::event(event, &exchange.context().snapshot.load().redacted_terms),
        ErrorDetail::Generic => None,
    };
    redacted.unwrap_or_else(|| refusal::error_event(&Refusal::UpstreamFailed.into(), dialect)).into()
}

/// Returns whether an answer is about Sluicegate's own key or money, which would only mislead an agent.
/// LiteLLM says 422 where a budget is used up.
fn concerns_own_access(status: StatusCode, text: &[u8]) -> bool {
    match status.as_u16() {
        401..=403 => true,
        400 | 422 | 429 => reports_own_budget(text),
        _ => false,
    }
}

fn reports_own_budget(text: &[u8]) -> bool {
    has_kind(text, "budget_exceeded")
}

/// Returns whether LiteLLM says that the model is not among those of Sluicegate's virtual key.
fn is_model_denied(text: &[u8]) -> bool {
    has_kind(text, "key_model_access_denied")
}

fn has_kind(text: &[u8], kind: &str) -> bool {
    let document: Option<ErrorDocument<'_>> = json::from_slice(text, Bounds::of(MAX_ERROR)).ok();
    document.is_some_and(|document| document.error.kind.as_deref() == Some(kind))
}

/// Returns the refusal that replaces an error for a gateway. Providers repeat what an agent wrote, and a
/// gateway sorts errors by their words: it would lock the provider for every tenant. A gateway must learn
/// that a conversation is too long, to shorten it.
fn gateway_refusal(status: StatusCode, text: &[u8]) -> Refusal {
    match status.as_u16() {
        408 | 429 | 500.. => Refusal::UpstreamBusy,
        _ if is_too_long(status, text) => Refusal::ContextOverflow,
        _ => Refusal::UpstreamRefused,
    }
}

/// Returns whether an error says that the conversation is too long for the model.
fn is_too_long(status: StatusCode, text: &[u8]) -> bool {
    matches!(status.as_u16(), 400 | 413 | 422) && reports_too_long(text)
}

fn reports_too_long(text: &[u8]) -> bool {
    const WORDS: [&str; 3] = ["context_length_exceeded", "maximum context length", "prompt is too long"];
    WORDS.iter().any(|words| memmem::find(text, words.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_nest::raw_nest;

    #[test]
    fn an_error_about_our_budget_is_told() {
        let nest = format!(r#"{{"error":{{"type":"budget_exceeded"}},"x":{}}}"#, raw_nest(15));
        for (text, is_ours) in [
            (r#"{"error":{"message":"m","type":"budget_exceeded","x":[{}]}}"#, true),
            (r#"{"error":{"type":"budget\u005fexceeded"}}"#, true),
            (r#"{"error":{"type":"other"}}"#, false),
            (r#"{"error":{"type":null}}"#, false),
            (r#"{"error":{}}"#, false),
            (r#"{"error":"budget_exceeded"}"#, false),
            (&nest, true),
            ("", false),
        ] {
            assert_eq!(reports_own_budget(text.as_bytes()), is_ours, "{text:.100}");
        }
    }
}
