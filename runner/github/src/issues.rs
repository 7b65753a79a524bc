//! issues reads, comments, labels and searches the issues and pull requests of one repository.
//!
//! GitHub counts a pull request as an issue. What it answers was written by any user of the repository, and is passed on
//! as text. What an agent writes becomes a quotation without effects.

use std::sync::Arc;

use http::Method;
use platform_core::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    credentials::CredentialSource,
    error::Error,
    permission::Permission,
    repository::RepositoryName,
    rest::ApiCall,
    search_words::{encode, search_query},
    text::CommentText,
};

/// Most items of a list.
const MAX_ITEMS: u32 = 30;

/// State of an issue by which a list is filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueFilter {
    /// Only open ones.
    Open,
    /// Only closed ones.
    Closed,
    /// All.
    All,
}

/// Issue or pull request, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IssueSummary {
    /// Its number in the repository.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// `open` or `closed`.
    pub state: String,
    /// Login of its author.
    pub author: Option<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
    /// Time of the last change.
    pub updated_at: String,
    /// True if it is a pull request.
    pub is_pull_request: bool,
}

/// Issue or pull request, with its text and its comments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// The issue, without its text.
    #[serde(flatten)]
    pub summary: IssueSummary,
    /// Its text.
    pub body: String,
    /// Its first comments.
    pub comments: Vec<IssueComment>,
}

/// Comment on an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IssueComment {
    /// Login of its author.
    pub author: Option<String>,
    /// Time of the comment.
    pub created_at: String,
    /// Its text.
    pub body: String,
}

/// Pull request, with its branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequestDetails {
    /// Its number in the repository.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// `open` or `closed`.
    pub state: String,
    /// True if it is a draft.
    pub draft: bool,
    /// True if it is merged.
    pub merged: bool,
    /// Branch with its commits.
    pub head: String,
    /// Last of its commits.
    pub head_commit: String,
    /// Branch into which it is to be merged.
    pub base: String,
    /// Login of its author.
    pub author: Option<String>,
    /// Its text.
    pub body: String,
    /// Number of changed files.
    pub changed_files: u64,
    /// Number of added lines.
    pub additions: u64,
    /// Number of removed lines.
    pub deletions: u64,
}

/// Client of the issues of one repository.
#[derive(Debug, Clone)]
pub struct Issues {
    credentials: Arc<CredentialSource>,
    repository: RepositoryName,
}

#[derive(Deserialize)]
struct UserBody {
    login: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LabelBody {
    Object { name: Option<String> },
    Text(String),
}

#[derive(Deserialize)]
struct IssueBody {
    number: u64,
    title: String,
    state: String,
    user: Option<UserBody>,
    #[serde(default)]
    labels: Vec<LabelBody>,
    updated_at: String,
    body: Option<String>,
    pull_request: Option<Value>,
    #[serde(default)]
    repository_url: String,
}

#[derive(Deserialize)]
struct CommentBody {
    user: Option<UserBody>,
    #[serde(default)]
    body: Option<String>,
    created_at: String,
}

#[derive(Deserialize)]
struct BranchBody {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
}

#[derive(Deserialize)]
struct PullBody {
    number: u64,
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    merged: bool,
    head: BranchBody,
    base: BranchBody,
    user: Option<UserBody>,
    body: Option<String>,
    #[serde(default)]
    changed_files: u64,
    #[serde(default)]
    additions: u64,
    #[serde(default)]
    deletions: u64,
}

#[derive(Deserialize)]
struct FoundBody {
    items: Vec<IssueBody>,
}

#[derive(Deserialize)]
struct MadeBody {
    id: u64,
}

/// Request of this client. It has a token once it is sent.
struct IssueCall {
    action: &'static str,
    permission: Permission,
    method: Method,
    path: String,
    body: Option<Value>,
}

impl Issues {
    /// Creates a client for `repository`.
    #[must_use]
    pub const fn of(credentials: Arc<CredentialSource>, repository: RepositoryName) -> Self {
        Self { credentials, repository }
    }

    /// Returns the issue or pull request `number`, with its first comments. Cancel safe.
    ///
    /// # Errors
    /// If GitHub does not answer or refuses, or there is no credential for the repository.
    pub async fn read(&self, number: u64) -> Result<Issue, Error> {
        let issue: IssueBody = self.get("read the issue", format!("/issues/{number}")).await?;
        let path = format!("/issues/{number}/comments?per_page={MAX_ITEMS}");
        let comments: Vec<CommentBody> = self.get("read the comments", path).await?;
        let body = issue.body.clone().unwrap_or_default();
        let comments = comments.into_iter().map(CommentBody::shown).collect();
        Ok(Issue { summary: issue.summary(), body, comments })
    }

    /// Returns the issues and pull requests that were changed last. Cancel safe.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn list(&self, filter: IssueFilter, labels: &[String]) -> Result<Vec<IssueSummary>, Error> {
        let state = match filter {
            IssueFilter::Open => "open",
            IssueFilter::Closed => "closed",
            IssueFilter::All => "all",
        };
        let labels = encode(&labels.join(","));
        let path = format!("/issues?state={state}&sort=updated&per_page={MAX_ITEMS}&labels={labels}");
        let found: Vec<IssueBody> = self.get("list the issues", path).await?;
        Ok(found.into_iter().map(IssueBody::summary).collect())
    }

