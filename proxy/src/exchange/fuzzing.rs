//! Exposes steps of a call as functions of their input, for [`crate::fuzzing`]. No call uses this module.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, request};
use platform_core::{control::Correlation, grant::RunGrant, id::CallId, route::Route};

use super::{admit, identify, models, redact, rewrite};
use crate::policy::{Identification, Policy, Rejections};

/// Checks `body`, and returns it with the bytes that are sent for it if an answer may have `most` tokens. The error
/// says why it is refused.
pub(crate) fn rewritten<'b>(
    route: Route,
    body: &'b Bytes,
    policy: &Policy,
    most: u64,
) -> Result<(rewrite::Checked<'b>, Vec<u8>), Rejections> {
    let mut checked = rewrite::check(route, body, policy)?;
    checked.limit_output(route, most);
    let sent = checked.edits.pieces(body).concat();
    Ok((checked, sent))
}

/// Returns the slot and the route that the request line `method target` names.
pub(crate) fn addressed(method: &str, target: &str) -> Option<(Option<Correlation>, Route)> {
    let request = request::Builder::new().method(method).uri(target.parse::<Uri>().ok()?);
    let head = request.body(()).ok()?.into_parts().0;
    let (slot, path) = identify::split_slot(head.uri.path());
    if models::is_models_request(&head, path) {
        return Some((slot, Route::Models));
    }
    Some((slot, admit::find_route(&head, path).ok()?))
}

/// Returns the headers that go to the upstream with a call of `grant`.
pub(crate) fn headers(
    grant: &RunGrant,
    authorization: HeaderValue,
    from: &HeaderMap,
    call: CallId,
) -> Result<HeaderMap, http::Error> {
    rewrite::headers(&Identification::of(grant)?, Some(&authorization), from, call)
}

/// Redacts an upstream's error text for an agent.
pub(crate) fn redacted(text: &str, redacted_terms: &[String]) -> String {
    redact::redact(text, redacted_terms)
}

/// Redacts an upstream's error document for an agent; `None` if nothing is left.
pub(crate) fn redacted_document(text: &[u8], redacted_terms: &[String]) -> Option<String> {
    redact::document(text, redacted_terms)
}

/// Returns the replacement for a stream's event that reports an error; `None` if nothing is left of it.
pub(crate) fn redacted_event(event: &[u8], redacted_terms: &[String]) -> Option<String> {
    redact::event(event, redacted_terms)
}
