//! rest sends requests to the REST API, and reads the answers within bounds of time and size.
//!
//! Opens a connection per request, because requests are rare. A redirect is followed only within the host of the API.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, USER_AGENT},
    uri::PathAndQuery,
};
use platform_core::{json, secret::Secret};
use platform_outbound::{AGENT, AnswerLimit, Dialer, exchange};
use platform_runtime::settings::ServiceUrl;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    error::Error,
    refusal::{BOUNDS, MAX_ANSWER, refusal},
};

/// Longest time from the connection to the end of an answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Most redirects of a request.
const MAX_REDIRECTS: usize = 3;
/// Version of the API with the answers that this program reads.
const API_VERSION: &str = "2022-11-28";
/// Name of the version's header.
const API_VERSION_HEADER: &str = "x-github-api-version";
/// Form of answers.
const MEDIA_TYPE: &str = "application/vnd.github+json";

/// Request to the API.
pub(crate) struct ApiCall<'c> {
    /// Operation, as a verb and its object.
    pub(crate) action: &'static str,
    pub(crate) method: Method,
    /// Path and query below the address of the API.
    pub(crate) path: String,
    /// Token of the request.
    pub(crate) bearer: &'c Secret,
    pub(crate) body: Option<Value>,
    pub(crate) redirects: Redirects,
}

/// Treatment of an answer that redirects the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// The request is sent again, where the host of the API names another path: a renamed repository.
    Follow,
    /// The request fails. An issue that was transferred is redirected to another repository.
    Refuse,
}

impl Redirects {
    /// Returns the most redirects of a request.
    const fn most(self) -> usize {
        match self {
            Self::Follow => MAX_REDIRECTS,
            Self::Refuse => 0,
        }
    }
}

/// Client of one REST API.
#[derive(Clone)]
pub(crate) struct RestClient {
    pub(crate) api: ServiceUrl,
    pub(crate) dialer: Dialer,
    /// Longest time for a request.
    pub(crate) answer_timeout: Duration,
}

impl fmt::Debug for RestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestClient").field("api", &self.api).finish_non_exhaustive()
    }
}

impl RestClient {
    /// Sends a request, and reads its answer as JSON.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &ApiCall<'_>) -> Result<T, Error> {
        let answer = self.follow(call).await?;
        if !answer.status().is_success() {
            let secret = call.bearer.expose();
            return Err(refusal(call.action, answer.status(), answer.headers(), answer.body(), secret));
        }
        let is_other = |_error| self.unexpected(call, "is not what the API documents");
        json::from_slice(answer.body(), BOUNDS).map_err(is_other)
    }

    /// Sends a request, and again where this host redirects it to another path and the call may follow.
    async fn follow(&self, call: &ApiCall<'_>) -> Result<Response<Bytes>, Error> {
        let limit = AnswerLimit::new(self.answer_timeout, MAX_ANSWER);
        let mut path = format!("{}{}", self.api.path, call.path);
        for _ in 0..=call.redirects.most() {
            let request = self.request(call, &path)?;
            let answer = exchange(self.dialer.open(&self.api.base.host, self.api.base.port), request, limit);
            let answer = answer.await.map_err(|error| self.unanswered(call, error))?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            path = self.redirected(&answer).ok_or_else(|| self.elsewhere(call))?;
        }
        Err(self.elsewhere(call))
    }

    fn request(&self, call: &ApiCall<'_>, path: &str) -> Result<Request<Bytes>, Error> {
        let invalid = || Error::BadSecret { setting: "the token of GitHub", problem: "is not a token" };
        let bearer = format!("Bearer {}", call.bearer.expose());
        let mut bearer = HeaderValue::try_from(bearer).map_err(|_error| invalid())?;
        bearer.set_sensitive(true);
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let request = Request::builder().method(call.method.clone()).uri(path);
        let request = request
            .header(HOST, self.api.authority())
            .header(AUTHORIZATION, bearer)
            .header(ACCEPT, MEDIA_TYPE)
            .header(USER_AGENT, AGENT)
            .header(API_VERSION_HEADER, API_VERSION);
        let request =
            if body.is_empty() { request } else { request.header(CONTENT_TYPE, "application/json") };
        request.body(Bytes::from(body)).map_err(|_error| self.unexpected(call, "names an odd path"))
    }

    /// Returns the path to which an answer redirects, if it is on the host of the API.
    fn redirected(&self, answer: &Response<Bytes>) -> Option<String> {
        let is_followed = [301, 302, 307, 308].contains(&answer.status().as_u16());
        let location = answer.headers().get(LOCATION).filter(|_| is_followed)?.to_str().ok()?;
        let path = match location.strip_prefix(&self.api.origin()) {
            Some(path) => path,
            // A path of this host; two slashes begin the name of another one.
            None if !location.starts_with("//") => location,
            None => return None,
        };
        let path: PathAndQuery = path.starts_with('/').then(|| path.parse().ok())??;
        Some(Uri::from(path).to_string())
    }

    fn unanswered(&self, call: &ApiCall<'_>, source: platform_outbound::Error) -> Error {
        let action = call.action;
        let host = self.api.authority();
        match source {
            platform_outbound::Error::Untrusted(_) => Error::Untrusted { action, host, source },
            platform_outbound::Error::TimedOut => Error::Slow { action, host, max: self.answer_timeout },
            platform_outbound::Error::TooLong { .. } => self.unexpected(call, "is too long"),
            source => Error::Unreachable { action, host, source },
        }
    }

    /// Returns the error of an answer with a `problem`.
    pub(crate) fn unexpected(&self, call: &ApiCall<'_>, problem: &'static str) -> Error {
        Error::Unexpected { action: call.action, host: self.api.authority(), problem }
    }

    fn elsewhere(&self, call: &ApiCall<'_>) -> Error {
        Error::Redirected { action: call.action, host: self.api.authority() }
    }
}
