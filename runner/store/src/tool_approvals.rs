//! Stores decisions about calls of host tools that wait for a person.
//!
//! Each decision is one conditional update: of two, or of a decision and a timeout, one takes place. The process that
//! waits begins the call by another conditional update, so that a call runs only if it was approved and not withdrawn.

use platform_core::{
    code::{Code, Coded},
    host_tools::{ToolCallState, ToolCode},
    id::RunId,
    invalid::InvalidValue,
};

use super::{
    AccountScope, Run, Store, Tx,
    error::{Error, failed},
    row::storable,
    stored_tool_calls::StoredToolCall,
    tool_call_state::ToolCallMove,
    tool_calls::{ABANDONED, ABANDONED_MESSAGE, NewToolCall},
};

const ACTION: &str = "store the decision about a call of a tool";
const READ: &str = "read calls of tools that wait";
/// Code of a call that a person denied.
const DENIED: &str = ToolCode::ApprovalDenied.word();
/// Code of a call about which no person decided in time.
const TIMED_OUT: &str = ToolCode::ApprovalTimeout.word();
const TIMED_OUT_MESSAGE: &str = "no member of the account and no operator decided within tools.approval_timeout, and nothing \
     ran: `sluice tools pending` on the host and the page Approvals of the dashboard list calls that wait";

const UNKNOWN_AGENT: &str = "its agent was not made here, or has 200 such commands";

const BY_CALL: &str = "SELECT * FROM tool_calls WHERE run = $1 AND call = $2 AND installation = $3";
const DECIDE: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, ended = $4, decided = $5, decided_by = $6 \
     WHERE run = $7 AND attempt = $8 AND id = $9 AND state IN ($10, $11)";
const DENY: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, ended = $4 \
     WHERE run = $5 AND attempt = $6 AND id = $7 AND owner = $8 AND state IN ($9, $10)";
const BEGIN: &str = "UPDATE tool_calls SET state = $1 \
     WHERE run = $2 AND attempt = $3 AND id = $4 AND owner = $5 AND state IN ($6, $7)";
const ABANDON: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, ended = $4 \
     WHERE installation = $5 AND owner <> $6 AND gateway IS NULL AND state IN ($7, $8) RETURNING *";
const LOSE: &str = "UPDATE tool_calls SET state = $1 \
     WHERE installation = $2 AND owner <> $3 AND gateway IS NULL AND ended IS NULL AND state IN ($4, $5) RETURNING *";
const CLOSE: &str = "UPDATE tool_calls SET state = $1, code = $2, message = $3, ended = $4 \
     WHERE installation = $5 AND run = $6 AND gateway IS NOT NULL AND state IN ('waiting', 'approved') RETURNING *";
const CLOSE_BEGUN: &str = "UPDATE tool_calls SET state = $1 \
     WHERE installation = $2 AND run = $3 AND gateway IS NOT NULL AND ended IS NULL AND state = 'executing' RETURNING *";
const WAITING: &str = "SELECT tool_calls.* FROM tool_calls JOIN runs ON runs.run = tool_calls.run \
     AND runs.attempt = tool_calls.attempt \
     WHERE tool_calls.installation = $1 AND tool_calls.state = 'waiting' AND tool_calls.decide_by > $2 \
     AND runs.ended IS NULL AND ($3 IS NULL OR tool_calls.account = $3) \
     AND ($4 IS NULL OR tool_calls.run = $4) \
     ORDER BY tool_calls.began, tool_calls.run, tool_calls.id LIMIT $5";

/// Verdict of a person about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolVerdict {
    /// The call may run.
    Approve,
    /// The call may run, and its agent may run the same command from now on without asking.
    ApproveAlways,
    /// The call may not run.
    Deny {
        /// Reason, which the agent is given.
        reason: Option<String>,
    },
}

/// Decision of a person about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDecision {
    /// The verdict.
    pub verdict: ToolVerdict,
    /// Name of the person or program, for operators.
    pub by: String,
}

