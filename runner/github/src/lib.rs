//! runner_github speaks GitHub's REST API for the relay: it gets credentials and makes pull requests.
//!
//! Agents never see a credential. What an agent wrote goes into a pull request only as a quotation that triggers
//! nothing.
//!
//! 1. [`RepositoryName`] is the owner and name in the address of a repository.
//! 2. [`CredentialSource`] returns a credential for it: a token of the operator, or one that a GitHub App gets.
//! 3. [`PullRequestText`] composes title and body from an agent's text.
//! 4. [`PullRequests`] finds or makes the one open pull request of a branch.
//! 5. [`Issues`] reads, comments, labels and searches the issues of a repository.
//!
//! A credential is sent to the host of `github.url` and to that of `github.api_url`, and nowhere else. Every error says
//! whether another try can succeed, and when: see [`Error`].

mod app;
mod credentials;
mod error;
mod issue_answers;
mod issues;
mod permission;
mod pull_requests;
mod refusal;
mod repository;
mod rest;
mod search_words;
mod text;

pub use self::{
    app::InstallationToken,
    credentials::{AccountCredential, CredentialSource, GitCredential},
    error::{Error, Retry},
    issue_answers::{Issue, IssueComment, IssueSummary, PullRequestDetails},
    issues::{IssueFilter, Issues},
    permission::Permission,
    pull_requests::{PullRequest, PullRequestFate, PullRequestOrder, PullRequestState, PullRequests},
    repository::{InvalidRepositoryName, RepositoryName},
    text::{AgentText, CommentText, HoldsSecret, ProposalText, PullRequestText, RunFooter},
};
