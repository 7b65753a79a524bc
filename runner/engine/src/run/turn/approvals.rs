//! Asks people whether commands of a gateway's agent may run, and tells the gateway what they decide.
//!
//! A gateway's turn waits for each answer. The request is a row before anybody is asked, so that a worker that takes the run
//! over goes on with it. A person decides about what the row shows, and the gateway is told the decision about that request
//! and no other. A command that a person has allowed for good is approved at once.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::pending,
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use gateway_bridge::{Decision, Error as BridgeError, Gateway, SubscriptionItem};
use platform_core::{
    host_tools::{ToolCallState, ToolCode},
    id::{GatewayAgentId, ToolName},
    json::RawBuf,
    limit::Millis,
};
use platform_runtime::report;
use runner_model::gateway_agent::{AllowedCommand, CommandMode};
use runner_store::{
    ApprovalWait, Error as StoreError, GatewayAgentKey, NewToolCall, StoredToolCall, ToolCallBegun,
    ToolCallEnd, ToolDecision, ToolVerdict, UnixMillis, Withdrawal,
};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::{sync::Notify, time::sleep};

use super::TurnTarget;
use crate::run::context::RunContext;

/// Interval between looks for a decision, which another process stores.
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Pause after a failure of the store, and before a request is answered again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Time before the gateway's own end of a request at which it is denied.
const EXPIRY_GRACE: Duration = Duration::from_secs(10);
/// Longest id of a request.
const MAX_ID: usize = 128;
/// Largest command that a person is asked about.
const MAX_COMMAND: usize = 32 << 10;
/// Most bytes of a command for those who follow the run.
const MAX_SHOWN: usize = 200;
/// Tool that runs commands.
const EXEC: &str = "exec";

/// Requests of one turn.
pub(super) struct TurnApprovals<'r> {
    ctx: &'r RunContext<'r>,
    gateway: Gateway,
    session: String,
    agent: Option<GatewayAgentKey>,
    /// Notified when there may be requests that no event has told of.
    look: Notify,
}

/// Request for an approval, as the gateway describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalRequest {
    id: String,
    request: RequestedCommand,
    expires_at_ms: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestedCommand {
    command: String,
    cwd: Option<String>,
    session_key: Option<String>,
}

impl<'r> TurnApprovals<'r> {
    pub(super) fn new(ctx: &'r RunContext<'r>, target: &TurnTarget<'_>, gateway: Gateway) -> Self {
        let agent = GatewayAgentId::parse(target.key.agent()).ok();
        let agent = agent.map(|agent| GatewayAgentKey { gateway: target.connection.id.clone(), agent });
        Self { ctx, gateway, session: target.key.to_string(), agent, look: Notify::new() }
    }

    /// Asks the gateway for its open requests soon: the turn waits, or events may have been missed.
    pub(super) fn look_again(&self) {
        self.look.notify_one();
    }

    /// Answers the requests of the turn's session, for as long as it is polled.
    pub(super) async fn answer(&self) -> Infallible {
        let mut events = self.gateway.subscribe();
        let mut known = BTreeSet::new();
        let mut open = FuturesUnordered::new();
        self.look_again();
        loop {
            let found = tokio::select! {
                Some(()) = open.next(), if !open.is_empty() => continue,
                () = self.look.notified() => self.open_requests().await,
                event = events.next() => match event {
                    Some(SubscriptionItem::Notice(notice)) if &*notice.name == "exec.approval.requested" => {
                        notice.payload.read().into_iter().collect()
                    }
                    Some(SubscriptionItem::Notice(_)) => continue,
                    Some(SubscriptionItem::Missed(_)) => self.open_requests().await,
                    None => pending().await,
                },
            };
            for request in found {
                let is_own = request.request.session_key.as_deref() == Some(self.session.as_str());
                if is_own && known.insert(request.id.clone()) {
                    open.push(self.settle(request));
                }
            }
        }
    }

