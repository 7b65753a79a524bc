//! Stores a run's steps: a transition, with its resource changes and events, in one transaction.

use std::time::Duration;

use platform_core::{control::Usage, event::Phase, limit::ByteSize};
use platform_runtime::retry::Transient;
use runner_model::{
    json_len::beginning,
    lifecycle::{Completion, Detail, Failure, State, Transition},
};

use super::{
    Batch, FencingToken, ResourceChange, RetryWhen, Store, ThreadClaim, Tx, UnixMillis, WarmContainer,
    error::{Committed, Error, failed},
    events::status_event,
    row::{Run, storable},
};

/// Largest part of an answer that is stored.
const MAX_ANSWER: ByteSize = ByteSize::kib(256);
/// Largest size of that part in an event, as JSON. Only answers with many control characters reach this limit, because
/// each takes six bytes.
const MAX_ANSWER_IN_EVENT: ByteSize = ByteSize::kib(512);
/// Longest message of a failure that is stored.
const MAX_MESSAGE: ByteSize = ByteSize::kib(4);

/// Changes to a run that are stored at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Transition of the run, if it makes one.
    pub transition: Option<Transition>,
    /// Changes to resources. A wanted resource may be created once the step is stored.
    pub changes: Vec<ResourceChange>,
    /// Events of the run before the transition.
    pub batches: Vec<Batch>,
    /// Warm container that this run claims: its parts are among `changes`.
    pub claimed: Option<WarmContainer>,
    /// Workspace of a thread that this run claims: it is among `changes`.
    pub thread_workspace: Option<ThreadClaim>,
}

impl From<Transition> for Step {
    fn from(transition: Transition) -> Self {
        Self { transition: Some(transition), ..Self::default() }
    }
}

impl From<ResourceChange> for Step {
    fn from(change: ResourceChange) -> Self {
        Self { changes: vec![change], ..Self::default() }
    }
}

impl Step {
    /// Returns the same step, with `changes` to resources.
    #[must_use]
    pub fn with(mut self, changes: impl IntoIterator<Item = ResourceChange>) -> Self {
        self.changes.extend(changes);
        self
    }

    /// Returns the same step, which also claims `warm`.
    #[must_use]
    pub fn taking(self, warm: WarmContainer) -> Self {
        let changes = warm.resource_changes();
        Self { claimed: Some(warm), ..self.with(changes) }
    }

    /// Returns the same step, which also claims the workspace of a thread.
    #[must_use]
    pub fn claiming(self, claim: ThreadClaim) -> Self {
        Self { thread_workspace: Some(claim), ..self }
    }

    /// Returns the same step, after the events in `batches`.
    #[must_use]
    pub fn after(mut self, batches: impl IntoIterator<Item = Batch>) -> Self {
        self.batches.extend(batches);
        self
    }
}

const SAVE: &str = "UPDATE runs SET state = $1, started = $2, ended = $3, exit_code = $4, error_code = $5, \
     error_message = $6, error_detail = $7, oom_seen = $8, usage = $9, lease_owner = $10, lease_until = $11, \
     answer = COALESCE($12, answer), answer_bytes = COALESCE($13, answer_bytes) WHERE run = $14";
const RESTART: &str = "UPDATE runs SET state = 'queued', queued = $1, attempt = attempt + 1, started = NULL, ended = NULL, \
     exit_code = NULL, error_code = NULL, error_message = NULL, error_detail = NULL, oom_seen = NULL, answer = NULL, \
     answer_bytes = NULL, usage = NULL, cancel_asked = NULL, events_recorded = NULL, stopping = NULL, image = NULL, pruned = NULL, \
     changed = $1 WHERE run = $2 AND forgotten IS NULL";
const SET_USAGE: &str = "UPDATE runs SET usage = $1 \
     WHERE run = $2 AND installation = $3 AND epoch = $4 AND ended IS NOT NULL AND usage IS NULL";

