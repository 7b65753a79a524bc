//! tools holds the built-in tools. A tool is a file here, and a line in [`all`].

mod current_time;
mod github;
mod metrics_query;
mod prometheus;
mod repo_refresh;
mod run_status;

use crate::{parts::Parts, tool::Tool};

/// Returns all built-in tools.
pub(crate) fn all(parts: &Parts) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(current_time::CurrentTime::new()),
        Box::new(run_status::RunStatus::new(parts)),
        Box::new(metrics_query::MetricsQuery::new(parts)),
        Box::new(repo_refresh::RepoRefresh::new(parts)),
        Box::new(github::read_issue::ReadIssue::new(parts)),
        Box::new(github::list_issues::ListIssues::new(parts)),
        Box::new(github::read_pull_request::ReadPullRequest::new(parts)),
        Box::new(github::search::Search::new(parts)),
        Box::new(github::comment::Comment::new(parts)),
        Box::new(github::label::Label::new(parts)),
    ]
}
