//! Removes the texts of ended runs: questions, answers, messages of failures and what agents printed. The run itself
//! stays, with its usage, its times and the end of its events, because receipts refer to it. Does not remove files: a kept
//! workspace has its own time. That of a thread is kept until the thread has no turn; then the reaper removes it.

use std::collections::BTreeMap;

use platform_core::{
    id::{AccountId, ExternalId, RunId},
    json::{self, Bounds, Raw},
    limit::Millis,
};
use serde_json::Value;

use super::{
    AccountScope, Store, Tx,
    error::{Error, failed},
    row::{number, parsed, stored_json, text},
};

/// Maximum number of runs in one transaction.
const MAX_RUNS: i64 = 64;
const ACTION: &str = "remove the texts of runs";

const DUE: &str = "SELECT run FROM runs WHERE installation = $1 AND ended IS NOT NULL AND forgotten IS NULL AND ended < $2 \
     ORDER BY ended LIMIT $3";
const OF_THREAD: &str = "SELECT turns.run, CASE WHEN runs.ended IS NULL THEN 1 ELSE 0 END AS active FROM turns \
     JOIN runs ON runs.run = turns.run WHERE turns.installation = $1 AND turns.account = $2 AND turns.thread = $3 \
     ORDER BY active DESC, turns.number";
const GET_ORDER: &str = "SELECT wanted FROM runs WHERE run = $1";
const CLEAR: &str = "UPDATE runs SET wanted = $1, question_start = NULL, answer = NULL, error_detail = NULL, forgotten = $2, \
     error_message = CASE WHEN error_message IS NULL THEN NULL ELSE $3 END, \
     pruned = COALESCE(pruned, 0) WHERE run = $4 AND ended IS NOT NULL";
const GET_FAILURES: &str = "SELECT seq, payload FROM events WHERE run = $1 AND kind = 'error'";
const CLEAR_FAILURE: &str = "UPDATE events SET payload = $1 WHERE run = $2 AND seq = $3";
/// Text in place of a failure's message, which may be the agent's.
const REMOVED: &str = "the message was removed";
const REMOVE_EVENTS: &str =
    "DELETE FROM events WHERE run = $1 AND kind NOT IN ('usage_report', 'done', 'error')";
/// Makes the turns after a run's turn continue the one before it, so that no turn before it is lost.
const BRIDGE_TURN: &str = "UPDATE turns SET parent = (SELECT removed.parent FROM turns AS removed WHERE removed.run = $1) \
     WHERE parent = $1 AND (installation, account, thread) IN \
     (SELECT installation, account, thread FROM turns WHERE run = $1)";
/// The row stays, because the branch belongs to its account.
const CLEAR_RELAYS: &str =
    "UPDATE relays SET document = '', due = NULL, version = version + 1 WHERE run = $1";
/// The rows stay, with what was called and how it ended.
const CLEAR_TOOL_CALLS: &str =
    "UPDATE tool_calls SET message = NULL, result = NULL, args = NULL WHERE run = $1";
const REMOVE_TURN: &str = "DELETE FROM turns WHERE run = $1";

