//! Writes the call of a host tool as a part of a message.

use std::borrow::Cow;

use platform_core::{event::AgentEvent, host_tools::ToolCallState};
use serde_json::{Value, json};

/// Begin of the ids of parts that show calls of host tools.
const PREFIX: &str = "host-";

/// Part of a message that shows a call of a host tool.
#[derive(Debug)]
pub(super) struct HostToolPart<'e> {
    /// Id of the part.
    pub(super) id: String,
    /// Name of the tool.
    pub(super) name: &'e str,
    /// Arguments as JSON.
    pub(super) arguments: &'e str,
    call_id: &'e str,
    state: ToolCallState,
    code: Option<&'e str>,
    result_bytes: Option<u64>,
    duration_ms: Option<u64>,
}

impl<'e> HostToolPart<'e> {
    /// Returns the part that shows `event`; none if it is of no host tool.
    pub(super) fn of(event: &'e AgentEvent) -> Option<Self> {
        let AgentEvent::HostTool { id, name, state, arguments, code, result_bytes, duration_ms } = event
        else {
            return None;
        };
        Some(Self {
            id: format!("{PREFIX}{id}"),
            name,
            arguments: arguments.as_deref().unwrap_or("{}"),
            call_id: id,
            state: *state,
            code: code.as_deref(),
            result_bytes: *result_bytes,
            duration_ms: *duration_ms,
        })
    }

    /// Returns the chunk with the state of the call. Each replaces the one before.
    pub(super) fn state_chunk(&self) -> Value {
        let data = json!({ "toolCallId": self.id, "callId": self.call_id, "state": self.state });
        json!({ "type": "data-host-tool", "id": self.id, "data": data })
    }

    /// Returns the output of a call that has ended: its size, and never its content, which is the agent's.
    pub(super) fn output(&self) -> Option<Value> {
        if !self.state.has_ended() {
            return None;
        }
        let mut output = json!({ "state": self.state });
        if self.state != ToolCallState::Done {
            // Clients know a failed call by this member.
            output["error"] = self.code.unwrap_or(self.state.word()).into();
        }
        for (name, value) in [("resultBytes", self.result_bytes), ("durationMs", self.duration_ms)] {
            if let Some(value) = value {
                output[name] = value.into();
            }
        }
        Some(output)
    }
}

/// Returns the id of the part that shows a call which an agent reports under `id`. It is not that of a host tool.
pub(super) fn id_of_agent(id: &str) -> Cow<'_, str> {
    if id.starts_with(PREFIX) { format!("agent-{id}").into() } else { id.into() }
}
