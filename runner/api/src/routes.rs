//! Lists the routes of the API, with the role that each demands.

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{
        HeaderValue, Method,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use runner_engine::observer::Observer;
use runner_model::principal::PrincipalRole;
use runner_telemetry::{
    metrics::Metrics,
    traces::{ApiRequest, Traces},
};

use crate::{
    accounts, agent_draft, agents, approvals, balances,
    browser_sessions::{self, SESSION},
    chat::{self, operations as chats},
    connections::{self, CONNECTIONS},
    context::ApiContext,
    csp_reports,
    dashboard::{CSP_REPORTS, Dashboard},
    dashboard_config,
    endpoint::{Route, delete, get, guarded, open, openai, post, put},
    error::Error,
    freezes::{self, FREEZE_OF_ACCOUNT, FREEZE_OF_ALL, FREEZE_OF_MODEL, FREEZES},
    gateways,
    ingest::{self, INGEST},
    monitoring,
    openai::{self, operations as completions},
    openapi,
    operation::{AnswerSpec, Operation},
    overview,
    own_host::require_own_host,
    pages, proposals, repos,
    runs::{self, RUNS, operations},
    session_link::{self, LINK},
    system, threads,
    trace_parent::trace_parent,
};

const METRICS: &str = "/metrics";
const PROPOSALS: &str = "/api/v1/agents/proposals";

/// The OpenAPI document of the table below.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document(&table()));

/// Returns the OpenAPI document of the API, as JSON.
#[must_use]
pub fn openapi_document() -> &'static str {
    &DOCUMENT
}

