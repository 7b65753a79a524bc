//! A call's life, one file per step, in this order:
//!
//! [`accept`] → [`mod@identify`] → [`admit`] → [`rewrite`] → [`forward`] → [`observe`] or [`complain`] → [`settle`]
//!
//! Knows nothing of control: a call meets control only in its [`crate::run::Run`], which is closed under it, and in the
//! [`Snapshot`], which it loads once.

mod accept;
mod admit;
mod body;
mod carried;
mod complain;
mod draft;
mod forward;
mod gateway_socket;
mod head_memory;
mod identify;
mod inbound;
mod models;
mod observe;
#[cfg(feature = "parts")]
pub(crate) mod parts;
mod passed;
mod patience;
mod rewrite;
mod room;
mod scrub;
mod settle;
mod timed;
mod unserved;
mod unwritten;
mod wire;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{HeaderValue, Method, Request, Response, header, request::Parts};
use hyper::body::Incoming;
use platform_core::{route::Route, token::Secrets};

pub(crate) use self::{
    accept::{GatewayListener, Listener, SharedListener},
    body::{Body, BrokenOff},
    gateway_socket::GatewaySocket,
    head_memory::HeadMemory,
    rewrite::{Identification, Label, Policy, Reason, Rejection},
    room::{Complaints, Rooms, pause, raise_descriptor_limit},
    unwritten::Unwritten,
};
use self::{
    complain::Words,
    identify::{Caller, Entrance, Way, identify},
    inbound::Target,
    settle::Exchange,
};
use crate::{
    bodies::{Allowance, Held},
    budget::Prices,
    clock::CallIds,
    directory::Directory,
    freezes::Freezes,
    journal::{Journal, Synced},
    mask::Mask,
    metrics::ForThread,
    refusal::{self, Refused},
    run::Run,
    upstream::Upstream,
};

/// The part of the configuration that calls work with. Immutable; a new one replaces it whole.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Longest time that a client may take to send a request's head.
    pub(crate) header_read: Duration,
    /// Longest time that a client's connection may be idle between two calls.
    pub(crate) keep_alive: Duration,
    /// The upstream's credential.
    pub(crate) authorization: Option<HeaderValue>,
    /// Texts that no agent receives: the upstream's key and address, and their earlier values.
    pub(crate) unspoken: Arc<[String]>,
    /// The key and the secrets of tokens, and what they were before: they are masked in all that an agent is sent.
    pub(crate) mask: Arc<Mask>,
    /// Secrets that sign run tokens.
    pub(crate) secrets: Arc<Secrets>,
    /// Prices of tokens.
    pub(crate) prices: Prices,
    /// Time for which a token holds beyond its expiry.
    pub(crate) token_skew: Duration,
}

/// Everything a data-plane thread needs to serve calls.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) journal: Arc<Journal>,
    /// Live runs and their correlations, for calls that have to prove their run.
    pub(crate) directory: Arc<Directory>,
    /// Freezes that an operator has set.
    pub(crate) freezes: Arc<Freezes>,
    /// Run under which unattributed calls are recorded.
    pub(crate) nobody: Arc<Run>,
    /// Memory for the request bodies of all runs.
    pub(crate) bodies: Arc<Allowance>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    /// Counters of this thread.
    pub(crate) metrics: Arc<ForThread>,
    /// Limits of connections.
    pub(crate) rooms: Rooms,
    pub(crate) call_ids: CallIds,
    /// Answers that clients have not taken yet.
    pub(crate) unwritten: Arc<Unwritten>,
}

/// Answers one request that came in on a connection.
async fn serve(plane: &Arc<Plane>, entrance: &Entrance, request: Request<Incoming>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    let target = entrance.carried.take_head(admit::size(&head));
    if head.uri.path() == "/health" && head.method == Method::GET && target == Target::Plain {
        entrance.carried.end();
        return health(entrance);
    }
    let (caller, path) = match identify(plane, entrance, &head) {
        Ok(identified) => identified,
        Err(reason) => {
            let exchange = Exchange::begin(plane, &Caller::unattributed(plane), &entrance.carried);
            return refuse(exchange, &reason.into(), entrance, (&head, &mut body)).await;
        }
    };
    let mut exchange = Exchange::begin(plane, &caller, &entrance.carried);
    let checked = exchange.pace().and_then(|()| admit::head(&head, target).map_err(Refused::from));
    if let Err(refused) = checked {
        return refuse(exchange, &refused, entrance, (&head, &mut body)).await;
    }
    if models::is_asked(&head, path) {
        return match models::respond(&mut exchange, path) {
            Ok(response) => response,
            Err(refused) => refuse(exchange, &refused, entrance, (&head, &mut body)).await,
        };
    }
    match pass(&mut exchange, (&head, path), &mut body).await {
        Ok(answer) if complain::is_none(&answer.0) => complain::refuse(exchange).await,
        Ok(answer) if complain::is_error(answer.0.status()) => {
            complain::respond(exchange, answer, Words::of(entrance)).await
        }
        Ok(answer) => observe::respond(exchange, answer, Words::of(entrance)).await,
        Err(refused) => refuse(exchange, &refused, entrance, (&head, &mut body)).await,
    }
}

async fn refuse(
    exchange: Exchange,
    refused: &Refused,
    entrance: &Entrance,
    (head, body): (&Parts, &mut Incoming),
) -> Response<Body> {
    let dialect = exchange.route().dialect();
    released(exchange.refuse(refused)).await;
    // A client that waits for `100 Continue` is not asked for its body, and one that was too slow is not
    // waited for.
    if !head.headers.contains_key(header::EXPECT) && refused.timeout.is_none() {
        rewrite::discard(body, &entrance.carried).await;
        // What came belonged to this call and begins no other.
        entrance.carried.end();
    }
    if entrance.serves_gateways() {
        refusal::respond(&refused.to_a_gateway(), dialect)
    } else {
        refusal::respond(refused, dialect)
    }
}

/// Waits until an answer of Sluicegate's own may leave. It may also when the disk fails: it reports a failure
/// anyway.
async fn released(synced: Synced) {
    if let Err(error) = synced.await {
        tracing::error!(error = &error as &dyn std::error::Error, "a record may not be on the disk");
    }
}

/// From admission to the head of the upstream's answer.
async fn pass(
    exchange: &mut Exchange,
    (head, path): (&Parts, &str),
    body: &mut Incoming,
) -> Result<forward::Answer, Refused> {
    let route = admit::route(head, path)?;
    exchange.admit(route)?;
    forward::check(exchange)?;
    rewrite::is_plain(&head.headers)?;
    let mut held = Held::none(Arc::clone(&exchange.run().bodies), Arc::clone(&exchange.plane().bodies));
    let body = rewrite::read_body(exchange, body, &mut held).await?;
    let request = rewrite::request(exchange, &head.headers, &body)?;
    drop(body);
    forward::send(exchange, request).await
}

/// Answers `GET /health`: the socket works, and a run's own socket names the run. Needs no identity and is no
/// call.
fn health(entrance: &Entrance) -> Response<Body> {
    let text = match &entrance.way {
        Way::Own(run) => serde_json::json!({ "status": "ok", "runId": run.grant.run_id }).to_string(),
        Way::Shared(_) | Way::Gateway(_) => r#"{"status":"ok"}"#.to_owned(),
    };
    Body::json(text)
}

/// The route of a call that was not admitted far enough to have one.
const NO_ROUTE: Route = Route::Unknown;
