//! oauth asks a provider for an access token with a refresh token (RFC 6749, section 6).
//!
//! The secret goes to the operator's address alone: no redirect is followed. Answers are bounded in time and size.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT},
};
use platform_core::{limit::ByteSize, percent, secret::Secret};
use platform_outbound::{AGENT, AnswerLimit, Dialer, Error, exchange};
use platform_runtime::{
    file, report,
    settings::{ClientAuthentication, OAuthProvider},
    trust::Trusted,
};
use zeroize::Zeroizing;

use crate::token_answer::{self, GivenTokens, MAX_ANSWER, RefreshFault};

/// Largest file of a client's secret.
const MAX_SECRET_FILE: ByteSize = ByteSize::kib(4);
const FORM: &str = "application/x-www-form-urlencoded";
const NO_CONNECTION: &str = "there is no connection with it";
const NO_ROOTS: &str = "this system has no CA certificates: install the package ca-certificates";

/// Request for an access token.
pub(crate) struct TokenRequest<'r> {
    pub(crate) provider: &'r OAuthProvider,
    pub(crate) refresh_token: &'r Secret,
    /// Longest time until the end of the answer.
    pub(crate) timeout: Duration,
}

impl TokenRequest<'_> {
    /// Sends the request.
    pub(crate) async fn send(&self) -> Result<GivenTokens, RefreshFault> {
        let secret = self.client_secret()?;
        let base = &self.provider.token_url.base;
        let dialer = Dialer::to(base).map_err(|error| unavailable(&error, NO_ROOTS))?;
        let request = self.request(secret.as_ref()).map_err(|error| unavailable(&error, NO_CONNECTION))?;
        let limit = AnswerLimit::new(self.timeout, MAX_ANSWER);
        match exchange(dialer.open(&base.host, base.port), request, limit).await {
            Ok(answer) => token_answer::read(answer.status(), answer.body()),
            Err(Error::TimedOut) => Err(RefreshFault::Unavailable(format!(
                "it did not answer within {} s",
                self.timeout.as_secs_f32()
            ))),
            Err(error) => Err(unavailable(&error, problem(&error))),
        }
    }

    /// Reads the client's secret from its file, which may have been replaced.
    fn client_secret(&self) -> Result<Option<Secret>, RefreshFault> {
        let Some(path) = &self.provider.client_secret_file else { return Ok(None) };
        let read = file::secret(path, MAX_SECRET_FILE, &Trusted::own()).map_err(|error| {
            tracing::error!(error = report::chain(&error), path = %path.display(), "client_secret_file not read");
            RefreshFault::Refused("its client_secret_file cannot be read: see the log".to_owned())
        })?;
        let text = read.expose().trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RefreshFault::Refused("its client_secret_file has no secret".to_owned()));
        }
        Ok(Some(Secret::new(text.to_owned())))
    }

    fn request(&self, secret: Option<&Secret>) -> Result<Request<Bytes>, http::Error> {
        let OAuthProvider { token_url, client_id, client_authentication, .. } = self.provider;
        let refresh_token = encode(self.refresh_token.expose());
        let mut form = format!("grant_type=refresh_token&refresh_token={}", *refresh_token);
        let path = if token_url.path.is_empty() { "/" } else { &token_url.path };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, token_url.authority())
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, FORM);
        match (secret, client_authentication) {
            (Some(secret), ClientAuthentication::Basic) => {
                request = request.header(AUTHORIZATION, basic(client_id, secret)?);
            }
            (Some(secret), ClientAuthentication::Body) => {
                let [id, secret] = [client_id.as_str(), secret.expose()].map(encode);
                form.push_str(&format!("&client_id={}&client_secret={}", *id, *secret));
            }
            (None, _) => form.push_str(&format!("&client_id={}", *encode(client_id))),
        }
        request.body(Bytes::from(form))
    }
}

/// Returns the header by which a client proves itself (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &Secret) -> Result<HeaderValue, http::Error> {
    let [id, secret] = [client_id, secret.expose()].map(encode);
    let pair = Zeroizing::new(format!("{}:{}", *id, *secret));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unavailable(error: &dyn std::error::Error, problem: &str) -> RefreshFault {
    tracing::debug!(error = report::chain(error), "token endpoint gave no answer");
    RefreshFault::Unavailable(problem.to_owned())
}

const fn problem(error: &Error) -> &'static str {
    match error {
        Error::Untrusted(_) => "its certificate is not trusted: install its CA on this host",
        Error::TooLong { .. } => "its answer has more than 64 KiB",
        Error::Unconnected(_) | Error::Broken(_) | Error::TimedOut => NO_CONNECTION,
    }
}

/// Returns `text` with escapes, in memory that is cleared.
fn encode(text: &str) -> Zeroizing<String> {
    Zeroizing::new(percent::encode(text))
}
