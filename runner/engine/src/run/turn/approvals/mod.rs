//! Asks people whether commands of a gateway's agent may run, and tells the gateway what they decide.
//!
//! A gateway's turn waits for each answer. The request is a row before anybody is asked, so that a worker that takes the run
//! over goes on with it. A person decides about what the row shows, and the gateway is told the decision about that request
//! and no other. A command that a person has allowed for good is approved at once.

mod request;

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::pending,
    time::{Duration, SystemTime},
};

use futures_util::{FutureExt, StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use gateway_bridge::{Decision, Error as BridgeError, Gateway, Subscription, SubscriptionItem};
use platform_core::{
    host_tools::ToolCallState,
    id::{GatewayAgentId, ToolName},
    limit::Millis,
};
use platform_runtime::report;
use runner_model::gateway_agent::{AskedCommand, CommandMode};
use runner_store::{
    ApprovalWait, Error as StoreError, GatewayAgentKey, NewToolCall, StoredToolCall, ToolCallBegun,
    ToolCallEnd, ToolDecision, ToolVerdict, UnixMillis,
};
use serde_json::json;
use tokio::{sync::Notify, time::sleep};

use self::request::{ApprovalRequest, digest, read_list, read_one};
use super::{PreparedTurn, TurnTarget};
use crate::run::context::RunContext;

/// Interval between looks for a decision, which another process stores.
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay after a failure of the store or of the gateway.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Time before the gateway's own end of a request at which it is denied.
const EXPIRY_GRACE: Duration = Duration::from_secs(10);
/// Most requests of one turn. More come from no agent that people could supervise.
const MAX_REQUESTS: usize = 500;
/// Most bytes of a command for those who follow the run.
const MAX_SHOWN: usize = 200;
/// Tool that runs commands.
const EXEC: &str = "exec";
/// Code by which OpenClaw says that a request was decided before.
const RESOLVED_BEFORE: &str = "APPROVAL_ALREADY_RESOLVED";

/// Requests of one turn.
pub(super) struct TurnApprovals<'r> {
    ctx: &'r RunContext<'r>,
    gateway: Gateway,
    session: String,
    /// Directory in which the session works; that of its agent if absent.
    directory: Option<String>,
    agent: Option<GatewayAgentKey>,
    /// Notified when there may be requests that no event has told of.
    look: Notify,
}

/// Work on requests that has ended: open requests were read, or one was settled.
type Work<'a> = LocalBoxFuture<'a, Vec<ApprovalRequest>>;

impl<'r> TurnApprovals<'r> {
    pub(super) fn new(ctx: &'r RunContext<'r>, prepared: &PreparedTurn<'_>) -> Self {
        let TurnTarget { connection, key } = &prepared.target;
        let agent = GatewayAgentId::parse(key.agent()).ok();
        Self {
            ctx,
            gateway: prepared.gateway.clone(),
            session: key.to_string(),
            directory: prepared.directory.clone(),
            agent: agent.map(|agent| GatewayAgentKey { gateway: connection.id.clone(), agent }),
            look: Notify::new(),
        }
    }

    /// Asks the gateway for its open requests soon: the turn waits, or events may have been missed.
    pub(super) fn look_again(&self) {
        self.look.notify_one();
    }

    /// Answers the requests of the turn's session, for as long as it is polled.
    pub(super) async fn answer(&self) -> Infallible {
        let mut events = self.gateway.subscribe();
        let mut known = BTreeSet::new();
        let mut work = FuturesUnordered::<Work<'_>>::new();
        self.look_again();
        loop {
            // Nothing is awaited in an arm: the other requests go on meanwhile.
            let found = tokio::select! {
                Some(found) = work.next(), if !work.is_empty() => found,
                () = self.look.notified() => {
                    work.push(self.open_requests().boxed_local());
                    continue;
                }
                told = next_event(&mut events) => match told {
                    Told::Request(request) => request.into_iter().map(|request| *request).collect(),
                    Told::Missed => {
                        self.look_again();
                        continue;
                    }
                },
            };
            for request in found.into_iter().filter(|request| request.session() == Some(&*self.session)) {
                if known.len() < MAX_REQUESTS && known.insert(request.id().to_owned()) {
                    work.push(self.settle(request).map(|()| Vec::new()).boxed_local());
                }
            }
        }
    }

