//! Reads which repository an order works on, and writes what became of a run's commits.

use runner_engine::relay::{
    AcceptedWork, CommitSummary, OrderSource, Publish, PullRequest, RelayRecord, RelayRule, RelayStage,
    RepoChoice,
};
use runner_store::{StoredRelay, UnixMillis};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{caller::Caller, rfc3339::rfc3339};

/// Repository of an order, as a client sends it. What it leaves out is that of the agent.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = OrderRepository)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RepositoryBody {
    /// Address with `https://` or `http://`, without a user.
    #[schema(nullable = false)]
    url: Option<String>,
    /// Branch to begin from.
    #[schema(nullable = false)]
    base: Option<String>,
    /// Name below `sandbox/` of the branch that the commits go to: the thread's, else the run's, if absent. An existing
    /// branch is continued.
    #[schema(nullable = false)]
    branch: Option<String>,
    /// Makes a pull request of the commits.
    #[schema(nullable = false)]
    pull_request: Option<bool>,
}

impl RepositoryBody {
    /// Returns the choice of `caller`.
    pub(crate) fn choice(self, caller: &Caller) -> RepoChoice {
        let Self { url, base, branch, pull_request } = self;
        let publish = pull_request.map(|wanted| if wanted { Publish::PullRequest } else { Publish::Branch });
        let allowed = caller.repositories().map(<[String]>::to_vec);
        RepoChoice { url, base, branch, publish, source: OrderSource::Api, allowed }
    }
}

/// Way of a run's commits to their branch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunCommits)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommitsView {
    /// Address of the repository.
    repository: String,
    /// Branch that the agent began from.
    base: String,
    /// Branch that the commits go to.
    branch: String,
    /// Stage: `cloned`, `collected`, `accepted`, `pushed` are on the way; `published`, `unchanged`, `refused`,
    /// `branch_moved`, `failed` are ends.
    stage: &'static str,
    /// Last commit, once the commits were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    commit: Option<String>,
    /// Number of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    commits: Option<usize>,
    /// The agent's commits, the newest first, once they were judged. Only the newest 50 are listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    log: Vec<CommitView>,
    /// Number of files that the commits change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    changed_files: Option<usize>,
    /// The pull request, once it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pull_request: Option<PullRequestView>,
    /// Rules that the commits break.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    objections: Vec<ObjectionView>,
    /// True if the agent left work that is in no commit of its branch. Its workspace is kept for a while.
    uncommitted: bool,
    /// Reason why the commits did not reach their branch, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<String>,
}

/// Commit of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunCommit)]
#[serde(rename_all = "camelCase")]
struct CommitView {
    id: String,
    /// First line of its message, shortened. A commit that holds a secret has another text here.
    subject: String,
    /// Time that its author wrote into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    authored_at: Option<String>,
}

/// Pull request of a run's commits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PullRequest)]
pub(super) struct PullRequestView {
    number: u64,
    url: String,
}

/// Rule that commits break.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RelayObjection)]
struct ObjectionView {
    /// Name of the rule.
    #[schema(value_type = String)]
    rule: RelayRule,
    /// Path in the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    path: Option<String>,
    /// Reason, in words.
    detail: String,
}

impl CommitsView {
    /// Returns the view of a relay as `caller` may see it.
    pub(super) fn of(record: &RelayRecord, caller: &Caller) -> Self {
        let RelayRecord { order, stage, fault, commits, uncommitted, .. } = record;
        let detail = match stage {
            RelayStage::Failed { reason } => Some(reason),
            _ => fault.as_ref(),
        };
        let objections = match stage {
            RelayStage::Refused { objections } => objections.as_slice(),
            _ => &[],
        };
        let work = stage.work();
        Self {
            repository: order.url.as_str().to_owned(),
            base: order.base.to_string(),
            branch: order.branch.to_string(),
            stage: stage.name(),
            commit: work.map(|work| work.tip().as_str().to_owned()),
            commits: work.map(AcceptedWork::commits),
            log: commits.iter().map(CommitView::of).collect(),
            changed_files: work.map(AcceptedWork::files),
            pull_request: stage.pull_request().map(PullRequestView::of),
            objections: objections
                .iter()
                .map(|objection| ObjectionView {
                    rule: objection.rule,
                    path: objection.path.clone(),
                    detail: objection.detail.clone(),
                })
                .collect(),
            uncommitted: *uncommitted,
            detail: detail.filter(|_| caller.is_operator()).cloned(),
        }
    }
}

impl CommitView {
    fn of(CommitSummary { id, subject, authored_ms }: &CommitSummary) -> Self {
        Self {
            id: id.as_str().to_owned(),
            subject: subject.clone(),
            authored_at: authored_ms.map(UnixMillis).map(rfc3339),
        }
    }
}

impl PullRequestView {
    /// Returns the pull request of a stored relay, if it has one.
    pub(super) fn of_relay(relay: &StoredRelay) -> Option<Self> {
        // The commits of a run are not shown after its texts were removed.
        RelayRecord::read(relay).ok()?.stage.pull_request().map(Self::of)
    }

    fn of(PullRequest { number, url }: &PullRequest) -> Self {
        Self { number: *number, url: url.clone() }
    }
}
