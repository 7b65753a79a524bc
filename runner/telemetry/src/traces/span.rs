//! Defines a span, and converts it to OTLP's JSON: ids in hexadecimal, 64-bit numbers as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use platform_core::traceparent::{SpanId, TraceId};
use serde_json::{Value as Json, json};

/// A piece of work that has ended, with its start and end.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// Time since the Unix epoch.
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) attributes: Vec<(&'static str, AttributeValue)>,
    /// Code of the failure, if the work failed.
    pub(super) failure: Option<&'static str>,
}

/// Side on which a span was recorded, as OpenTelemetry defines it.
#[derive(Debug, Clone, Copy)]
pub(super) enum SpanKind {
    Internal,
    Server,
    Client,
}

/// Value of an attribute.
#[derive(Debug, Clone)]
pub(super) enum AttributeValue {
    Text(String),
    Number(u64),
    Signed(i64),
    Fraction(f64),
    Texts(Vec<String>),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl AttributeValue {
    fn to_json(&self) -> Json {
        match self {
            Self::Text(text) => json!({ "stringValue": text }),
            Self::Number(number) => json!({ "intValue": number.to_string() }),
            Self::Signed(number) => json!({ "intValue": number.to_string() }),
            Self::Fraction(number) => json!({ "doubleValue": number }),
            Self::Texts(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
                json!({ "arrayValue": { "values": texts } })
            }
        }
    }
}

impl Span {
    fn to_json(&self) -> Json {
        let kind = match self.kind {
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        };
        let mut span = json!({
            "traceId": self.trace.to_string(),
            "spanId": self.id.to_string(),
            "name": self.name,
            "kind": kind,
            "startTimeUnixNano": self.start.as_nanos().to_string(),
            "endTimeUnixNano": self.end.max(self.start).as_nanos().to_string(),
            "attributes": attributes_to_json(&self.attributes),
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(parent.to_string());
        }
        if let Some(code) = self.failure {
            span["status"] = json!({ "code": 2, "message": code });
        }
        span
    }
}

fn attributes_to_json(attributes: &[(&'static str, AttributeValue)]) -> Json {
    attributes.iter().map(|(key, value)| json!({ "key": key, "value": value.to_json() })).collect()
}

/// Returns the body of a request with `spans`. `resource` describes the process that exports them.
pub(super) fn request_body(resource: &[(&'static str, AttributeValue)], spans: &[Span]) -> Vec<u8> {
    let spans: Vec<_> = spans.iter().map(Span::to_json).collect();
    let scope = json!({ "name": "sluicegate", "version": env!("CARGO_PKG_VERSION") });
    let resource_spans = json!({
        "resource": { "attributes": attributes_to_json(resource) },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    });
    json!({ "resourceSpans": [resource_spans] }).to_string().into_bytes()
}

/// Returns the present time since the Unix epoch.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