    /// Returns the pull request `number`. Cancel safe.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_pull_request(&self, number: u64) -> Result<PullRequestDetails, Error> {
        let pull: PullBody = self.get("read the pull request", format!("/pulls/{number}")).await?;
        Ok(pull.shown())
    }

    /// Returns the issues and pull requests of this repository that have all words of `text`. Cancel safe.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn search(&self, text: &str) -> Result<Vec<IssueSummary>, Error> {
        let query = search_query(&self.repository, text);
        let call = IssueCall {
            action: "search the issues",
            permission: Permission::ReadIssues,
            method: Method::GET,
            path: format!("/search/issues?per_page={MAX_ITEMS}&q={}", encode(&query)),
            body: None,
        };
        let found: FoundBody = self.send(&call).await?;
        // The query names this repository alone. The answer is not trusted to be about no other.
        let own = format!("{}{}", self.api_root(), self.repository.api_path()).to_lowercase();
        let is_own = |found: &IssueBody| found.repository_url.to_lowercase() == own;
        Ok(found.items.into_iter().filter(is_own).map(IssueBody::summary).collect())
    }

    /// Adds a comment to the issue or pull request `number`, and returns the comment's id.
    ///
    /// # Errors
    /// As [`Self::read`]. The comment may have been made if the error is transient.
    pub async fn comment(&self, number: u64, text: &CommentText) -> Result<u64, Error> {
        let call = IssueCall {
            action: "comment on the issue",
            permission: Permission::WriteIssues,
            method: Method::POST,
            path: format!("{}/issues/{number}/comments", self.repository.api_path()),
            body: Some(json!({ "body": text.body() })),
        };
        let made: MadeBody = self.send(&call).await?;
        Ok(made.id)
    }

    /// Adds labels to the issue or pull request `number`, and returns all that it has.
    ///
    /// # Errors
    /// As [`Self::read`]. The labels may have been added if the error is transient.
    pub async fn label(&self, number: u64, labels: &[String]) -> Result<Vec<String>, Error> {
        let call = IssueCall {
            action: "label the issue",
            permission: Permission::WriteIssues,
            method: Method::POST,
            path: format!("{}/issues/{number}/labels", self.repository.api_path()),
            body: Some(json!({ "labels": labels })),
        };
        let all: Vec<LabelBody> = self.send(&call).await?;
        Ok(all.into_iter().filter_map(LabelBody::name).collect())
    }

    async fn get<T: serde::de::DeserializeOwned>(
        &self,
        action: &'static str,
        path: String,
    ) -> Result<T, Error> {
        let path = format!("{}{path}", self.repository.api_path());
        let call =
            IssueCall { action, permission: Permission::ReadIssues, method: Method::GET, path, body: None };
        self.send(&call).await
    }

    /// Sends a request; once more if the App's token was revoked before its end.
    async fn send<T: serde::de::DeserializeOwned>(&self, call: &IssueCall) -> Result<T, Error> {
        match self.try_send(call).await {
            Err(error)
                if error.is_unauthenticated()
                    && self.credentials.forget(&self.repository, call.permission).await =>
            {
                self.try_send(call).await
            }
            answer => answer,
        }
    }

    async fn try_send<T: serde::de::DeserializeOwned>(&self, call: &IssueCall) -> Result<T, Error> {
        let token: Arc<Secret> = self.credentials.required(&self.repository, call.permission).await?.token;
        let api_call = ApiCall {
            action: call.action,
            method: call.method.clone(),
            path: call.path.clone(),
            bearer: &token,
            body: call.body.clone(),
        };
        self.credentials.client().call(&api_call).await
    }

    /// Returns the address of the API.
    fn api_root(&self) -> String {
        let api = &self.credentials.client().api;
        format!("{}{}", api.origin(), api.path)
    }
}

impl LabelBody {
    fn name(self) -> Option<String> {
        match self {
            Self::Object { name } => name,
            Self::Text(name) => Some(name),
        }
    }
}

impl IssueBody {
    fn summary(self) -> IssueSummary {
        IssueSummary {
            number: self.number,
            title: self.title,
            state: self.state,
            author: self.user.map(|user| user.login),
            labels: self.labels.into_iter().filter_map(LabelBody::name).collect(),
            updated_at: self.updated_at,
            is_pull_request: self.pull_request.is_some(),
        }
    }
}

impl CommentBody {
    fn shown(self) -> IssueComment {
        IssueComment {
            author: self.user.map(|user| user.login),
            created_at: self.created_at,
            body: self.body.unwrap_or_default(),
        }
    }
}

impl PullBody {
    fn shown(self) -> PullRequestDetails {
        PullRequestDetails {
            number: self.number,
            title: self.title,
            state: self.state,
            draft: self.draft,
            merged: self.merged,
            head: self.head.branch,
            head_commit: self.head.sha,
            base: self.base.branch,
            author: self.user.map(|user| user.login),
            body: self.body.unwrap_or_default(),
            changed_files: self.changed_files,
            additions: self.additions,
            deletions: self.deletions,
        }
    }
}
