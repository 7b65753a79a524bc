//! Steps of a call as functions of what comes in, for [`crate::parts`]. Nothing here is part of a call's life.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, request};
use platform_core::{control::Correlation, grant::RunGrant, id::CallId, route::Route};

use super::{admit, identify, models, redact, rewrite};

/// Returns what `body` asks for and the bytes that are sent for it where an answer may have `most` tokens, or
/// why it is refused.
pub(crate) fn rewritten<'b>(
    route: Route,
    body: &'b Bytes,
    policy: &rewrite::Policy,
    most: u64,
) -> Result<(rewrite::Checked<'b>, Vec<u8>), rewrite::Rejection> {
    let mut checked = rewrite::check(route, body, policy)?;
    checked.limit_output(route, most);
    let sent = checked.edits.pieces(body).concat();
    Ok((checked, sent))
}

/// The slot and the route that the request line `method target` names.
pub(crate) fn addressed(method: &str, target: &str) -> Option<(Option<Correlation>, Route)> {
    let request = request::Builder::new().method(method).uri(target.parse::<Uri>().ok()?);
    let head = request.body(()).ok()?.into_parts().0;
    let (slot, path) = identify::split_slot(head.uri.path());
    if models::is_asked(&head, path) {
        return Some((slot, Route::Models));
    }
    Some((slot, admit::find_route(&head, path).ok()?))
}

/// The headers that go to the upstream with a call of `grant`.
pub(crate) fn headers(
    grant: &RunGrant,
    authorization: HeaderValue,
    from: &HeaderMap,
    call: CallId,
) -> Result<HeaderMap, http::Error> {
    rewrite::headers(&rewrite::Identification::of(grant)?, Some(&authorization), from, call)
}

/// Redacts an upstream's error text for an agent.
pub(crate) fn redacted(text: &str, redacted_terms: &[String]) -> String {
    redact::redact(text, redacted_terms)
}

/// Redacts an upstream's error document for an agent; `None` if nothing is left.
pub(crate) fn redacted_document(text: &[u8], redacted_terms: &[String]) -> Option<String> {
    redact::document(text, redacted_terms)
}

/// Returns what replaces a stream's event that reports an error; `None` if nothing is left of it.
pub(crate) fn redacted_event(event: &[u8], redacted_terms: &[String]) -> Option<String> {
    redact::event(event, redacted_terms)
}