    /// Asks the gateway for its open requests; those of other sessions are among them.
    async fn open_requests(&self) -> Vec<ApprovalRequest> {
        loop {
            match self.gateway.call("exec.approval.list", json!({})).await {
                Ok(answer) => return read_list(&answer),
                // An older version has no such method, and tells of requests by events alone.
                Err(BridgeError::Refused { .. }) => return Vec::new(),
                Err(error) => {
                    let error = report::chain(&error);
                    tracing::debug!(run = %self.ctx.run_id(), error, "open requests not read yet");
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Waits for a person's decision about a request, and tells the gateway. Tries until the store and the gateway have taken
    /// it; the turn's end ends this, too.
    async fn settle(&self, request: ApprovalRequest) {
        loop {
            match self.settle_once(&request).await {
                Ok(()) => return,
                Err(error) => {
                    let error = report::chain(&error);
                    tracing::warn!(run = %self.ctx.run_id(), error, "approval of a command not stored yet");
                }
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn settle_once(&self, request: &ApprovalRequest) -> Result<(), StoreError> {
        let store = &self.ctx.engine.store;
        let asked = request.asked(&self.own_directory().await?);
        let wait = ApprovalWait { args: json!(asked).to_string(), timeout: self.timeout(request) };
        let new = &self.new_call(request, &wait.args);
        let state = self.decide(&asked, new, &wait).await?;
        if state == ToolCallState::Approved && !store.begin_approved_tool_call(new).await? {
            // The turn's end has withdrawn it.
            return Ok(());
        }
        match state {
            ToolCallState::Approved | ToolCallState::Executing => {
                let refusal = self.resolve(request.id(), Decision::AllowOnce).await;
                self.end(new, refusal).await
            }
            _ => {
                drop(self.resolve(request.id(), Decision::Deny).await);
                Ok(())
            }
        }
    }

    /// Returns the directory in which the session works.
    async fn own_directory(&self) -> Result<String, StoreError> {
        if let Some(directory) = &self.directory {
            return Ok(directory.clone());
        }
        let Some(key) = &self.agent else { return Ok(String::new()) };
        let stored = self.ctx.engine.store.gateway_agent(key).await?;
        Ok(stored.map(|stored| stored.agent.workspace).unwrap_or_default())
    }

    /// Tells the gateway a decision. Returns why it did not take it.
    async fn resolve(&self, id: &str, decision: Decision) -> Option<String> {
        loop {
            match self.gateway.resolve_approval(id, decision).await {
                Ok(()) => return None,
                // It took an earlier try, of which no answer came.
                Err(BridgeError::Refused { code, .. }) if code.as_str() == RESOLVED_BEFORE => return None,
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
    async fn decide(
        &self,
        asked: &AskedCommand,
        new: &NewToolCall,
        wait: &ApprovalWait,
    ) -> Result<ToolCallState, StoreError> {
        let store = &self.ctx.engine.store;
        if !asked.is_whole() {
            tracing::warn!(run = %self.ctx.run_id(), "the gateway shows a command in part: it is denied");
            return Ok(ToolCallState::Denied);
        }
        let stored = match store.propose_tool_call(new, wait).await? {
            ToolCallBegun::New => store.tool_call(&new.run_id, new.attempt, &new.id).await?,
            ToolCallBegun::Existing(stored) => Some(*stored),
        };
        let is_own =
            |stored: &StoredToolCall| stored.gateway == new.gateway && stored.args_digest == new.args_digest;
        // Another call has the id: the gateway must not get that one's decision.
        let Some(stored) = stored.filter(is_own) else { return Ok(ToolCallState::Denied) };
        if stored.state == ToolCallState::Waiting && self.is_allowed(asked).await? {
            let by = "a rule: the command is allowed for good".to_owned();
            let decision = ToolDecision { verdict: ToolVerdict::Approve, by };
            let run = store.record(self.ctx.run_id()).await?.run;
            // A person may have been faster.
            drop(store.decide_tool_call(&run, &stored.call, &decision).await);
        }
        self.decided(new).await
    }

    /// Waits until a stored request is decided, or its time has passed.
    async fn decided(&self, new: &NewToolCall) -> Result<ToolCallState, StoreError> {
        let store = &self.ctx.engine.store;
        loop {
            let stored = store.tool_call(&new.run_id, new.attempt, &new.id).await?;
            let Some(stored) = stored else { return Ok(ToolCallState::Denied) };
            if stored.state != ToolCallState::Waiting {
                return Ok(stored.state);
            }
            if stored.decide_by.is_none_or(|until| until <= now()) {
                return Ok(store.expire_tool_call(new).await?.state);
            }
            sleep(DECISION_POLL_INTERVAL).await;
        }
    }

    /// Returns whether a person has allowed the command for good, and the agent still asks.
    async fn is_allowed(&self, asked: &AskedCommand) -> Result<bool, StoreError> {
        let Some(key) = &self.agent else { return Ok(false) };
        let Some(stored) = self.ctx.engine.store.gateway_agent(key).await? else { return Ok(false) };
        let capabilities = &stored.agent.settings.capabilities;
        Ok(capabilities.commands == CommandMode::Ask
            && asked.allowable().is_ok_and(|command| capabilities.allowed_commands.contains(&command)))
    }

    fn new_call(&self, request: &ApprovalRequest, args: &str) -> NewToolCall {
        let order = self.ctx.request();
        NewToolCall {
            run_id: order.run_id.clone(),
            attempt: self.ctx.run.attempt(),
            id: request.id().to_owned(),
            call: request.id().to_owned(),
            account: order.account.clone(),
            tool: ToolName::parse(EXEC).expect("it is the name of a tool"),
            effect: "writes",
            args_digest: digest(args),
            args_shown: request.excerpt(MAX_SHOWN),
            // The next worker of the run goes on with the request.
            owner: format!("turn/{}", order.run_id),
            gateway: self.agent.clone(),
        }
    }

    /// Returns the time for a decision: that of host tools, but less than the gateway's own.
    fn timeout(&self, request: &ApprovalRequest) -> Millis {
        let own = self.ctx.engine.settings.get().tools.approval_timeout;
        let left = request.expires().map(|expires| now().until(expires).saturating_sub(EXPIRY_GRACE));
        let left = left.map_or(own.0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
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
}

/// Report of the gateway about requests.
enum Told {
    /// A request; none if it cannot be read.
    Request(Option<Box<ApprovalRequest>>),
    /// Events were missed.
    Missed,
}

/// Returns the next report. Cancel safe.
async fn next_event(events: &mut Subscription) -> Told {
    loop {
        match events.next().await {
            Some(SubscriptionItem::Notice(notice)) if &*notice.name == "exec.approval.requested" => {
                return Told::Request(read_one(&notice.payload).map(Box::new));
            }
            Some(SubscriptionItem::Notice(_)) => {}
            Some(SubscriptionItem::Missed(_)) => return Told::Missed,
            None => pending().await,
        }
    }
}

/// Returns the time by this host's clock, to compare with times of the store and of the gateway.
fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
