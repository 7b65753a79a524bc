//! Reads which repository a run works on.

use runner_engine::relay::{OrderSource, Publish, RepoChoice};

#[derive(clap::Args, Clone)]
pub(super) struct RepositoryArguments {
    /// Repository to work on: the agent gets a clone, and its commits go to a branch sandbox/… of it. An address with
    /// https://, http:// or file://
    #[arg(long, value_name = "URL", conflicts_with = "workspace")]
    repo: Option<String>,
    /// Branch to begin from [default: that of the agent's entry, else main]
    #[arg(long, value_name = "BRANCH", conflicts_with = "workspace")]
    base: Option<String>,
    /// Branch for the commits, below sandbox/. An existing one is continued [default: the thread's, else the run's]
    #[arg(long, value_name = "NAME", conflicts_with = "workspace")]
    branch: Option<String>,
    /// Make a pull request of the commits
    #[arg(long, conflicts_with = "workspace")]
    pr: bool,
}

impl From<RepositoryArguments> for RepoChoice {
    fn from(arguments: RepositoryArguments) -> Self {
        let RepositoryArguments { repo: url, base, branch, pr } = arguments;
        let publish = pr.then_some(Publish::PullRequest);
        Self { url, base, branch, publish, source: OrderSource::Shell, allowed: None }
    }
}
