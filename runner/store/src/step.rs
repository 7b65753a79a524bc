//! Stores a run's steps: a move, and what is made or removed with it, in one transaction.

use platform_core::{control::Usage, event::Phase, limit::ByteSize};
use platform_runtime::retry::Transient;
use runner_model::{
    json_len::beginning,
    lifecycle::{Completion, Detail, Failure, State, Transition},
};

use super::{
    Batch, FencingToken, ResourceChange, RetryWhen, Store, Tx, UnixMillis, WarmContainer,
    error::{Committed, Error, failed},
    events::enters,
    row::{Run, storable},
};

/// Largest part of an answer that is kept.
const MAX_ANSWER: ByteSize = ByteSize::kib(256);
/// Largest size of that part in an event, where control characters take six bytes: no text that people write takes
/// more.
const MAX_ANSWER_IN_EVENT: ByteSize = ByteSize::kib(512);
/// Longest message of a failure that is kept.
const MAX_MESSAGE: ByteSize = ByteSize::kib(4);

/// Changes to a run that are stored at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Move of the run, if it makes one.
    pub makes: Option<Transition>,
    /// Changes to resources. A resource that is wanted now may be made once this is stored.
    pub changes: Vec<ResourceChange>,
    /// Events of the run before the move.
    pub told: Vec<Batch>,
    /// Warm container that this run takes: its parts are among `changes`.
    pub takes: Option<WarmContainer>,
}

impl From<Transition> for Step {
    fn from(makes: Transition) -> Self {
        Self { makes: Some(makes), ..Self::default() }
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

    /// Returns the same step, which also takes `warm`.
    #[must_use]
    pub fn taking(self, warm: WarmContainer) -> Self {
        let things = warm.things();
        Self { takes: Some(warm), ..self.with(things) }
    }

    /// Returns the same step, after the events in `batches`.
    #[must_use]
    pub fn after(mut self, batches: impl IntoIterator<Item = Batch>) -> Self {
        self.told.extend(batches);
        self
    }
}

const SAVE: &str = "UPDATE runs SET state = $1, started = $2, ended = $3, exit_code = $4, error_code = $5, \
     error_message = $6, error_detail = $7, oom_seen = $8, usage = $9, lease_owner = $10, lease_until = $11, \
     answer = COALESCE($12, answer), answer_bytes = COALESCE($13, answer_bytes) WHERE run = $14";
const START_ANEW: &str = "UPDATE runs SET state = 'queued', queued = $1, attempt = attempt + 1, started = NULL, ended = NULL, \
     exit_code = NULL, error_code = NULL, error_message = NULL, error_detail = NULL, oom_seen = NULL, answer = NULL, \
     answer_bytes = NULL, usage = NULL, cancel_asked = NULL, events_recorded = NULL, stopping = NULL, image = NULL, pruned = NULL, \
     changed = $1 WHERE run = $2";
const SET_USAGE: &str = "UPDATE runs SET usage = $1 \
     WHERE run = $2 AND installation = $3 AND epoch = $4 AND ended IS NOT NULL AND usage IS NULL";

impl Store {
    /// Takes a step of the run on which `hold` is. Nothing of it may be done before this has returned.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over, [`Error::Illegal`] if its state does not allow the
    /// move, [`Error::NotMaking`] and [`Error::NotWanted`] if resources are out of order, [`Error::NotWarm`] if another
    /// run was faster. Then nothing has changed.
    pub async fn step(&self, hold: &FencingToken, step: &Step) -> Result<Run, Error> {
        self.retry(RetryWhen::Always, async |before| self.step_once(hold, step, before).await).await
    }

    /// Takes a step, and waits five minutes for an unavailable store: the run cannot go on without it, and no worker
    /// can take it over meanwhile.
    ///
    /// # Errors
    /// The same as [`Store::step`].
    pub async fn insist(&self, hold: &FencingToken, step: &Step) -> Result<Run, Error> {
        let retrier = self.retrier(Error::RETRY_TIMEOUT);
        retrier.run(RetryWhen::Always, async |before| self.step_once(hold, step, before).await).await
    }

    async fn step_once(&self, hold: &FencingToken, step: &Step, before: Committed) -> Result<Run, Error> {
        let mut tx = self.begin().await?;
        let mut run = self.fence(&mut tx, hold).await?;
        let after = match &step.makes {
            None => None,
            Some(to) => match run.state.after(to) {
                Ok(after) => Some((after, to)),
                // Only its holder moves a run: it was this step.
                Err(_) if before == Committed::Perhaps && to.leads_to(run.state) => return Ok(run),
                Err(source) => return Err(Error::Illegal { run_id: hold.run_id.clone(), source }),
            },
        };
        for batch in &step.told {
            tx.record_events(hold, batch).await?;
        }
        if let Some((after, to)) = after {
            tx.make(&mut run, after, to).await?;
        }
        if let Some(warm) = &step.takes {
            tx.take_warm(self.installation.as_str(), warm).await?;
        }
        for change in &step.changes {
            tx.change(&run, run.state, change).await?;
        }
        tx.commit("take a step of a run").await?;
        Ok(run)
    }

