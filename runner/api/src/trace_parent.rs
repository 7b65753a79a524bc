//! Reads the trace that a request is part of.

use axum::http::HeaderMap;
use platform_core::traceparent::Traceparent;

/// Header with the trace of a request (W3C).
const TRACEPARENT: &str = "traceparent";

/// Returns the trace that a client's request is part of. W3C Trace Context demands that an invalid one is ignored.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<Traceparent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok()?.parse().ok(),
        _ => None,
    }
}
