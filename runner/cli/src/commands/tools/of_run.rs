//! Sums up the calls of host tools of a run, for `sluice runs show`.

use platform_core::id::RunId;
use runner_store::{Error, Store, StoredToolCall};
use serde::Serialize;

/// Calls of host tools of a run: those that wait, and the number of all in each state.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct ToolCallsOfRun {
    waiting: Vec<StoredToolCall>,
    /// Numbers of calls, by the word for their state.
    counts: Vec<StateCount>,
}

/// Number of calls in a state.
#[derive(Debug, Serialize)]
struct StateCount {
    state: &'static str,
    calls: u64,
}

impl ToolCallsOfRun {
    /// Reads them. A run may have made thousands, of which few wait.
    ///
    /// # Errors
    /// If the store fails.
    pub(in crate::commands) async fn read(store: &Store, run_id: &RunId) -> Result<Self, Error> {
        let counts = store.tool_call_counts(run_id).await?;
        let count =
            |(state, calls): (runner_store::ToolCallState, u64)| StateCount { state: state.word(), calls };
        Ok(Self {
            waiting: store.waiting_tool_calls_of(run_id).await?,
            counts: counts.into_iter().map(count).collect(),
        })
    }

    /// Returns whether the run has called no host tool.
    pub(in crate::commands) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the numbers of calls in words; none without a call.
    pub(in crate::commands) fn counts_in_words(&self) -> Option<String> {
        let counts: Vec<_> =
            self.counts.iter().map(|StateCount { state, calls }| format!("{calls} {state}")).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }

    /// Returns each call that waits, with the command that decides.
    pub(in crate::commands) fn waiting_in_words(&self) -> impl Iterator<Item = String> {
        self.waiting.iter().map(|StoredToolCall { run_id, call, tool, .. }| {
            format!("call {call} of {tool} for an approval: sluice tools approve {run_id} {call}")
        })
    }
}
