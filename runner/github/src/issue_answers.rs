//! issue_answers reads what GitHub answers about issues, and defines what is passed on of it.

use serde::{Deserialize, Serialize, de::IgnoredAny};

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

#[derive(Deserialize)]
pub(crate) struct UserBody {
    login: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum LabelBody {
    Object { name: Option<String> },
    Text(String),
}

#[derive(Deserialize)]
pub(crate) struct IssueBody {
    number: u64,
    title: String,
    state: String,
    user: Option<UserBody>,
    #[serde(default)]
    labels: Vec<LabelBody>,
    updated_at: String,
    pub(crate) body: Option<String>,
    pull_request: Option<IgnoredAny>,
    #[serde(default)]
    pub(crate) repository_url: String,
}

#[derive(Deserialize)]
pub(crate) struct CommentBody {
    user: Option<UserBody>,
    #[serde(default)]
    body: Option<String>,
    created_at: String,
}

#[derive(Deserialize)]
pub(crate) struct BranchBody {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
}

#[derive(Deserialize)]
pub(crate) struct PullBody {
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
pub(crate) struct FoundBody {
    pub(crate) items: Vec<IssueBody>,
}

#[derive(Deserialize)]
pub(crate) struct MadeBody {
    pub(crate) id: u64,
}

impl LabelBody {
    pub(crate) fn name(self) -> Option<String> {
        match self {
            Self::Object { name } => name,
            Self::Text(name) => Some(name),
        }
    }
}

impl IssueBody {
    pub(crate) fn summary(self) -> IssueSummary {
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
    pub(crate) fn shown(self) -> IssueComment {
        IssueComment {
            author: self.user.map(|user| user.login),
            created_at: self.created_at,
            body: self.body.unwrap_or_default(),
        }
    }
}

impl PullBody {
    pub(crate) fn shown(self) -> PullRequestDetails {
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
