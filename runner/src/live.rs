//! What streams by at the data plane, as a run's events.

use platform_core::{control::TapEvent, event::AgentEvent};
use platform_runtime::settings::Stream;

/// The event that `event` of a tap is, of an agent whose entry says that what is streamed is `stream`. The end of a call is none:
/// the run's own report sums them up.
pub(crate) fn event(event: TapEvent, stream: Stream) -> Option<AgentEvent> {
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
