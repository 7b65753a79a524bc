//! Converts live text from the data plane's tap to a run's events.

use platform_core::{control::TapEvent, event::AgentEvent};
use platform_runtime::settings::Stream;

/// Converts an `event` of the tap. `stream` is the agent entry's setting for streamed text. Returns `None` for the end
/// of a call: the run's usage report covers all calls.
pub fn event(event: TapEvent, stream: Stream) -> Option<AgentEvent> {
    match event {
        TapEvent::Text { delta, .. } => Some(match stream {
            Stream::Answer => AgentEvent::TextDelta { delta },
            Stream::Progress => AgentEvent::Progress { text: delta },
        }),
        TapEvent::Tool { name, .. } => Some(AgentEvent::Tool { name }),
        TapEvent::Missed { count } => Some(AgentEvent::Missed { count }),
        TapEvent::Ended { .. } => None,
    }
}
