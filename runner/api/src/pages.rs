//! Serves the pages of the dashboard and their files. They hold no data: what a page shows, it asks the API for.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::HeaderMap,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};

use crate::{
    body::ObjectId,
    dashboard::{Dashboard, SECTIONS, harden},
    error::Error,
    origins::Origins,
    own_host::check_page_headers,
};

/// Returns the router of all pages, which only requests to the API's own names reach.
pub(crate) fn router(dashboard: Dashboard, origins: &Origins) -> Router {
    let mut router = Router::new().route("/", get(page)).route("/assets/{*name}", get(asset));
    for section in SECTIONS {
        for path in ["", "/", "/{*rest}"] {
            router = router.route(&format!("/{section}{path}"), get(page));
        }
    }
    router
        .with_state(dashboard)
        .method_not_allowed_fallback(async || Error::Method)
        .layer(middleware::from_fn_with_state(origins.clone(), require_own_name))
        .layer(middleware::map_response(hardened))
}

async fn page(State(dashboard): State<Dashboard>, headers: HeaderMap) -> Response {
    with_body(dashboard.page(&headers))
}

async fn asset(
    State(dashboard): State<Dashboard>,
    ObjectId(name): ObjectId,
    headers: HeaderMap,
) -> Result<Response, Error> {
    dashboard.asset(&name, &headers).map(with_body).ok_or(Error::Route)
}

fn with_body(response: axum::http::Response<Bytes>) -> Response {
    response.map(Body::from)
}

async fn require_own_name(State(origins): State<Origins>, request: Request, next: Next) -> Response {
    match check_page_headers(request.method(), request.headers(), &origins) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Adds the headers of pages to refusals, too.
async fn hardened(mut response: Response) -> Response {
    harden(response.headers_mut());
    response
}
