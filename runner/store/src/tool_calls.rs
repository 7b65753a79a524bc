//! Records calls of host tools: before the call if the tool writes, else after it.
//!
//! A call has the id that its agent chose, and is stored once for a run's attempt. The row of a call that writes is there
//! before the tool acts. One that was left executing by a process that is gone may have had its effect: it is
//! [`ToolCallState::Unknown`], and is never begun again. Results are kept of calls that write or needed
//! an approval, because a repeated call gets them. Those of other calls are not kept: such a call runs again when it is
//! repeated, and each time has its own row.
//!
//! Each change of a call's state is an event of its run, in the same transaction, while the run has not ended.

use platform_core::{
    host_tools::{ToolCallState, ToolCode},
    id::{AccountId, RunId, ToolName},
    limit::Millis,
};

use super::{
    Store, Tx,
    error::{Error, failed},
    gateway_agents::GatewayAgentKey,
    row::storable,
    stored_tool_calls::StoredToolCall,
    tool_call_state::ToolCallMove,
};

const ACTION: &str = "store a call of a tool";
/// Code of a call if its process was gone before a person decided, or before the call began.
pub(super) const ABANDONED: &str = ToolCode::ApprovalAbandoned.word();
/// Message of such a call.
pub(super) const ABANDONED_MESSAGE: &str =
    "the program that waited for the approval was stopped, and nothing ran: make a new call";

const ADD: &str = "INSERT INTO tool_calls (run, attempt, id, call, installation, account, tool, effect, args_digest, owner, \
     state, code, message, result, result_bytes, connection, began, ended, args, decide_by, decided, decided_by, gateway) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, NULL, NULL, NULL, NULL, NULL, $12, NULL, $13, $14, NULL, NULL, $15) \
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
    /// Arguments as JSON, for people who follow the run: without secrets, and short.
    pub args_shown: String,
    /// Process that executes the call, by a name that no other process has.
    pub owner: String,
    /// Agent of a gateway that asks whether its command may run; absent for calls of host tools.
    pub gateway: Option<GatewayAgentKey>,
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
    /// Connection that provided the credential.
    pub connection: Option<String>,
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
        // A try may have stored the row although its answer was lost. To begin on the row would begin twice.
        self.retry_unless_done(async || {
            let mut tx = self.begin().await?;
            let is_new = tx.add_tool_call(self.installation.as_str(), new, wait).await?;
            let is_lost = !is_new && tx.lose_tool_call(new).await?;
            let stored = self.find_tool_call(&mut tx, &new.run_id, new.attempt, &new.id).await?;
            let stored = stored.ok_or_else(|| Error::Corrupt { what: "id", value: new.id.clone() })?;
            if is_new {
                tx.report_tool_call(&stored, Some(&new.args_shown)).await?;
            } else if is_lost {
                tx.report_tool_call(&stored, None).await?;
            }
            tx.commit(ACTION).await?;
            if is_new {
                return Ok(ToolCallBegun::New);
            }
            Ok(ToolCallBegun::Existing(Box::new(stored)))
        })
        .await
    }

    /// Stores the end of a call that `new` began. Changes nothing if it has ended.
    pub async fn end_tool_call(&self, new: &NewToolCall, end: &ToolCallEnd) -> Result<(), Error> {
        self.write(async |mut tx| {
            if tx.end_tool_call(new, end).await? {
                let stored = self.find_tool_call(&mut tx, &new.run_id, new.attempt, &new.id).await?;
                if let Some(stored) = stored {
                    tx.report_tool_call(&stored, None).await?;
                }
            }
            tx.commit(ACTION).await
        })
        .await
    }

    /// Stores a call that has ended and took `millis`. If there is an earlier one with the agent's id, this one is stored
    /// under the id of the data plane, which no other call has.
    pub async fn record_tool_call(
        &self,
        new: &NewToolCall,
        end: &ToolCallEnd,
        millis: u64,
    ) -> Result<(), Error> {
        self.write(async |mut tx| {
            if let Some(new) = self.add_ended_tool_call(&mut tx, new).await? {
                let began = tx.now.saturating_sub_unsigned(millis);
                let query = sqlx::query(BEGAN).bind(began).bind(new.run_id.as_str());
                let query = query.bind(i64::from(new.attempt)).bind(&new.id).bind(&new.owner);
                query.execute(tx.connection()).await.map_err(failed(ACTION))?;
                tx.end_tool_call(&new, end).await?;
                let stored = self.find_tool_call(&mut tx, &new.run_id, new.attempt, &new.id).await?;
                if let Some(stored) = stored {
                    tx.report_tool_call(&stored, Some(&new.args_shown)).await?;
                }
            }
            tx.commit(ACTION).await
        })
        .await
    }

    /// Adds the row of a call that has ended. Returns the call with the id of its row; none if an earlier try added it.
    async fn add_ended_tool_call(
        &self,
        tx: &mut Tx,
        new: &NewToolCall,
    ) -> Result<Option<NewToolCall>, Error> {
        if tx.add_tool_call(self.installation.as_str(), new, None).await? {
            return Ok(Some(new.clone()));
        }
        let first = self.find_tool_call(tx, &new.run_id, new.attempt, &new.id).await?;
        if first.is_none_or(|first| first.call == new.call) {
            return Ok(None);
        }
        let repeated = NewToolCall { id: new.call.clone(), ..new.clone() };
        let is_new = tx.add_tool_call(self.installation.as_str(), &repeated, None).await?;
        Ok(is_new.then_some(repeated))
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
            .bind(storable(wait.map_or(&new.args_shown, |wait| &wait.args)))
            .bind(decide_by)
            .bind(new.gateway.as_ref().map(ToString::to_string))
            .execute(self.connection())
            .await
            .map_err(failed(ACTION))?;
        Ok(added.rows_affected() > 0)
    }

    /// Stores that the process that had the call is gone, if another one had it. Returns whether that was so.
    async fn lose_tool_call(&mut self, new: &NewToolCall) -> Result<bool, Error> {
        let [from, or] = ToolCallMove::Lose.sources();
        let lost = sqlx::query(LOSE)
            .bind(ToolCallMove::Lose.target().word())
            .bind(new.run_id.as_str())
            .bind(i64::from(new.attempt))
            .bind(&new.id)
            .bind(&new.owner)
            .bind(from.word())
            .bind(or.word());
        let lost = lost.execute(self.connection()).await.map_err(failed(ACTION))?;
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
        let abandoned = abandoned.execute(self.connection()).await.map_err(failed(ACTION))?;
        Ok(lost.rows_affected() + abandoned.rows_affected() > 0)
    }

    /// Stores the end of a call. Returns whether it had not ended.
    async fn end_tool_call(&mut self, new: &NewToolCall, end: &ToolCallEnd) -> Result<bool, Error> {
        let ended = sqlx::query(END)
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
            .map_err(failed(ACTION))?;
        Ok(ended.rows_affected() > 0)
    }
}