    /// Ends the requests that the turn has left open: nothing waits for them any more.
    pub(super) async fn close(&self) {
        let calls = match self.ctx.engine.store.tool_calls(self.ctx.run_id()).await {
            Ok(calls) => calls,
            Err(error) => return self.warn(&error),
        };
        let attempt = self.ctx.run.attempt();
        let is_open = |call: &StoredToolCall| {
            call.gateway.is_some() && call.attempt == attempt && !call.state.has_ended()
        };
        for call in calls.into_iter().filter(is_open) {
            let new = self.row(&call.id, &call.args_digest, String::new());
            let message = "the turn ended before a person decided, and nothing ran".to_owned();
            let withdrawal = Withdrawal { code: ToolCode::Cancelled.word().to_owned(), message };
            let ended = match call.state {
                ToolCallState::Executing => self.end(&new, None).await,
                _ => self.ctx.engine.store.withdraw_tool_call(&new, &withdrawal).await.map(drop),
            };
            if let Err(error) = ended {
                self.warn(&error);
            }
        }
    }

    /// Asks the gateway for its open requests; those of other sessions are among them.
    async fn open_requests(&self) -> Vec<ApprovalRequest> {
        let read = |answer: RawBuf| answer.read().unwrap_or_default();
        match self.gateway.call("exec.approval.list", json!({})).await {
            Ok(answer) => read(answer),
            // An older version has no such method, and tells of requests by events alone.
            Err(BridgeError::Refused { .. }) => Vec::new(),
            Err(error) => {
                tracing::debug!(run = %self.ctx.run_id(), error = report::chain(&error), "open requests not read");
                Vec::new()
            }
        }
    }

