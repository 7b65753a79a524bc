//! Reads calls of host tools, and reports the state of each as an event of its run.

use std::time::Duration;

use platform_core::{
    event::AgentEvent,
    host_tools::ToolCallState,
    id::{AccountId, RunId, ToolName},
};
use runner_model::gateway_agent::AskedCommand;
use serde::Serialize;
use sqlx::{Row, any::AnyRow};

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    gateway_agents::GatewayAgentKey,
    row::{count, number, parsed, stored_json, text, time},
};

const READ: &str = "read calls of tools";
const REPORT: &str = "report a call of a tool";

const FIND: &str =
    "SELECT * FROM tool_calls WHERE run = $1 AND attempt = $2 AND id = $3 AND installation = $4";
const OF_RUN: &str =
    "SELECT * FROM tool_calls WHERE run = $1 AND installation = $2 ORDER BY began, attempt, id";
const OF_RUN_AFTER: &str = "SELECT * FROM tool_calls WHERE run = $1 AND installation = $2 \
     AND (began > $3 OR (began = $3 AND call > $4)) ORDER BY began, call LIMIT $5";
const COUNTS: &str = "SELECT state, COUNT(*) AS calls FROM tool_calls WHERE run = $1 AND installation = $2 \
     GROUP BY state ORDER BY state";
/// Changes nothing. It also keeps the run from ending before the transaction does.
const HOLD_ACTIVE: &str =
    "UPDATE runs SET last_event = last_event WHERE run = $1 AND attempt = $2 AND ended IS NULL";

/// Call, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredToolCall {
    /// Run that called.
    pub run_id: RunId,
    /// Attempt of the run.
    pub attempt: u32,
    /// Id that the agent chose; that of the data plane for a call over the Model Context Protocol, and for a repeated one
    /// that reads.
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
    /// Message of the error; of calls that keep their results.
    #[serde(skip)]
    pub message: Option<String>,
    /// Result as JSON; of calls that keep their results.
    #[serde(skip)]
    pub result: Option<String>,
    /// Length of the result, in bytes.
    pub result_bytes: Option<u64>,
    /// Connection that provided the credential.
    pub connection: Option<String>,
    /// Time at which the call began.
    #[serde(rename = "began_ms")]
    pub began: UnixMillis,
    /// Time at which the call ended, if that is known.
    #[serde(rename = "ended_ms")]
    pub ended: Option<UnixMillis>,
    /// Arguments as JSON, without secrets: whole if the call needs an approval, else with long texts shortened.
    pub args: Option<String>,
    /// Time at which the call is denied unless a person has decided.
    #[serde(rename = "decide_by_ms")]
    pub decide_by: Option<UnixMillis>,
    /// Time at which a person decided.
    #[serde(rename = "decided_ms")]
    pub decided: Option<UnixMillis>,
    /// Person who decided.
    pub decided_by: Option<String>,
    /// Agent of a gateway that asks; absent for calls of host tools.
    pub gateway: Option<GatewayAgentKey>,
}

/// Place of a call among those of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallPlace {
    /// Time at which the call began.
    pub began: UnixMillis,
    /// Id that the data plane gave the call.
    pub call: String,
}

impl Store {
    /// Returns the call `id` of an attempt of `run_id`.
    pub async fn tool_call(
        &self,
        run_id: &RunId,
        attempt: u32,
        id: &str,
    ) -> Result<Option<StoredToolCall>, Error> {
        self.read(async |mut tx| {
            let stored = self.find_tool_call(&mut tx, run_id, attempt, id).await?;
            tx.finish(READ, stored).await
        })
        .await
    }

    /// Returns the calls of all attempts of `run_id`, the oldest first.
    pub async fn tool_calls(&self, run_id: &RunId) -> Result<Vec<StoredToolCall>, Error> {
        self.retry(async || {
            let query = sqlx::query(OF_RUN).bind(run_id.as_str()).bind(self.installation.as_str());
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(StoredToolCall::read).collect()
        })
        .await
    }

    /// Returns at most `max_calls` calls of all attempts of `run_id` after the one at `after`, the oldest first.
    pub async fn tool_calls_after(
        &self,
        run_id: &RunId,
        after: Option<&ToolCallPlace>,
        max_calls: u32,
    ) -> Result<Vec<StoredToolCall>, Error> {
        let (began, call) = after.map_or((i64::MIN, ""), |place| (place.began.0, place.call.as_str()));
        self.retry(async || {
            let query = sqlx::query(OF_RUN_AFTER).bind(run_id.as_str()).bind(self.installation.as_str());
            let query = query.bind(began).bind(call).bind(i64::from(max_calls));
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(StoredToolCall::read).collect()
        })
        .await
    }

    /// Returns the number of calls of `run_id` in each state that some are in.
    pub async fn tool_call_counts(&self, run_id: &RunId) -> Result<Vec<(ToolCallState, u64)>, Error> {
        self.retry(async || {
            let query = sqlx::query(COUNTS).bind(run_id.as_str()).bind(self.installation.as_str());
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            let of = |row| Ok((parsed(row, "state", ToolCallState::of_word)?, count(row, "calls")?));
            rows.iter().map(of).collect()
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
    /// Adds the event of the state that `call` is in, unless its run has ended, or is in a later attempt: nothing follows
    /// the last events of a run.
    /// The first event of a call has its `arguments`.
    pub(super) async fn report_tool_call(
        &mut self,
        call: &StoredToolCall,
        arguments: Option<&str>,
    ) -> Result<(), Error> {
        let active = sqlx::query(HOLD_ACTIVE).bind(call.run_id.as_str()).bind(i64::from(call.attempt));
        let active = active.execute(self.connection()).await.map_err(failed(REPORT))?;
        if active.rows_affected() == 0 {
            return Ok(());
        }
        let event = AgentEvent::HostTool {
            id: call.call.clone(),
            name: call.tool.to_string(),
            state: call.state,
            arguments: arguments.map(str::to_owned),
            code: call.code.clone(),
            result_bytes: call.result_bytes,
            duration_ms: call.duration().map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        };
        self.append(&call.run_id, &[event]).await
    }
}

impl StoredToolCall {
    /// Returns the time that the tool took, without a wait for an approval; none if it has not ended, or never began.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        let has_run = !matches!(self.state, ToolCallState::Denied);
        self.ended.filter(|_| has_run).map(|ended| self.decided.unwrap_or(self.began).until(ended))
    }

    /// Returns the command that a gateway asks about; none for a call of a host tool, or once the texts of its run were
    /// removed.
    pub(super) fn asked_command(&self) -> Option<AskedCommand> {
        self.gateway.as_ref()?;
        stored_json(self.args.as_deref()?)
    }

    /// Returns the place of the call among those of its run.
    #[must_use]
    pub fn place(&self) -> ToolCallPlace {
        ToolCallPlace { began: self.began, call: self.call.clone() }
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
            gateway: optional("gateway")?.and_then(|key| GatewayAgentKey::parse(&key)),
        })
    }
}
