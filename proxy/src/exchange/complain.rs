//! Maps errors of the upstream, and answers that no model API gives.
//!
//! An error is read whole, within a bound, and passed on without details of the upstream's insides. That
//! holds in the middle of a stream, too. An error about Sluicegate's own key or money becomes a refusal.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, response::Parts};
use hyper::body::Incoming;
use memchr::memmem;
use platform_core::{
    record::{Outcome, Timeout},
    refusal::Refusal,
};
use serde::Deserialize;

use super::{
    Body, forward::Answer, identify::Entrance, observe, passed, released, rewrite, scrub, settle::Exchange,
};
use crate::{
    refusal,
    upstream::{Connection, Unread},
};

/// Largest error that is passed on, bytes.
const LARGEST: usize = 64 << 10;

#[derive(Deserialize)]
struct Complaint<'a> {
    #[serde(borrow)]
    error: Detail<'a>,
}

#[derive(Deserialize)]
struct Detail<'a> {
    #[serde(rename = "type", default)]
    kind: Option<&'a str>,
}

/// Origin of the words of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// The upstream's, without what they say of its insides.
    Theirs,
    /// Sluicegate's alone.
    Ours,
}

impl Words {
    /// Providers repeat what an agent wrote, and a gateway sorts errors by their words.
    pub(super) const fn of(entrance: &Entrance) -> Self {
        if entrance.serves_gateways() { Self::Ours } else { Self::Theirs }
    }
}

/// Returns whether `answer` is none: a redirection, another protocol, or a success in an encoding that was
/// not asked for and that neither the agent nor the meter could read.
pub(super) fn is_none(answer: &Response<Incoming>) -> bool {
    let is_readable = answer.status().is_success() && rewrite::is_plain(answer.headers()).is_ok();
    !is_readable && !is_error(answer.status())
}

/// Returns the response in the place of an answer that is none. Its connection is not used again.
pub(super) async fn refuse(mut exchange: Exchange) -> Response<Body> {
    let dialect = exchange.route().dialect();
    released(exchange.settle_mapped(Refusal::UpstreamFailed, Outcome::Complete)).await;
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
    words: Words,
) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let dialect = exchange.route().dialect();
    let (text, outcome) = read(&mut exchange, body, connection).await;
    if is_about_our_means(head.status, &text) {
        released(exchange.settle_mapped(Refusal::UpstreamAuth, outcome)).await;
        return refusal::respond(&Refusal::UpstreamAuth.into(), dialect);
    }
    if words == Words::Ours {
        let reason = to_a_gateway(head.status, &text);
        let mut response = refusal::respond(&reason.into(), dialect);
        if let Some(when) = passed::retry_after(&head.headers).filter(|_| reason == Refusal::UpstreamBusy) {
            response.headers_mut().insert(header::RETRY_AFTER, when.clone());
        }
        released(exchange.settle_mapped(reason, outcome)).await;
        return response;
    }
    let snapshot = exchange.plane().snapshot.load_full();
    // Too long, broken off, not JSON: the agent learns only that there was an error.
    let told = scrub::document(&text, &snapshot.unspoken)
        .unwrap_or_else(|| refusal::error_json(&Refusal::UpstreamFailed.into(), dialect));
    let told = snapshot.mask.cover(told.into());
    exchange.passed_on(told.len());
    let settled = if is_too_long(head.status, &text) {
        // In the upstream's words, which say by how much.
        exchange.settle_mapped(Refusal::ContextOverflow, outcome)
    } else {
        exchange.settle(outcome)
    };
    released(settled).await;
    document(&head, &exchange, told)
}

