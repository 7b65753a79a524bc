//! Brings collected commits to their branch: judges them, pushes them, makes the pull request. Each step is stored before
//! the next one begins, and may be repeated.

use std::{fs, time::Duration};

use platform_core::{id::RunId, limit::Millis};
use platform_runtime::{lock::Lock, report, retry::Transient};
use runner_git::{
    AcceptedWork, Objection, PushOrder, PushOutcome, Quarantine, Received, RelayRule, RelayVerdict,
    RemoteFailure, SecretScan,
};
use runner_github::{
    AgentText, HoldsSecret, Permission, PullRequestOrder, PullRequestText, PullRequests, RepositoryName,
    RunFooter,
};
use runner_model::failpoint::Point;
use runner_store::RunRecord;

use super::{
    Relays,
    collect::OpenRelay,
    error::RelayError,
    record::{PullRequest, RelayRecord, RelayStage},
    repo_order::{Publish, RepoOrder},
};

/// First delay before a step that failed is tried again.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// Longest delay before a step that failed is tried again.
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// Most tries of a step: about a day.
const MAX_TRIES: u32 = 150;

impl Relays {
    /// Continues the relay of an attempt to its end, or to a step that fails for a while and is then due again. Dropping
    /// the future leaves the relay where it is, to be continued when it is due.
    ///
    /// # Errors
    /// [`RelayError::Busy`] while another process continues it, and if the store fails.
    pub async fn advance(&self, run_id: &RunId, attempt: u32) -> Result<RelayRecord, RelayError> {
        let (_lock, relay) = self.open_locked(run_id, attempt).await?;
        self.advance_open(relay).await
    }

    /// Continues the relay of the last attempt of `run_id`. One that has ended without a push begins again, from its
    /// stored bundle.
    ///
    /// # Errors
    /// [`RelayError::NoBundle`] without a stored bundle, and those of [`Self::advance`].
    pub async fn push_again(&self, run_id: &RunId) -> Result<RelayRecord, RelayError> {
        let no_relay = || RelayError::NoRelay { run_id: run_id.clone() };
        let attempt = self.store.relay(run_id).await?.ok_or_else(no_relay)?.attempt;
        let (_lock, mut relay) = self.open_locked(run_id, attempt).await?;
        let stage = &relay.record.stage;
        if stage.can_restart() && relay.dir.bundle().is_file() {
            self.change(&mut relay, RelayStage::Collected).await?;
        } else if !stage.is_pending() && !stage.is_done() {
            return Err(RelayError::NoBundle { run_id: run_id.clone(), stage: stage.name() });
        }
        self.advance_open(relay).await
    }

    /// Opens a relay under the lock of its directory: what another process did before the lock was free counts.
    async fn open_locked(&self, run_id: &RunId, attempt: u32) -> Result<(Lock, OpenRelay), RelayError> {
        let lock = self.dir.make(run_id, attempt)?.lock()?;
        let lock = lock.ok_or_else(|| RelayError::Busy { run_id: run_id.clone() })?;
        let relay = self.open(run_id, attempt).await?;
        Ok((lock, relay.ok_or_else(|| RelayError::NoRelay { run_id: run_id.clone() })?))
    }

    async fn advance_open(&self, mut relay: OpenRelay) -> Result<RelayRecord, RelayError> {
        while relay.record.stage.is_pending() {
            let step = match &relay.record.stage {
                RelayStage::Accepted { work } => self.push(&relay, work).await,
                RelayStage::Pushed { work } => self.publish(&relay, work).await,
                _ => self.judge(&mut relay).await,
            };
            match step {
                Ok(stage) => {
                    reach(&stage);
                    self.change(&mut relay, stage).await?;
                }
                Err(error) if error.is_transient() && relay.record.tries < MAX_TRIES => {
                    self.postpone(&mut relay, &error).await?;
                    break;
                }
                Err(error @ RelayError::Store(_)) => return Err(error),
                Err(error) => {
                    self.change(&mut relay, RelayStage::Failed { reason: report::chain(&error) }).await?;
                }
            }
        }
        relay.remove_if_done().await;
        Ok(relay.record)
    }

    /// Stores the next stage of a relay, and removes its files if it is done. While it is pending, any process may
    /// continue it after the time that a run waits.
    pub(super) async fn change(&self, relay: &mut OpenRelay, stage: RelayStage) -> Result<(), RelayError> {
        debug_assert!(relay.record.stage.leads_to(&stage), "{:?} to {stage:?}", relay.record.stage);
        let due_in = stage.is_pending().then_some(self.settings.wait);
        let record = RelayRecord { stage, tries: 0, fault: None, ..relay.record.clone() };
        self.store_record(relay, record, due_in).await?;
        relay.remove_if_done().await;
        Ok(())
    }

