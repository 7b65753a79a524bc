//! A call's life, one file per step, in this order:
//!
//! [`accept`] → [`identify`] → [`admit`] → [`rewrite`] → [`forward`] → [`observe`] or [`complain`] → [`settle`]
//!
//! Knows nothing of control: a call meets control only in its [`crate::run::Run`], which is closed under it, and in the
//! [`Snapshot`], which it loads once.

mod accept;
mod admit;
mod body;
mod complain;
mod forward;
mod identify;
mod observe;
mod rewrite;
mod scrub;
mod settle;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use platform_core::route::Route;

#[cfg(feature = "parts")]
pub(crate) use self::rewrite::body_is_good;
pub(crate) use self::{
    accept::Listener,
    body::Body,
    rewrite::{Identification, Policy, Reason, Rejection},
};
use self::{identify::Caller, settle::Exchange};
use crate::{
    bodies::{Allowance, Held},
    clock::CallIds,
    journal::Journal,
    refusal::{self, Refused},
    upstream::Upstream,
};

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
    /// What no agent is told: the upstream's key and address.
    pub(crate) unspoken: Arc<[String]>,
    /// Memory for the request bodies of all runs.
    pub(crate) bodies: Arc<Allowance>,
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
        Ok(answer) if complain::is_error(answer.0.status()) => complain::respond(exchange, answer).await,
        Ok(answer) => observe::respond(exchange, answer),
        Err(refused) => {
            let dialect = exchange.route().dialect();
            exchange.refuse(refused.reason);
            // Who waits to be asked for the body is not asked.
            if !head.headers.contains_key(header::EXPECT) {
                rewrite::discard(&mut body).await;
            }
            refusal::respond(&refused, dialect)
        }
    }
}

/// From admission to the head of the upstream's answer.
async fn pass(
    plane: &Plane,
    exchange: &mut Exchange,
    head: &Parts,
    body: &mut Incoming,
) -> Result<forward::Answer, Refused> {
    let route = admit::route(head)?;
    exchange.admit(route)?;
    rewrite::is_plain(&head.headers)?;
    let mut held = Held::none(Arc::clone(&exchange.run().bodies), Arc::clone(&plane.bodies));
    let body = rewrite::read_body(exchange, body, &mut held).await?;
    let request = rewrite::request(exchange, &head.headers, &body)?;
    drop(body);
    Ok(forward::send(plane, exchange, request).await?)
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
