//! An OpenTelemetry collector for tests: it records requests, parses them strictly, and can be unavailable, hang or
//! refuse.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use platform_runtime::task;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::canary;

/// Reaction of the collector to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Accepts every request.
    Everything,
    /// Refuses every request with this status.
    Nothing(u16),
    /// Never answers.
    Hangs,
    /// Closes the connection.
    BreaksOff,
}

/// A collector.
#[derive(Debug, Clone)]
pub struct Collector {
    address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    takes: Takes,
    /// Requests received, accepted or not.
    requests: Vec<(HeaderMap, Bytes)>,
    spans: Vec<Span>,
}

/// A span as it was reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Id of its trace.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// Id of the parent span; empty without one.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: u64,
    /// Start, in nanoseconds since the epoch.
    pub start: u64,
    /// End, in nanoseconds since the epoch.
    pub end: u64,
    /// Remaining attributes; numbers of 64 bits as text.
    pub attributes: BTreeMap<String, Value>,
    /// Error message; empty if the span succeeded.
    pub failed: String,
}

impl Collector {
    /// Starts a collector that accepts everything.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let inner = Inner { takes: Takes::Everything, requests: Vec::new(), spans: Vec::new() };
        let collector = Self { address: listener.local_addr().unwrap(), inner: Arc::new(Mutex::new(inner)) };
        let serving = collector.clone();
        task::spawn("collector", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                let serve = service_fn(move |request| {
                    let serving = serving.clone();
                    async move { serving.answer(request).await }
                });
                task::spawn("collector connection", async move {
                    http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await.ok();
                });
            }
        });
        collector
    }

    /// Returns the configuration that sends telemetry to it.
    #[must_use]
    pub fn settings(&self) -> String {
        format!("[telemetry]\notlp_endpoint = '{}'\n", self.url())
    }

    /// Returns the URL that it listens on.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets its reaction to later requests.
    pub fn takes(&self, takes: Takes) {
        self.inner().takes = takes;
    }

    /// Returns the accepted spans, in the order of their arrival.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.inner().spans.clone()
    }

    /// Returns the requests received, accepted or not.
    #[must_use]
    pub fn requests(&self) -> Vec<(HeaderMap, Bytes)> {
        self.inner().requests.clone()
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
        assert_eq!(request.headers()["content-type"], "application/json");
        let headers = request.headers().clone();
        #[expect(clippy::disallowed_methods, reason = "only programs under test send requests")]
        let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
        canary::search("what the collector is told", &body);
        let takes = {
            let mut inner = self.inner();
            inner.requests.push((headers, body.clone()));
            if inner.takes == Takes::Everything {
                inner.spans.extend(read(&body));
            }
            inner.takes
        };
        let answered = |status: u16, body: &'static str| {
            Response::builder().status(status).body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap()
        };
        match takes {
            Takes::Everything => Ok(answered(200, "{}")),
            Takes::Nothing(status) => Ok(answered(status, "no")),
            Takes::BreaksOff => Err(std::io::Error::other("broken off")),
            Takes::Hangs => Ok(std::future::pending::<Result<_, Infallible>>().await.unwrap()),
        }
    }
}

/// Parses the spans of a request, as strictly as OTLP specifies its JSON.
fn read(body: &[u8]) -> Vec<Span> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let all = |value: &Value, key: &str| value[key].as_array().unwrap_or_else(|| panic!("no {key}")).clone();
    let mut spans = Vec::new();
    for resource in all(&body, "resourceSpans") {
        let attributes = attributes(&resource["resource"]["attributes"]);
        assert_eq!(attributes["service.name"], "sluicegate");
        for scope in all(&resource, "scopeSpans") {
            assert_eq!(scope["scope"]["name"], "sluicegate");
            spans.extend(all(&scope, "spans").iter().map(span));
        }
    }
    spans
}

fn span(span: &Value) -> Span {
    for key in span.as_object().unwrap().keys() {
        let known = [
            "traceId",
            "spanId",
            "parentSpanId",
            "name",
            "kind",
            "startTimeUnixNano",
            "endTimeUnixNano",
            "attributes",
            "status",
        ];
        assert!(known.contains(&key.as_str()), "{key} in {span}");
    }
    let id = |key: &str, digits: usize| {
        let id = span[key].as_str().unwrap_or_else(|| panic!("{key} in {span}")).to_owned();
        let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        assert!(id.len() == digits && is_hex && id.bytes().any(|byte| byte != b'0'), "{key} in {span}");
        id
    };
    let time = |key: &str| span[key].as_str().unwrap().parse().unwrap_or_else(|_| panic!("{key} in {span}"));
    let (start, end): (u64, u64) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
    assert!(start <= end && start > 1_600_000_000_000_000_000, "{span}");
    let failed = span["status"]["code"].as_u64().map(|code| {
        assert_eq!(code, 2, "{span}");
        span["status"]["message"].as_str().unwrap().to_owned()
    });
    Span {
        trace: id("traceId", 32),
        id: id("spanId", 16),
        parent: span.get("parentSpanId").map(|_| id("parentSpanId", 16)).unwrap_or_default(),
        name: span["name"].as_str().unwrap().to_owned(),
        kind: span["kind"].as_u64().filter(|kind| (1..=5).contains(kind)).unwrap(),
        start,
        end,
        attributes: attributes(&span["attributes"]),
        failed: failed.unwrap_or_default(),
    }
}

fn attributes(list: &Value) -> BTreeMap<String, Value> {
    let mut attributes = BTreeMap::new();
    for attribute in list.as_array().unwrap() {
        let (kind, value) = attribute["value"].as_object().unwrap().iter().next().unwrap();
        let fits = match kind.as_str() {
            "stringValue" => value.is_string(),
            "intValue" => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
            "doubleValue" => value.is_number(),
            "arrayValue" => value["values"].is_array(),
            _ => false,
        };
        assert!(fits, "{attribute}");
        let key = attribute["key"].as_str().unwrap().to_owned();
        assert!(attributes.insert(key, value.clone()).is_none(), "{attribute} twice");
    }
    attributes
}
