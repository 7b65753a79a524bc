//! Lists the routes of the API, with the role that each demands.

use std::sync::Arc;

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{Method, header::CONTENT_TYPE},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, delete, get, post, put},
};
use platform_runtime::metrics;
use runner_model::principal::PrincipalRole;
use runner_telemetry::traces::{ApiRequest, Traces};
use serde_json::json;

use crate::{
    accounts, agents,
    answer_timeout::answer_in_time,
    browser_sessions::{self, SESSION},
    caller::{Guard, require_role},
    chat,
    context::ApiContext,
    error::Error,
    freezes::{self, FREEZE_OF_ACCOUNT, FREEZE_OF_ALL, FREEZE_OF_MODEL, FREEZES},
    gateways, json_response,
    openai::{self, in_openai_form},
    own_host::require_own_host,
    runs::{self, RUNS},
    threads,
    trace_parent::trace_parent,
};

const METRICS: &str = "/metrics";

/// Route of the API.
struct Route {
    path: &'static str,
    /// Smallest role that it demands; absent if it is open to every client on this host.
    role: Option<PrincipalRole>,
    handler: MethodRouter<ApiContext>,
    begin: Begin,
    errors: ErrorForm,
}

/// Time at which the answer of a route begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// Within [`crate::answer_timeout::ANSWER_TIMEOUT`].
    Soon,
    /// At the end of a run, if the client waits for it.
    AtEndOfRun,
}

/// Form of a route's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorForm {
    /// Problem details (RFC 9457).
    Problem,
    OpenAi,
}

impl Route {
    const fn new(path: &'static str, role: Option<PrincipalRole>, handler: MethodRouter<ApiContext>) -> Self {
        Self { path, role, handler, begin: Begin::Soon, errors: ErrorForm::Problem }
    }

    /// Returns the handler, with all that the route demands of its requests and answers.
    fn layered(self, context: &ApiContext) -> MethodRouter<ApiContext> {
        let mut handler = self.handler;
        if let Some(role) = self.role {
            let guard = Guard { context: context.clone(), role };
            handler = handler.route_layer(middleware::from_fn_with_state(guard, require_role));
        }
        if self.begin == Begin::Soon {
            handler = handler.route_layer(middleware::from_fn(answer_in_time));
        }
        match self.errors {
            ErrorForm::Problem => handler,
            ErrorForm::OpenAi => handler.route_layer(middleware::from_fn(in_openai_form)),
        }
    }
}

fn open(path: &'static str, handler: MethodRouter<ApiContext>) -> Route {
    Route::new(path, None, handler)
}

fn guarded(path: &'static str, role: PrincipalRole, handler: MethodRouter<ApiContext>) -> Route {
    Route::new(path, Some(role), handler)
}

/// Returns a route of the part of OpenAI's API that is served.
fn openai(path: &'static str, role: PrincipalRole, handler: MethodRouter<ApiContext>) -> Route {
    Route { errors: ErrorForm::OpenAi, ..Route::new(path, Some(role), handler) }
}

/// Returns all routes. A path may have several, one for each role.
fn table() -> Vec<Route> {
    vec![
        open("/api/v1/ai/agents", get(agents::list_runnable)),
        open(METRICS, get(render_metrics)),
        open("/healthz", get(async || "ok\n")),
        open("/readyz", get(ready)),
        guarded("/api/v1/ai/chat", PrincipalRole::Member, post(chat::create)),
        guarded("/api/v1/ai/chat/{thread}/stream", PrincipalRole::Viewer, get(chat::resume)),
        guarded("/api/v1/ai/chat/{thread}/stop", PrincipalRole::Member, post(chat::stop)),
        guarded(SESSION, PrincipalRole::Viewer, get(browser_sessions::show)),
        guarded(SESSION, PrincipalRole::Viewer, post(browser_sessions::sign_in)),
        guarded(SESSION, PrincipalRole::Viewer, delete(browser_sessions::sign_out)),
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
        guarded("/api/v1/threads", PrincipalRole::Viewer, get(threads::list)),
        guarded("/api/v1/threads/{thread}", PrincipalRole::Viewer, get(threads::show)),
        guarded("/api/v1/threads/{thread}", PrincipalRole::Member, delete(threads::remove)),
        openai("/v1/models", PrincipalRole::Viewer, get(openai::list_models)),
        openai("/v1/models/{model}", PrincipalRole::Viewer, get(openai::show_model)),
        Route {
            begin: Begin::AtEndOfRun,
            ..openai("/v1/chat/completions", PrincipalRole::Member, post(openai::complete))
        },
        guarded("/api/v1/runs/{run}/again", PrincipalRole::Member, post(runs::again)),
    ]
}

/// Returns the router of all routes.
pub(crate) fn router(context: &ApiContext) -> Router {
    let table = table();
    let paths = table.iter().map(|route| route.path).collect();
    let tracer = RequestTracer { traces: context.observer.traces.clone(), paths };
    let mut router = Router::new();
    for route in table {
        router = router.route(route.path, route.layered(context));
    }
    router
        .with_state(context.clone())
        .method_not_allowed_fallback(async || Error::Method)
        .fallback(async || Error::Route)
        .layer(middleware::from_fn_with_state(context.origins.clone(), require_own_host))
        .layer(middleware::from_fn_with_state(tracer, trace_request))
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
