//! Collects the commits of an agent that has ended, before its workspace is removed.
//!
//! A worker that takes the run over begins this phase again: a bundle that is stored is not made again.

use std::time::Duration;

use platform_core::{
    event::{AgentEvent, Phase},
    id::WorkspaceId,
};
use platform_runtime::report;
use runner_docker::{self as docker, ExtractSpec, Extracted};
use runner_model::{
    failpoint::Point,
    lifecycle::{Completion, State},
};
use runner_store::{self as store, ResourceChange, ResourceKind, ResourceState};
use runner_workspace::Workspace;

use super::{error::Error, executor::RunExecutor};
use crate::{
    relay::{OpenRelay, RelayError, RelayRecord, RelayStage, Relays},
    run_files,
};

/// Longest time in which git writes the bundle.
const EXTRACTION_TIMEOUT: Duration = Duration::from_secs(60);

impl RunExecutor<'_> {
    /// Stores the completion and brings the agent's commits to their branch, if the run has a repository. Returns the
    /// completion with which the run settles: its answer names the pull request if that exists in time.
    ///
    /// # Errors
    /// The store's error that shows that another worker has taken the run over.
    pub(super) async fn collect_work(&mut self, completion: Completion) -> Result<Completion, store::Error> {
        let ctx = self.ctx;
        if ctx.spec().repo.is_none() {
            return Ok(completion);
        }
        let relays = ctx.engine.relays();
        match ctx.run.state() {
            State::Collecting(_) => {}
            State::Running => {
                ctx.events.send_phase(Phase::Collecting);
                ctx.run.collect(completion.clone(), ctx.events.pending_batches()).await?;
            }
            State::Settling(_) => {
                self.keep_uncollected(&relays).await;
                return Ok(completion);
            }
            // The agent never ran.
            _ => {
                let abandoned = ctx.run.perform(relays.abandon(ctx.run_id(), ctx.run.attempt())).await?;
                abandoned.unwrap_or_else(|error| self.warn_uncollected(&error));
                return Ok(completion);
            }
        }
        Point::CollectStored.reach();
        let collected = Box::pin(self.collect_and_advance(&relays)).await;
        self.keep_uncollected(&relays).await;
        match collected {
            Ok(Some(record)) => {
                ctx.events.record(event(&record));
                Ok(announced(completion, &record))
            }
            Ok(None) => Ok(completion),
            Err(Error::Store(lost @ (store::Error::Fenced { .. } | store::Error::Unknown { .. }))) => {
                Err(lost)
            }
            Err(error) => {
                self.warn_uncollected(&error);
                Ok(completion)
            }
        }
    }

    /// Keeps the workspace of work that is nowhere else.
    async fn keep_uncollected(&mut self, relays: &Relays) {
        let kept = relays.is_work_kept(self.ctx.run_id(), self.ctx.run.attempt()).await;
        self.keeps_workspace = !kept.unwrap_or_else(|error| {
            self.warn_uncollected(&error);
            false
        });
    }

    fn warn_uncollected(&self, error: &dyn std::error::Error) {
        let run = self.ctx.run_id();
        tracing::warn!(%run, error = report::chain(error), "commits not brought to their branch");
    }

    /// Takes the commits out of the workspace, and waits until they are pushed, or for the configured time.
    async fn collect_and_advance(&mut self, relays: &Relays) -> Result<Option<RelayRecord>, Error> {
        let run_id = self.ctx.run_id();
        let Some(mut relay) = relays.open(run_id, self.ctx.run.attempt()).await? else { return Ok(None) };
        if relay.record.stage == RelayStage::Cloned {
            Box::pin(self.collect_commits(relays, &mut relay)).await?;
        }
        Point::CommitsKept.reach();
        if !relay.record.stage.is_pending() {
            return Ok(Some(relay.record));
        }
        if let Some(record) = Box::pin(self.advance_in_time(relays)).await? {
            return Ok(Some(record));
        }
        let stored = self.ctx.engine.store.relay_of(run_id, self.ctx.run.attempt()).await?;
        Ok(stored.as_ref().map(RelayRecord::read).transpose()?)
    }

    /// Continues the relay for the time that the run waits for it; `None` if it goes on without the run. A cancel ends
    /// the wait, unless it has ended the agent.
    async fn advance_in_time(&self, relays: &Relays) -> Result<Option<RelayRecord>, Error> {
        let ctx = self.ctx;
        let wait = relays.settings().wait.duration();
        let advance = tokio::time::timeout(
            wait,
            ctx.run.perform(Box::pin(relays.advance(ctx.run_id(), ctx.run.attempt()))),
        );
        let advanced = if ctx.cancel.is_cancelled() {
            Some(advance.await)
        } else {
            ctx.cancel.run_until_cancelled(advance).await
        };
        match advanced {
            Some(Ok(advanced)) => match advanced? {
                // Another process continues it, as after a take-over.
                Err(RelayError::Busy { .. }) => Ok(None),
                advanced => Ok(Some(advanced?)),
            },
            None | Some(Err(_)) => Ok(None),
        }
    }

    /// Takes the commits out of the workspace as a bundle. If that fails, its reason is stored.
    async fn collect_commits(&mut self, relays: &Relays, relay: &mut OpenRelay) -> Result<(), Error> {
        match Box::pin(self.extract(relays, relay)).await {
            Ok(extracted) => Ok(self.ctx.run.perform(relays.collected(relay, &extracted)).await??),
            Err(lost @ Error::Store(_)) => Err(lost),
            Err(error) => {
                let reason = report::chain(&error);
                Ok(self.ctx.run.perform(relays.fail(relay, reason)).await??)
            }
        }
    }

    /// Runs git in its own container, on a workspace in which nothing else runs any more.
    async fn extract(&mut self, relays: &Relays, relay: &mut OpenRelay) -> Result<Extracted, Error> {
        let ctx = self.ctx;
        // No process of the agent changes the workspace any more.
        self.remove_kinds(&[ResourceKind::Container]).await?;
        let (id, workspace) = self.reopen_workspace().await?;
        ctx.run.perform(async { relay.keep_description(workspace.path()) }).await??;
        relay.record.outside = run_files::outside(ctx.request(), workspace.path());
        let (program, limits) = relays.extraction(relay);
        let spec = ExtractSpec {
            name: format!("{}{}", ctx.container_name(), docker::EXTRACTION_SUFFIX),
            image: ctx.image().await?,
            labels: ctx.labels(&id),
            program,
            workspace: workspace.path().to_owned(),
            limits,
            timeout: EXTRACTION_TIMEOUT,
        };
        let wanted = ResourceChange::wanted(ResourceKind::Container, spec.name.as_str());
        self.store_changes(vec![wanted.clone()]).await?;
        let extract = async || {
            let output = relay.bundle_file()?;
            Ok::<_, RelayError>(ctx.engine.docker.extract(&spec, output).await?)
        };
        let extracted = Box::pin(ctx.run.retry(extract)).await;
        if extracted.is_ok() {
            self.store_changes(vec![wanted.to(ResourceState::Removed)]).await?;
        }
        extracted
    }

    async fn reopen_workspace(&self) -> Result<(WorkspaceId, Workspace), Error> {
        let id = self.workspace_id().ok_or(Error::ContainerLost)?;
        let workspace = self.ctx.run.perform(self.ctx.workspaces().adopt(&id)).await??;
        Ok((id, workspace))
    }
}

/// Returns the event that says what became of the commits.
fn event(record: &RelayRecord) -> AgentEvent {
    let RelayRecord { order, stage, .. } = record;
    AgentEvent::Commits {
        stage: stage.name().to_owned(),
        branch: order.branch.to_string(),
        commit: stage.work().map(|work| work.tip().as_str().to_owned()),
        pull_request: stage.pull_request().map(|pull_request| pull_request.url.clone()),
    }
}

/// Returns the completion with the address of the pull request at the end of its answer.
fn announced(completion: Completion, record: &RelayRecord) -> Completion {
    let Some(pull_request) = record.stage.pull_request() else { return completion };
    let with_url = |answer: String| {
        let separator = if answer.is_empty() { "" } else { "\n\n" };
        format!("{answer}{separator}{}", pull_request.url)
    };
    Completion { answer: completion.answer.map(with_url), ..completion }
}
