//! Records calls of host tools: before the call if the tool writes, else after it.
//!
//! A call has the id that its agent chose, and is stored once for a run's attempt. The row of a call that writes is there
//! before the tool acts. One that was left executing by a process that is gone may have had its effect: it is
//! [`ToolCallState::Unknown`], and is never begun again. Results are kept of calls that write or needed
//! an approval, because a repeated call gets them. Those of other calls are not kept.

use platform_core::{
    id::{AccountId, RunId, ToolName},
    limit::Millis,
};
use serde::Serialize;
use sqlx::{Row, any::AnyRow};

use super::{
    RetryWhen, Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, storable, text, time},
    tool_call_state::{ToolCallMove, ToolCallState},
};

const ACTION: &str = "store a call of a tool";
const READ: &str = "read calls of tools";
/// Code of a call whose process was gone before a person decided, or before the call began.
pub(super) const ABANDONED: &str = "approval_abandoned";
/// Message of such a call.
pub(super) const ABANDONED_MESSAGE: &str =
    "the program that waited for the approval was stopped, and nothing ran: make a new call";

const ADD: &str = "INSERT INTO tool_calls (run, attempt, id, call, installation, account, tool, effect, args_digest, owner, \
     state, code, message, result, result_bytes, connection, began, ended, args, decide_by, decided, decided_by) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, NULL, NULL, NULL, NULL, NULL, $12, NULL, $13, $14, NULL, NULL) \
     ON CONFLICT (run, attempt, id) DO NOTHING";
/// The process that began the call may end it even after another one took it for lost.
const END: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, result = $4, result_bytes = $5, \
     connection = $6, ended = $7 WHERE run = $8 AND attempt = $9 AND id = $10 AND owner = $11 AND ended IS NULL \
     AND state IN ('executing', 'unknown')";
const LOSE: &str = "UPDATE tool_calls SET state = $1 \
     WHERE run = $2 AND attempt = $3 AND id = $4 AND ended IS NULL AND owner <> $5 AND state IN ($6, $7)";
/// Nothing runs for a call that waited, because its process begins it only if it is still approved.
const ABANDON: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, ended = $4 \
     WHERE run = $5 AND attempt = $6 AND id = $7 AND owner <> $8 AND state IN ($9, $10)";
const BEGAN: &str =
    "UPDATE tool_calls SET began = $1 WHERE run = $2 AND attempt = $3 AND id = $4 AND owner = $5";
const FIND: &str =
    "SELECT * FROM tool_calls WHERE run = $1 AND attempt = $2 AND id = $3 AND installation = $4";
const OF_RUN: &str =
    "SELECT * FROM tool_calls WHERE run = $1 AND installation = $2 ORDER BY began, attempt, id";

/// Call to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToolCall {
    /// Run that calls.
    pub run_id: RunId,
    /// Attempt of the run.
    pub attempt: u32,
    /// Id that the agent chose, or the data plane.
    pub id: String,
    /// Id that the data plane gave the call, as the journal has it.
    pub call: String,
    /// Account that pays for the run.
    pub account: AccountId,
    /// The tool.
    pub tool: ToolName,
    /// Effect of the tool, as a word.
    pub effect: &'static str,
    /// Digest of the arguments.
    pub args_digest: String,
    /// Process that executes the call, by a name that no other process has.
    pub owner: String,
}

/// Wait of a call for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalWait {
    /// Arguments, for the person who decides: without secrets, and bounded.
    pub args: String,
    /// Longest wait.
    pub timeout: Millis,
}

/// End of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallEnd {
    /// State of the call from now on.
    pub state: ToolCallState,
    /// Code of the error.
    pub code: Option<String>,
    /// Message of the error, if it is to be kept.
    pub message: Option<String>,
    /// Result as JSON, if it is to be kept.
    pub result: Option<String>,
    /// Length of the result, in bytes.
    pub result_bytes: Option<u64>,
    /// Connection whose credential was used.
    pub connection: Option<String>,
}

/// Call, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredToolCall {
    /// Run that called.
    pub run_id: RunId,
    /// Attempt of the run.
    pub attempt: u32,
    /// Id that the agent chose; for a call over the Model Context Protocol, that of the data plane.
    pub id: String,
    /// Id that the data plane gave the call, as the journal has it.
    pub call: String,
    /// Account that pays for the run.
    pub account: AccountId,
    /// The tool.
    pub tool: ToolName,
    /// Effect of the tool: `reads` or `writes`.
    pub effect: String,
    /// Digest of the arguments.
    pub args_digest: String,
    /// State of the call.
    pub state: ToolCallState,
    /// Code of the error.
    pub code: Option<String>,
    /// Message of the error; of calls whose results are kept.
    #[serde(skip)]
    pub message: Option<String>,
    /// Result as JSON; of calls whose results are kept.
    #[serde(skip)]
    pub result: Option<String>,
    /// Length of the result, in bytes.
    pub result_bytes: Option<u64>,
    /// Connection whose credential was used.
    pub connection: Option<String>,
    /// Time at which the call began.
    #[serde(rename = "began_ms")]
    pub began: UnixMillis,
    /// Time at which the call ended, if that is known.
    #[serde(rename = "ended_ms")]
    pub ended: Option<UnixMillis>,
    /// Arguments, for the person who decides; of calls that need an approval.
    pub args: Option<String>,
    /// Time at which the call is denied unless a person has decided.
    #[serde(rename = "decide_by_ms")]
    pub decide_by: Option<UnixMillis>,
    /// Time at which a person decided.
    #[serde(rename = "decided_ms")]
    pub decided: Option<UnixMillis>,
    /// Person who decided.
    pub decided_by: Option<String>,
}

