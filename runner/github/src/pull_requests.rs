//! pull_requests finds the open pull request of a branch, or makes one. A repeated order makes no second one.

use std::sync::Arc;

use http::Method;
use platform_core::secret::Secret;
use platform_runtime::report;
use runner_git::{BaseBranch, SandboxBranch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    credentials::CredentialSource,
    error::Error,
    permission::Permission,
    repository::RepositoryName,
    rest::{ApiCall, Redirects},
    text::PullRequestText,
};

/// Most characters of an address that is passed on.
const MAX_URL: usize = 300;

/// Pull request that is wanted.
#[derive(Debug, Clone)]
pub struct PullRequestOrder {
    /// Repository of both branches.
    pub repository: RepositoryName,
    /// Branch that was pushed.
    pub head: SandboxBranch,
    /// Branch into which it is to be merged.
    pub base: BaseBranch,
    /// Title and body.
    pub text: PullRequestText,
    /// Labels, which GitHub makes if it does not have them.
    pub labels: Vec<String>,
}

/// Open pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// Its web address, on the host of `github.url`.
    pub url: String,
    /// State in which it is open.
    pub state: PullRequestState,
}

/// State of an open pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestState {
    /// Draft, which a person has to declare ready before it can be merged.
    Draft,
    /// Ready to be merged.
    Ready,
}

/// Fate of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestFate {
    /// People have not decided.
    Open,
    /// The base has its commits.
    Merged,
    /// Closed without them.
    Closed,
}

/// Maker of pull requests.
#[derive(Debug, Clone)]
pub struct PullRequests {
    credentials: Arc<CredentialSource>,
}

/// Pull request, as the API has it.
#[derive(Deserialize)]
struct PullRequestBody {
    number: u64,
    html_url: String,
    #[serde(default)]
    draft: bool,
    head: BranchBody,
    base: BranchBody,
    #[serde(default)]
    labels: Vec<LabelBody>,
}

/// State of a pull request, as the API has it.
#[derive(Deserialize)]
struct FateBody {
    state: String,
    #[serde(default)]
    merged: bool,
    base: BranchBody,
}

/// End of a pull request, as the API has it.
#[derive(Deserialize)]
struct BranchBody {
    #[serde(rename = "ref")]
    branch: String,
    /// None if the fork was deleted.
    repo: Option<RepositoryBody>,
}

#[derive(Deserialize, PartialEq, Eq)]
struct RepositoryBody {
    id: u64,
}

#[derive(Deserialize)]
struct LabelBody {
    name: String,
}

/// Order, and the token for it.
struct OrderAttempt<'o> {
    credentials: &'o CredentialSource,
    order: &'o PullRequestOrder,
    token: Arc<Secret>,
}

impl PullRequests {
    /// Creates a maker that uses `credentials`.
    #[must_use]
    pub const fn new(credentials: Arc<CredentialSource>) -> Self {
        Self { credentials }
    }

    /// Returns the open pull request of the order's branch. Makes it if it is missing: a draft where the repository has
    /// drafts. Labels that cannot be added are logged. Cancel safe, and may be repeated.
    ///
    /// # Errors
    /// If GitHub does not answer or refuses, or the credential for the repository is missing.
    pub async fn ensure(&self, order: &PullRequestOrder) -> Result<PullRequest, Error> {
        self.retry(&order.repository, async || self.try_ensure(order).await).await
    }

    /// Returns the pull request of the order's branch as [`Self::ensure`] does; also one that was merged or closed. So a
    /// branch has one for ever.
    ///
    /// # Errors
    /// As [`Self::ensure`].
    pub async fn ensure_once(&self, order: &PullRequestOrder) -> Result<PullRequest, Error> {
        let known = self.retry(&order.repository, async || self.find_any(order).await).await?;
        match known {
            Some(known) => Ok(known),
            None => self.ensure(order).await,
        }
    }

    /// Returns what became of the pull request `number` of a repository. Cancel safe.
    ///
    /// # Errors
    /// As [`Self::ensure`].
    pub async fn fate(
        &self,
        repository: &RepositoryName,
        number: u64,
        base: &BaseBranch,
    ) -> Result<PullRequestFate, Error> {
        let fate = self.retry(repository, async || self.try_fate(repository, number).await).await?;
        let FateBody { state, merged, base: found } = fate;
        let is_wanted = found.branch == base.as_str();
        Ok(match (merged, state.as_str()) {
            (true, _) if is_wanted => PullRequestFate::Merged,
            // Merged into another branch, the base does not have it.
            (true, _) | (false, "closed") => PullRequestFate::Closed,
            (false, _) => PullRequestFate::Open,
        })
    }

    /// Tries once more if the App's token was revoked before its end.
    async fn retry<T>(
        &self,
        repository: &RepositoryName,
        attempt: impl AsyncFn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match attempt().await {
            Err(error)
                if error.is_unauthenticated()
                    && self.credentials.forget(repository, Permission::Push).await =>
            {
                attempt().await
            }
            result => result,
        }
    }

