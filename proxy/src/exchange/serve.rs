//! Takes a request through the phases of its call, and answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, header, request::Parts};
use hyper::body::Incoming;
use platform_core::{name, refusal::Refusal, route::Route};

use super::{
    admit,
    body::Body,
    call::Exchange,
    context::ServeContext,
    forward,
    identify::{Caller, identify},
    json_response, models,
    observe::{self, Answered},
    rewrite::{self, BodyLimit},
    tools::{self, ToolCallHead},
    upstream_error::{self, ErrorDetail},
};
use crate::{
    body_memory::BodyPermit,
    refusal::{self, Refused},
    server::{CallService, IdleTimeouts, Ingress, ListenerKind, Target},
};

impl CallService for Arc<ServeContext> {
    type Body = Body;

    fn idle_timeouts(&self) -> IdleTimeouts {
        let snapshot = self.snapshot.load();
        IdleTimeouts {
            head: snapshot.header_read_timeout,
            keep_alive: snapshot.keep_alive_timeout,
            client_gone: snapshot.client_gone_timeout,
        }
    }

    fn respond(&self, ingress: &Ingress, request: Request<Incoming>) -> impl Future<Output = Response<Body>> {
        serve(self, ingress, request)
    }

    fn record_refusal(&self, ingress: &Ingress, reason: Refusal) {
        let caller = match &ingress.listener {
            ListenerKind::Run(run) => Caller::on_socket(run),
            ListenerKind::Shared(_) | ListenerKind::Gateway(_) => Caller::unattributed(self),
        };
        let exchange = Exchange::begin(self, &caller, &ingress.connection_state);
        // The call counts against the rate; exceeding it changes nothing for a connection that has ended.
        drop(exchange.pace());
        drop(exchange.refuse(&reason.into()));
    }
}

/// Answers one request of a connection.
async fn serve(context: &Arc<ServeContext>, ingress: &Ingress, request: Request<Incoming>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    let target = ingress.connection_state.take_head(admit::size(&head));
    if head.uri.path() == "/health" && head.method == Method::GET && target == Target::Plain {
        ingress.connection_state.end_call();
        return health(ingress).map(Body::from);
    }
    let (caller, path) = match identify(context, ingress, &head) {
        Ok(identified) => identified,
        Err(refused) => {
            let mut exchange =
                Exchange::begin(context, &Caller::unattributed(context), &ingress.connection_state);
            exchange.note_tool_path(head.uri.path());
            return refuse(exchange, &refused, ingress, &head, &mut body).await;
        }
    };
    let mut exchange = Exchange::begin(context, &caller, &ingress.connection_state);
    let route = admit::find_route(&head, path);
    if tools::is_tool_call(route) {
        let call = ToolCallHead { parts: &head, path, target, route };
        // In a box, so that model calls need no memory for its state.
        return Box::pin(serve_tool_call(exchange, ingress, call, &mut body)).await;
    }
    let checked = exchange.pace().and_then(|()| admit::check_head(&head, target).map_err(Refused::from));
    if let Err(refused) = checked {
        return refuse(exchange, &refused, ingress, &head, &mut body).await;
    }
    if models::is_models_request(&head, path) {
        return match models::respond(&mut exchange, path) {
            Ok(response) => response.map(Body::from),
            Err(refused) => refuse(exchange, &refused, ingress, &head, &mut body).await,
        };
    }
    let passed = pass(&mut exchange, &head, route, &mut body).await;
    let output_limit = exchange.output_limit;
    let mut response = match passed {
        Ok(answer) if upstream_error::is_no_answer(&answer.0) => {
            upstream_error::refuse(exchange, &answer.0).await.map(Body::from)
        }
        Ok(answer) if upstream_error::is_error(answer.0.status()) => {
            upstream_error::respond(exchange, answer, ErrorDetail::of(ingress)).await.map(Body::from)
        }
        Ok(answer) => match observe::respond(exchange, answer, ErrorDetail::of(ingress)).await {
            Answered::Passing(response) => response.map(Body::from),
            Answered::Replaced(response) => response.map(Body::from),
        },
        Err(refused) => refuse(exchange, &refused, ingress, &head, &mut body).await,
    };
    if let Some(tokens) = output_limit {
        response.headers_mut().insert(HeaderName::from_static(name::header::OUTPUT_LIMIT), tokens.into());
    }
    response
}

/// Answers a call of a host tool.
async fn serve_tool_call(
    mut exchange: Exchange,
    ingress: &Ingress,
    call: ToolCallHead<'_>,
    body: &mut Incoming,
) -> Response<Body> {
    match tools::respond(&mut exchange, ingress, call, body).await {
        Ok(response) => response.map(Body::from),
        Err(refused) => refuse(exchange, &refused, ingress, call.parts, body).await,
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
    exchange.refuse(refused).wait().await;
    // A client that waits for `100 Continue` need not send its body, and one that was too slow is not waited for.
    if !head.headers.contains_key(header::EXPECT) && refused.timeout.is_none() {
        rewrite::discard(body, &ingress.connection_state).await;
        // The bytes that came belong to this call and begin no other.
        ingress.connection_state.end_call();
    }
    let response = if ingress.serves_gateways() {
        refusal::respond(&refused.for_gateway(), dialect)
    } else {
        refusal::respond(refused, dialect)
    };
    response.map(Body::from)
}

/// Passes a call on, from admission to the head of the upstream's answer.
async fn pass(
    exchange: &mut Exchange,
    head: &Parts,
    route: Result<Route, Refusal>,
    body: &mut Incoming,
) -> Result<forward::Answer, Refused> {
    exchange.admit(route?)?;
    forward::check(exchange)?;
    let mut permit = BodyPermit::empty(
        Arc::clone(&exchange.run().body_memory),
        Arc::clone(&exchange.context().body_memory),
    );
    let limit = BodyLimit { bytes: exchange.run().grant.limits.request_body, setting: "max_request_body" };
    let body = rewrite::read_plain_body(exchange, &head.headers, body, &mut permit, limit).await?;
    let mut request = rewrite::build_request(exchange, &head.headers, &body)?;
    drop(body);
    exchange.authorize(&mut request).await?;
    forward::send(exchange, request).await
}

/// Answers `GET /health`: the socket works, and a run's own socket names the run. Needs no identity and is not a call.
fn health(ingress: &Ingress) -> Response<Bytes> {
    let text = match &ingress.listener {
        ListenerKind::Run(run) => {
            serde_json::json!({ "status": "ok", "runId": run.grant.run_id }).to_string()
        }
        ListenerKind::Shared(_) | ListenerKind::Gateway(_) => r#"{"status":"ok"}"#.to_owned(),
    };
    json_response(text)
}