    /// Waits for a person's decision about a request, and tells the gateway. Tries until the store and the gateway have taken it; the
    /// turn's end ends this, too.
    async fn settle(&self, request: ApprovalRequest) {
        let decided = loop {
            match self.decide(&request).await {
                Ok(decided) => break decided,
                Err(error) => self.warn(&error),
            }
            sleep(RETRY_DELAY).await;
        };
        let decision = match decided {
            ToolCallState::Approved | ToolCallState::Executing => Decision::AllowOnce,
            _ => Decision::Deny,
        };
        let new = self.new_call(&request);
        if decided == ToolCallState::Approved {
            match self.ctx.engine.store.begin_approved_tool_call(&new).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.warn(&error),
            }
        }
        let refusal = self.resolve(&request.id, decision).await;
        if decision == Decision::AllowOnce
            && let Err(error) = self.end(&new, refusal).await
        {
            self.warn(&error);
        }
    }

    /// Tells the gateway a decision. Returns why it did not take it.
    async fn resolve(&self, id: &str, decision: Decision) -> Option<String> {
        loop {
            match self.gateway.resolve_approval(id, decision).await {
                Ok(()) => return None,
                Err(error @ BridgeError::Refused { .. }) => return Some(report::chain(&error)),
                Err(error) => {
                    let error = report::chain(&error);
                    tracing::info!(run = %self.ctx.run_id(), error, "decision not told to the gateway yet");
                }
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Stores the request, and waits until it is decided. Returns its state then.
    async fn decide(&self, request: &ApprovalRequest) -> Result<ToolCallState, StoreError> {
        let store = &self.ctx.engine.store;
        let is_readable = request.id.len() <= MAX_ID && request.request.command.len() <= MAX_COMMAND;
        if !is_readable {
            tracing::warn!(run = %self.ctx.run_id(), "a request for an approval is too large: it is denied");
            return Ok(ToolCallState::Denied);
        }
        let new = self.new_call(request);
        let wait = ApprovalWait { args: self.shown(request, usize::MAX), timeout: self.timeout(request) };
        let stored = match store.propose_tool_call(&new, &wait).await? {
            ToolCallBegun::New => store.tool_call(&new.run_id, new.attempt, &new.id).await?,
            ToolCallBegun::Existing(stored) => Some(*stored),
        };
        let Some(mut stored) = stored else { return Ok(ToolCallState::Denied) };
        if stored.state == ToolCallState::Waiting && self.is_allowed(&request.request.command).await? {
            let by = "a rule: the command is allowed for good".to_owned();
            let decision = ToolDecision { verdict: ToolVerdict::Approve, by };
            let run = store.record(self.ctx.run_id()).await?.run;
            // A person may have been faster.
            drop(store.decide_tool_call(&run, &stored.call, &decision).await);
        }
        loop {
            if stored.state != ToolCallState::Waiting {
                return Ok(stored.state);
            }
            if stored.decide_by.is_none_or(|until| until <= now()) {
                return Ok(store.expire_tool_call(&new).await?.state);
            }
            match store.tool_call(&new.run_id, new.attempt, &new.id).await? {
                Some(now) if now.state != ToolCallState::Waiting => stored = now,
                Some(_) => sleep(DECISION_POLL_INTERVAL).await,
                None => return Ok(ToolCallState::Denied),
            }
        }
    }

    /// Returns whether a person has allowed the command for good, and the agent still asks.
    async fn is_allowed(&self, command: &str) -> Result<bool, StoreError> {
        let Some(key) = &self.agent else { return Ok(false) };
        let Ok(command) = AllowedCommand::parse(command) else { return Ok(false) };
        let stored = self.ctx.engine.store.gateway_agent(key).await?;
        let capabilities = stored.map(|stored| stored.agent.settings.capabilities);
        Ok(capabilities.is_some_and(|capabilities| {
            capabilities.commands == CommandMode::Ask && capabilities.allowed_commands.contains(&command)
        }))
    }

    fn new_call(&self, request: &ApprovalRequest) -> NewToolCall {
        let whole = self.shown(request, usize::MAX);
        let digest = Sha256::digest(whole.as_bytes());
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.row(&request.id, &digest, self.shown(request, MAX_SHOWN))
    }

    fn row(&self, id: &str, digest: &str, shown: String) -> NewToolCall {
        let request = self.ctx.request();
        NewToolCall {
            run_id: request.run_id.clone(),
            attempt: self.ctx.run.attempt(),
            id: id.to_owned(),
            call: id.to_owned(),
            account: request.account.clone(),
            tool: ToolName::parse(EXEC).expect("it is the name of a tool"),
            effect: "writes",
            args_digest: digest.to_owned(),
            args_shown: shown,
            // Whichever worker has the run, it goes on with the request.
            owner: format!("turn/{}", request.run_id),
            gateway: self.agent.clone(),
        }
    }

    /// Returns the command and its directory as JSON, with at most `max` bytes of the command.
    fn shown(&self, request: &ApprovalRequest, max: usize) -> String {
        let RequestedCommand { command, cwd, .. } = &request.request;
        let kept = &command[..command.floor_char_boundary(max.min(command.len()))];
        let cut = command.len() - kept.len();
        let command = if cut == 0 { kept.to_owned() } else { format!("{kept}… [{cut} more bytes]") };
        json!({ "command": command, "directory": cwd }).to_string()
    }

    /// Returns the time for a decision: that of host tools, but less than the gateway's own.
    fn timeout(&self, request: &ApprovalRequest) -> Millis {
        let own = self.ctx.engine.settings.get().tools.approval_timeout;
        let margin = i64::try_from(EXPIRY_GRACE.as_millis()).unwrap_or_default();
        let left = request.expires_at_ms.map(|expires| expires - now().0 - margin);
        let left = left.map_or(own.0, |left| u64::try_from(left).unwrap_or_default());
        Millis(own.0.min(left))
    }

    /// Stores that the gateway was told of an approval, or why it did not take it.
    async fn end(&self, new: &NewToolCall, refusal: Option<String>) -> Result<(), StoreError> {
        let state = if refusal.is_some() { ToolCallState::Failed } else { ToolCallState::Done };
        let code = refusal.as_ref().map(|_| "gateway_refused".to_owned());
        let end =
            ToolCallEnd { state, code, message: refusal, result: None, result_bytes: None, connection: None };
        self.ctx.engine.store.end_tool_call(new, &end).await
    }

    fn warn(&self, error: &StoreError) {
        tracing::warn!(run = %self.ctx.run_id(), error = report::chain(error), "approval of a command not stored");
    }
}

/// Returns the time by this host's clock, to compare with times of the store and of the gateway.
fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
