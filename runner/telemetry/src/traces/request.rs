//! Creates the span of a request to the API.

use std::time::Duration;

use platform_core::traceparent::{SpanId, TraceId, Traceparent};
use platform_runtime::random;

use super::span::{AttributeValue, Span, SpanKind, now};

/// A request to the API that is being answered.
#[derive(Debug)]
pub struct ApiRequest {
    method: &'static str,
    /// Route of the API; absent for any other path.
    route: Option<&'static str>,
    caller: Option<Traceparent>,
    start: Duration,
}

impl ApiRequest {
    /// Returns a request that starts now. `method` and `route` are constants of the API. `caller` is the parent of the
    /// span, if there is one.
    pub fn now(method: &'static str, route: Option<&'static str>, caller: Option<Traceparent>) -> Self {
        Self { method, route, caller, start: now() }
    }

    /// Returns the span of the answered request; `None` if the caller's trace is not sampled.
    pub(super) fn into_span(self, status: u16) -> Option<Span> {
        let Self { method, route, caller, start } = self;
        if caller.is_some_and(|caller| !caller.sampled) {
            return None;
        }
        let mut attributes = vec![
            ("http.request.method", method.into()),
            ("http.response.status_code", AttributeValue::Number(status.into())),
        ];
        attributes.extend(route.map(|route| ("http.route", route.into())));
        let bits = random::bits();
        Some(Span {
            trace: caller.map_or_else(|| TraceId::from_random(random::bits()), |caller| caller.trace),
            id: SpanId::from_random(u64::try_from(bits >> 64).unwrap_or_default()),
            parent: caller.map(|caller| caller.span),
            name: route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
            kind: SpanKind::Server,
            start,
            end: now(),
            attributes,
            failure: (status >= 500).then_some("server_error"),
        })
    }
}
