//! Records calls of host tools: before the call if the tool writes, else after it.
//!
//! A call has the id that its agent chose, and is stored once for a run's attempt. The row of a call that writes is there
//! before the tool acts. One that was left executing by a process that is gone may have had its effect: it is
//! [`ToolCallState::Unknown`], and is never begun again. Results are kept of calls that write, because a repeated call
//! gets them. Results of calls that only read are not kept.

use platform_core::id::{AccountId, RunId, ToolName};
use serde::Serialize;
use sqlx::{Row, any::AnyRow};

use super::{
    RetryWhen, Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, storable, text, time},
};

const ACTION: &str = "store a call of a tool";
const READ: &str = "read calls of tools";

const ADD: &str = "INSERT INTO tool_calls (run, attempt, id, call, installation, account, tool, effect, args_digest, owner, \
     state, code, message, result, result_bytes, connection, began, ended) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, NULL, NULL, NULL, NULL, NULL, $12, NULL) \
     ON CONFLICT (run, attempt, id) DO NOTHING";
/// The process that began the call may end it even after another one took it for lost.
const END: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, result = $4, result_bytes = $5, \
     connection = $6, ended = $7 WHERE run = $8 AND attempt = $9 AND id = $10 AND owner = $11 AND ended IS NULL";
const LOSE: &str = "UPDATE tool_calls SET state = $1 \
     WHERE run = $2 AND attempt = $3 AND id = $4 AND ended IS NULL AND owner <> $5";
const BEGAN: &str =
    "UPDATE tool_calls SET began = $1 WHERE run = $2 AND attempt = $3 AND id = $4 AND owner = $5";
const FIND: &str =
    "SELECT * FROM tool_calls WHERE run = $1 AND attempt = $2 AND id = $3 AND installation = $4";
const OF_RUN: &str =
    "SELECT * FROM tool_calls WHERE run = $1 AND installation = $2 ORDER BY began, attempt, id";

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallState {
    /// The tool acts.
    Executing,
    /// The tool gave a result.
    Done,
    /// The tool gave none, and has ended.
    Failed,
    /// The tool began, and how it ended is unknown.
    Unknown,
}

impl ToolCallState {
    /// All states.
    const ALL: [Self; 4] = [Self::Executing, Self::Done, Self::Failed, Self::Unknown];

    /// Returns the state as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Executing => "executing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

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
    /// Message of the error; of calls that write.
    #[serde(skip)]
    pub message: Option<String>,
    /// Result as JSON; of calls that write.
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
}

/// Outcome of beginning a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallBegun {
    /// The call is stored, and the tool may act.
    New,
    /// A call with this id is stored already.
    Existing(Box<StoredToolCall>),
}

impl Store {
    /// Stores that a call begins. Of two calls with one id, the first is stored and the second is told of it. A call
    /// that another process left executing is then [`ToolCallState::Unknown`].
    ///
    /// # Errors
    /// If the store fails. The call may be stored then.
    pub async fn begin_tool_call(&self, new: &NewToolCall) -> Result<ToolCallBegun, Error> {
        // A try whose answer was lost may have stored the row. To begin on it would begin twice.
        self.retry(RetryWhen::UnlessDone, async |_| {
            let mut tx = self.begin().await?;
            let is_new = tx.add_tool_call(self.installation.as_str(), new).await?;
            if is_new {
                tx.commit(ACTION).await?;
                return Ok(ToolCallBegun::New);
            }
            let lost = sqlx::query(LOSE)
                .bind(ToolCallState::Unknown.word())
                .bind(new.run_id.as_str())
                .bind(i64::from(new.attempt))
                .bind(&new.id)
                .bind(&new.owner);
            lost.execute(tx.connection()).await.map_err(failed(ACTION))?;
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
            if tx.add_tool_call(self.installation.as_str(), new).await? {
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

    async fn find_tool_call(
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
    /// Inserts a call that executes. Returns whether there was none with its id.
    async fn add_tool_call(&mut self, installation: &str, new: &NewToolCall) -> Result<bool, Error> {
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
            .bind(ToolCallState::Executing.word())
            .bind(self.now)
            .execute(self.connection())
            .await
            .map_err(failed(ACTION))?;
        Ok(added.rows_affected() > 0)
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
    fn read(row: &AnyRow) -> Result<Self, Error> {
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
        })
    }
}
