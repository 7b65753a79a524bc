//! Brings proposals to their pull requests. Each step is stored before the next one begins, and may be repeated.

use std::path::Path;

use platform_core::id::ProposalId;
use platform_runtime::{report, task::blocking};
use runner_engine::relay::{AcceptedWork, Publish, PullRequest};
use runner_git::{
    FileAt, FileChange, PushOrder, PushOutcome, Quarantine, RelayPolicy, RelayVerdict, RemoteFailure,
    SecretScan, WorkBounds,
};
use runner_github::{
    Permission, ProposalText, PullRequestOrder, PullRequestText, PullRequests, RepositoryName,
};
use runner_model::failpoint::Point;

use crate::{
    Proposals,
    content::ProposalContent,
    diff::unified_diff,
    error::ProposalError,
    open::{MAX_FILE, OpenProposal},
    record::{Proposal, ProposalState},
};

/// Most tries of a step: about a day.
pub(crate) const MAX_TRIES: u32 = 150;
/// Most bytes of a text about a file that is stored.
const MAX_SHOWN: usize = 256 << 10;
/// Milliseconds of a second.
const SECOND: i64 = 1000;

impl Proposals {
    /// Continues a proposal to its pull request, or looks for its end. One that fails for a while is then due again.
    /// Dropping the future leaves it where it is.
    ///
    /// # Errors
    /// [`ProposalError::Busy`] while another process continues it, and if the store fails.
    pub async fn advance(&self, id: &ProposalId) -> Result<Proposal, ProposalError> {
        let (_lock, mut open) = self.open(id).await?;
        if matches!(open.proposal.record.state, ProposalState::Proposed { .. }) {
            self.look(&mut open).await?;
        }
        while open.proposal.record.state.is_pending() {
            if !self.is_configured(&open.proposal.record.place.order) {
                let reason = "`agents_repository` names another place now: propose it again".to_owned();
                self.change(&mut open, ProposalState::Failed { reason }).await?;
                break;
            }
            let step = self.step(&mut open).await;
            match step {
                Ok(state) => {
                    reach(&state);
                    self.change(&mut open, state).await?;
                }
                Err(error) if error.is_transient() && open.proposal.record.tries < MAX_TRIES => {
                    self.postpone(&mut open, &error).await?;
                    return Ok(open.proposal);
                }
                Err(error) if error.is_of_store() => return Err(error),
                Err(error) => {
                    self.change(&mut open, ProposalState::Failed { reason: report::chain(&error) }).await?;
                }
            }
        }
        if !open.proposal.record.state.needs_commit() {
            open.dir.remove().await?;
        }
        Ok(open.proposal)
    }

    async fn step(&self, open: &mut OpenProposal) -> Result<ProposalState, ProposalError> {
        match open.proposal.record.state.clone() {
            ProposalState::Committed { work } => self.push(open, work).await,
            ProposalState::Pushed { work: _ } => self.publish(open).await,
            _ => {
                Point::ProposalTaken.reach();
                self.commit(open).await
            }
        }
    }

    /// Makes the commit on top of the newest one of the base branch, and judges it.
    async fn commit(&self, open: &mut OpenProposal) -> Result<ProposalState, ProposalError> {
        let git = self.relays.git()?;
        let mirror = self.fetch(&git, open).await?;
        let Proposal { content, record, created, .. } = &mut open.proposal;
        let path = &record.place.path;
        let refused = |objection: String| Ok(ProposalState::Refused { objections: vec![objection] });
        let start = mirror.base_tip(&record.place.order.base).await?;
        let before = match (mirror.file(&start, path, MAX_FILE).await?, content.agent()) {
            (FileAt::Text(text), _) => text,
            (FileAt::Missing, None) => String::new(),
            (FileAt::Missing, Some(_)) => {
                return refused(format!(
                    "the repository has no file {path}: see `agents_repository.configuration`"
                ));
            }
            (FileAt::Other, _) => {
                return refused(format!("{path} is no file with a text of at most {MAX_FILE}"));
            }
        };
        if content.is_in(&before) {
            return refused(format!("{path} has it already"));
        }
        let Applied { after, diff, problems } = self.apply(content, path, before).await?;
        if !problems.is_empty() {
            return Ok(ProposalState::Refused { objections: problems });
        }
        let message = format!("Add {} {}", content.kind().title(), content.name());
        let change = FileChange {
            path,
            text: &after,
            message: &message,
            author: &self.relays.author()?,
            time: u64::try_from(created.0 / SECOND).unwrap_or_default(),
        };
        let quarantine = Quarantine::create(&git, &open.dir.quarantine()).await?;
        quarantine.commit_file(&mirror, &start, &change).await?;
        let verdict = quarantine.judge(&policy()).await?;
        Ok(match verdict {
            RelayVerdict::Accepted(work) => {
                record.diff = Some(diff);
                ProposalState::Committed { work }
            }
            RelayVerdict::Refused(objections) => {
                ProposalState::Refused { objections: objections.iter().map(ToString::to_string).collect() }
            }
        })
    }

