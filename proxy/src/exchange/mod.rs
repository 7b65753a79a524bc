//! Carries a call through its life, one file per step, in this order:
//!
//! [`accept`] → [`mod@identify`] → [`admit`] → [`rewrite`] → [`forward`] → [`observe`] or [`upstream_error`]
//! → [`settle`]
//!
//! Knows nothing of control: a call meets control only in its [`crate::run::Run`], which is closed under it, and in the
//! [`Snapshot`], which it loads once.

mod accept;
mod admit;
mod body;
mod connection_limits;
mod connection_state;
mod forward;
#[cfg(feature = "internals")]
pub(crate) mod fuzzing;
mod gateway_socket;
mod head_memory;
mod identify;
mod inbound;
mod models;
mod observe;
mod passed;
mod record_builder;
mod redact;
mod rewrite;
mod sensor_io;
mod settle;
mod timed_connection;
mod timeouts;
mod unserved;
mod upstream_error;
mod write_tracker;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{HeaderValue, Method, Request, Response, header, request::Parts};
use hyper::body::Incoming;
use platform_core::{route::Route, token::Secrets};
use platform_runtime::report;

pub(crate) use self::{
    accept::{GatewayListener, RunSocketListener, SharedListener},
    body::{Body, BrokenOff},
    connection_limits::{ConnectionLimits, raise_descriptor_limit},
    gateway_socket::GatewaySocket,
    head_memory::HeadMemory,
    models::DefaultModels,
    rewrite::{Identification, Label, Policy, Reason, Rejection, Rejections},
    write_tracker::WriteTracker,
};
use self::{
    identify::{Caller, Ingress, ListenerKind, identify},
    inbound::Target,
    settle::Exchange,
    upstream_error::ErrorDetail,
};
use crate::{
    body_memory::{BodyMemory, BodyPermit},
    budget::Prices,
    clock::CallIds,
    freezes::Freezes,
    journal::{Committer, Durable},
    mask::Mask,
    metrics::ForThread,
    refusal::{self, Refused},
    registry::RunRegistry,
    run::Run,
    upstream::Upstream,
};

/// Part of the configuration that calls use. Immutable; a reload replaces it whole.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Longest time that a client may take to send a request's head.
    pub(crate) header_read_timeout: Duration,
    /// Longest time that a client's connection may be idle between two calls.
    pub(crate) keep_alive_timeout: Duration,
    /// The upstream's credential.
    pub(crate) authorization: Option<HeaderValue>,
    /// Texts that no agent receives: the upstream's key and address, and their earlier values.
    pub(crate) redacted_terms: Arc<[String]>,
    /// Mask of the key and of the token secrets, with their earlier values, in everything that agents are sent.
    pub(crate) mask: Arc<Mask>,
    /// Secrets that sign run tokens.
    pub(crate) secrets: Arc<Secrets>,
    /// Prices of tokens.
    pub(crate) prices: Prices,
    /// Models of runs that name none.
    pub(crate) default_models: DefaultModels,
    /// Time for which a token stays valid beyond its expiry.
    pub(crate) token_leeway: Duration,
}

/// Everything a data-plane thread needs to serve calls.
#[derive(Debug)]
pub(crate) struct ServeContext {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) journal: Committer,
    /// Live runs and their correlations, for calls that have to prove their run.
    pub(crate) registry: Arc<RunRegistry>,
    /// Freezes that an operator has set.
    pub(crate) freezes: Arc<Freezes>,
    /// Run under which unattributed calls are recorded.
    pub(crate) unattributed_run: Arc<Run>,
    /// Memory for the request bodies of all runs.
    pub(crate) body_memory: Arc<BodyMemory>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    /// Counters of this thread.
    pub(crate) metrics: Arc<ForThread>,
    /// Limits of connections.
    pub(crate) connection_limits: ConnectionLimits,
    pub(crate) call_ids: CallIds,
    /// Answers that clients have not taken yet.
    pub(crate) write_tracker: Arc<WriteTracker>,
}

