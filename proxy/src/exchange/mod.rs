//! A call's life, one file per step, in this order:
//!
//! [`accept`] → [`identify`] → [`admit`] → [`rewrite`] → [`forward`] → [`observe`] → [`settle`]
//!
//! Knows nothing of control: a call meets control only in its [`crate::run::Run`], which is closed under it, and in the
//! [`Snapshot`], which it loads once.

mod accept;
mod admit;
mod body;
mod forward;
mod identify;
mod observe;
mod rewrite;
mod settle;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use platform_core::{refusal::Refusal, route::Route};

#[cfg(feature = "parts")]
pub(crate) use self::rewrite::body_is_good;
pub(crate) use self::{accept::Listener, body::Body, rewrite::Identification};
use self::{identify::Caller, settle::Exchange};
use crate::{clock::CallIds, journal::Journal, refusal, upstream::Upstream};

/// The part of the configuration that calls work with. Immutable; a new one replaces it whole.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// How long a client may take to send a request's head.
    pub(crate) header_read: Duration,
}

/// What a data-plane thread serves calls with.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) upstream: Upstream,
    pub(crate) journal: Arc<Journal>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) call_ids: CallIds,
}

/// Answers one request that came in on a listener.
async fn serve(plane: &Arc<Plane>, caller: &Caller, request: Request<Incoming>) -> Response<Body> {
    if request.uri().path() == "/health" && request.method() == Method::GET {
        return health(caller);
    }
    let mut exchange = Exchange::begin(plane, caller);
    let (head, mut body) = request.into_parts();
    match pass(plane, &mut exchange, &head, &mut body).await {
        Ok(answer) => observe::respond(exchange, answer),
        Err(reason) => {
            let dialect = exchange.route().dialect();
            exchange.refuse(reason);
            // Who waits to be asked for the body is not asked.
            if !head.headers.contains_key(header::EXPECT) {
                rewrite::discard(&mut body).await;
            }
            refusal::respond(reason, dialect)
        }
    }
}

/// From admission to the head of the upstream's answer.
async fn pass(
    plane: &Plane,
    exchange: &mut Exchange,
    head: &Parts,
    body: &mut Incoming,
) -> Result<forward::Answer, Refusal> {
    let route = admit::route(head)?;
    exchange.admit(route)?;
    let body = rewrite::read_body(exchange, body).await?;
    let request = rewrite::request(exchange, &head.headers, body)?;
    forward::send(plane, exchange, request).await
}

/// `GET /health`: the socket works, and whose it is. Needs no identity and is no call.
fn health(caller: &Caller) -> Response<Body> {
    let text = serde_json::json!({ "status": "ok", "runId": caller.run.grant.run_id }).to_string();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

/// The route of a call that was not admitted far enough to have one.
const NO_ROUTE: Route = Route::Unknown;
