//! Serves the route of a browser's session: a person signs in with a token, and out again.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header::SET_COOKIE},
    response::{IntoResponse, Response},
};
use platform_runtime::random;
use runner_model::principal::{BrowserSessionId, PrincipalRole};
use runner_telemetry::metrics::SignInWay;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    context::ApiContext,
    credentials::SessionCookie,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
};

/// Path of the browser's session.
pub(crate) const SESSION: &str = "/api/v1/session";
/// Header that makes a browser forget what it stored of the API (Clear Site Data, W3C).
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
/// Data to forget. Not all cookies: browsers would also remove those of other services of the same domain.
const ALL_BUT_COOKIES: &str = "\"cache\", \"storage\"";

/// Answer that says for whom requests act.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionView<'c> {
    /// Id of the principal; null for clients without a token.
    #[schema(required = true)]
    principal: Option<&'c str>,
    #[schema(value_type = schemas::AccountId)]
    account: &'c str,
    #[schema(value_type = String)]
    role: PrincipalRole,
}

/// Creates a session of the principal that the request's token belongs to, and gives it to the browser as a cookie.
pub(crate) async fn sign_in(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Error> {
    // The route takes a token alone: a session does not prolong itself.
    let Caller::Principal(principal) = &caller else { return Err(Error::Unauthenticated) };
    let id = BrowserSessionId::from_random([random::bits(), random::bits()]);
    context.opened().await?.store.add_browser_session(&principal.key_id, &id.hash()).await?;
    context.sign_in_attempts.accepted(SignInWay::Token);
    Ok(session_begins(&context, &id, &caller))
}

pub(crate) fn sign_in_operation() -> Operation {
    let session = AnswerSpec::json::<SessionView<'_>>(StatusCode::CREATED, "For whom the session acts.")
        .with_header("set-cookie", "Cookie of the session.");
    Operation::new("signIn", "Begins a session of the token's principal, for a browser.", session)
        .described(
            "A session does not prolong itself: only a token begins one, or a link, of which a person gets one by \
             `sluice dashboard`.",
        )
        .refuses([Problem::TOO_MANY_ATTEMPTS])
}

/// Answers for whom the request acts.
pub(crate) async fn show(Extension(caller): Extension<Caller>) -> Response {
    session_response(&caller)
}

pub(crate) fn show_operation() -> Operation {
    let session = AnswerSpec::json::<SessionView<'_>>(StatusCode::OK, "For whom the request acts.");
    Operation::new("getSession", "Answers for whom the request acts.", session)
}

/// Ends the session of the request's cookie, and makes the browser forget what it stored.
pub(crate) async fn sign_out(
    State(context): State<ApiContext>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let cookie = SessionCookie::of(&context.origins);
    if let Some(id) = cookie.read(&headers)? {
        context.opened().await?.store.end_browser_session(&id.hash()).await?;
    }
    let headers = [(SET_COOKIE, cookie.clear()), (CLEAR_SITE_DATA, ALL_BUT_COOKIES.to_owned())];
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}

pub(crate) fn sign_out_operation() -> Operation {
    let ended = AnswerSpec::empty(StatusCode::NO_CONTENT, "The session has ended.")
        .with_header("set-cookie", "An empty cookie, which has already expired.")
        .with_header("clear-site-data", "What the browser forgets.");
    Operation::new("signOut", "Ends the session of the request's cookie.", ended)
}

/// Returns the answer that gives a browser the session `id`.
pub(crate) fn session_begins(context: &ApiContext, id: &BrowserSessionId, caller: &Caller) -> Response {
    let headers = [(SET_COOKIE, SessionCookie::of(&context.origins).set(id))];
    (StatusCode::CREATED, headers, session_response(caller)).into_response()
}

fn session_response(caller: &Caller) -> Response {
    let principal = match caller {
        Caller::Anonymous(_) => None,
        Caller::Principal(principal) | Caller::Browser(principal, _) => Some(principal.id.as_str()),
    };
    let view = SessionView { principal, account: caller.account().as_str(), role: caller.role() };
    json_response(&view)
}
