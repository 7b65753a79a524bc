//! Stores threads: conversations of an account, which any agent may continue.
//!
//! Each run of a thread is one turn: a question and, if the run succeeded, its answer. A turn continues its parent. A
//! question that is asked anew has the parent of the first one, so the turns of a thread form a tree. The thread is the
//! path from its first turn to its last one.

use platform_core::id::{AccountId, ExternalId, RunId};
use sqlx::{Row, any::AnyRow};

use super::{
    Run, Store, Tx,
    error::{Error, failed},
    row::{columns, number, storable, text},
};

/// Turn of a thread that a new run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTurn {
    /// Thread of the run's account.
    pub thread: ExternalId,
    /// Question of the turn.
    pub question: String,
    /// Id by which the client knows the question.
    pub question_id: Option<ExternalId>,
    /// Turn that this one continues.
    pub place: TurnPlace,
}

/// Place of a new turn in its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnPlace {
    /// Behind the last turn, even if that one is not answered yet.
    Last,
    /// Behind `parent`. Refused unless `last` is still the thread's last turn, and has ended.
    Behind {
        /// Turn to continue; absent for the first of a thread.
        parent: Option<RunId>,
        /// Last turn of the thread when its history was read.
        last: Option<RunId>,
    },
}

/// Turn of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTurn {
    /// Run of the turn.
    pub run: Run,
    /// Turn that this one continues.
    pub parent: Option<RunId>,
    /// Question of the turn.
    pub question: String,
    /// Id by which the client knows the question.
    pub question_id: Option<ExternalId>,
    /// Answer of the run, or its beginning.
    pub answer: Option<String>,
}

const LAST: &str = "SELECT turns.run, turns.number, runs.ended FROM turns JOIN runs ON runs.run = turns.run \
     WHERE turns.installation = $1 AND turns.account = $2 AND turns.thread = $3 ORDER BY turns.number DESC LIMIT 1";
const ADD: &str = "INSERT INTO turns (run, installation, account, thread, number, parent, question, question_id, created) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const IS_TURN: &str = "SELECT count(*) FROM turns WHERE run = $1";
/// Selects turns with their runs. A clause about `found` follows, a list of runs and their ranks.
macro_rules! turns {
    ($found:literal, $order:literal) => {
        concat!(
            $found,
            " SELECT ",
            columns!(),
            ", answer, parent, question, question_id FROM (SELECT runs.*, turns.parent, turns.question, turns.question_id, \
             found.rank FROM found JOIN turns ON turns.run = found.run JOIN runs ON runs.run = found.run) AS turns ORDER BY ",
            $order
        )
    };
}
pub(super) use turns;

const PATH: &str = turns!(
    "WITH RECURSIVE found (run, parent, rank) AS (SELECT run, parent, 0 FROM turns WHERE installation = $1 AND account = $2 \
     AND thread = $3 AND run = $4 UNION ALL SELECT turns.run, turns.parent, found.rank + 1 FROM turns JOIN found \
     ON turns.run = found.parent WHERE turns.thread = $3 AND turns.account = $2 AND found.rank < $5)",
    "rank DESC"
);
const FIND: &str = turns!(
    "WITH found (run, rank) AS (SELECT run, number FROM turns WHERE installation = $1 AND account = $2 AND thread = $3 \
     AND (run = $4 OR question_id = $4))",
    "rank DESC LIMIT 1"
);
/// Last turn of a thread.
struct LastTurn {
    run_id: String,
    number: i64,
    has_ended: bool,
}

impl Store {
    /// Returns the last turn of a thread of `account`; `None` if the thread does not exist.
    pub async fn last_turn(
        &self,
        account: &AccountId,
        thread: &ExternalId,
    ) -> Result<Option<ThreadTurn>, Error> {
        let last = self.read(async |mut tx| {
            let last = tx.last_turn(self.installation.as_str(), account, thread).await?;
            tx.finish("read a thread", last).await
        });
        match last.await? {
            Some(last) => self.find_turn(account, thread, &last.run_id).await,
            None => Ok(None),
        }
    }

