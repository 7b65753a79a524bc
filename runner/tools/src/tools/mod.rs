//! tools holds the built-in tools. A tool is a file here, and a line in [`all`].

mod current_time;
mod github;
mod metrics_query;
mod prometheus;
mod repo_refresh;
mod run_status;

use platform_core::id::ToolName;

use crate::{
    parts::Parts,
    tool::{Tool, tool_name},
};

/// Names of the built-in tools, sorted. A configuration is checked before there is a store.
const NAMES: [&str; 10] = [
    "core__get_current_time",
    "core__metrics_query",
    "github__comment",
    "github__label",
    "github__list_issues",
    "github__read_issue",
    "github__read_pull_request",
    "github__search",
    "repo_refresh",
    "runs__status",
];

/// Returns the names of all built-in tools, sorted.
#[must_use]
pub fn built_in_names() -> Vec<ToolName> {
    NAMES.map(tool_name).into()
}

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use platform_core::id::InstallationId;
    use platform_runtime::{config::Sources, settings::Settings};
    use runner_connections::ConnectionBroker;
    use runner_store::{Address, Store};

    use super::*;
    use crate::parts::GatewayParts;

    #[tokio::test]
    async fn every_tool_has_its_name_in_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("[store]\nurl = 'sqlite://{}/s.db'", dir.path().display());
        let file = Some(("s.toml".into(), text));
        let settings = Arc::new(Settings::read(&Sources { file, ..Sources::default() }).unwrap());
        let address = Address::of(&settings.store, None).unwrap();
        let store = Store::open(&address, InstallationId::parse("test").unwrap()).await.unwrap();
        let connections = ConnectionBroker::of(&settings, store.clone(), Arc::default());
        let refresher = runner_repos::Refresher::default();
        let gateway = GatewayParts { settings, github: None, connections, refresher, bearers: None };
        let mut names: Vec<_> =
            all(&Parts { store, gateway }).iter().map(|tool| tool.spec().name.clone()).collect();
        names.sort_unstable();
        assert_eq!(names, built_in_names());
    }
}
