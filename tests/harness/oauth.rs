//! Plays an OAuth 2 token endpoint, which replaces refresh tokens as it is told, and records every request.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response, body::Incoming, header::LOCATION, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use platform_runtime::task;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::pace::pace;

/// Largest body of a request.
const MAX_BODY: usize = 1 << 16;

/// Answer in place of the usual one.
#[derive(Debug, Clone)]
pub enum OAuthFault {
    /// A status, with a body.
    Status(u16, Value),
    /// A redirect to an address.
    Redirect(String),
    /// A body of so many bytes.
    Huge(usize),
    /// The usual answer, but late.
    Slow(Duration),
    /// An access token in place of the usual one.
    Token(&'static str),
}

/// Request for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthRequest {
    /// Body: a form.
    pub form: String,
    /// Value of `authorization`.
    pub authorization: Option<String>,
}

/// A token endpoint that runs until the test ends.
#[derive(Debug, Clone)]
pub struct OAuthDouble {
    /// Address of the endpoint.
    pub url: String,
    shared: Arc<Mutex<OAuthState>>,
}

#[derive(Debug)]
struct OAuthState {
    /// Refresh token that is accepted.
    refresh: String,
    /// True if each use replaces it.
    rotates: bool,
    /// Lifetime of access tokens, in seconds.
    lifetime: u64,
    given: u64,
    faults: VecDeque<OAuthFault>,
    requests: Vec<OAuthRequest>,
}

impl OAuthDouble {
    /// Starts an endpoint that accepts `refresh`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(refresh: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/oauth/token", listener.local_addr().expect("it has an address"));
        let shared = Arc::new(Mutex::new(OAuthState {
            refresh: refresh.to_owned(),
            rotates: true,
            lifetime: 3600,
            given: 0,
            faults: VecDeque::new(),
            requests: Vec::new(),
        }));
        let double = Self { url, shared };
        let server = double.clone();
        let _server = task::spawn("oauth double", async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                let double = server.clone();
                let service = service_fn(move |request| double.clone().serve(request));
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let _connection = task::spawn("oauth double's connection", connection);
            }
        });
        double
    }

    /// Sends `faults` to the next requests, one to each.
    pub fn script(&self, faults: impl IntoIterator<Item = OAuthFault>) {
        self.lock().faults.extend(faults);
    }

    /// Sets the lifetime of access tokens from now on, in seconds.
    pub fn set_lifetime(&self, seconds: u64) {
        self.lock().lifetime = seconds;
    }

    /// Leaves the refresh token as it is from now on.
    pub fn keep_refresh_token(&self) {
        self.lock().rotates = false;
    }

    /// Accepts no refresh token that was given before.
    pub fn revoke(&self) {
        "revoked".clone_into(&mut self.lock().refresh);
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<OAuthRequest> {
        self.lock().requests.clone()
    }

    /// Returns the refresh token that is accepted.
    #[must_use]
    pub fn refresh_token(&self) -> String {
        self.lock().refresh.clone()
    }

    fn lock(&self) -> MutexGuard<'_, OAuthState> {
        self.shared.lock().expect("no test panics with the lock")
    }

    async fn serve(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        let (parts, body) = request.into_parts();
        #[expect(clippy::disallowed_methods, reason = "it is limited")]
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_error| "too long")?.to_bytes();
        let form = String::from_utf8_lossy(&body).into_owned();
        let authorization = parts.headers.get("authorization");
        let authorization = authorization.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let fault = {
            let mut state = self.lock();
            state.requests.push(OAuthRequest { form: form.clone(), authorization });
            state.faults.pop_front()
        };
        if let Some(OAuthFault::Slow(delay)) = &fault {
            pace(*delay).await;
        }
        let (status, body) = match &fault {
            Some(OAuthFault::Status(status, body)) => (*status, body.to_string()),
            Some(OAuthFault::Redirect(_)) => (302, String::new()),
            Some(OAuthFault::Huge(bytes)) => (200, "a".repeat(*bytes)),
            fault => self.lock().answer(&form, fault.as_ref()),
        };
        let mut response = Response::builder().status(status).header("content-type", "application/json");
        if let Some(OAuthFault::Redirect(address)) = &fault {
            response = response.header(LOCATION, address);
        }
        Ok(response.body(Full::from(body)).expect("the headers are valid"))
    }
}

impl OAuthState {
    fn answer(&mut self, form: &str, fault: Option<&OAuthFault>) -> (u16, String) {
        let presented = form.split('&').find_map(|pair| pair.strip_prefix("refresh_token="));
        if presented != Some(self.refresh.as_str()) {
            return (400, json!({ "error": "invalid_grant" }).to_string());
        }
        self.given += 1;
        let access = match fault {
            Some(OAuthFault::Token(token)) => (*token).to_owned(),
            _ => format!("canary-access-{}", self.given),
        };
        let mut answer =
            json!({ "access_token": access, "token_type": "bearer", "expires_in": self.lifetime });
        if self.rotates {
            self.refresh = format!("canary-refresh-{}", self.given);
            answer["refresh_token"] = self.refresh.clone().into();
        }
        (200, answer.to_string())
    }
}
