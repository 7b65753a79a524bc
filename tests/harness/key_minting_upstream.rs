//! Serves an upstream that mints and deletes keys as LiteLLM does, and takes calls with a minted key alone.
//!
//! Its answers to calls repeat the key, in a header and in the text.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use platform_runtime::task;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::pace::pace;

/// Key that may mint others.
pub const ADMIN_KEY: &str = "sk-canary-admin-77c1a0b9e5";

/// Reaction to a request for a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mints {
    /// Mints it.
    #[default]
    Keys,
    /// Refuses it.
    Nothing,
    /// Mints it, and answers after this time.
    After(Duration),
}

/// Reaction to a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deletes {
    /// Deletes the key.
    #[default]
    Keys,
    /// Refuses it.
    Nothing,
    /// Refuses it for the keys of this run, and deletes others.
    AllBut(&'static str),
    /// Gives no answer: closes the connection.
    Unanswered,
}

/// An upstream that mints keys.
#[derive(Debug, Clone)]
pub struct KeyMintingUpstream {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    mints: Mints,
    deletes: Deletes,
    /// Keys by their aliases.
    keys: BTreeMap<String, String>,
    /// Requests for keys.
    minted: Vec<Value>,
    deleted: Vec<String>,
    /// Aliases of all deletions that were asked for.
    asked: Vec<String>,
    /// Keys of calls.
    calls: Vec<String>,
}

impl KeyMintingUpstream {
    /// Starts to serve on a free port.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let serving = upstream.clone();
        task::spawn("key-minting upstream", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                let serve = service_fn(move |request| {
                    let serving = serving.clone();
                    async move { serving.answer(request).await }
                });
                task::spawn("key-minting connection", async move {
                    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await);
                });
            }
        });
        upstream
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the reaction to later requests for keys.
    pub fn mint(&self, mints: Mints) {
        self.state().mints = mints;
    }

    /// Sets the reaction to later deletions.
    pub fn delete(&self, deletes: Deletes) {
        self.state().deletes = deletes;
    }

    /// Returns the aliases of the keys that exist.
    #[must_use]
    pub fn aliases(&self) -> Vec<String> {
        self.state().keys.keys().cloned().collect()
    }

    /// Returns the requests for keys that were granted.
    #[must_use]
    pub fn minted(&self) -> Vec<Value> {
        self.state().minted.clone()
    }

    /// Returns the aliases of deleted keys, in order.
    #[must_use]
    pub fn deleted(&self) -> Vec<String> {
        self.state().deleted.clone()
    }

    /// Returns the aliases of all deletions that were asked for, in order.
    #[must_use]
    pub fn asked_deletions(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    /// Returns the keys of the calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request; an error closes its connection.
    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        let (head, body) = request.into_parts();
        let key = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = key.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
        #[expect(clippy::disallowed_methods, reason = "only programs under test send requests")]
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(match head.uri.path() {
            "/key/generate" | "/key/delete" if key != ADMIN_KEY => refusal(401, "not an admin"),
            "/key/generate" => self.generate(&body).await,
            "/key/delete" => return self.answer_deletion(&body),
            _ => self.call(&key),
        })
    }

    async fn generate(&self, body: &Value) -> Response<Full<Bytes>> {
        let mints = self.state().mints;
        if mints == Mints::Nothing {
            return refusal(500, "no database");
        }
        let alias = body["key_alias"].as_str().unwrap_or_default().to_owned();
        let answer = {
            let mut state = self.state();
            if state.keys.contains_key(&alias) {
                return refusal(400, "the alias exists");
            }
            let key = format!("sk-canary-run-key-{:08}", state.minted.len());
            state.minted.push(body.clone());
            state.keys.insert(alias, key.clone());
            Response::new(Full::from(json!({ "key": key }).to_string()))
        };
        if let Mints::After(delay) = mints {
            pace(delay).await;
        }
        answer
    }

    fn answer_deletion(&self, body: &Value) -> io::Result<Response<Full<Bytes>>> {
        let mut state = self.state();
        let alias = body["key_aliases"][0].as_str().unwrap_or_default().to_owned();
        state.asked.push(alias.clone());
        let is_refused = match state.deletes {
            Deletes::Keys => false,
            Deletes::Nothing => true,
            Deletes::AllBut(run) => alias.starts_with(&format!("sluicegate/{run}/")),
            Deletes::Unanswered => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        if is_refused {
            return Ok(refusal(500, "no database"));
        }
        if state.keys.remove(&alias).is_none() {
            return Ok(refusal(404, "no such key"));
        }
        state.deleted.push(alias);
        Ok(Response::new(Full::from("{}")))
    }

    fn call(&self, key: &str) -> Response<Full<Bytes>> {
        let mut state = self.state();
        state.calls.push(key.to_owned());
        if !state.keys.values().any(|known| known == key) {
            return refusal(401, "no such key");
        }
        let answer = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": format!("your key is {key}, I think") },
            }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
        });
        let mut response = Response::new(Full::from(answer.to_string()));
        let headers = response.headers_mut();
        headers.insert("content-type", http::HeaderValue::from_static("application/json"));
        headers.insert("request-id", key.parse().unwrap());
        response
    }
}

fn refusal(status: u16, message: &str) -> Response<Full<Bytes>> {
    let body = json!({ "error": { "message": message, "type": "auth_error", "code": status.to_string() } });
    Response::builder().status(status).body(Full::from(body.to_string())).unwrap()
}
