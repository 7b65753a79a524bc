//! The span of a request to the API.

use std::time::Duration;

use platform_core::traceparent::{SpanId, TraceId, Traceparent};
use platform_runtime::random;

use super::span::{Kind, Span, Value, now};

/// A request that is answered just now.
#[derive(Debug)]
pub(crate) struct Asked {
    method: &'static str,
    /// One of the API's own; absent if it has no such.
    route: Option<&'static str>,
    caller: Option<Traceparent>,
    start: Duration,
}

impl Asked {
    /// By `method` for `route`, which are words of ours; part of `caller` if that is one.
    pub(crate) fn now(
        method: &'static str,
        route: Option<&'static str>,
        caller: Option<Traceparent>,
    ) -> Self {
        Self { method, route, caller, start: now() }
    }

    /// It was answered so; `None` if nobody keeps its trace.
    pub(super) fn answered(self, status: u16) -> Option<Span> {
        let Self { method, route, caller, start } = self;
        if caller.is_some_and(|caller| !caller.sampled) {
            return None;
        }
        let mut attributes = vec![
            ("http.request.method", method.into()),
            ("http.response.status_code", Value::Number(status.into())),
        ];
        attributes.extend(route.map(|route| ("http.route", route.into())));
        let bits = random::bits();
        Some(Span {
            trace: caller.map_or_else(|| TraceId::from_random(random::bits()), |caller| caller.trace),
            id: SpanId::from_random(u64::try_from(bits >> 64).unwrap_or_default()),
            parent: caller.map(|caller| caller.span),
            name: route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
            kind: Kind::Server,
            start,
            end: now(),
            attributes,
            failed: (status >= 500).then_some("server_error"),
        })
    }
}
