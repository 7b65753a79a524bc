//! Stands in for GitHub: the routes of its REST API that the relay uses, as GitHub documents them.
//!
//! It keeps pull requests and records every exchange. A test compares those with GitHub's description of its API. The
//! API is below `/api/v3`, as on a GitHub Enterprise Server.

mod answers;
mod issues;
mod pulls;
mod route;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use platform_runtime::task;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use self::{answers::GitHubAnswer, issues::Issues, pulls::Pulls, route::Asked};
pub use self::{
    issues::StoredIssue,
    pulls::{PullMark, StoredPull},
    route::GitHubRoute,
};
use crate::pace::pace;

/// Largest body of a request.
const MAX_BODY: usize = 1 << 20;

/// Fault in place of an answer, or on the way of one.
#[derive(Debug, Clone)]
pub enum GitHubFault {
    /// Answers with a status, a message and headers, and does nothing.
    Status(u16, &'static str, Vec<(&'static str, String)>),
    /// Answers something else than JSON.
    Garbage,
    /// Answers as ever, but late.
    Slow(Duration),
    /// Does what is asked at once, and answers when it is notified.
    Held(Arc<Notify>),
    /// Ends the connection without an answer, and does nothing.
    Away,
    /// Does what is asked, and ends the connection without an answer.
    Lost,
    /// Lets another client do the same first.
    Raced,
}

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct GitHubExchange {
    /// Route of the request; none if the API has no such one.
    pub route: Option<GitHubRoute>,
    /// Method of the request.
    pub method: String,
    /// Path below the API, without the query.
    pub path: String,
    /// Query, without its mark.
    pub query: String,
    /// Headers of the request.
    pub headers: BTreeMap<String, String>,
    /// Body of the request; null if it is empty.
    pub body: Value,
    /// Status of the answer; 0 if there was none.
    pub status: u16,
    /// Body of the answer.
    pub answer: Value,
}

/// A GitHub that runs until the test ends.
#[derive(Debug, Clone)]
pub struct GitHubDouble {
    /// Its web address, `http://127.0.0.1:PORT`.
    pub url: String,
    shared: Arc<Mutex<DoubleState>>,
}

#[derive(Debug)]
struct DoubleState {
    url: String,
    /// Tokens that are accepted.
    tokens: Vec<String>,
    /// Time for which an installation's tokens are valid.
    token_lifetime: Duration,
    pulls: Pulls,
    issues: Issues,
    faults: BTreeMap<GitHubRoute, VecDeque<GitHubFault>>,
    exchanges: Vec<GitHubExchange>,
}

