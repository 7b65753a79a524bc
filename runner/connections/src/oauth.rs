//! oauth asks a provider for an access token with a refresh token (RFC 6749, section 6).
//!
//! The secret goes to the operator's address alone: no redirect is followed. Answers are bounded in time and size.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use platform_core::{limit::ByteSize, secret::Secret};
use platform_runtime::{
    file, report,
    settings::{ClientAuthentication, OAuthProvider},
    task,
    trust::Trusted,
};
use runner_github::{Dialer, is_untrusted};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::token_answer::{self, GivenTokens, MAX_ANSWER, RefreshFault};

/// Largest file of a client's secret.
const MAX_SECRET_FILE: ByteSize = ByteSize::kib(4);
const FORM: &str = "application/x-www-form-urlencoded";
const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));

/// Cause of a request that failed on its way.
#[derive(Debug, thiserror::Error)]
enum ExchangeFault {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Tls(#[from] runner_github::Error),
    #[error("the answer has more than 64 KiB")]
    TooLong,
}

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
        let answer = timeout(self.timeout, self.exchange(secret.as_ref())).await;
        match answer {
            Ok(Ok((status, body))) => token_answer::read(status, &body),
            Ok(Err(fault)) => {
                tracing::debug!(error = report::chain(&fault), "token endpoint gave no answer");
                Err(RefreshFault::Unavailable(problem(&fault).to_owned()))
            }
            Err(_elapsed) => Err(RefreshFault::Unavailable(format!(
                "it did not answer within {} s",
                self.timeout.as_secs_f32()
            ))),
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

    async fn exchange(&self, secret: Option<&Secret>) -> Result<(StatusCode, Bytes), ExchangeFault> {
        let url = &self.provider.token_url;
        let stream = Dialer::to(&url.base)?.open(&url.base).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the sender and the answer's body, which are dropped here.
        drop(task::spawn("token endpoint", connection));
        let response = sender.send_request(self.request(secret)?).await?;
        let status = response.status();
        #[expect(clippy::disallowed_methods, reason = "it is limited")]
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        match body {
            Ok(body) => Ok((status, body.to_bytes())),
            Err(error) => match error.downcast::<hyper::Error>() {
                Ok(error) => Err((*error).into()),
                Err(_too_long) => Err(ExchangeFault::TooLong),
            },
        }
    }

    fn request(&self, secret: Option<&Secret>) -> Result<Request<Full<Bytes>>, ExchangeFault> {
        let OAuthProvider { token_url, client_id, client_authentication, .. } = self.provider;
        let refresh_token = encode(self.refresh_token.expose());
        let mut form = format!("grant_type=refresh_token&refresh_token={}", *refresh_token);
        let path = if token_url.path.is_empty() { "/" } else { &token_url.path };
        let origin = token_url.origin();
        let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, host)
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
        Ok(request.body(Full::new(Bytes::from(form)))?)
    }
}

/// Returns the header by which a client proves itself (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &Secret) -> Result<HeaderValue, ExchangeFault> {
    let [id, secret] = [client_id, secret.expose()].map(encode);
    let pair = Zeroizing::new(format!("{}:{}", *id, *secret));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())))
        .map_err(http::Error::from)?;
    value.set_sensitive(true);
    Ok(value)
}

fn problem(fault: &ExchangeFault) -> &'static str {
    match fault {
        ExchangeFault::Io(error) if is_untrusted(error) => {
            "its certificate is not trusted: install its CA on this host"
        }
        ExchangeFault::Tls(_) => "this system has no CA certificates: install the package ca-certificates",
        ExchangeFault::TooLong => "its answer has more than 64 KiB",
        ExchangeFault::Io(_) | ExchangeFault::Http(_) | ExchangeFault::Request(_) => {
            "there is no connection with it"
        }
    }
}

/// Returns `text` with all bytes but letters, digits and `-._~` percent-encoded.
fn encode(text: &str) -> Zeroizing<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut encoded = Zeroizing::new(String::with_capacity(text.len() * 3));
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
