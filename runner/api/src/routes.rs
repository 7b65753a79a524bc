//! Lists the routes of the API, with the role that each demands.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{Method, header::CONTENT_TYPE},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post, put},
};
use platform_runtime::metrics;
use runner_model::principal::PrincipalRole;
use runner_telemetry::traces::{ApiRequest, Traces};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    accounts, agents,
    caller::{Guard, require_role},
    context::ApiContext,
    error::Error,
    freezes::{self, FREEZE_OF_ACCOUNT, FREEZE_OF_ALL, FREEZE_OF_MODEL, FREEZES},
    gateways, json_response,
    own_host::require_own_host,
    runs::{self, RUNS},
    trace_parent::trace_parent,
};

const METRICS: &str = "/metrics";
/// Longest time of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Route of the API.
struct Route {
    path: &'static str,
    /// Smallest role that it demands; absent if it is open to every client on this host.
    role: Option<PrincipalRole>,
    handler: MethodRouter<ApiContext>,
}

const fn open(path: &'static str, handler: MethodRouter<ApiContext>) -> Route {
    Route { path, role: None, handler }
}

const fn guarded(path: &'static str, role: PrincipalRole, handler: MethodRouter<ApiContext>) -> Route {
    Route { path, role: Some(role), handler }
}

/// Returns all routes. A path may have several, one for each role.
fn table() -> Vec<Route> {
    vec![
        open("/api/v1/ai/agents", get(agents::list_runnable)),
        open(METRICS, get(render_metrics)),
        open("/healthz", get(async || "ok\n")),
        open("/readyz", get(ready)),
        guarded("/api/v1/agents", PrincipalRole::Viewer, get(agents::list)),
        guarded("/api/v1/accounts", PrincipalRole::Viewer, get(accounts::list)),
        guarded("/api/v1/accounts/{account}", PrincipalRole::Viewer, get(accounts::show)),
        guarded("/api/v1/accounts/{account}/limits", PrincipalRole::Operator, put(accounts::limit)),
        guarded(FREEZES, PrincipalRole::Operator, get(freezes::list)),
        guarded(FREEZE_OF_ALL, PrincipalRole::Operator, put(freezes::freeze).delete(freezes::thaw)),
        guarded(FREEZE_OF_ACCOUNT, PrincipalRole::Operator, put(freezes::freeze).delete(freezes::thaw)),
        guarded(FREEZE_OF_MODEL, PrincipalRole::Operator, put(freezes::freeze).delete(freezes::thaw)),
        guarded("/api/v1/gateways", PrincipalRole::Operator, get(gateways::list)),
        guarded(RUNS, PrincipalRole::Viewer, get(runs::list)),
        guarded(RUNS, PrincipalRole::Member, post(runs::create)),
        guarded("/api/v1/runs/changes", PrincipalRole::Viewer, get(runs::changes)),
        guarded("/api/v1/runs/{run}", PrincipalRole::Viewer, get(runs::show)),
        guarded("/api/v1/runs/{run}", PrincipalRole::Member, put(runs::create_named)),
        guarded("/api/v1/runs/{run}/events", PrincipalRole::Viewer, get(runs::follow)),
        guarded("/api/v1/runs/{run}/logs", PrincipalRole::Viewer, get(runs::logs)),
        guarded("/api/v1/runs/{run}/files", PrincipalRole::Viewer, get(runs::list_files)),
        guarded("/api/v1/runs/{run}/files/{*path}", PrincipalRole::Viewer, get(runs::download)),
        guarded("/api/v1/runs/{run}/diff", PrincipalRole::Viewer, get(runs::diff)),
        guarded("/api/v1/runs/{run}/cancel", PrincipalRole::Member, post(runs::cancel)),
        guarded("/api/v1/runs/{run}/again", PrincipalRole::Member, post(runs::again)),
    ]
}

/// Returns the router of all routes.
pub(crate) fn router(context: &ApiContext) -> Router {
    let table = table();
    let paths = table.iter().map(|route| route.path).collect();
    let tracer = RequestTracer { traces: context.observer.traces.clone(), paths };
    let mut router = Router::new();
    for Route { path, role, handler } in table {
        let handler = match role {
            Some(role) => {
                let guard = Guard { context: context.clone(), role };
                handler.route_layer(middleware::from_fn_with_state(guard, require_role))
            }
            None => handler,
        };
        router = router.route(path, handler);
    }
    router
        .with_state(context.clone())
        .method_not_allowed_fallback(async || Error::Method)
        .fallback(async || Error::Route)
        .layer(middleware::from_fn(answer_in_time))
        .layer(middleware::from_fn(require_own_host))
        .layer(middleware::from_fn_with_state(tracer, trace_request))
}

/// Answers for a handler that takes too long.
async fn answer_in_time(request: Request, next: Next) -> Response {
    timeout(ANSWER_TIMEOUT, next.run(request))
        .await
        .unwrap_or_else(|_elapsed| Error::TimedOut.into_response())
}

/// Recorder of requests as spans.
#[derive(Debug, Clone)]
struct RequestTracer {
    traces: Option<Traces>,
    /// Paths of all routes: no client chooses the name of a span.
    paths: Arc<[&'static str]>,
}

/// Records the request as a span. Scrapes are left out: there would be too many.
async fn trace_request(State(tracer): State<RequestTracer>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = tracer.paths.iter().copied().find(|path| matched == Some(*path));
    let Some(traces) = tracer.traces.filter(|_| route != Some(METRICS)) else {
        return next.run(request).await;
    };
    let api_request = ApiRequest::now(method_word(request.method()), route, trace_parent(request.headers()));
    let response = next.run(request).await;
    traces.answered(api_request, response.status().as_u16());
    response
}

/// Returns a method as one of a few words, so that a client cannot choose a label.
fn method_word(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|word| *word == method.as_str()).unwrap_or("_OTHER")
}

/// Answers with the metrics in Prometheus's text format.
async fn render_metrics(State(context): State<ApiContext>) -> Response {
    let text = context.observer.metrics.render().await;
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

/// Answers whether runs can be ordered: the store is open and answers.
async fn ready(State(context): State<ApiContext>) -> Result<Response, Error> {
    context.opened().await?.store.queue().await?;
    Ok(json_response(&json!({ "ready": true })))
}
