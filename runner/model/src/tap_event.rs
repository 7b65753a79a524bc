//! Converts live text of the data plane to a run's events.

use platform_core::{control::TapEvent, event::AgentEvent};
use platform_runtime::settings::Stream;

/// Converts an `event` of a tap. `stream` is what the agent's entry says of streamed text. The end of a call gives no
/// event: the run's own report sums them up.
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