/// Outcome of beginning a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallBegun {
    /// The call is stored, and the tool may act, or the call waits.
    New,
    /// A call with this id is stored already.
    Existing(Box<StoredToolCall>),
}

impl Store {
    /// Stores that a call begins. Of two calls with one id, the first is stored and the second is told of it. A call
    /// that another process left executing is then [`ToolCallState::Unknown`]; one that it left waiting is
    /// [`ToolCallState::Denied`].
    ///
    /// # Errors
    /// If the store fails. The call may be stored then.
    pub async fn begin_tool_call(&self, new: &NewToolCall) -> Result<ToolCallBegun, Error> {
        self.add_tool_call(new, None).await
    }

    /// Stores that a call waits for a person's decision; else as [`Self::begin_tool_call`].
    ///
    /// # Errors
    /// If the store fails. The call may be stored then.
    pub async fn propose_tool_call(
        &self,
        new: &NewToolCall,
        wait: &ApprovalWait,
    ) -> Result<ToolCallBegun, Error> {
        self.add_tool_call(new, Some(wait)).await
    }

    async fn add_tool_call(
        &self,
        new: &NewToolCall,
        wait: Option<&ApprovalWait>,
    ) -> Result<ToolCallBegun, Error> {
        // A try whose answer was lost may have stored the row. To begin on it would begin twice.
        self.retry(RetryWhen::UnlessDone, async |_| {
            let mut tx = self.begin().await?;
            let is_new = tx.add_tool_call(self.installation.as_str(), new, wait).await?;
            if is_new {
                tx.commit(ACTION).await?;
                return Ok(ToolCallBegun::New);
            }
            tx.lose_tool_call(new).await?;
            let stored = self.find_tool_call(&mut tx, &new.run_id, new.attempt, &new.id).await?;
            tx.commit(ACTION).await?;
            let stored = stored.ok_or_else(|| Error::Corrupt { what: "id", value: new.id.clone() })?;
            Ok(ToolCallBegun::Existing(Box::new(stored)))
        })
        .await
    }

    /// Stores the end of a call that `new` began. Changes nothing if it has ended.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn end_tool_call(&self, new: &NewToolCall, end: &ToolCallEnd) -> Result<(), Error> {
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin().await?;
            tx.end_tool_call(new, end).await?;
            tx.commit(ACTION).await
        })
        .await
    }

    /// Stores a call that has ended and took `millis`. Changes nothing if there is one with its id.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn record_tool_call(
        &self,
        new: &NewToolCall,
        end: &ToolCallEnd,
        millis: u64,
    ) -> Result<(), Error> {
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin().await?;
            if tx.add_tool_call(self.installation.as_str(), new, None).await? {
                let began = tx.now.saturating_sub_unsigned(millis);
                let query = sqlx::query(BEGAN).bind(began).bind(new.run_id.as_str());
                let query = query.bind(i64::from(new.attempt)).bind(&new.id).bind(&new.owner);
                query.execute(tx.connection()).await.map_err(failed(ACTION))?;
                tx.end_tool_call(new, end).await?;
            }
            tx.commit(ACTION).await
        })
        .await
    }

    /// Returns the call `id` of an attempt of `run_id`.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tool_call(
        &self,
        run_id: &RunId,
        attempt: u32,
        id: &str,
    ) -> Result<Option<StoredToolCall>, Error> {
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
            let stored = self.find_tool_call(&mut tx, run_id, attempt, id).await?;
            tx.commit(READ).await?;
            Ok(stored)
        })
        .await
    }

    /// Returns the calls of all attempts of `run_id`, the oldest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tool_calls(&self, run_id: &RunId) -> Result<Vec<StoredToolCall>, Error> {
        self.retry(RetryWhen::Always, async |_| {
            let query = sqlx::query(OF_RUN).bind(run_id.as_str()).bind(self.installation.as_str());
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(StoredToolCall::read).collect()
        })
        .await
    }

    pub(super) async fn find_tool_call(
        &self,
        tx: &mut Tx,
        run_id: &RunId,
        attempt: u32,
        id: &str,
    ) -> Result<Option<StoredToolCall>, Error> {
        let query = sqlx::query(FIND).bind(run_id.as_str()).bind(i64::from(attempt));
        let query = query.bind(id).bind(self.installation.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed(READ))?;
        row.map(|row| StoredToolCall::read(&row)).transpose()
    }
}

