//! Serves `GET /v1/metrics`, and `GET /metrics` on its own TCP listener, because Prometheus reads no unix sockets. That
//! listener also has `GET /healthz` and `GET /readyz`, for probes.
//!
//! The TCP listener has no access control, so its answers contain no run, account, key or text. It serves no other
//! path, and few connections at a time. It stays up while the proxy drains.

use std::{
    convert::Infallible,
    net::{self, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use platform_core::{
    budget::Limit,
    control::{NotReady, Readiness, ShownPrices},
    money::NanoDollars,
};
use platform_runtime::{
    accept::{Acceptor, RateLimitedLog},
    metrics::CONTENT_TYPE,
    report, task,
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use super::{Control, ready};
use crate::{
    Error,
    metrics::{Gauges, Reserved},
};

/// Most connections at a time. Further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16;
/// Longest life of a connection, which is for one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns all counters and gauges as text.
pub(super) fn text(control: &Control) -> String {
    let (runs, in_flight) = control.runs.load();
    let reserved = |limit| control.runs.accounts().reserved(limit);
    control.metrics.render(&Gauges {
        runs,
        in_flight,
        taps: control.runs.watchers() as u64,
        tap_bytes: control.taps.held(),
        body_bytes: control.runs.body_bytes(),
        head_bytes: control.heads.used(),
        reserved: Reserved {
            requests: reserved(Limit::Requests),
            input_tokens: reserved(Limit::InputTokens),
            output_tokens: reserved(Limit::OutputTokens),
            cost: NanoDollars(reserved(Limit::CostNanodollars)),
        },
        idle_connections: control.runs.idle_connections() as u64,
        shown_prices: control.snapshot.load().prices.shown().map_or(0, |shown| shown.len() as u64),
        shown_prices_are_read: control.shown_prices.state() == ShownPrices::Read,
        upstream_state: control.upstream.target().circuit().state().word(),
        journal_seq: control.journal.last_seq(),
        journal_is_open: control.journal.state().is_open(),
        journal_bytes: control.journal.size(),
        consumers: control.journal.lag().0,
        consumer_lag: control.journal.lag().1,
        freezes: control.freezes.list().len() as u64,
    })
}

/// Binds `proxy.metrics_listen`.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let listen = || {
        let listener = net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    listen().map_err(|source| Error::Listen { setting: "proxy.metrics_listen", address, source })
}

/// Serves until its task ends.
pub(crate) async fn serve(listener: TcpListener, control: Arc<Control>) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serving metrics");
    }
    let limit = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut acceptor = Acceptor::new(listener, Arc::<RateLimitedLog>::default());
    while let Ok(permit) = Arc::clone(&limit).acquire_owned().await {
        let stream = acceptor.accept().await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = report::chain(&error), "metrics connection closed before it was served");
            continue;
        }
        let control = Arc::clone(&control);
        task::spawn("metrics connection", async move {
            connection(stream, control).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, control: Arc<Control>) {
    let service = service_fn(|request| {
        let answer = respond(&control, &request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(CONNECTION_TIMEOUT, served).await {
        tracing::debug!(error = report::chain(&error), "metrics connection ended");
    }
}

fn respond(control: &Control, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let path = Some(request.uri().path()).filter(|_| request.method() == Method::GET);
    let (status, kind, body) = match path {
        Some("/metrics") => (StatusCode::OK, CONTENT_TYPE, text(control)),
        Some("/healthz") => (StatusCode::OK, "text/plain", "alive\n".to_owned()),
        Some("/readyz") => {
            let Readiness { ready, reasons } = ready::readiness(control);
            let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            (status, "application/json", json!({ "ready": ready, "reasons": kinds(reasons) }).to_string())
        }
        _ => {
            let text = "only GET /metrics, /healthz and /readyz are here\n".to_owned();
            (StatusCode::NOT_FOUND, "text/plain", text)
        }
    };
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    answer
}

/// Returns the kinds of the reasons alone: any client of the address may read them, so they name no run.
fn kinds(reasons: Vec<NotReady>) -> Vec<Value> {
    reasons.iter().map(|reason| json!(reason)["reason"].take()).collect()
}