/// Reason why a decision was not stored.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// The run made no such call.
    #[error("run {run_id} has no call {id}")]
    Unknown {
        /// The run.
        run_id: RunId,
        /// Id of the call.
        id: String,
    },
    /// The call does not wait: it was decided, or never needed an approval.
    #[error("call {} of run {} does not wait for a decision: it is {}{}", .0.call, .0.run_id, .0.state.word(), reason(.0))]
    NotWaiting(Box<StoredToolCall>),
    /// The command cannot be allowed for good. Nothing is decided.
    #[error("the command cannot be allowed for good: {0}; approve it once")]
    NotForGood(InvalidValue),
    /// The run, or the attempt that made the call, has ended.
    #[error("run {run_id} has ended, or was started anew: its call {id} never runs")]
    RunEnded {
        /// The run.
        run_id: RunId,
        /// Id of the call.
        id: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Coded for DecideError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::CallUnknown,
            Self::NotWaiting(_) => Code::CallNotWaiting,
            Self::NotForGood(_) => Code::InvalidRequest,
            Self::RunEnded { .. } => Code::CallRunEnded,
            Self::Store(error) => error.code(),
        }
    }
}

/// Denial by the process that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// Code for the agent.
    pub code: String,
    /// Message for the agent.
    pub message: String,
}

impl Withdrawal {
    /// Returns the denial of a call about which no person decided in time.
    fn timed_out() -> Self {
        Self { code: TIMED_OUT.to_owned(), message: TIMED_OUT_MESSAGE.to_owned() }
    }
}

fn reason(call: &StoredToolCall) -> String {
    match (&call.decided_by, &call.code) {
        (Some(by), _) => format!(", decided by {by}"),
        (None, Some(code)) => format!(" ({code})"),
        (None, None) => String::new(),
    }
}

impl Store {
    /// Stores a decision about a call of `run`, which the caller has found within its accounts. Returns the call after it.
    /// `call_id` is the data plane's id, which no agent chooses: the decision is for the call that the person saw.
    ///
    /// # Errors
    /// [`DecideError`], if the call does not wait for a decision.
    pub async fn decide_tool_call(
        &self,
        run: &Run,
        call_id: &str,
        decision: &ToolDecision,
    ) -> Result<StoredToolCall, DecideError> {
        // A try may have decided although its answer was lost. The second one would say that another person had.
        let decided = self.retry_unless_done(async || {
            let mut tx = self.begin().await?;
            let decided = self.decide(&mut tx, run, call_id, decision).await?;
            if let Err(DecideError::NotForGood(_)) = &decided {
                return Ok(decided); // without a commit
            }
            tx.finish(ACTION, decided).await
        });
        decided.await?
    }

    async fn decide(
        &self,
        tx: &mut Tx,
        run: &Run,
        call_id: &str,
        decision: &ToolDecision,
    ) -> Result<Result<StoredToolCall, DecideError>, Error> {
        let run_id = || run.run_id.clone();
        let Some(call) = self.tool_call_to_decide(tx, &run.run_id, call_id).await? else {
            return Ok(Err(DecideError::Unknown { run_id: run_id(), id: call_id.to_owned() }));
        };
        if call.state != ToolCallState::Waiting {
            return Ok(Err(DecideError::NotWaiting(Box::new(call))));
        }
        if run.ended.is_some() || run.attempt != call.attempt {
            return Ok(Err(DecideError::RunEnded { run_id: run_id(), id: call_id.to_owned() }));
        }
        let is_late = call.decide_by.is_none_or(|decide_by| decide_by.0 <= tx.now);
        let is_decided = if is_late {
            tx.expire(&call).await?;
            false
        } else {
            tx.decide(&call, decision).await?
        };
        if is_decided
            && decision.verdict == ToolVerdict::ApproveAlways
            && let Err(fault) = self.allow_for_good(tx, &call).await?
        {
            return Ok(Err(DecideError::NotForGood(fault)));
        }
        let before = call.state;
        let after = self.tool_call_to_decide(tx, &run.run_id, call_id).await?.unwrap_or(call);
        if after.state != before {
            tx.report_tool_call(&after, None).await?;
        }
        Ok(if is_decided { Ok(after) } else { Err(DecideError::NotWaiting(Box::new(after))) })
    }

    /// Allows the command of a gateway's request from now on.
    async fn allow_for_good(
        &self,
        tx: &mut Tx,
        call: &StoredToolCall,
    ) -> Result<Result<(), InvalidValue>, Error> {
        let Some((key, asked)) = call.gateway.as_ref().zip(call.asked_command()) else {
            return Ok(Err("only commands of gateways' agents are".into()));
        };
        let command = match asked.allowable() {
            Ok(command) => command,
            Err(fault) => return Ok(Err(fault)),
        };
        let is_allowed = self.allow_gateway_command(tx, key, &command).await?;
        Ok(if is_allowed { Ok(()) } else { Err(UNKNOWN_AGENT.into()) })
    }