    /// Stores that a step has failed, and when it is tried again.
    async fn postpone(&self, relay: &mut OpenRelay, error: &RelayError) -> Result<(), RelayError> {
        // The tries are stored, so the delay follows from their number: another process may make the next one.
        let doubled = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(relay.record.tries));
        let delay = doubled.min(LONGEST_DELAY).max(error.retry_after().unwrap_or_default());
        let run = &relay.stored.run_id;
        let error = report::chain(error);
        let stage = relay.record.stage.name();
        tracing::warn!(%run, stage, error, "commits not brought on yet; trying again");
        let record =
            RelayRecord { tries: relay.record.tries + 1, fault: Some(error), ..relay.record.clone() };
        let due_in = Millis(delay.as_millis().try_into().unwrap_or(u64::MAX));
        self.store_record(relay, record, Some(due_in)).await
    }

    /// Stores what is known of a relay now. A fault of the store leaves `relay` as it was.
    async fn store_record(
        &self,
        relay: &mut OpenRelay,
        record: RelayRecord,
        due_in: Option<Millis>,
    ) -> Result<(), RelayError> {
        relay.stored = self.store.change_relay(&relay.stored, &record.progress(due_in)).await?;
        relay.record = record;
        Ok(())
    }

    /// Takes the bundle into a clean repository, judges it, and lists its commits for people.
    async fn judge(&self, relay: &mut OpenRelay) -> Result<RelayStage, RelayError> {
        let record = &relay.record;
        let git = self.git()?;
        let mirror = self.mirror(&git, &record.order)?;
        let quarantine = Quarantine::create(&git, &relay.dir.quarantine()).await?;
        let order = self.collect_order(record);
        Ok(match quarantine.receive(&mirror, &relay.dir.bundle(), &order).await? {
            Received::Nothing => RelayStage::Unchanged,
            Received::Refused(objection) => RelayStage::Refused { objections: vec![objection] },
            Received::Tip(_) => {
                let policy = self.policy()?;
                let verdict = quarantine.judge(&policy).await?;
                let listed = quarantine.commits(&policy.secrets).await;
                match verdict {
                    RelayVerdict::Accepted(work) => {
                        relay.record.commits = listed?;
                        match self.text_objection(relay, &policy.secrets).await? {
                            None => RelayStage::Accepted { work },
                            Some(objection) => RelayStage::Refused { objections: vec![objection] },
                        }
                    }
                    RelayVerdict::Refused(objections) => {
                        // Refused work may be such that git cannot list it within its bounds.
                        relay.record.commits = listed.unwrap_or_default();
                        RelayStage::Refused { objections }
                    }
                }
            }
        })
    }

    /// Returns the objection to the text of the pull request, if one was asked for and its text is there already.
    async fn text_objection(
        &self,
        relay: &OpenRelay,
        secrets: &SecretScan,
    ) -> Result<Option<Objection>, RelayError> {
        if relay.record.order.publish == Publish::Branch {
            return Ok(None);
        }
        let record = self.store.record(&relay.stored.run_id).await?;
        let objection = |HoldsSecret { secret }| Objection {
            rule: RelayRule::Secret,
            path: None,
            detail: format!("the text for the pull request holds a {secret}"),
        };
        Ok(pull_request_text(relay, &record, secrets).err().map(objection))
    }

    async fn push(&self, relay: &OpenRelay, work: &AcceptedWork) -> Result<RelayStage, RelayError> {
        let record = &relay.record;
        let quarantine = Quarantine::open(&self.git()?, &relay.dir.quarantine())?;
        let order = PushOrder::new(work, record.order.branch.clone(), record.remote_tip.clone());
        let remote = self.remote(&record.order, Permission::Push, &relay.dir.askpass()).await?;
        let work = work.clone();
        match quarantine.push(&remote, &order).await? {
            PushOutcome::Pushed | PushOutcome::AlreadyThere => Ok(RelayStage::Pushed { work }),
            PushOutcome::BranchMoved { found } => Ok(RelayStage::BranchMoved { work, found }),
            PushOutcome::Failed(failure @ RemoteFailure::Unreachable { retry: true, .. }) => {
                Err(runner_git::Error::from(failure).into())
            }
            PushOutcome::Failed(failure) => Ok(RelayStage::Failed { reason: failure.to_string() }),
        }
    }

    /// Makes the pull request, if one was asked for.
    async fn publish(&self, relay: &OpenRelay, work: &AcceptedWork) -> Result<RelayStage, RelayError> {
        let RepoOrder { url, base, branch, publish } = &relay.record.order;
        let work = work.clone();
        if *publish == Publish::Branch {
            return Ok(RelayStage::Published { work, pull_request: None });
        }
        let record = self.store.record(&relay.stored.run_id).await?;
        let text = pull_request_text(relay, &record, &self.policy()?.secrets);
        let footer = RunFooter { run: &record.run.run_id, agent: &record.run.agent, account: None };
        let order = PullRequestOrder {
            repository: RepositoryName::of(url)?,
            head: branch.clone(),
            base: base.clone(),
            // The branch is there, so people are told why it has no text.
            text: text.unwrap_or_else(|left_out| PullRequestText::without(left_out, &footer)),
            labels: self.settings.labels.clone(),
        };
        let runner_github::PullRequest { number, url, .. } =
            PullRequests::new(self.github.source()?).ensure(&order).await?;
        Ok(RelayStage::Published { work, pull_request: Some(PullRequest { number, url }) })
    }
}

/// Composes the text of a pull request from what the agent wrote for it, or else from its answer.
fn pull_request_text(
    relay: &OpenRelay,
    record: &RunRecord,
    secrets: &SecretScan,
) -> Result<PullRequestText, HoldsSecret> {
    let description = fs::read_to_string(relay.dir.description()).ok();
    let source =
        AgentText { file: description.as_deref(), answer: record.answer.as_deref().unwrap_or_default() };
    let footer = RunFooter { run: &record.run.run_id, agent: &record.run.agent, account: None };
    PullRequestText::compose(source, &footer, secrets)
}

/// Reaches the failpoint after the step to a stage, which is not stored yet.
fn reach(stage: &RelayStage) {
    match stage {
        RelayStage::Accepted { .. } => Point::CommitsJudged.reach(),
        RelayStage::Pushed { .. } => Point::CommitsPushed.reach(),
        RelayStage::Published { .. } => Point::PullRequestMade.reach(),
        _ => {}
    }
}