impl GitHubDouble {
    /// Starts a GitHub that accepts `token`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let shared = Arc::new(Mutex::new(DoubleState {
            url: url.clone(),
            tokens: vec![token.to_owned()],
            token_lifetime: Duration::from_secs(3600),
            pulls: Pulls::default(),
            issues: Issues::default(),
            faults: BTreeMap::new(),
            exchanges: Vec::new(),
        }));
        let double = Self { url, shared };
        let server = double.clone();
        let _server = task::spawn("github double", async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                let double = server.clone();
                let service = service_fn(move |request| double.clone().serve(request));
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let _connection = task::spawn("github double's connection", connection);
            }
        });
        double
    }

    /// Sends `faults` to the next requests of a route, one to each.
    pub fn script(&self, route: GitHubRoute, faults: impl IntoIterator<Item = GitHubFault>) {
        self.lock().faults.entry(route).or_default().extend(faults);
    }

    /// Returns whether a fault waits for a request of a route.
    #[must_use]
    pub fn has_fault(&self, route: GitHubRoute) -> bool {
        self.lock().faults.get(&route).is_some_and(|faults| !faults.is_empty())
    }

    /// Sets the time for which tokens of installations are valid from now on.
    pub fn set_token_lifetime(&self, lifetime: Duration) {
        self.lock().token_lifetime = lifetime;
    }

    /// Accepts a further token.
    pub fn accept(&self, token: &str) {
        self.lock().tokens.push(token.to_owned());
    }

    /// Revokes all tokens.
    pub fn revoke_tokens(&self) {
        self.lock().tokens.clear();
    }

    /// Lets repositories have no drafts.
    pub fn refuse_drafts(&self) {
        self.lock().pulls.refuses_drafts = true;
    }

    /// Puts `address` in place of the web address of every pull request.
    pub fn set_web_address(&self, address: &str) {
        self.lock().pulls.web_address = Some(address.to_owned());
    }

    /// Adds an open pull request of someone else.
    pub fn add_pull(&self, pull: StoredPull) {
        self.lock().pulls.add(pull);
    }

    /// Adds an issue.
    pub fn add_issue(&self, issue: StoredIssue) {
        self.lock().issues.stored.push(issue);
    }

    /// Returns the issues.
    #[must_use]
    pub fn issues(&self) -> Vec<StoredIssue> {
        self.lock().issues.stored.clone()
    }

    /// Merges the pull request of a branch.
    pub fn merge_pull(&self, head: &str) {
        self.lock().pulls.merge(head);
    }

    /// Closes every pull request.
    pub fn close_pulls(&self) {
        self.lock().pulls.close_all();
    }

    /// Returns the pull requests.
    #[must_use]
    pub fn pulls(&self) -> Vec<StoredPull> {
        self.lock().pulls.stored.clone()
    }

    /// Returns all exchanges so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<GitHubExchange> {
        self.lock().exchanges.clone()
    }

    /// Returns the number of requests to a route.
    #[must_use]
    pub fn count(&self, route: GitHubRoute) -> usize {
        self.lock().exchanges.iter().filter(|exchange| exchange.route == Some(route)).count()
    }

    fn lock(&self) -> MutexGuard<'_, DoubleState> {
        self.shared.lock().expect("no test panics with the lock")
    }

    /// Answers a request. An error ends the connection.
    async fn serve(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        let (parts, body) = request.into_parts();
        #[expect(clippy::disallowed_methods, reason = "it is limited")]
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_error| "too long")?.to_bytes();
        let asked = Asked::read(&parts, &body);
        let fault = self.next_fault(asked.route);
        match &fault {
            Some(GitHubFault::Slow(delay)) => pace(*delay).await,
            Some(GitHubFault::Raced) => drop(self.lock().answer(&asked)),
            _ => {}
        }
        let answer = match &fault {
            Some(GitHubFault::Status(status, message, headers)) => {
                Some(GitHubAnswer::error(*status, message, headers.clone()))
            }
            Some(GitHubFault::Garbage) => Some(GitHubAnswer::new(200, json!("<html>"))),
            Some(GitHubFault::Away) => None,
            _ => Some(self.lock().answer(&asked)),
        };
        let answer = answer.filter(|_| !matches!(fault, Some(GitHubFault::Lost)));
        self.record(asked, answer.as_ref());
        if let Some(GitHubFault::Held(release)) = fault {
            release.notified().await;
        }
        answer.map(GitHubAnswer::into_response).ok_or("no answer")
    }

    fn next_fault(&self, route: Option<GitHubRoute>) -> Option<GitHubFault> {
        self.lock().faults.get_mut(&route?)?.pop_front()
    }

    fn record(&self, asked: Asked, answer: Option<&GitHubAnswer>) {
        let exchange = GitHubExchange {
            route: asked.route,
            method: asked.method,
            path: asked.path,
            query: asked.query,
            headers: asked.headers,
            body: asked.body,
            status: answer.map_or(0, |answer| answer.status),
            answer: answer.map(|answer| answer.body.clone()).unwrap_or_default(),
        };
        self.lock().exchanges.push(exchange);
    }
}

impl GitHubExchange {
    /// Returns the exchange as a line of JSON, for the check against GitHub's description.
    #[must_use]
    pub fn to_line(&self) -> String {
        let Self { method, path, query, body, status, answer, .. } = self;
        let line = json!({
            "method": method, "path": path, "query": query, "request": body, "status": status, "answer": answer,
        });
        format!("{line}\n")
    }
}
