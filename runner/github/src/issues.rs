//! issues reads, comments, labels and searches the issues and pull requests of one repository.
//!
//! GitHub counts a pull request as an issue. What it answers was written by any user of the repository, and is passed on
//! as text. What an agent writes becomes a quotation without effects.

use std::sync::Arc;

use http::Method;
use platform_core::{percent, secret::Secret};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    credentials::CredentialSource,
    error::Error,
    issue_answers::{
        CommentBody, FoundBody, Issue, IssueBody, IssueSummary, LabelBody, MadeBody, PullBody,
        PullRequestDetails,
    },
    permission::Permission,
    repository::RepositoryName,
    rest::{ApiCall, Redirects},
    search_words::search_query,
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

/// Client of the issues of one repository.
#[derive(Debug, Clone)]
pub struct Issues {
    credentials: Arc<CredentialSource>,
    repository: RepositoryName,
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
    /// If GitHub does not answer or refuses, or the credential for the repository is missing.
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
        let labels = percent::encode(labels.join(","));
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
            path: format!("/search/issues?per_page={MAX_ITEMS}&q={}", percent::encode(query)),
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

    async fn get<T: DeserializeOwned>(&self, action: &'static str, path: String) -> Result<T, Error> {
        let path = format!("{}{path}", self.repository.api_path());
        let call =
            IssueCall { action, permission: Permission::ReadIssues, method: Method::GET, path, body: None };
        self.send(&call).await
    }

    /// Sends a request; once more if the App's token was revoked before its end.
    async fn send<T: DeserializeOwned>(&self, call: &IssueCall) -> Result<T, Error> {
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

    async fn try_send<T: DeserializeOwned>(&self, call: &IssueCall) -> Result<T, Error> {
        let token: Arc<Secret> = self.credentials.required(&self.repository, call.permission).await?.token;
        let api_call = ApiCall {
            action: call.action,
            method: call.method.clone(),
            path: call.path.clone(),
            bearer: &token,
            redirects: Redirects::Refuse,
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