impl Store {
    /// Removes the texts of runs that ended longer than `age` ago, as many as fit one short transaction. Returns their
    /// number.
    pub async fn forget_old(&self, age: Millis) -> Result<u64, Error> {
        self.write(async |mut tx| {
            let too_old = tx.now.saturating_sub(i64::try_from(age.0).unwrap_or(i64::MAX));
            let rows = sqlx::query(DUE)
                .bind(self.installation.as_str())
                .bind(too_old)
                .bind(MAX_RUNS)
                .fetch_all(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            for row in &rows {
                tx.forget(&parsed(row, "run", |text| RunId::parse(text).ok())?).await?;
            }
            tx.finish(ACTION, rows.len() as u64).await
        })
        .await
    }

    /// Removes the texts of the ended run `run_id`, if its account is within `scope`. A turn of a thread leaves the
    /// thread; the other turns stay.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist, [`Error::StillActive`] if it has not ended.
    pub async fn forget_run(&self, run_id: &RunId, scope: &AccountScope) -> Result<(), Error> {
        let run = self.run_within(run_id, scope).await?;
        if run.ended.is_none() {
            return Err(Error::StillActive { run_id: run_id.to_string() });
        }
        self.write(async |mut tx| {
            tx.forget(run_id).await?;
            tx.commit(ACTION).await
        })
        .await
    }

    /// Removes a thread of `account`, with the texts of its runs.
    ///
    /// # Errors
    /// [`Error::NoThread`] if the thread does not exist, [`Error::StillActive`] if one of its runs has not ended. Then
    /// nothing is removed.
    pub async fn remove_thread(&self, account: &AccountId, thread: &ExternalId) -> Result<(), Error> {
        self.write(async |mut tx| {
            let rows = sqlx::query(OF_THREAD)
                .bind(self.installation.as_str())
                .bind(account.as_str())
                .bind(thread.as_str())
                .fetch_all(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            let Some(first) = rows.first() else { return Err(Error::NoThread { thread: thread.clone() }) };
            if number(first, "active")? > 0 {
                return Err(Error::StillActive { run_id: text(first, "run")? });
            }
            for row in &rows {
                tx.forget(&parsed(row, "run", |text| RunId::parse(text).ok())?).await?;
            }
            tx.commit(ACTION).await
        })
        .await
    }
}

impl Tx {
    /// Removes the texts of an ended run.
    async fn forget(&mut self, run_id: &RunId) -> Result<(), Error> {
        let order: String = sqlx::query_scalar(GET_ORDER)
            .bind(run_id.as_str())
            .fetch_one(self.connection())
            .await
            .map_err(failed(ACTION))?;
        let cleared = sqlx::query(CLEAR)
            .bind(without_messages(&order))
            .bind(self.now)
            .bind(REMOVED)
            .bind(run_id.as_str())
            .execute(self.connection())
            .await
            .map_err(failed(ACTION))?;
        // It was restarted meanwhile.
        if cleared.rows_affected() == 0 {
            return Err(Error::StillActive { run_id: run_id.to_string() });
        }
        self.forget_thread_workspaces(run_id).await?;
        for statement in [REMOVE_EVENTS, CLEAR_RELAYS, CLEAR_TOOL_CALLS, BRIDGE_TURN, REMOVE_TURN] {
            let removal = sqlx::query(statement).bind(run_id.as_str());
            removal.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        self.clear_failures(run_id).await
    }

    /// Removes the messages of the failures with which attempts of a run ended.
    async fn clear_failures(&mut self, run_id: &RunId) -> Result<(), Error> {
        let failures = sqlx::query(GET_FAILURES).bind(run_id.as_str());
        let failures = failures.fetch_all(self.connection()).await.map_err(failed(ACTION))?;
        for row in &failures {
            let payload = text(row, "payload")?;
            let mut event: Value = stored_json(&payload).unwrap_or_default();
            event["message"] = REMOVED.into();
            sqlx::query(CLEAR_FAILURE)
                .bind(event.to_string())
                .bind(run_id.as_str())
                .bind(number(row, "seq")?)
                .execute(self.connection())
                .await
                .map_err(failed(ACTION))?;
        }
        Ok(())
    }
}

/// Returns an order without its messages. What cannot be read as an order is removed whole.
fn without_messages(order: &str) -> String {
    let Ok(mut fields) = json::from_str::<BTreeMap<String, Raw<'_>>>(order, Bounds::STORED) else {
        return "{}".to_owned();
    };
    fields.remove("messages");
    let kept = fields.into_iter().map(|(name, field)| format!(",{}:{}", Value::from(name), field.get()));
    format!(r#"{{"messages":[]{}}}"#, kept.collect::<String>())
}
