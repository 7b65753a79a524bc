//! Answers requests as GitHub does.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{
    DoubleState,
    pulls::{PullMark, StoredPull, example, label_of},
    route::{Asked, GitHubRoute},
};

/// Longest lifetime of an App's claim, in seconds.
const MAX_CLAIM: u64 = 600;
/// Id of every installation.
const INSTALLATION: u64 = 42;

/// Answer of the API.
#[derive(Debug)]
pub(super) struct GitHubAnswer {
    pub(super) status: u16,
    pub(super) body: Value,
    headers: Vec<(&'static str, String)>,
}

impl GitHubAnswer {
    pub(super) const fn new(status: u16, body: Value) -> Self {
        Self { status, body, headers: Vec::new() }
    }

    pub(super) fn error(status: u16, message: &str, headers: Vec<(&'static str, String)>) -> Self {
        let body = json!({
            "message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string(),
        });
        Self { status, body, headers }
    }

    /// Returns a refusal of a field of a pull request.
    fn invalid(message: &str) -> Self {
        let mut invalid = Self::error(422, "Validation Failed", Vec::new());
        invalid.body["errors"] = json!([{ "resource": "PullRequest", "code": "custom", "message": message }]);
        invalid
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let response = Response::builder().status(self.status).header(CONTENT_TYPE, "application/json");
        let response =
            self.headers.into_iter().fold(response, |response, (name, value)| response.header(name, value));
        let body = self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned);
        response.body(Full::from(body)).expect("the headers are valid")
    }
}

impl DoubleState {
    pub(super) fn answer(&mut self, asked: &Asked) -> GitHubAnswer {
        let not_found = || GitHubAnswer::error(404, "Not Found", Vec::new());
        let Some(route) = asked.route else { return not_found() };
        let is_app = matches!(route, GitHubRoute::Installation | GitHubRoute::Token);
        let is_known =
            if is_app { is_claim(asked.bearer()) } else { self.tokens.iter().any(|t| t == asked.bearer()) };
        if !is_known {
            return GitHubAnswer::error(401, "Bad credentials", Vec::new());
        }
        match route {
            GitHubRoute::Installation => {
                let mut installation = example("installation");
                installation["id"] = json!(INSTALLATION);
                GitHubAnswer::new(200, installation)
            }
            GitHubRoute::Token if asked.part(2) == INSTALLATION.to_string() => self.mint(asked),
            GitHubRoute::Token => not_found(),
            GitHubRoute::FindPulls => self.find(asked),
            GitHubRoute::MakePull => self.make(asked),
            GitHubRoute::Label if self.issues.has(asked.part(4)) => self.issues.label(asked),
            GitHubRoute::Label => self.label(asked).unwrap_or_else(not_found),
            GitHubRoute::ReadPull => self.read_pull(asked).unwrap_or_else(not_found),
            GitHubRoute::ListIssues => self.issues.list(asked),
            GitHubRoute::ReadIssue => self.issues.read(asked).unwrap_or_else(not_found),
            GitHubRoute::ListComments => self.issues.comments(asked).unwrap_or_else(not_found),
            GitHubRoute::Comment => self.issues.comment(asked).unwrap_or_else(not_found),
            GitHubRoute::RateLimit => {
                let rate = json!({ "limit": 5000, "remaining": 4999, "reset": 1_372_700_873, "used": 1 });
                GitHubAnswer::new(200, json!({ "resources": { "core": rate, "search": rate }, "rate": rate }))
            }
            GitHubRoute::SearchIssues => self.issues.search(&format!("{}/api/v3", self.url)),
        }
    }

    fn mint(&mut self, asked: &Asked) -> GitHubAnswer {
        let token = format!("ghs_{:032x}", platform_runtime::random::bits());
        let end = SystemTime::now() + self.token_lifetime;
        self.tokens.push(token.clone());
        GitHubAnswer::new(
            201,
            json!({
                "token": token,
                "expires_at": humantime::format_rfc3339_seconds(end).to_string(),
                "permissions": asked.body["permissions"],
            }),
        )
    }

    fn find(&self, asked: &Asked) -> GitHubAnswer {
        // A filter without an owner is ignored.
        let head = asked.parameter("head").and_then(|head| head.split_once(':')).map(|(_, branch)| branch);
        let is_open = asked.parameter("state") != Some("all");
        let found = if is_open { self.pulls.open(head) } else { self.pulls.all(head) };
        let shown = found.into_iter().map(|number| self.pulls.show(number, &self.web_address(asked)));
        GitHubAnswer::new(200, shown.collect())
    }

    fn make(&mut self, asked: &Asked) -> GitHubAnswer {
        let text = |name: &str| asked.body[name].as_str().unwrap_or_default().to_owned();
        let is_draft = asked.body["draft"] == json!(true);
        if is_draft && self.pulls.refuses_drafts {
            let message = "Draft pull requests are not supported in this repository.";
            return GitHubAnswer::error(422, message, Vec::new());
        }
        let [head, base] = ["head", "base"].map(text);
        let is_same = |number: &usize| {
            let pull = &self.pulls.stored[number - 1];
            pull.base == base && !pull.has(PullMark::FromFork)
        };
        if self.pulls.open(Some(&head)).iter().any(is_same) {
            let message = format!("A pull request already exists for {}:{head}.", asked.part(1));
            return GitHubAnswer::invalid(&message);
        }
        let marks = if is_draft { vec![PullMark::Draft] } else { Vec::new() };
        let pull =
            StoredPull { head, base, title: text("title"), body: text("body"), labels: Vec::new(), marks };
        let number = self.pulls.add(pull);
        GitHubAnswer::new(201, self.pulls.show(number, &self.web_address(asked)))
    }

    fn label(&mut self, asked: &Asked) -> Option<GitHubAnswer> {
        let index = asked.part(4).parse::<usize>().ok()?.checked_sub(1)?;
        let pull = self.pulls.stored.get_mut(index)?;
        let labels = asked.body["labels"].as_array()?.iter().filter_map(Value::as_str);
        pull.labels.extend(labels.map(str::to_owned));
        Some(GitHubAnswer::new(200, pull.labels.iter().map(|label| label_of(label)).collect()))
    }

    fn read_pull(&self, asked: &Asked) -> Option<GitHubAnswer> {
        let number = asked.part(4).parse().ok()?;
        self.pulls.stored.get(usize::checked_sub(number, 1)?)?;
        Some(GitHubAnswer::new(200, self.pulls.show(number, &self.web_address(asked))))
    }

    fn web_address(&self, asked: &Asked) -> String {
        format!("{}/{}/{}", self.url, asked.part(1), asked.part(2))
    }
}

/// Returns whether a token has the claims that GitHub takes of an App. Its signature is not checked here.
fn is_claim(token: &str) -> bool {
    let part = |index: usize| -> Option<Value> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(index)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    let (Some(header), Some(claims)) = (part(0), part(1)) else { return false };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let [begins, ends] = ["iat", "exp"].map(|name| claims[name].as_u64().unwrap_or_default());
    header["alg"] == json!("RS256")
        && claims["iss"].as_str().is_some_and(|app| !app.is_empty())
        && (begins..ends).contains(&now)
        && ends - begins <= MAX_CLAIM
}
