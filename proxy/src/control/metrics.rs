//! `GET /v1/metrics`, and `GET /metrics` on a TCP listener of its own, because Prometheus reads no unix sockets.
//!
//! The listener tells what anybody may know who can reach it: no run, account, key or text. It answers nothing else, and
//! few at a time.

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
use platform_core::{budget::Limit, money::NanoDollars};
use platform_runtime::task;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use super::Control;
use crate::{
    Error,
    metrics::{Gauges, Reserved},
};

/// What the text is.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Connections at a time. Those that wait are the kernel's.
const CONNECTIONS: usize = 16;
/// Longest life of a connection, which is for one request.
const LIFE: Duration = Duration::from_secs(5);
/// How long to wait when the system has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Everything that is counted, and how things are now.
pub(super) fn text(control: &Control) -> String {
    let (runs, in_flight) = control.runs.load();
    let reserved = |limit| control.runs.accounts().reserved(limit);
    control.metrics.render(&Gauges {
        runs,
        in_flight,
        taps: control.runs.watchers() as u64,
        body_bytes: control.bodies.used(),
        reserved: Reserved {
            requests: reserved(Limit::Requests),
            input_tokens: reserved(Limit::InputTokens),
            output_tokens: reserved(Limit::OutputTokens),
            cost: NanoDollars(reserved(Limit::CostNanodollars)),
        },
        idle_connections: control.runs.idle_connections() as u64,
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
/// If the address cannot be had.
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
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let control = Arc::clone(&control);
                task::spawn("metrics connection", async move {
                    connection(stream, control).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the metrics listener");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
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
    if let Ok(Err(error)) = timeout(LIFE, served).await {
        tracing::debug!(%error, "metrics connection ended");
    }
}

fn respond(control: &Control, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let is_asked = request.uri().path() == "/metrics" && request.method() == Method::GET;
    let (status, kind, body) = if is_asked {
        (StatusCode::OK, CONTENT_TYPE, text(control))
    } else {
        (StatusCode::NOT_FOUND, "text/plain", "only GET /metrics is here\n".to_owned())
    };
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    answer
}