/// Returns all routes. A path may have several, one for each method.
fn table() -> Vec<Route> {
    [
        service_routes(),
        chat_routes(),
        data_plane_routes(),
        gateway_routes(),
        connection_routes(),
        run_routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn gateway_routes() -> Vec<Route> {
    use PrincipalRole::{Member, Operator, Viewer};
    const AGENTS: &str = "/api/v1/gateways/{gateway}/agents";
    const AGENT: &str = "/api/v1/gateways/{gateway}/agents/{agent}";
    const FILES: &str = "/api/v1/gateways/{gateway}/agents/{agent}/files";
    const FILE: &str = "/api/v1/gateways/{gateway}/agents/{agent}/files/{file}";
    const EXPLAIN: &str = "/api/v1/gateways/{gateway}/agents/{agent}/explain";
    const SESSIONS: &str = "/api/v1/gateways/{gateway}/agents/{agent}/sessions";
    const WORKSPACE: &str = "/api/v1/gateways/{gateway}/agents/{agent}/workspace";
    const WORKSPACE_FILE: &str = "/api/v1/gateways/{gateway}/agents/{agent}/workspace/{*path}";
    use gateways as g;
    vec![
        guarded("/api/v1/gateways", Viewer, get(g::list, g::list_operation())),
        guarded("/api/v1/gateways/{gateway}/check", Operator, get(g::check, g::check_operation())),
        guarded("/api/v1/gateways/{gateway}/start", Operator, post(g::start, g::start_operation())),
        guarded("/api/v1/gateways/{gateway}/stop", Operator, post(g::stop, g::stop_operation())),
        guarded("/api/v1/gateways/{gateway}/log", Operator, get(g::show_log, g::show_log_operation())),
        // Its first frame says who the client is.
        open("/api/v1/gateways/{gateway}/ws", get(g::open_socket, g::open_socket_operation())),
        guarded(AGENTS, Viewer, get(g::list_agents, g::list_agents_operation())),
        guarded(AGENTS, Member, post(g::create_agent, g::create_agent_operation())),
        guarded(AGENT, Viewer, get(g::show_agent, g::show_agent_operation())),
        guarded(AGENT, Member, put(g::change_agent, g::change_agent_operation())),
        guarded(AGENT, Member, delete(g::remove_agent, g::remove_agent_operation())),
        guarded(FILES, Viewer, get(g::list_files, g::list_files_operation())),
        guarded(FILE, Member, put(g::put_file, g::put_file_operation())),
        guarded(FILE, Member, delete(g::remove_file, g::remove_file_operation())),
        guarded(EXPLAIN, Viewer, get(g::explain_agent, g::explain_agent_operation())),
        guarded(SESSIONS, Viewer, get(g::list_sessions, g::list_sessions_operation())),
        guarded(WORKSPACE, Viewer, get(g::list_workspace, g::list_workspace_operation())),
        guarded(WORKSPACE_FILE, Viewer, get(g::read_workspace_file, g::read_workspace_file_operation())),
    ]
}

fn connection_routes() -> Vec<Route> {
    use PrincipalRole::Member;
    vec![
        guarded(CONNECTIONS, Member, get(connections::list, connections::list_operation())),
        guarded(CONNECTIONS, Member, post(connections::add, connections::add_operation())),
        guarded(
            "/api/v1/connections/{connection}",
            Member,
            delete(connections::remove, connections::remove_operation()),
        ),
        guarded(
            "/api/v1/connections/{connection}/test",
            Member,
            post(connections::test, connections::test_operation()),
        ),
    ]
}

fn service_routes() -> Vec<Route> {
    use PrincipalRole::{Member, Operator, Viewer};
    use browser_sessions as sessions;
    vec![
        open("/api/v1/ai/agents", get(agents::list_runnable, agents::list_runnable_operation())),
        guarded("/api/v1/ai/overview", Viewer, get(overview::show, overview::show_operation())),
        open("/api/v1/openapi.json", get(serve_document, document_operation())),
        open(INGEST, post(ingest::ingest, ingest::ingest_operation())),
        open(METRICS, get(monitoring::render_metrics, monitoring::metrics_operation())),
        open("/healthz", get(monitoring::alive, monitoring::alive_operation())),
        open("/readyz", get(monitoring::ready, monitoring::ready_operation())),
        guarded(SESSION, Viewer, get(sessions::show, sessions::show_operation())),
        guarded(SESSION, Viewer, post(sessions::sign_in, sessions::sign_in_operation())).with_token_alone(),
        open(LINK, post(session_link::redeem, session_link::redeem_operation())),
        open(CSP_REPORTS, post(csp_reports::take, csp_reports::take_operation())),
        guarded(SESSION, Viewer, delete(sessions::sign_out, sessions::sign_out_operation())),
        guarded("/api/v1/repos", Member, get(repos::list, repos::list_operation())),
        guarded(
            "/api/v1/repos/{repository}/refresh",
            Member,
            post(repos::refresh, repos::refresh_operation()),
        ),
        guarded("/api/v1/agents/draft", Operator, post(agent_draft::draft, agent_draft::draft_operation())),
        guarded(
            "/api/v1/agents/{agent}/behaviour/draft",
            Operator,
            post(agent_draft::draft_behaviour, agent_draft::draft_behaviour_operation()),
        ),
        guarded(PROPOSALS, Operator, post(proposals::propose, proposals::propose_operation())),
        guarded(PROPOSALS, Viewer, get(proposals::list, proposals::list_operation())),
        guarded(
            "/api/v1/agents/proposals/{proposal}",
            Viewer,
            get(proposals::show, proposals::show_operation()),
        ),
        guarded("/api/v1/dashboard", Viewer, get(dashboard_config::show, dashboard_config::show_operation())),
        guarded("/api/v1/agents", Viewer, get(agents::list, agents::list_operation())),
    ]
}

fn chat_routes() -> Vec<Route> {
    use PrincipalRole::{Member, Viewer};
    vec![
        guarded("/api/v1/ai/chat", Member, post(chat::create, chats::create())),
        guarded("/api/v1/ai/chat/{thread}/stream", Viewer, get(chat::resume, chats::resume())),
        guarded("/api/v1/ai/chat/{thread}/stop", Member, post(chat::stop, chats::stop())),
        guarded("/api/v1/threads", Viewer, get(threads::list, threads::list_operation())),
        guarded("/api/v1/threads/{thread}", Viewer, get(threads::show, threads::show_operation())),
        guarded("/api/v1/threads/{thread}", Member, delete(threads::remove, threads::remove_operation())),
        openai("/v1/models", Viewer, get(openai::list_models, completions::list_models())),
        openai("/v1/models/{model}", Viewer, get(openai::show_model, completions::show_model())),
        openai("/v1/chat/completions", Member, post(openai::complete, completions::complete()))
            .at_end_of_run(),
    ]
}

fn data_plane_routes() -> Vec<Route> {
    use PrincipalRole::{Operator, Viewer};
    use freezes::{freeze, freeze_operation, thaw, thaw_operation};
    let freezes = [
        (FREEZE_OF_ALL, ["freezeAll", "thawAll"]),
        (FREEZE_OF_ACCOUNT, ["freezeAccount", "thawAccount"]),
        (FREEZE_OF_MODEL, ["freezeModel", "thawModel"]),
    ];
    let freezes = freezes.into_iter().flat_map(|(path, [frozen, thawed])| {
        let freeze = guarded(path, Operator, put(freeze, freeze_operation(frozen)));
        [freeze, guarded(path, Operator, delete(thaw, thaw_operation(thawed)))]
    });
    let others = [
        guarded("/api/v1/accounts", Viewer, get(accounts::list, accounts::list_operation())),
        guarded("/api/v1/accounts/{account}", Viewer, get(accounts::show, accounts::show_operation())),
        guarded(
            "/api/v1/accounts/{account}/limits",
            Operator,
            put(accounts::limit, accounts::limit_operation()),
        ),
        guarded(
            "/api/v1/accounts/{account}/balance",
            Viewer,
            get(balances::show, balances::show_operation()),
        ),
        guarded(
            "/api/v1/accounts/{account}/statement",
            Viewer,
            get(balances::statement, balances::statement_operation()),
        ),
        guarded(
            "/api/v1/accounts/{account}/receipts",
            Viewer,
            get(balances::receipts, balances::receipts_operation()),
        ),
        guarded(
            "/api/v1/accounts/{account}/credits",
            Operator,
            post(balances::credit, balances::credit_operation()),
        ),
        guarded(FREEZES, Operator, get(freezes::list, freezes::list_operation())),
        guarded("/api/v1/system", Operator, get(system::show, system::show_operation())),
    ];
    others.into_iter().chain(freezes).collect()
}

fn run_routes() -> Vec<Route> {
    use PrincipalRole::{Member, Viewer};
    vec![
        guarded(RUNS, Viewer, get(runs::list, operations::list())),
        guarded(RUNS, Member, post(runs::create, operations::create())),
        guarded("/api/v1/runs/changes", Viewer, get(runs::changes, operations::changes())),
        guarded("/api/v1/runs/{run}", Viewer, get(runs::show, operations::show())),
        guarded("/api/v1/runs/{run}", Member, put(runs::create_named, operations::create_named())),
        guarded("/api/v1/runs/{run}", Member, delete(runs::forget, operations::forget())),
        guarded("/api/v1/runs/{run}/events", Viewer, get(runs::follow, operations::follow())),
        guarded("/api/v1/runs/{run}/logs", Viewer, get(runs::logs, operations::logs())),
        guarded("/api/v1/runs/{run}/calls", Viewer, get(runs::list_calls, operations::list_calls())),
        guarded("/api/v1/runs/{run}/files", Viewer, get(runs::list_files, operations::list_files())),
        guarded("/api/v1/runs/{run}/files/{*path}", Viewer, get(runs::download, operations::download())),
        guarded("/api/v1/runs/{run}/diff", Viewer, get(runs::diff, operations::diff())),
        guarded("/api/v1/runs/{run}/cancel", Member, post(runs::cancel, operations::cancel())),
        guarded(
            "/api/v1/runs/{run}/tools",
            Viewer,
            get(runs::list_tool_calls, operations::list_tool_calls()),
        ),
        guarded("/api/v1/approvals", Viewer, get(approvals::list, approvals::list_operation())),
        guarded(
            "/api/v1/runs/{run}/tools/{call}/approve",
            Member,
            post(approvals::approve, approvals::approve_operation()),
        ),
        guarded(
            "/api/v1/runs/{run}/tools/{call}/deny",
            Member,
            post(approvals::deny, approvals::deny_operation()),
        ),
        guarded("/api/v1/runs/{run}/again", Member, post(runs::again, operations::again())),
    ]
}

/// Returns the router of all routes.
pub(crate) fn router(context: &ApiContext) -> Router {
    let table = table();
    let paths = table.iter().map(|route| route.path).collect();
    let Observer { traces, metrics, .. } = context.observer.clone();
    let observer = RequestObserver { traces, metrics, paths };
    let mut router = Router::new();
    for route in table {
        router = router.route(route.path, route.layered(context));
    }
    router
        .with_state(context.clone())
        .method_not_allowed_fallback(async || Error::Method)
        .fallback(async || Error::Route)
        .layer(middleware::from_fn_with_state(context.origins.clone(), require_own_host))
        .layer(middleware::from_fn_with_state(observer, observe_request))
        .layer(middleware::map_response(protect_answer))
        .merge(pages::router(Dashboard::embedded(), &context.origins))
}

/// Forbids browsers to take an answer for another type than the stated one, to show it in a frame, and to load or run
/// anything from it: many hold text of agents. No cache keeps it, because answers differ by caller.
async fn protect_answer(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answers with the OpenAPI document.
async fn serve_document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], openapi_document())
}

fn document_operation() -> Operation {
    let document = AnswerSpec::object("The document.");
    Operation::new("readDocument", "Answers with the OpenAPI document of this API.", document)
}

/// Recorder of requests, as spans and in metrics.
#[derive(Debug, Clone)]
struct RequestObserver {
    traces: Option<Traces>,
    metrics: Arc<Metrics>,
    /// Paths of all routes: no client chooses the name of a span.
    paths: Arc<[&'static str]>,
}

/// Records the request. Scrapes are left out: there would be too many.
async fn observe_request(State(observer): State<RequestObserver>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = observer.paths.iter().copied().find(|path| matched == Some(*path));
    if route == Some(METRICS) {
        return next.run(request).await;
    }
    let began = Instant::now();
    let api_request = ApiRequest::now(method_word(request.method()), route, trace_parent(request.headers()));
    let response = next.run(request).await;
    let status = response.status().as_u16();
    observer.metrics.api_answered(status, began.elapsed());
    if let Some(traces) = observer.traces {
        traces.answered(api_request, status);
    }
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
