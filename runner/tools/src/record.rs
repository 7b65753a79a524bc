//! record stores calls that read, once they have ended, also after their client left.

use std::time::Instant;

use platform_core::{connection::ConnectionId, host_tools::ToolOutcome};
use platform_runtime::{report, task};
use runner_store::{NewToolCall, Store, ToolCallEnd, ToolCallState};
use tokio_util::task::TaskTracker;

use crate::tool::{ToolCode, ToolResult};

/// Most bytes of a message that is stored.
const MAX_MESSAGE: usize = 1000;

/// Recorder of a call that reads. Dropped before the call's end, it records that the call was cancelled.
pub(crate) struct CallRecorder {
    store: Store,
    tasks: TaskTracker,
    new: Option<NewToolCall>,
    began: Instant,
}

impl CallRecorder {
    pub(crate) fn new(store: Store, tasks: TaskTracker, new: NewToolCall) -> Self {
        Self { store, tasks, new: Some(new), began: Instant::now() }
    }

    /// Stores the call after its answer: the answer does not wait for it.
    pub(crate) fn finish(mut self, end: ToolCallEnd) {
        // The result of a call that reads is not kept.
        self.record(ToolCallEnd { result: None, message: None, ..end });
    }

    fn record(&mut self, end: ToolCallEnd) {
        let Some(new) = self.new.take() else { return };
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let store = self.store.clone();
        let recording = self.tasks.track_future(async move {
            if let Err(error) = store.record_tool_call(&new, &end, millis).await {
                tracing::warn!(run = %new.run_id, tool = %new.tool, error = report::chain(&error), "tool call not stored");
            }
        });
        drop(task::spawn("record of a tool call", recording));
    }
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        let is_running = tokio::runtime::Handle::try_current().is_ok();
        if self.new.is_some() && is_running {
            self.record(ToolCallEnd {
                state: ToolCallState::Failed,
                code: Some(ToolCode::Cancelled.word().to_owned()),
                message: None,
                result: None,
                result_bytes: None,
                connection: None,
            });
        }
    }
}

/// Returns the end of a call, as it is stored. A tool may deny, too: then it has not acted.
pub(crate) fn end_of(result: &ToolResult, connection: Option<&ConnectionId>) -> ToolCallEnd {
    let connection = connection.map(ToString::to_string);
    match result {
        Ok(value) => {
            let text = value.to_string();
            let result_bytes = Some(text.len() as u64);
            ToolCallEnd {
                state: ToolCallState::Done,
                code: None,
                message: None,
                result: Some(text),
                result_bytes,
                connection,
            }
        }
        Err(error) => ToolCallEnd {
            state: match error.outcome {
                ToolOutcome::Unknown => ToolCallState::Unknown,
                ToolOutcome::Denied => ToolCallState::Denied,
                ToolOutcome::Done | ToolOutcome::Failed => ToolCallState::Failed,
            },
            code: Some(error.code.clone()),
            message: Some(error.message[..error.message.floor_char_boundary(MAX_MESSAGE)].to_owned()),
            result: None,
            result_bytes: None,
            connection,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolError;

    #[test]
    fn an_end_has_the_outcome_of_its_error() {
        for (error, state) in [
            (ToolError::new(ToolCode::RunUnknown, "no"), ToolCallState::Denied),
            (ToolError::new(ToolCode::ToolFailed, "no"), ToolCallState::Failed),
            (ToolError::unknown("lost"), ToolCallState::Unknown),
        ] {
            assert_eq!(end_of(&Err(error), None).state, state);
        }
    }
}