impl Tx {
    /// Inserts a call that waits, or that executes. Returns whether there was none with its id.
    async fn add_tool_call(
        &mut self,
        installation: &str,
        new: &NewToolCall,
        wait: Option<&ApprovalWait>,
    ) -> Result<bool, Error> {
        let state = if wait.is_some() { ToolCallState::Waiting } else { ToolCallState::Executing };
        let decide_by = wait.map(|wait| self.now.saturating_add_unsigned(wait.timeout.0));
        let added = sqlx::query(ADD)
            .bind(new.run_id.as_str())
            .bind(i64::from(new.attempt))
            .bind(&new.id)
            .bind(&new.call)
            .bind(installation)
            .bind(new.account.as_str())
            .bind(new.tool.as_str())
            .bind(new.effect)
            .bind(&new.args_digest)
            .bind(&new.owner)
            .bind(state.word())
            .bind(self.now)
            .bind(wait.map(|wait| storable(&wait.args)))
            .bind(decide_by)
            .execute(self.connection())
            .await
            .map_err(failed(ACTION))?;
        Ok(added.rows_affected() > 0)
    }

    /// Stores that the process that had the call is gone, if another one had it.
    async fn lose_tool_call(&mut self, new: &NewToolCall) -> Result<(), Error> {
        let [from, or] = ToolCallMove::Lose.sources();
        let lost = sqlx::query(LOSE)
            .bind(ToolCallMove::Lose.target().word())
            .bind(new.run_id.as_str())
            .bind(i64::from(new.attempt))
            .bind(&new.id)
            .bind(&new.owner)
            .bind(from.word())
            .bind(or.word());
        lost.execute(self.connection()).await.map_err(failed(ACTION))?;
        let [from, or] = ToolCallMove::Withdraw.sources();
        let abandoned = sqlx::query(ABANDON)
            .bind(ToolCallMove::Withdraw.target().word())
            .bind(ABANDONED)
            .bind(ABANDONED_MESSAGE)
            .bind(self.now)
            .bind(new.run_id.as_str())
            .bind(i64::from(new.attempt))
            .bind(&new.id)
            .bind(&new.owner)
            .bind(from.word())
            .bind(or.word());
        abandoned.execute(self.connection()).await.map(drop).map_err(failed(ACTION))
    }

    async fn end_tool_call(&mut self, new: &NewToolCall, end: &ToolCallEnd) -> Result<(), Error> {
        sqlx::query(END)
            .bind(end.state.word())
            .bind(end.code.as_deref())
            .bind(end.message.as_deref().map(storable))
            .bind(end.result.as_deref().map(storable))
            .bind(end.result_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)))
            .bind(end.connection.as_deref())
            .bind(self.now)
            .bind(new.run_id.as_str())
            .bind(i64::from(new.attempt))
            .bind(&new.id)
            .bind(&new.owner)
            .execute(self.connection())
            .await
            .map(drop)
            .map_err(failed(ACTION))
    }
}

impl StoredToolCall {
    /// Returns whether a person may still decide about the call at `now`, if its run runs.
    #[must_use]
    pub fn is_waiting(&self, now: UnixMillis) -> bool {
        self.state == ToolCallState::Waiting && self.decide_by.is_some_and(|decide_by| decide_by.0 > now.0)
    }

    pub(super) fn read(row: &AnyRow) -> Result<Self, Error> {
        let optional = |column: &'static str| row.try_get::<Option<String>, _>(column).map_err(failed(READ));
        let result_bytes: Option<i64> = row.try_get("result_bytes").map_err(failed(READ))?;
        Ok(Self {
            run_id: parsed(row, "run", |text| RunId::parse(text).ok())?,
            attempt: count(row, "attempt")?,
            id: text(row, "id")?,
            call: text(row, "call")?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            tool: parsed(row, "tool", |text| ToolName::parse(text).ok())?,
            effect: text(row, "effect")?,
            args_digest: text(row, "args_digest")?,
            state: parsed(row, "state", ToolCallState::of_word)?,
            code: optional("code")?,
            message: optional("message")?,
            result: optional("result")?,
            result_bytes: result_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
            connection: optional("connection")?,
            began: UnixMillis(number(row, "began")?),
            ended: time(row, "ended")?,
            args: optional("args")?,
            decide_by: time(row, "decide_by")?,
            decided: time(row, "decided")?,
            decided_by: optional("decided_by")?,
        })
    }
}