    /// Lets a run that has ended begin its next attempt, for any worker that claims it.
    ///
    /// # Errors
    /// [`Error::Illegal`] if it has not ended, and the errors of [`Store::step`].
    pub async fn start_anew(&self, hold: &FencingToken) -> Result<Run, Error> {
        self.retry(RetryWhen::UnlessDone, async |_| self.start_anew_once(hold).await).await
    }

    async fn start_anew_once(&self, hold: &FencingToken) -> Result<Run, Error> {
        let mut tx = self.begin().await?;
        let run = self.fence(&mut tx, hold).await?;
        run.state.restart().map_err(|source| Error::Illegal { run_id: hold.run_id.clone(), source })?;
        let now = tx.now;
        sqlx::query(START_ANEW)
            .bind(now)
            .bind(hold.run_id.as_str())
            .execute(tx.connection())
            .await
            .map_err(failed("restart a run"))?;
        tx.append(&hold.run_id, &[enters(Phase::Queued)]).await?;
        let run = self.find(&mut tx, &hold.run_id).await?;
        tx.commit("restart a run").await?;
        Ok(run)
    }

    /// Records what a run used, where that could not be found when it ended. Needs no lease, as the run has ended.
    /// Without effect on any other run.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn used_after_all(&self, hold: &FencingToken, usage: &Usage) -> Result<(), Error> {
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin().await?;
            let query =
                sqlx::query(SET_USAGE).bind(serde_json::to_string(usage).ok()).bind(hold.run_id.as_str());
            let query = query.bind(self.installation.as_str());
            let query = query.bind(i64::try_from(hold.epoch).unwrap_or(i64::MAX));
            query.execute(tx.connection()).await.map_err(failed("store a run's usage"))?;
            tx.commit("store a run's usage").await
        })
        .await
    }
}

impl Tx {
    /// Moves `run` to `after`.
    pub(super) async fn make(&mut self, run: &mut Run, after: State, to: &Transition) -> Result<(), Error> {
        run.state = after;
        let mut answer = None;
        let phase = match to {
            Transition::Prepare => Some(Phase::Preparing),
            Transition::Start => Some(Phase::Starting),
            Transition::Run => {
                run.started = Some(UnixMillis(self.now));
                Some(Phase::Running)
            }
            Transition::Settle(Completion { exit_code, oom_seen, answer: said }) => {
                run.exit_code = *exit_code;
                run.oom_seen = *oom_seen;
                run.error = said.as_ref().err().map(bounded);
                answer = said.as_ref().ok();
                Some(Phase::Settling)
            }
            Transition::Finish(usage) => {
                run.usage = *usage;
                None
            }
            Transition::Withdraw(failure) => {
                run.error = Some(bounded(failure));
                None
            }
        };
        if after.is_final() {
            run.ended = Some(UnixMillis(self.now));
            run.lease = None;
        }
        self.save(run, answer.map(String::as_str)).await?;
        let told = match phase {
            Some(phase) => vec![enters(phase)],
            None => self.last_events(run).await?,
        };
        self.append(&run.run_id, &told).await
    }

    async fn save(&mut self, run: &Run, answer: Option<&str>) -> Result<(), Error> {
        let usage = run.usage.as_ref().and_then(|usage| serde_json::to_string(usage).ok());
        // The stored length counts the whole answer, in the form that is stored.
        let answer = answer.map(storable);
        let kept =
            answer.as_deref().map(|whole| beginning(cut(whole, MAX_ANSWER), MAX_ANSWER_IN_EVENT.as_usize()));
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
            .bind(kept)
            .bind(answer.as_ref().map(|answer| i64::try_from(answer.len()).unwrap_or(i64::MAX)))
            .bind(run.run_id.as_str())
            .execute(self.connection())
            .await
            .map_err(failed("store a run's state"))?;
        Ok(())
    }
}

fn bounded(failure: &Failure) -> Failure {
    let within = |text: &str| storable(cut(text, MAX_MESSAGE));
    Failure {
        code: failure.code,
        message: within(&failure.message),
        detail: failure.detail.as_ref().map(|detail| Detail::new(within(detail.for_operators()))),
    }
}

/// Returns as much of `text` as `most` bytes hold.
fn cut(text: &str, most: ByteSize) -> &str {
    &text[..text.floor_char_boundary(most.as_usize())]
}
