//! approval has calls wait for a person's decision.
//!
//! The row of a call is stored as waiting before anything else. It ends denied unless a person approves it in time, while
//! its run runs, its client waits and this process serves: nothing else begins it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use platform_core::{id::ToolName, limit::Millis};
use platform_runtime::{report, settings::Tools};
use runner_store::{
    ApprovalWait, NewToolCall, StateWatcher, Store, StoredToolCall, ToolCallBegun, ToolCallState, Withdrawal,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    caller::{CallingRun, store_unavailable},
    tool::{ToolCode, ToolError},
};

/// Time between two looks for a decision, which another process stores.
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Tools whose calls need an approval, and how long these wait. Clones share the stop.
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

    /// Returns the wait of a call whose arguments a person reads as `args`. It ends when `left` is triggered. `watcher`
    /// is older than the check of the caller's run.
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
    /// If the store fails. The tool may not act then.
    pub(crate) async fn begin(
        mut self,
        store: &Store,
        new: &NewToolCall,
    ) -> Result<ToolCallBegun, ToolError> {
        let failed = |error| store_unavailable(&error);
        if let existing @ ToolCallBegun::Existing(_) =
            store.propose_tool_call(new, &self.wait).await.map_err(failed)?
        {
            return Ok(existing);
        }
        tracing::info!(run = %new.run_id, tool = %new.tool, call = new.id, "tool call waits for an approval");
        let decided = self.decided(store, new).await.map_err(failed)?;
        if decided.state != ToolCallState::Approved {
            return Ok(ToolCallBegun::Existing(Box::new(decided)));
        }
        if let Some(withdrawal) = self.obstacle(store).await {
            let withdrawn = store.withdraw_tool_call(new, &withdrawal).await.map_err(failed)?;
            return Ok(ToolCallBegun::Existing(Box::new(withdrawn)));
        }
        if store.begin_approved_tool_call(new).await.map_err(failed)? {
            return Ok(ToolCallBegun::New);
        }
        // Another process took this one for gone, and denied the call.
        let stored = store.tool_call(&new.run_id, new.attempt, &new.id).await.map_err(failed)?;
        let gone =
            || ToolError::new(ToolCode::ApprovalAbandoned, "the call was denied meanwhile, and nothing ran");
        stored.map(|stored| ToolCallBegun::Existing(Box::new(stored))).ok_or_else(gone)
    }

    /// Waits until the call is decided, or denies it. Returns the call as it is then.
    async fn decided(
        &mut self,
        store: &Store,
        new: &NewToolCall,
    ) -> Result<StoredToolCall, runner_store::Error> {
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
