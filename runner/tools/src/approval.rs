//! approval has calls wait for a person's decision.
//!
//! The row of a call is stored as waiting before anything else. It ends denied unless a person approves it in time, while
//! its run runs, its client waits and this process serves: nothing else begins it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use platform_core::{id::ToolName, limit::Millis};
use platform_runtime::{report, retry::Backoff, settings::Tools, task};
use runner_store::{
    ApprovalWait, Error as StoreError, NewToolCall, StateWatcher, Store, StoredToolCall, ToolCallBegun,
    ToolCallState, Withdrawal,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    caller::{CallingRun, store_unavailable},
    tool::{ToolCode, ToolError},
};

/// Time between two looks for a decision, which another process stores.
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Delays before a call is withdrawn again after the store failed.
const WITHDRAWAL_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// Tools with calls that need an approval, and how long these wait. Clones share the stop.
#[derive(Debug, Clone)]
pub(crate) struct Approvals {
    tools: Arc<BTreeSet<ToolName>>,
    timeout: Millis,
    stop: CancellationToken,
}

/// Wait of one call for its approval.
pub(crate) struct ApprovalWaiter {
    caller: CallingRun,
    /// Older than the last check of the run.
    watcher: StateWatcher,
    wait: ApprovalWait,
    /// Triggered when the client leaves.
    left: CancellationToken,
    stop: CancellationToken,
}

impl Approvals {
    pub(crate) fn of(settings: &Tools) -> Self {
        Self {
            tools: Arc::new(settings.approval.iter().cloned().collect()),
            timeout: settings.approval_timeout,
            stop: CancellationToken::new(),
        }
    }

    /// Returns whether calls of `tool` need an approval.
    pub(crate) fn are_needed(&self, tool: &ToolName) -> bool {
        self.tools.contains(tool)
    }

    /// Denies all calls that wait, and those that would wait from now on.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns the wait of a call; a person reads its arguments as `args`. The wait ends when `left` is triggered.
    /// `watcher` is older than the check of the caller's run.
    pub(crate) fn waiter(
        &self,
        caller: CallingRun,
        watcher: StateWatcher,
        args: String,
        left: CancellationToken,
    ) -> ApprovalWaiter {
        let wait = ApprovalWait { args, timeout: self.timeout };
        ApprovalWaiter { caller, watcher, wait, left, stop: self.stop.clone() }
    }
}

impl ApprovalWaiter {
    /// Stores the call, and waits until a person has decided. Returns [`ToolCallBegun::New`] if the tool may act now;
    /// else the call, which does not wait any more.
    ///
    /// # Errors
    /// If the store fails. The tool may not act then, and the call is denied once the store can be written again.
    pub(crate) async fn begin(self, store: &Store, new: &NewToolCall) -> Result<ToolCallBegun, ToolError> {
        let gone =
            || ToolError::new(ToolCode::ApprovalAbandoned, "the call was denied meanwhile, and nothing ran");
        match self.begin_decided(store, new).await {
            Ok(begun) => begun.ok_or_else(gone),
            Err(error) => {
                drop(task::spawn("withdrawal of a tool call", withdraw(store.clone(), new.clone())));
                Err(store_unavailable(&error))
            }
        }
    }

    /// Stores the call, and returns what became of it; `None` if it is there no more.
    async fn begin_decided(
        mut self,
        store: &Store,
        new: &NewToolCall,
    ) -> Result<Option<ToolCallBegun>, StoreError> {
        let existing = |stored| Ok(Some(ToolCallBegun::Existing(Box::new(stored))));
        if let stored @ ToolCallBegun::Existing(_) = store.propose_tool_call(new, &self.wait).await? {
            return Ok(Some(stored));
        }
        tracing::info!(run = %new.run_id, tool = %new.tool, call = new.id, "tool call waits for an approval");
        let decided = self.decided(store, new).await?;
        if decided.state != ToolCallState::Approved {
            return existing(decided);
        }
        if let Some(withdrawal) = self.obstacle(store).await {
            return existing(store.withdraw_tool_call(new, &withdrawal).await?);
        }
        if store.begin_approved_tool_call(new).await? {
            return Ok(Some(ToolCallBegun::New));
        }
        // Another process took this one for gone, and denied the call.
        let stored = store.tool_call(&new.run_id, new.attempt, &new.id).await?;
        stored.map_or(Ok(None), existing)
    }

    /// Waits until the call is decided, or denies it. Returns the call as it is then.
    async fn decided(&mut self, store: &Store, new: &NewToolCall) -> Result<StoredToolCall, StoreError> {
        let Self { caller, watcher, wait, left, stop } = self;
        let withdrawal = tokio::select! {
            decided = decision(store, new) => return Ok(decided),
            () = sleep(wait.timeout.duration()) => return store.expire_tool_call(new).await,
            ended = caller.ended(store, watcher) => Withdrawal { code: ended.code, message: ended.message },
            () = left.cancelled() => client_left(),
            () = stop.cancelled() => stopped(),
        };
        store.withdraw_tool_call(new, &withdrawal).await
    }

    /// Returns the reason why the call may not begin although it is approved.
    async fn obstacle(&self, store: &Store) -> Option<Withdrawal> {
        if self.stop.is_cancelled() {
            return Some(stopped());
        }
        if self.left.is_cancelled() {
            return Some(client_left());
        }
        let ended = self.caller.check(store).await.err();
        ended.map(|error| Withdrawal { code: error.code, message: error.message })
    }
}

/// Denies a call for which nothing waits any more: a person could approve it, and nothing would run. Tries until the store
/// takes it, or has no such call. If this process ends before, the next one denies the call.
async fn withdraw(store: Store, new: NewToolCall) {
    let message = "the control plane could not reach its store, and nothing ran: make a new call";
    let withdrawal =
        Withdrawal { code: ToolCode::StoreUnavailable.word().to_owned(), message: message.to_owned() };
    let mut backoff = WITHDRAWAL_BACKOFF;
    loop {
        match store.withdraw_tool_call(&new, &withdrawal).await {
            Ok(_) | Err(StoreError::Corrupt { .. }) => return,
            Err(error) => {
                tracing::warn!(run = %new.run_id, error = report::chain(&error), "tool call not withdrawn");
            }
        }
        backoff.wait().await;
    }
}

/// Waits until the call no longer waits. Cancel safe.
async fn decision(store: &Store, new: &NewToolCall) -> StoredToolCall {
    loop {
        sleep(DECISION_POLL_INTERVAL).await;
        match store.tool_call(&new.run_id, new.attempt, &new.id).await {
            Ok(Some(call)) if call.state != ToolCallState::Waiting => return call,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    run = %new.run_id,
                    error = report::chain(&error),
                    "the decision about a tool call cannot be read"
                );
            }
        }
    }
}

fn client_left() -> Withdrawal {
    let message = "the caller did not wait for the approval, and nothing ran";
    Withdrawal { code: ToolCode::Cancelled.word().to_owned(), message: message.to_owned() }
}

fn stopped() -> Withdrawal {
    let message = "the control plane stopped before a person decided, and nothing ran: make a new call";
    Withdrawal { code: ToolCode::ApprovalAbandoned.word().to_owned(), message: message.to_owned() }
}