    /// Ends the requests of gateways that a run has left open: nothing waits for them any more. One that the gateway may have
    /// been told of is of unknown outcome.
    pub async fn close_gateway_calls(&self, run_id: &RunId) -> Result<(), Error> {
        self.write(async |mut tx| {
            let denied = sqlx::query(CLOSE)
                .bind(ToolCallMove::Withdraw.target().word())
                .bind(ToolCode::Cancelled.word())
                .bind("the turn ended before a person decided, and nothing ran")
                .bind(tx.now)
                .bind(self.installation.as_str())
                .bind(run_id.as_str());
            let mut rows = denied.fetch_all(tx.connection()).await.map_err(failed(ACTION))?;
            let lost = sqlx::query(CLOSE_BEGUN).bind(ToolCallMove::Lose.target().word());
            let lost = lost.bind(self.installation.as_str()).bind(run_id.as_str());
            rows.extend(lost.fetch_all(tx.connection()).await.map_err(failed(ACTION))?);
            for row in &rows {
                tx.report_tool_call(&StoredToolCall::read(row)?, None).await?;
            }
            tx.commit(ACTION).await
        })
        .await
    }

    /// Denies the call of this process, unless a person has approved it meanwhile: no person decided in time. Returns
    /// the call as it is then.
    pub async fn expire_tool_call(&self, new: &NewToolCall) -> Result<StoredToolCall, Error> {
        self.deny_own_call(new, ToolCallMove::Deny, &Withdrawal::timed_out()).await
    }

    /// Denies the call of this process, approved or not, unless it has begun. Returns the call as it is then.
    pub async fn withdraw_tool_call(
        &self,
        new: &NewToolCall,
        withdrawal: &Withdrawal,
    ) -> Result<StoredToolCall, Error> {
        self.deny_own_call(new, ToolCallMove::Withdraw, withdrawal).await
    }

    async fn deny_own_call(
        &self,
        new: &NewToolCall,
        step: ToolCallMove,
        withdrawal: &Withdrawal,
    ) -> Result<StoredToolCall, Error> {
        self.write(async |mut tx| {
            let [from, or] = step.sources();
            let denied = sqlx::query(DENY)
                .bind(step.target().word())
                .bind(&withdrawal.code)
                .bind(storable(&withdrawal.message))
                .bind(tx.now)
                .bind(new.run_id.as_str())
                .bind(i64::from(new.attempt))
                .bind(&new.id)
                .bind(&new.owner)
                .bind(from.word())
                .bind(or.word());
            let denied = denied.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let call = self.find_tool_call(&mut tx, &new.run_id, new.attempt, &new.id).await?;
            let call = call.ok_or_else(|| Error::Corrupt { what: "id", value: new.id.clone() })?;
            if denied.rows_affected() > 0 {
                tx.report_tool_call(&call, None).await?;
            }
            tx.finish(ACTION, call).await
        })
        .await
    }

    /// Stores that the tool of an approved call of this process begins to act. Returns whether it may.
    ///
    /// # Errors
    /// If the store fails. The tool may not act then.
    pub async fn begin_approved_tool_call(&self, new: &NewToolCall) -> Result<bool, Error> {
        // The tool acts once: a second try could not tell whether the first one was another process's.
        self.retry_unless_done(async || {
            let mut tx = self.begin().await?;
            let [from, or] = ToolCallMove::Begin.sources();
            let begun = sqlx::query(BEGIN)
                .bind(ToolCallMove::Begin.target().word())
                .bind(new.run_id.as_str())
                .bind(i64::from(new.attempt))
                .bind(&new.id)
                .bind(&new.owner)
                .bind(from.word())
                .bind(or.word());
            let begun = begun.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let has_begun = begun.rows_affected() > 0;
            let call = self.find_tool_call(&mut tx, &new.run_id, new.attempt, &new.id).await?;
            if let Some(call) = call.filter(|_| has_begun) {
                tx.report_tool_call(&call, None).await?;
            }
            tx.finish(ACTION, has_begun).await
        })
        .await
    }