/// Answers one request of a connection.
async fn serve(context: &Arc<ServeContext>, ingress: &Ingress, request: Request<Incoming>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    let target = ingress.connection_state.take_head(admit::size(&head));
    if head.uri.path() == "/health" && head.method == Method::GET && target == Target::Plain {
        ingress.connection_state.end_call();
        return health(ingress);
    }
    let (caller, path) = match identify(context, ingress, &head) {
        Ok(identified) => identified,
        Err(reason) => {
            let exchange =
                Exchange::begin(context, &Caller::unattributed(context), &ingress.connection_state);
            return refuse(exchange, &reason.into(), ingress, &head, &mut body).await;
        }
    };
    let mut exchange = Exchange::begin(context, &caller, &ingress.connection_state);
    let checked = exchange.pace().and_then(|()| admit::check_head(&head, target).map_err(Refused::from));
    if let Err(refused) = checked {
        return refuse(exchange, &refused, ingress, &head, &mut body).await;
    }
    if models::is_models_request(&head, path) {
        return match models::respond(&mut exchange, path) {
            Ok(response) => response,
            Err(refused) => refuse(exchange, &refused, ingress, &head, &mut body).await,
        };
    }
    match pass(&mut exchange, &head, path, &mut body).await {
        Ok(answer) if upstream_error::is_no_answer(&answer.0) => upstream_error::refuse(exchange).await,
        Ok(answer) if upstream_error::is_error(answer.0.status()) => {
            upstream_error::respond(exchange, answer, ErrorDetail::of(ingress)).await
        }
        Ok(answer) => observe::respond(exchange, answer, ErrorDetail::of(ingress)).await,
        Err(refused) => refuse(exchange, &refused, ingress, &head, &mut body).await,
    }
}

async fn refuse(
    exchange: Exchange,
    refused: &Refused,
    ingress: &Ingress,
    head: &Parts,
    body: &mut Incoming,
) -> Response<Body> {
    let dialect = exchange.route().dialect();
    wait_until_durable(exchange.refuse(refused)).await;
    // A client that waits for `100 Continue` need not send its body, and one that was too slow is not waited for.
    if !head.headers.contains_key(header::EXPECT) && refused.timeout.is_none() {
        rewrite::discard(body, &ingress.connection_state).await;
        // The bytes that came belong to this call and begin no other.
        ingress.connection_state.end_call();
    }
    if ingress.serves_gateways() {
        refusal::respond(&refused.for_gateway(), dialect)
    } else {
        refusal::respond(refused, dialect)
    }
}

/// Waits until an answer of Sluicegate's own may be sent. A failed disk does not hold it back: it reports a failure
/// anyway.
async fn wait_until_durable(record: Durable) {
    if let Err(error) = record.await {
        tracing::error!(error = report::chain(&error), "a record may not be on the disk");
    }
}

/// Passes a call on, from admission to the head of the upstream's answer.
async fn pass(
    exchange: &mut Exchange,
    head: &Parts,
    path: &str,
    body: &mut Incoming,
) -> Result<forward::Answer, Refused> {
    let route = admit::find_route(head, path)?;
    exchange.admit(route)?;
    forward::check(exchange)?;
    rewrite::require_plain(&head.headers)?;
    let mut permit = BodyPermit::empty(
        Arc::clone(&exchange.run().body_memory),
        Arc::clone(&exchange.context().body_memory),
    );
    let body = rewrite::read_body(exchange, body, &mut permit).await?;
    let request = rewrite::build_request(exchange, &head.headers, &body)?;
    drop(body);
    forward::send(exchange, request).await
}

/// Answers `GET /health`: the socket works, and a run's own socket names the run. Needs no identity and is no
/// call.
fn health(ingress: &Ingress) -> Response<Body> {
    let text = match &ingress.listener {
        ListenerKind::Run(run) => {
            serde_json::json!({ "status": "ok", "runId": run.grant.run_id }).to_string()
        }
        ListenerKind::Shared(_) | ListenerKind::Gateway(_) => r#"{"status":"ok"}"#.to_owned(),
    };
    Body::json(text)
}

/// Route of a call that was refused before its route was known.
const NO_ROUTE: Route = Route::Unknown;
