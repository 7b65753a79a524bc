//! Lists the routes of the API, with the role that each demands.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{Method, header::CONTENT_TYPE},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use runner_model::principal::PrincipalRole;
use runner_telemetry::traces::{ApiRequest, Traces};
use tokio::time::timeout;

use crate::{
    agents,
    context::ApiContext,
    endpoint::{Route, get, guarded, open, post, put},
    error::Error,
    monitoring, openapi,
    operation::{AnswerSpec, Operation},
    own_host::require_own_host,
    runs::{self, RUNS, operations},
    trace_parent::trace_parent,
};

const METRICS: &str = "/metrics";
/// Longest time of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The OpenAPI document of the table below.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document(&table()));

/// Returns the OpenAPI document of the API, as JSON.
#[must_use]
pub fn openapi_document() -> &'static str {
    &DOCUMENT
}

/// Returns all routes. A path may have several, one for each method.
fn table() -> Vec<Route> {
    vec![
        open("/api/v1/ai/agents", get(agents::list, agents::list_operation())),
        open("/api/v1/openapi.json", get(serve_document, document_operation())),
        open(METRICS, get(monitoring::render_metrics, monitoring::metrics_operation())),
        open("/healthz", get(monitoring::alive, monitoring::alive_operation())),
        open("/readyz", get(monitoring::ready, monitoring::ready_operation())),
        guarded(RUNS, PrincipalRole::Viewer, get(runs::list, operations::list())),
        guarded(RUNS, PrincipalRole::Member, post(runs::create, operations::create())),
        guarded("/api/v1/runs/{run}", PrincipalRole::Viewer, get(runs::show, operations::show())),
        guarded(
            "/api/v1/runs/{run}",
            PrincipalRole::Member,
            put(runs::create_named, operations::create_named()),
        ),
        guarded("/api/v1/runs/{run}/events", PrincipalRole::Viewer, get(runs::follow, operations::follow())),
        guarded("/api/v1/runs/{run}/cancel", PrincipalRole::Member, post(runs::cancel, operations::cancel())),
    ]
}

/// Returns the router of all routes.
pub(crate) fn router(context: &ApiContext) -> Router {
    let table = table();
    let paths = table.iter().map(|route| route.path).collect();
    let tracer = RequestTracer { traces: context.observer.traces.clone(), paths };
    let mut router = Router::new();
    for route in table {
        router = router.route(route.path, route.handler(context));
    }
    router
        .with_state(context.clone())
        .method_not_allowed_fallback(async || Error::Method)
        .fallback(async || Error::Route)
        .layer(middleware::from_fn(answer_in_time))
        .layer(middleware::from_fn(require_own_host))
        .layer(middleware::from_fn_with_state(tracer, trace_request))
}

/// Answers with the OpenAPI document.
async fn serve_document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], openapi_document())
}

fn document_operation() -> Operation {
    let document = AnswerSpec::object("The document.");
    Operation::new("readDocument", "Answers with the OpenAPI document of this API.", document)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Generators of clients make functions of the ids.
    #[test]
    fn each_operation_has_an_id_of_its_own() {
        let table = table();
        let ids: BTreeSet<_> = table.iter().map(|route| route.endpoint.operation.id).collect();
        assert_eq!(ids.len(), table.len(), "{ids:?}");
    }
}