    /// Ends all calls of host tools that other processes than `owner` left: denied before they began, else of unknown
    /// outcome. Of the processes that execute host tools of an installation, one is alive. Returns the calls.
    pub async fn settle_abandoned_tool_calls(&self, owner: &str) -> Result<Vec<StoredToolCall>, Error> {
        self.write(async |mut tx| {
            let [from, or] = ToolCallMove::Withdraw.sources();
            let denied = sqlx::query(ABANDON)
                .bind(ToolCallMove::Withdraw.target().word())
                .bind(ABANDONED)
                .bind(ABANDONED_MESSAGE)
                .bind(tx.now)
                .bind(self.installation.as_str())
                .bind(owner)
                .bind(from.word())
                .bind(or.word());
            let mut rows = denied.fetch_all(tx.connection()).await.map_err(failed(ACTION))?;
            let [from, or] = ToolCallMove::Lose.sources();
            let lost = sqlx::query(LOSE)
                .bind(ToolCallMove::Lose.target().word())
                .bind(self.installation.as_str())
                .bind(owner)
                .bind(from.word())
                .bind(or.word());
            rows.extend(lost.fetch_all(tx.connection()).await.map_err(failed(ACTION))?);
            let calls = rows.iter().map(StoredToolCall::read).collect::<Result<Vec<_>, _>>()?;
            for call in &calls {
                tx.report_tool_call(call, None).await?;
            }
            tx.finish(ACTION, calls).await
        })
        .await
    }

    /// Returns the calls within `scope` that wait for a decision, the oldest first, but at most `max_calls`.
    pub async fn waiting_tool_calls(
        &self,
        scope: &AccountScope,
        max_calls: u32,
    ) -> Result<Vec<StoredToolCall>, Error> {
        let account = match scope {
            AccountScope::All => None,
            AccountScope::Only(account) => Some(account.as_str()),
        };
        self.find_waiting(account, None, max_calls).await
    }

    /// Returns the calls of `run_id` that wait for a decision, the oldest first.
    pub async fn waiting_tool_calls_of(&self, run_id: &RunId) -> Result<Vec<StoredToolCall>, Error> {
        self.find_waiting(None, Some(run_id), u32::MAX).await
    }

    async fn find_waiting(
        &self,
        account: Option<&str>,
        run_id: Option<&RunId>,
        max_calls: u32,
    ) -> Result<Vec<StoredToolCall>, Error> {
        self.read(async |mut tx| {
            let query = sqlx::query(WAITING).bind(self.installation.as_str()).bind(tx.now);
            let query = query.bind(account).bind(run_id.map(RunId::as_str)).bind(i64::from(max_calls));
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(READ))?;
            tx.commit(READ).await?;
            rows.iter().map(StoredToolCall::read).collect()
        })
        .await
    }

    async fn tool_call_to_decide(
        &self,
        tx: &mut Tx,
        run_id: &RunId,
        call_id: &str,
    ) -> Result<Option<StoredToolCall>, Error> {
        let query = sqlx::query(BY_CALL).bind(run_id.as_str()).bind(call_id).bind(self.installation.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed(READ))?;
        row.map(|row| StoredToolCall::read(&row)).transpose()
    }
}

impl Tx {
    /// Stores a decision about `call`. Returns whether the call still waited.
    async fn decide(&mut self, call: &StoredToolCall, decision: &ToolDecision) -> Result<bool, Error> {
        let (step, denial) = match &decision.verdict {
            ToolVerdict::Approve | ToolVerdict::ApproveAlways => (ToolCallMove::Approve, None),
            ToolVerdict::Deny { reason } => {
                let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                let message = format!("a person denied the call, and nothing ran{reason}");
                (ToolCallMove::Deny, Some(Withdrawal { code: DENIED.to_owned(), message }))
            }
        };
        let by = Some(decision.by.as_str());
        self.conclude(call, step, denial.as_ref(), by).await
    }

    /// Denies `call`: its process has not denied it in time.
    async fn expire(&mut self, call: &StoredToolCall) -> Result<bool, Error> {
        self.conclude(call, ToolCallMove::Deny, Some(&Withdrawal::timed_out()), None).await
    }

    async fn conclude(
        &mut self,
        call: &StoredToolCall,
        step: ToolCallMove,
        denial: Option<&Withdrawal>,
        by: Option<&str>,
    ) -> Result<bool, Error> {
        let [from, or] = step.sources();
        let concluded = sqlx::query(DECIDE)
            .bind(step.target().word())
            .bind(denial.map(|denial| denial.code.as_str()))
            .bind(denial.map(|denial| storable(&denial.message)))
            .bind(denial.map(|_| self.now))
            .bind(by.map(|_| self.now))
            .bind(by.map(storable))
            .bind(call.run_id.as_str())
            .bind(i64::from(call.attempt))
            .bind(&call.id)
            .bind(from.word())
            .bind(or.word());
        let concluded = concluded.execute(self.connection()).await.map_err(failed(ACTION))?;
        Ok(concluded.rows_affected() > 0)
    }
}