impl Store {
    /// Stores a step of the run that `token` names. The caller acts on the step only after this returns.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over. [`Error::Illegal`] if its state does not allow the
    /// transition. [`Error::NotMaking`] and [`Error::NotWanted`] if a resource change is out of order.
    /// [`Error::NotWarm`] if another run claimed the warm container first, [`Error::ThreadWorkspaceTaken`] if another run
    /// has the workspace. Then nothing has changed.
    pub async fn step(&self, token: &FencingToken, step: &Step) -> Result<Run, Error> {
        self.step_within(Duration::ZERO, token, step).await
    }

    /// Stores a step, and waits up to five minutes for an unavailable store. The run cannot continue without the step,
    /// and no worker can take it over meanwhile.
    ///
    /// # Errors
    /// The same as [`Store::step`].
    pub async fn insist(&self, token: &FencingToken, step: &Step) -> Result<Run, Error> {
        self.step_within(Error::RETRY_TIMEOUT, token, step).await
    }

    async fn step_within(&self, max_wait: Duration, token: &FencingToken, step: &Step) -> Result<Run, Error> {
        let once = async |earlier_try| self.step_once(token, step, earlier_try).await;
        self.retrier(max_wait).run(RetryWhen::Always, once).await
    }

    async fn step_once(
        &self,
        token: &FencingToken,
        step: &Step,
        earlier_try: Committed,
    ) -> Result<Run, Error> {
        let mut tx = self.begin().await?;
        let mut run = self.fence(&mut tx, token).await?;
        let after = match &step.transition {
            None => None,
            Some(transition) => match run.state.after(transition) {
                Ok(after) => Some((after, transition)),
                // Only the holder changes the state: an earlier try of this step was committed.
                Err(_) if earlier_try == Committed::Perhaps && transition.leads_to(run.state) => {
                    return Ok(run);
                }
                Err(source) => return Err(Error::Illegal { run_id: token.run_id.clone(), source }),
            },
        };
        for batch in &step.batches {
            tx.record_events(token, batch).await?;
        }
        if let Some((after, transition)) = after {
            tx.apply(&mut run, after, transition).await?;
        }
        if let Some(warm) = &step.claimed {
            tx.claim_warm(self.installation.as_str(), warm).await?;
        }
        if let Some(claim) = &step.thread_workspace {
            tx.claim_thread_workspace(self.installation.as_str(), &token.run_id, claim).await?;
        }
        for change in &step.changes {
            tx.store_change(&run, change).await?;
        }
        tx.finish("take a step of a run", run).await
    }

    /// Starts the next attempt of an ended run: puts it into the queue again, for any worker.
    ///
    /// # Errors
    /// [`Error::Illegal`] if the run has not ended, [`Error::Full`] if the queue is full, and the errors of
    /// [`Store::step`].
    pub async fn restart(&self, token: &FencingToken) -> Result<Run, Error> {
        self.retry_unless_done(async || self.restart_once(token).await).await
    }

    async fn restart_once(&self, token: &FencingToken) -> Result<Run, Error> {
        let mut tx = self.begin().await?;
        self.lock_orders(&mut tx).await?;
        let run = self.fence(&mut tx, token).await?;
        run.state.restart().map_err(|source| Error::Illegal { run_id: token.run_id.clone(), source })?;
        self.refuse_beyond(&mut tx, &run.account).await?;
        self.check_host(&mut tx).await?;
        tx.remove_ended_run(&token.run_id).await?;
        let now = tx.now;
        let restarted = sqlx::query(RESTART).bind(now).bind(token.run_id.as_str());
        let restarted = restarted.execute(tx.connection()).await.map_err(failed("restart a run"))?;
        if restarted.rows_affected() == 0 {
            return Err(Error::Forgotten { run_id: token.run_id.clone() });
        }
        tx.append(&token.run_id, &[status_event(Phase::Queued)]).await?;
        tx.changed.states.push(token.run_id.clone());
        let run = self.find(&mut tx, &token.run_id).await?;
        tx.finish("restart a run", run).await
    }

    /// Records the usage of a run for which it was unknown at the end. Needs no lease, because the run has ended. Has
    /// no effect if the run has not ended, or its usage is known.
    pub async fn correct_usage(&self, token: &FencingToken, usage: &Usage) -> Result<(), Error> {
        self.write(async |mut tx| {
            let query =
                sqlx::query(SET_USAGE).bind(serde_json::to_string(usage).ok()).bind(token.run_id.as_str());
            let query = query.bind(self.installation.as_str());
            let query = query.bind(i64::try_from(token.epoch).unwrap_or(i64::MAX));
            query.execute(tx.connection()).await.map_err(failed("store a run's usage"))?;
            tx.commit("store a run's usage").await
        })
        .await
    }
}