    async fn try_fate(&self, repository: &RepositoryName, number: u64) -> Result<FateBody, Error> {
        let token = self.credentials.for_pull_request(repository).await?.token;
        let call = ApiCall {
            action: "read the pull request",
            method: Method::GET,
            path: format!("{}/pulls/{number}", repository.api_path()),
            bearer: &token,
            body: None,
            redirects: Redirects::Follow,
        };
        self.credentials.client().call(&call).await
    }

    async fn find_any(&self, order: &PullRequestOrder) -> Result<Option<PullRequest>, Error> {
        let attempt = self.attempt(order).await?;
        Ok(attempt.find("all").await?.map(|found| attempt.shown(&found)))
    }

    async fn attempt<'o>(&'o self, order: &'o PullRequestOrder) -> Result<OrderAttempt<'o>, Error> {
        let token = self.credentials.for_pull_request(&order.repository).await?.token;
        Ok(OrderAttempt { credentials: &self.credentials, order, token })
    }

    async fn try_ensure(&self, order: &PullRequestOrder) -> Result<PullRequest, Error> {
        let attempt = self.attempt(order).await?;
        let found = attempt.find_or_create().await?;
        attempt.add_labels(&found).await;
        Ok(attempt.shown(&found))
    }
}

impl OrderAttempt<'_> {
    async fn find_or_create(&self) -> Result<PullRequestBody, Error> {
        if let Some(found) = self.find("open").await? {
            return Ok(found);
        }
        let created = match self.create(PullRequestState::Draft).await {
            Err(error) if error.is_without_drafts() => self.create(PullRequestState::Ready).await,
            created => created,
        };
        match created {
            // Another process was faster, or an earlier attempt lost its answer.
            Err(error) if error.is_existing() => self.find("open").await?.ok_or(error),
            created => created,
        }
    }

    /// Returns the pull request of the branch in a state of the API; that into the wanted base, if there are several.
    async fn find(&self, state: &str) -> Result<Option<PullRequestBody>, Error> {
        let PullRequestOrder { repository, head, base, .. } = self.order;
        let query = format!("state={state}&per_page=30&head={}:{head}", repository.owner());
        let path = format!("{}/pulls?{query}", repository.api_path());
        let call = self.call("look for the pull request", Method::GET, path, None);
        let mut found: Vec<PullRequestBody> = self.credentials.client().call(&call).await?;
        // GitHub ignores a filter that it does not understand. A fork may have a branch of the same name.
        found.retain(|found| found.head.branch == head.as_str() && found.head.repo == found.base.repo);
        let wanted = found.iter().position(|found| found.base.branch == base.as_str());
        Ok(match wanted {
            Some(wanted) => Some(found.swap_remove(wanted)),
            None => found.into_iter().next(),
        })
    }

    fn shown(&self, found: &PullRequestBody) -> PullRequest {
        let state = if found.draft { PullRequestState::Draft } else { PullRequestState::Ready };
        PullRequest { number: found.number, url: self.web_address(found), state }
    }

    async fn create(&self, state: PullRequestState) -> Result<PullRequestBody, Error> {
        let PullRequestOrder { repository, head, base, text, .. } = self.order;
        let body = json!({
            "title": text.title(),
            "body": text.body(),
            "head": head.as_str(),
            "base": base.as_str(),
            "draft": state == PullRequestState::Draft,
            "maintainer_can_modify": false,
        });
        let path = format!("{}/pulls", repository.api_path());
        let call = self.call("make the pull request", Method::POST, path, Some(body));
        self.credentials.client().call(&call).await
    }

    /// Adds the labels that are missing. The pull request is there, and does not fail with them.
    async fn add_labels(&self, found: &PullRequestBody) {
        let is_missing = |label: &&String| {
            !found.labels.iter().any(|there| there.name.to_lowercase() == label.to_lowercase())
        };
        let missing: Vec<&String> = self.order.labels.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let path = format!("{}/issues/{}/labels", self.order.repository.api_path(), found.number);
        let body = json!({ "labels": missing });
        let call = self.call("label the pull request", Method::POST, path, Some(body));
        if let Err(error) = self.credentials.client().call::<Value>(&call).await {
            tracing::warn!(
                repository = %self.order.repository,
                number = found.number,
                error = report::chain(&error),
                "pull request without its labels"
            );
        }
    }

    /// Returns the address that GitHub names, if it is one on its own host; else the one that follows from the number.
    fn web_address(&self, found: &PullRequestBody) -> String {
        let own = self.order.repository.pull_request_url(found.number);
        let origin = own.split('/').take(3).collect::<Vec<_>>().join("/");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
        let is_own = |url: &str| {
            url.len() <= MAX_URL
                && url.strip_prefix(&origin).is_some_and(|path| {
                    path.starts_with('/')
                        && path.ends_with(&format!("/{}", found.number))
                        && path.bytes().all(is_plain)
                })
        };
        if is_own(&found.html_url) { found.html_url.clone() } else { own }
    }

    fn call(&self, action: &'static str, method: Method, path: String, body: Option<Value>) -> ApiCall<'_> {
        ApiCall { action, method, path, bearer: &self.token, body, redirects: Redirects::Follow }
    }
}
