//! Converts live text from the data plane's tap to a run's events.

use platform_core::{control::TapEvent, event::AgentEvent};
use platform_runtime::settings::Stream;

/// Converts an `event` of the tap. `stream` is the agent entry's setting for streamed text. Returns `None` for the end
/// of a call: the run's usage report covers all calls.
pub fn event(event: TapEvent, stream: Stream) -> Option<AgentEvent> {
    match event {
        TapEvent::Text { delta, .. } => Some(text(delta, stream)),
        TapEvent::Tool { name, .. } => Some(AgentEvent::Tool { name }),
        TapEvent::Missed { count } => Some(AgentEvent::Missed { count }),
        TapEvent::Ended { .. } => None,
    }
}

/// Returns the event of a piece of text. `stream` is the agent entry's setting for streamed text.
pub fn text(text: String, stream: Stream) -> AgentEvent {
    match stream {
        Stream::Answer => AgentEvent::TextDelta { delta: text },
        Stream::Progress => AgentEvent::Progress { text },
    }
}