    /// Applies a content to the text of its file, on a thread that may block: a whole configuration is read twice.
    async fn apply(
        &self,
        content: &ProposalContent,
        path: &str,
        before: String,
    ) -> Result<Applied, ProposalError> {
        let content = content.clone();
        let path = path.to_owned();
        let reader = self.reader.clone();
        blocking(move || {
            let after = content.applied_to(&before);
            let agent = content.agent();
            let problems = agent
                .map(|agent| reader.problems(Path::new(&path), agent, &before, &after))
                .unwrap_or_default();
            let problems = problems.into_iter().map(shown).collect();
            let diff = shown(unified_diff(&before, &after, &path));
            Ok(Applied { after, diff, problems })
        })
        .await
    }

    /// Pushes the commit, or has it made anew if its base has moved on.
    async fn push(&self, open: &OpenProposal, work: AcceptedWork) -> Result<ProposalState, ProposalError> {
        let order = &open.proposal.record.place.order;
        let git = self.relays.git()?;
        let mirror = self.fetch(&git, open).await?;
        let is_newest = mirror.base_tip(&order.base).await? == *work.start();
        match mirror.sandbox_tip(&order.branch).await? {
            Some(tip) if tip == *work.tip() => return Ok(ProposalState::Pushed { work }),
            None if is_newest && open.dir.quarantine().is_dir() => {}
            None => return Ok(ProposalState::Queued),
            Some(_) => return Ok(moved()),
        }
        let quarantine = Quarantine::open(&git, &open.dir.quarantine())?;
        let remote = self.relays.remote(order, Permission::Push, &open.dir.askpass()).await?;
        let push = PushOrder::new(&work, order.branch.clone(), None);
        match quarantine.push(&remote, &push).await? {
            PushOutcome::Pushed | PushOutcome::AlreadyThere => Ok(ProposalState::Pushed { work }),
            PushOutcome::BranchMoved { .. } => Ok(moved()),
            PushOutcome::Failed(failure @ RemoteFailure::Unreachable { retry: true, .. }) => {
                Err(runner_git::Error::from(failure).into())
            }
            PushOutcome::Failed(failure) => Ok(ProposalState::Failed { reason: failure.to_string() }),
        }
    }

    /// Makes the pull request, where there are any.
    async fn publish(&self, open: &OpenProposal) -> Result<ProposalState, ProposalError> {
        let Proposal { id, principal, content, record, .. } = &open.proposal;
        let order = &record.place.order;
        if order.publish == Publish::Branch {
            return Ok(ProposalState::Proposed { pull_request: None });
        }
        let text = ProposalText {
            kind: content.kind().title(),
            name: content.name(),
            path: &record.place.path,
            principal,
            id,
            text: content.text(),
        };
        let text = match PullRequestText::of_proposal(&text, &SecretScan::default()) {
            Ok(text) => text,
            // It was judged before, by an earlier program perhaps.
            Err(found) => return Ok(ProposalState::Failed { reason: found.to_string() }),
        };
        let order = PullRequestOrder {
            repository: RepositoryName::of(&order.url)?,
            head: order.branch.clone(),
            base: order.base.clone(),
            text,
            labels: self.relays.settings().labels.clone(),
        };
        let pulls = PullRequests::new(self.relays.github().source()?);
        let runner_github::PullRequest { number, url, .. } = pulls.ensure_once(&order).await?;
        Ok(ProposalState::Proposed { pull_request: Some(PullRequest { number, url }) })
    }
}

/// Content that was applied to its file.
struct Applied {
    after: String,
    /// Difference, as it is shown.
    diff: String,
    /// Mistakes of the file, as they are shown.
    problems: Vec<String>,
}

/// Returns a text about a file as it may be stored and shown: the file may have held a secret before.
fn shown(mut text: String) -> String {
    if let Some(secret) = SecretScan::default().find_in_text(text.as_bytes()) {
        return format!("left out: it holds a {secret}");
    }
    if text.len() > MAX_SHOWN {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text += "\n[the rest is left out]\n";
    }
    text
}

/// Returns the state of a proposal after its branch got commits of others.
fn moved() -> ProposalState {
    ProposalState::Failed { reason: "its branch has other commits: propose it again".to_owned() }
}

/// Returns the rules of a proposal's commit: those of agents' commits, for one file.
fn policy() -> RelayPolicy {
    let bounds = WorkBounds { commits: 1, files: 1, file: MAX_FILE, ..WorkBounds::default() };
    RelayPolicy { bounds, ..RelayPolicy::default() }
}

/// Reaches the failpoint after the step to a state, which is not stored yet.
fn reach(state: &ProposalState) {
    match state {
        ProposalState::Committed { .. } => Point::ProposalCommitted.reach(),
        ProposalState::Pushed { .. } => Point::ProposalPushed.reach(),
        ProposalState::Proposed { .. } => Point::ProposalMade.reach(),
        _ => {}
    }
}
