//! push sends one judged commit to the agent's branch, if nothing else happened to that branch.
//!
//! The remote is asked first. So a push that was interrupted is found, and not repeated.

use serde::{Deserialize, Serialize};

use crate::{
    branch::SandboxBranch,
    error::Error,
    judge::AcceptedWork,
    object_id::ObjectId,
    program::{GitCommand, GitOutput},
    quarantine::{Quarantine, START, TIP},
    remote::{Access, Remote, failure_of},
    remote_failure::RemoteFailure,
};

/// Words by which git says that a branch is not where the lease says.
const LEASE_LOST: [&str; 3] = ["stale info", "fetch first", "non-fast-forward"];

/// Words by which git says that the remote did not say how the push ended, or that the branch changed meanwhile. The
/// next try asks the remote first, and finds out.
const UNDECIDED: [&str; 2] = ["[remote failure]", "failed to update ref"];

/// Work to push, which was accepted.
#[derive(Debug, Clone)]
pub struct PushOrder {
    start: ObjectId,
    tip: ObjectId,
    branch: SandboxBranch,
    expected: Option<ObjectId>,
}

impl PushOrder {
    /// Creates the order to write `work` to `branch`, which has the commit `expected` as far as this host knows. `None`
    /// stands for a branch that does not exist.
    #[must_use]
    pub fn new(work: &AcceptedWork, branch: SandboxBranch, expected: Option<ObjectId>) -> Self {
        Self { start: work.start().clone(), tip: work.tip().clone(), branch, expected }
    }

    /// Returns whether the work was judged against what the branch has: commits between would be lost, or unjudged.
    fn builds_on_expected(&self) -> bool {
        self.expected.as_ref().is_none_or(|expected| *expected == self.start)
    }
}

/// Result of a push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushOutcome {
    /// The branch has the commit.
    Pushed,
    /// The branch had it before.
    AlreadyThere,
    /// The branch has another commit than expected; nothing was changed.
    BranchMoved {
        /// The commit it has, if the remote says so. `None` if it is gone or moved during the push.
        found: Option<ObjectId>,
    },
    /// The remote refused it, or did not answer: then it may have taken the commit or not.
    Failed(RemoteFailure),
}

impl Quarantine {
    /// Sends the commit of `order` to `remote`. May be repeated after any failure or interruption.
    ///
    /// # Errors
    /// [`Error::NotCollected`] if the quarantine holds other commits, and if git or the system fails.
    pub async fn push(&self, remote: &Remote, order: &PushOrder) -> Result<PushOutcome, Error> {
        if self.commit(TIP).await? != order.tip || self.commit(START).await? != order.start {
            return Err(Error::NotCollected { path: self.dir().to_owned() });
        }
        match self.try_push(remote, order).await {
            Err(Error::Remote(failure)) => Ok(PushOutcome::Failed(failure)),
            outcome => outcome,
        }
    }

    async fn try_push(&self, remote: &Remote, order: &PushOrder) -> Result<PushOutcome, Error> {
        let reference = order.branch.reference();
        let found = remote.branches(self.git(), std::slice::from_ref(&reference)).await?.remove(&reference);
        if found.as_ref() == Some(&order.tip) {
            return Ok(PushOutcome::AlreadyThere);
        }
        if found != order.expected || !order.builds_on_expected() {
            return Ok(PushOutcome::BranchMoved { found });
        }
        let output = remote.run(self.push_command(remote, order), Access::Push).await?;
        outcome(&output, &reference)
    }

    fn push_command(&self, remote: &Remote, order: &PushOrder) -> GitCommand<'_> {
        let reference = order.branch.reference();
        let expected = order.expected.as_ref().map_or("", ObjectId::as_str);
        let command = self.git().command("push", self.dir());
        // Without this, a remote would get the whole of the start's files again after all its branches moved on.
        let command = command.setting("push.negotiate=true");
        let command = command.arguments(["--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"]);
        let command = command.arguments(["--recurse-submodules=no", "--no-thin"]);
        let command = command.argument(format!("--force-with-lease={reference}:{expected}"));
        command.arguments(["--", remote.url.as_str()]).argument(format!("{}:{reference}", order.tip))
    }
}

/// Reads the line of `reference`: a sign, both names, and words. A git without such a line failed before.
fn outcome(output: &GitOutput, reference: &str) -> Result<PushOutcome, Error> {
    let text = String::from_utf8_lossy(output.stdout());
    let is_own = |line: &&str| line.split('\t').nth(1).is_some_and(|names| names.ends_with(reference));
    let Some(line) = text.lines().find(is_own) else {
        return Ok(PushOutcome::Failed(failure_of(output)));
    };
    match line.chars().next() {
        Some('!') if LEASE_LOST.iter().any(|words| line.contains(words)) => {
            Ok(PushOutcome::BranchMoved { found: None })
        }
        Some('!') if UNDECIDED.iter().any(|words| line.contains(words)) => {
            let reason = output.reason();
            Ok(PushOutcome::Failed(RemoteFailure::Unreachable { reason, retry: true }))
        }
        Some('!') => {
            let reason = line.split('\t').next_back().unwrap_or_default();
            let reason = platform_runtime::terminal::safe(reason).into_owned();
            Ok(PushOutcome::Failed(RemoteFailure::Refused { reason }))
        }
        Some('=') => Ok(PushOutcome::AlreadyThere),
        Some(' ' | '+' | '*') if output.status() == Some(0) => Ok(PushOutcome::Pushed),
        _ => Err(Error::OddAnswer { command: "push" }),
    }
}