impl Tx {
    /// Stores `transition` of `run` to the state `after`, with its event.
    pub(super) async fn apply(
        &mut self,
        run: &mut Run,
        after: State,
        transition: &Transition,
    ) -> Result<(), Error> {
        run.state = after;
        let mut answer = None;
        let phase = match transition {
            Transition::Prepare => Some(Phase::Preparing),
            Transition::Start => Some(Phase::Starting),
            Transition::Run => {
                run.started = Some(UnixMillis(self.now));
                Some(Phase::Running)
            }
            Transition::Collect(completion) | Transition::Settle(completion) => {
                let Completion { exit_code, oom_seen, answer: result } = completion;
                run.exit_code = *exit_code;
                run.oom_seen = *oom_seen;
                run.error = result.as_ref().err().map(truncated);
                answer = result.as_ref().ok();
                let is_last = matches!(transition, Transition::Settle(_));
                Some(if is_last { Phase::Settling } else { Phase::Collecting })
            }
            Transition::Finish(usage) => {
                run.usage = *usage;
                None
            }
            Transition::Withdraw(failure) => {
                run.error = Some(truncated(failure));
                None
            }
        };
        if after.is_final() {
            run.ended = Some(UnixMillis(self.now));
            run.lease = None;
        }
        self.save(run, answer.map(String::as_str)).await?;
        if run.ended.is_some() {
            self.add_ended_run(&run.run_id).await?;
        }
        self.changed.states.push(run.run_id.clone());
        let events = match phase {
            Some(phase) => vec![status_event(phase)],
            None => self.last_events(run).await?,
        };
        self.append(&run.run_id, &events).await
    }

    /// Stores the changeable columns of `run`, and its answer if there is one.
    async fn save(&mut self, run: &Run, answer: Option<&str>) -> Result<(), Error> {
        let usage = run.usage.as_ref().and_then(|usage| serde_json::to_string(usage).ok());
        // The stored length counts the whole answer, after zero characters are replaced.
        let answer = answer.map(storable);
        let stored_part = answer
            .as_deref()
            .map(|whole| beginning(truncate(whole, MAX_ANSWER), MAX_ANSWER_IN_EVENT.as_usize()));
        sqlx::query(SAVE)
            .bind(run.state.name())
            .bind(run.started.map(|at| at.0))
            .bind(run.ended.map(|at| at.0))
            .bind(run.exit_code)
            .bind(run.error.as_ref().map(|failure| failure.code.code()))
            .bind(run.error.as_ref().map(|failure| failure.message.as_str()))
            .bind(run.error.as_ref().and_then(|failure| failure.detail.as_ref()).map(Detail::for_operators))
            .bind(run.oom_seen.map(i64::from))
            .bind(usage)
            .bind(run.lease.as_ref().map(|lease| lease.owner.as_str()))
            .bind(run.lease.as_ref().map(|lease| lease.until.0))
            .bind(stored_part)
            .bind(answer.as_ref().map(|answer| i64::try_from(answer.len()).unwrap_or(i64::MAX)))
            .bind(run.run_id.as_str())
            .execute(self.connection())
            .await
            .map_err(failed("store a run's state"))?;
        Ok(())
    }
}

/// Returns `failure` with texts that can be stored: without zero characters, and not too long.
fn truncated(failure: &Failure) -> Failure {
    // Replacing a zero character makes a text longer, so it is cut afterwards.
    let stored_text = |text: &str| truncate(&storable(text), MAX_MESSAGE).to_owned();
    Failure {
        code: failure.code,
        message: stored_text(&failure.message),
        detail: failure.detail.as_ref().map(|detail| Detail::new(stored_text(detail.for_operators()))),
    }
}

/// Returns the longest beginning of `text` that has at most `max_size`.
fn truncate(text: &str, max_size: ByteSize) -> &str {
    &text[..text.floor_char_boundary(max_size.as_usize())]
}
