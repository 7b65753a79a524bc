//! Serves the HTTP API of `sluice up`, for applications on this host.
//!
//! axum routes requests. This crate accepts connections itself, because `axum::serve` has no timeouts. The API
//! authenticates no client, so it listens on the loopback alone. It refuses what a browser sends for another site's
//! page, even if that site points its own name at this host. Routes: `GET /api/v1/ai/agents`, `GET /metrics`.
//!
//! Does not execute runs and does not authenticate. Start reading at [`Api`].
//!
//! Invariants: only requests to this host's own names are answered.

mod error;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method,
        header::{CONTENT_TYPE, HOST, ORIGIN},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use platform_runtime::{accept::Acceptor, metrics, report, task};
use runner_engine::{
    agents::{self, Catalog},
    observer::Observer,
};
use runner_telemetry::{
    metrics::Metrics,
    traces::{ApiRequest, Traces},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::error::Error;

const AGENTS: &str = "/api/v1/ai/agents";
const METRICS: &str = "/metrics";
/// Header with the trace of a request (W3C).
const TRACEPARENT: &str = "traceparent";
/// Header with the origin of a browser's request (Fetch Metadata, W3C).
const FETCH_SITE: &str = "sec-fetch-site";
/// Most connections at a time. Others wait to be accepted.
const MAX_CONNECTIONS: usize = 64;
/// Longest time in which a client may send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time of a connection. Each carries one request, and no answer is long.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Error for an address that the API cannot listen on: it is in use, or not of this host.
#[derive(Debug, thiserror::Error)]
#[error(
    "api.listen {address} cannot be listened on: set another address, or stop the program that has it (`ss -ltnp` shows it)"
)]
pub struct Unbound {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// HTTP API with its bound listener.
#[derive(Debug)]
pub struct Api {
    listener: TcpListener,
    address: SocketAddr,
}

impl Api {
    /// Binds `address`. Connections wait there until [`Self::serve`] accepts them.
    pub async fn bind(address: SocketAddr) -> Result<Self, Unbound> {
        let unbound = |source| Unbound { address, source };
        let listener = TcpListener::bind(address).await.map_err(unbound)?;
        let address = listener.local_addr().map_err(unbound)?;
        Ok(Self { listener, address })
    }

    /// Returns the address on which the API listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until `stop` is triggered, which also cuts open connections.
    pub async fn serve(self, catalog: Arc<Catalog>, observer: Observer, stop: CancellationToken) {
        let routes = routes(catalog, observer);
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut acceptor = Acceptor::new(self.listener, Arc::default());
        let accepting = async {
            // The semaphore is never closed.
            while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                let stream = acceptor.accept().await;
                let connection = serve_connection(stream, routes.clone(), permit);
                task::spawn("api connection", stop.clone().run_until_cancelled_owned(connection));
            }
        };
        stop.run_until_cancelled(accepting).await;
    }
}

async fn serve_connection(stream: TcpStream, routes: Router, _permit: OwnedSemaphorePermit) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    match timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(error = report::chain(&error), "API connection broke"),
        Err(_elapsed) => tracing::debug!("API connection took too long"),
    }
}

fn routes(catalog: Arc<Catalog>, observer: Observer) -> Router {
    let Observer { metrics, traces } = observer;
    Router::new()
        .route(AGENTS, get(list_agents))
        .with_state(catalog)
        .route(METRICS, get(render_metrics))
        .with_state(metrics)
        .method_not_allowed_fallback(|| async { Error::Method })
        .fallback(|| async { Error::Route })
        .layer(middleware::from_fn(require_own_host))
        .layer(middleware::from_fn_with_state(traces, trace_request))
}

/// Records the request as a span. Scrapes are left out: there would be too many.
async fn trace_request(State(traces): State<Option<Traces>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let Some(traces) = traces.filter(|_| path != METRICS) else { return next.run(request).await };
    let mut callers = request.headers().get_all(TRACEPARENT).iter();
    let caller = match (callers.next(), callers.next()) {
        (Some(caller), None) => caller.to_str().ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    let api_request =
        ApiRequest::now(method_word(request.method()), (path == AGENTS).then_some(AGENTS), caller);
    let response = next.run(request).await;
    traces.answered(api_request, response.status().as_u16());
    response
}

/// Returns a method as one of a few words, so that a client cannot choose a label.
fn method_word(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|word| *word == method.as_str()).unwrap_or("_OTHER")
}

/// Passes on requests that name this host by one of its own names, and that no other site's page sent.
async fn require_own_host(request: Request, next: Next) -> Response {
    match check_headers(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Checks the name of the host and the origin of the request.
fn check_headers(headers: &HeaderMap) -> Result<(), Error> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) if is_own_name(host) => {}
        _ => return Err(Error::Host),
    }
    let is_own_origin = |origin: &HeaderValue| {
        let host = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        host.is_some_and(|(_, host)| is_own_name(host))
    };
    // Browsers name the origin of the sending page. Browsers that omit it for a GET send this header instead.
    let is_cross_site = headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site");
    if is_cross_site || !headers.get_all(ORIGIN).iter().all(is_own_origin) {
        Err(Error::Site)
    } else {
        Ok(())
    }
}

/// Returns whether `host`, with or without a port, can only mean this host.
fn is_own_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Answers with the agents that can run here, and the default one.
async fn list_agents(State(catalog): State<Arc<Catalog>>) -> Response {
    json(&agents::listing(&catalog.statuses().await))
}

/// Answers with the metrics in Prometheus's text format.
async fn render_metrics(State(metrics): State<Arc<Metrics>>) -> Response {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.render().await).into_response()
}

fn json(value: &serde_json::Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_hosts_own_names_are_answered() {
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:4180", true),
            ("127.0.0.1:4180", true),
            ("[::1]:4180", true),
            ("[::1]", true),
            ("127.0.0.2:4180", true),
            ("10.0.0.1", false),
            ("", false),
            ("localhost.attacker.example", false),
            ("127.0.0.1.attacker.example:4180", false),
            ("attacker.example", false),
            ("localhost:x", false),
        ] {
            assert_eq!(is_own_name(host), expected, "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for (name, value, accepted) in [
            ("accept", "*/*", true),
            ("origin", "http://localhost:3000", true),
            ("origin", "https://attacker.example", false),
            ("origin", "null", false),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "none", true),
            ("sec-fetch-site", "cross-site", false),
        ] {
            let host = (HOST, HeaderValue::from_static("127.0.0.1:4180"));
            let headers = [host, (name.parse().unwrap(), HeaderValue::from_static(value))];
            assert_eq!(check_headers(&headers.into_iter().collect()).is_ok(), accepted, "{name}: {value}");
        }
    }
}