/// Reads what the upstream complained of, nothing if that is too long or broke off; and how the call ended with it.
async fn read(exchange: &mut Exchange, body: Incoming, mut connection: Connection) -> (Bytes, Outcome) {
    let carried = exchange.carried().clone();
    carried.wants(Timeout::BetweenBytes);
    match carried.in_time(connection.read_whole(body, LARGEST)).await {
        Ok(Ok(text)) => {
            exchange.plane().upstream.give_back(connection);
            (text, Outcome::Complete)
        }
        Ok(Err(Unread::TooLong { .. })) => (Bytes::new(), Outcome::Complete),
        Ok(Err(Unread::Broken(_))) => (Bytes::new(), Outcome::UpstreamGone),
        Err(timeout) => {
            exchange.is_late(timeout);
            (Bytes::new(), Outcome::TimedOut)
        }
    }
}

/// Returns the response in the place of a document that came with a good status, and is no answer: `text`, or
/// as much of it as was read.
pub(super) async fn instead(
    exchange: &mut Exchange,
    head: &Parts,
    text: Bytes,
    words: Words,
) -> Response<Body> {
    let dialect = exchange.route().dialect();
    let snapshot = exchange.plane().snapshot.load_full();
    let told = match words {
        Words::Theirs if !is_about_budget(&text) => scrub::error(&text, &snapshot.unspoken),
        Words::Theirs | Words::Ours => None,
    };
    let Some(told) = told else {
        let reason = match words {
            _ if is_about_budget(&text) => Refusal::UpstreamAuth,
            Words::Ours if tells_too_long(&text) => Refusal::ContextOverflow,
            Words::Ours | Words::Theirs => Refusal::UpstreamFailed,
        };
        released(exchange.settle_mapped(reason, Outcome::StreamError)).await;
        return refusal::respond(&reason.into(), dialect);
    };
    let told = snapshot.mask.cover(told.into());
    exchange.passed_on(told.len());
    released(exchange.settle(Outcome::StreamError)).await;
    document(head, exchange, told)
}

/// Returns a response with the upstream's status and the redacted error `told`.
fn document(head: &Parts, exchange: &Exchange, told: Bytes) -> Response<Body> {
    let mut response = observe::with_head(head, exchange);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *response.body_mut() = Body::from(told);
    response
}

/// Returns the event that replaces an `event` with an error in the middle of a stream.
pub(super) fn event(exchange: &Exchange, words: Words, event: &[u8]) -> Bytes {
    let dialect = exchange.route().dialect();
    let told = match words {
        Words::Theirs => scrub::event(event, &exchange.plane().snapshot.load().unspoken),
        Words::Ours => None,
    };
    told.unwrap_or_else(|| refusal::error_event(&Refusal::UpstreamFailed.into(), dialect)).into()
}

/// Returns whether an answer is about Sluicegate's own key or money, which would only mislead an agent.
/// LiteLLM says 422 where a budget is used up.
fn is_about_our_means(status: StatusCode, text: &[u8]) -> bool {
    match status.as_u16() {
        401..=403 => true,
        400 | 422 | 429 => is_about_budget(text),
        _ => false,
    }
}

fn is_about_budget(text: &[u8]) -> bool {
    let complaint = serde_json::from_slice::<Complaint<'_>>(text).ok();
    complaint.is_some_and(|complaint| complaint.error.kind == Some("budget_exceeded"))
}

/// Returns the refusal that replaces an error for a gateway. Providers repeat what an agent wrote, and a
/// gateway sorts errors by their words: it would lock the provider for every tenant. A gateway must learn
/// that a conversation is too long, to shorten it.
fn to_a_gateway(status: StatusCode, text: &[u8]) -> Refusal {
    match status.as_u16() {
        408 | 429 | 500.. => Refusal::UpstreamBusy,
        _ if is_too_long(status, text) => Refusal::ContextOverflow,
        _ => Refusal::UpstreamRefused,
    }
}

/// Returns whether an error says that the conversation is too long for the model.
fn is_too_long(status: StatusCode, text: &[u8]) -> bool {
    matches!(status.as_u16(), 400 | 413 | 422) && tells_too_long(text)
}

fn tells_too_long(text: &[u8]) -> bool {
    const WORDS: [&str; 3] = ["context_length_exceeded", "maximum context length", "prompt is too long"];
    WORDS.iter().any(|words| memmem::find(text, words.as_bytes()).is_some())
}