    /// Returns the last turn with `id` in a thread: the id of its run, or of its question at the client.
    pub async fn find_turn(
        &self,
        account: &AccountId,
        thread: &ExternalId,
        id: &str,
    ) -> Result<Option<ThreadTurn>, Error> {
        let action = "find a turn of a thread";
        self.read(async |mut tx| {
            let row = sqlx::query(FIND)
                .bind(self.installation.as_str())
                .bind(account.as_str())
                .bind(thread.as_str())
                .bind(id)
                .fetch_optional(tx.connection())
                .await
                .map_err(failed(action))?;
            let turn = row.map(|row| ThreadTurn::read(&row, tx.now)).transpose()?;
            tx.finish(action, turn).await
        })
        .await
    }

    /// Returns the turns from the first one of a thread to `upto`, at most the last `most`.
    pub async fn turns(
        &self,
        account: &AccountId,
        thread: &ExternalId,
        upto: &RunId,
        most: u32,
    ) -> Result<Vec<ThreadTurn>, Error> {
        let action = "read a thread";
        self.read(async |mut tx| {
            let rows = sqlx::query(PATH)
                .bind(self.installation.as_str())
                .bind(account.as_str())
                .bind(thread.as_str())
                .bind(upto.as_str())
                .bind(i64::from(most) - 1)
                .fetch_all(tx.connection())
                .await
                .map_err(failed(action))?;
            let now = tx.now;
            tx.commit(action).await?;
            rows.iter().map(|row| ThreadTurn::read(row, now)).collect()
        })
        .await
    }

    /// Stores the turn of a new run, unless it is stored already.
    pub(super) async fn add_turn(
        &self,
        tx: &mut Tx,
        run_id: &RunId,
        account: &AccountId,
        turn: &NewTurn,
    ) -> Result<(), Error> {
        let action = "store a turn of a thread";
        let known: i64 = sqlx::query_scalar(IS_TURN)
            .bind(run_id.as_str())
            .fetch_one(tx.connection())
            .await
            .map_err(failed(action))?;
        if known > 0 {
            return Ok(());
        }
        self.lock_claims(tx).await?;
        let installation = self.installation.as_str();
        let last = tx.last_turn(installation, account, &turn.thread).await?;
        let parent = match &turn.place {
            TurnPlace::Last => last.as_ref().map(|last| last.run_id.as_str()),
            TurnPlace::Behind { parent, last: expected } => {
                let expected = expected.as_ref().map(RunId::as_str);
                match &last {
                    Some(last) if expected != Some(&last.run_id) || !last.has_ended => {
                        return Err(Error::ThreadBusy { by: last.run_id.clone() });
                    }
                    _ => parent.as_ref().map(RunId::as_str),
                }
            }
        };
        sqlx::query(ADD)
            .bind(run_id.as_str())
            .bind(installation)
            .bind(account.as_str())
            .bind(turn.thread.as_str())
            .bind(last.as_ref().map_or(1, |last| last.number + 1))
            .bind(parent)
            .bind(storable(&turn.question))
            .bind(turn.question_id.as_ref().map(ExternalId::as_str))
            .bind(tx.now)
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        Ok(())
    }
}

impl Tx {
    async fn last_turn(
        &mut self,
        installation: &str,
        account: &AccountId,
        thread: &ExternalId,
    ) -> Result<Option<LastTurn>, Error> {
        let action = "read the last turn of a thread";
        let row = sqlx::query(LAST)
            .bind(installation)
            .bind(account.as_str())
            .bind(thread.as_str())
            .fetch_optional(self.connection())
            .await
            .map_err(failed(action))?;
        row.map(|row| {
            let ended: Option<i64> = row.try_get("ended").map_err(failed(action))?;
            Ok(LastTurn {
                run_id: text(&row, "run")?,
                number: number(&row, "number")?,
                has_ended: ended.is_some(),
            })
        })
        .transpose()
    }
}

impl ThreadTurn {
    pub(super) fn read(row: &AnyRow, now: i64) -> Result<Self, Error> {
        let optional = |column| -> Result<Option<String>, Error> {
            row.try_get(column).map_err(failed("read a turn of a thread"))
        };
        Ok(Self {
            run: Run::read(row, now)?,
            parent: optional("parent")?.and_then(|parent| RunId::parse(&parent).ok()),
            question: text(row, "question")?,
            question_id: optional("question_id")?.and_then(|id| ExternalId::parse(&id).ok()),
            answer: optional("answer")?,
        })
    }
}
