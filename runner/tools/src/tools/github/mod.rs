//! github holds the tools for issues and pull requests, each in the repository of its run alone.

mod access;
pub(super) mod comment;
pub(super) mod label;
pub(super) mod list_issues;
pub(super) mod read_issue;
pub(super) mod read_pull_request;
pub(super) mod search;
