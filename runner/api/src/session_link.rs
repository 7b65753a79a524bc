//! Serves the route at which a browser signs in with a link of `sluice dashboard`.
//!
//! The link has its code behind `#`, which no browser sends in a request or a referrer: the page reads it and sends it
//! here. Only a page of the API's own origins may.

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode},
    response::Response,
};
use platform_runtime::random;
use runner_model::principal::{BrowserSessionId, SignInCode};
use runner_telemetry::metrics::SignInWay;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    body::read_json,
    browser_sessions::{SessionView, session_begins},
    caller::Caller,
    context::ApiContext,
    error::Error,
    operation::{AnswerSpec, Operation},
    own_page::require_own_page,
    problem::Problem,
};

/// Path of the route.
pub(crate) const LINK: &str = "/api/v1/session/link";
/// Largest body: a code, and what a client writes around it.
const MAX_BODY: usize = 512;

/// Code of a link.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SignInLink)]
#[serde(deny_unknown_fields)]
struct LinkBody {
    /// Text that the link has behind `#code=`.
    code: String,
}

/// Begins a session with a link, which ends by that.
pub(crate) async fn redeem(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    require_own_page(&Method::POST, request.headers(), &context.origins)?;
    let LinkBody { code } = read_json(request, MAX_BODY).await?;
    let refused = || context.sign_in_attempts.refused(SignInWay::Link);
    let code = SignInCode::parse(&code).ok_or_else(refused)?;
    let id = BrowserSessionId::from_random([random::bits(), random::bits()]);
    let store = &context.opened().await?.store;
    let principal = store.redeem_sign_in_link(&code.hash(), &id.hash()).await?.ok_or_else(refused)?;
    context.sign_in_attempts.accepted(SignInWay::Link);
    let caller = Caller::Browser(Box::new(principal), id.hash());
    Ok(session_begins(&context, &id, &caller))
}

pub(crate) fn redeem_operation() -> Operation {
    let session = AnswerSpec::json::<SessionView<'_>>(StatusCode::CREATED, "For whom the session acts.")
        .with_header("set-cookie", "Cookie of the session.");
    Operation::new("signInWithLink", "Begins a session with a link of `sluice dashboard`.", session)
        .described(
            "For the dashboard's own page alone, which sends its `Origin`. A link works once, within two minutes, and as \
             long as its principal has the same token. No answer says which of these a refused one lacks.",
        )
        .body::<LinkBody>(&json!({ "code": "0".repeat(64) }))
        .refuses([
            Problem::LINK_INVALID,
            Problem::TOO_MANY_ATTEMPTS,
            Problem::WRONG_ORIGIN,
            Problem::STARTING,
            Problem::STORE_UNAVAILABLE,
        ])
}
