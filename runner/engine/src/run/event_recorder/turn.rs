//! Records the events of a turn that a gateway reports: its text, its tool calls, and what its agent does.

use gateway_bridge::{Generation, ToolCall, ToolState, TurnEvent, TurnPhase};
use platform_core::{
    event::{ActivityKind, AgentEvent},
    id::ToolName,
    limit::events as limit,
};

use super::{
    EventRecorder, TurnRecord,
    reported::ToolText,
    turn_record::{APPROVAL, Activity, GATEWAY},
};

/// Source of the tool calls of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TurnTools {
    /// The data plane: older gateways report no tools.
    #[default]
    DataPlane,
    /// The gateway.
    Gateway,
}

impl EventRecorder<'_> {
    /// Begins the record of a turn, after the events in `record` that previous workers stored.
    pub(in crate::run) fn begin_turn(&self, record: TurnRecord, generation: Generation) {
        self.turn.replace(record);
        self.turn_tools.set(match generation {
            Generation::Three => TurnTools::DataPlane,
            Generation::Four => TurnTools::Gateway,
        });
    }

    /// Records an event of the turn.
    pub(in crate::run) fn record_turn_event(&self, event: TurnEvent) {
        match event {
            TurnEvent::Text(text) => self.record_turn_text(text),
            TurnEvent::Tool { name, state, call } => self.record_tool_use(name.as_ref(), state, call),
            TurnEvent::Status(phase) => self.record_phase(phase),
            TurnEvent::Missed { .. } => {
                self.pending.borrow_mut().push_missed(1);
                self.added.notify_one();
                self.send(AgentEvent::Missed { count: 1 });
            }
            // The journal has the usage that counts.
            TurnEvent::Usage(_) => {}
        }
    }

    /// Records the number of events of the turn that were left out.
    pub(in crate::run) fn record_turn_end(&self) {
        let excess = self.excess_tools.take();
        let mut pending = self.pending.borrow_mut();
        if excess > 0 {
            pending.push_missed(excess);
        }
        pending.push_left_out();
    }

    fn record_turn_text(&self, text: String) {
        let new = self.turn.borrow_mut().new_text(text);
        let Some(new) = new else { return };
        let resumed = self.turn.borrow().resumed();
        self.record_activity(resumed);
        self.pending.borrow_mut().push_text(self.stream, &new);
        self.added.notify_one();
        self.send(AgentEvent::TextDelta { delta: new });
    }

    fn record_phase(&self, phase: TurnPhase) {
        let turn = self.turn.borrow();
        let activity = match phase {
            TurnPhase::Started | TurnPhase::Model => Some(Activity::new(ActivityKind::Thinking, None)),
            TurnPhase::Compacting => Some(Activity::new(ActivityKind::Compacting, None)),
            TurnPhase::WaitingForApproval => Some(Activity::new(ActivityKind::Waiting, Some(APPROVAL))),
            TurnPhase::Reconnecting => Some(Activity::new(ActivityKind::Waiting, Some(GATEWAY))),
            TurnPhase::Compacted | TurnPhase::ApprovalResolved => turn.resumed(),
            TurnPhase::Reconnected => turn.resumed().filter(|_| turn.is_waiting_for(GATEWAY)),
            TurnPhase::Accepted | TurnPhase::Preparing | TurnPhase::Finishing => None,
        };
        drop(turn);
        self.record_activity(activity);
    }

    /// Records the start or the end of a tool, with its call if the gateway names it.
    fn record_tool_use(&self, name: Option<&ToolName>, state: ToolState, call: Option<ToolCall>) {
        let label = name.map(ToolName::as_str);
        let name = label.unwrap_or_default();
        self.note_tool(name);
        let activity = match state {
            ToolState::Started => Activity::new(ActivityKind::ToolUse, label),
            ToolState::Finished | ToolState::Failed => Activity::new(ActivityKind::Thinking, None),
        };
        self.record_call(name, state, call);
        self.record_activity(Some(activity));
    }

    fn record_call(&self, name: &str, state: ToolState, call: Option<ToolCall>) {
        let Some(call) = call.filter(|_| self.turn_tools.get() == TurnTools::Gateway) else { return };
        let mut pending = self.pending.borrow_mut();
        let ToolText { kept, cut_bytes } = pending.tool_text(&call.text);
        let cut_bytes = cut_bytes + call.cut_bytes as u64;
        let id = call.id;
        let event = match state {
            ToolState::Started => {
                AgentEvent::ToolCall { id, name: name.to_owned(), arguments: kept, cut_bytes }
            }
            ToolState::Finished | ToolState::Failed => {
                AgentEvent::ToolResult { id, result: kept, is_error: state == ToolState::Failed, cut_bytes }
            }
        };
        pending.push_tool_event(event.clone());
        drop(pending);
        self.added.notify_one();
        self.send(event);
    }

    /// Records an activity, unless it is the present one. Counts it if there are too many.
    fn record_activity(&self, activity: Option<Activity>) {
        let Some(activity) = activity else { return };
        let mut turn = self.turn.borrow_mut();
        if !turn.begin(&activity) {
            return;
        }
        let event = activity.event();
        let mut pending = self.pending.borrow_mut();
        if turn.activities() <= limit::ACTIVITIES {
            pending.events.push(event.clone());
        } else {
            pending.cursor.reported.left_out += 1;
        }
        drop((turn, pending));
        self.added.notify_one();
        self.send(event);
    }
}

#[cfg(test)]
mod tests {
    use platform_core::limit::ByteSize;
    use platform_runtime::settings::Stream;
    use runner_store::EventCursor;
    use tokio::sync::mpsc;

    use super::{
        super::{OutputRules, Reporter},
        *,
    };

    /// Records the events of a turn, and returns what is to be stored.
    fn recorded(generation: Generation, events: Vec<TurnEvent>) -> Vec<AgentEvent> {
        let (reader, _received) = mpsc::channel(1);
        let output =
            OutputRules { reporter: Reporter::Gateway, stream: Stream::Answer, capture_limit: ByteSize(16) };
        let recorder = EventRecorder::new(EventCursor::default(), &reader, output);
        recorder.begin_turn(TurnRecord::default(), generation);
        events.into_iter().for_each(|event| recorder.record_turn_event(event));
        recorder.record_turn_end();
        recorder.pending_batches().into_iter().flat_map(|batch| batch.events).collect()
    }

    fn tool(state: ToolState, text: &str) -> TurnEvent {
        let call = ToolCall { id: "c1".to_owned(), text: text.to_owned(), cut_bytes: 3 };
        TurnEvent::Tool { name: ToolName::parse("exec").ok(), state, call: Some(call) }
    }

    fn turn() -> Vec<TurnEvent> {
        vec![
            TurnEvent::Status(TurnPhase::Started),
            TurnEvent::Status(TurnPhase::Model),
            TurnEvent::Text("One ".to_owned()),
            TurnEvent::Text("two".to_owned()),
            tool(ToolState::Started, "{}"),
            TurnEvent::Status(TurnPhase::Reconnecting),
            TurnEvent::Status(TurnPhase::Reconnected),
            tool(ToolState::Failed, "out"),
        ]
    }

    #[test]
    fn repeated_phases_are_one_activity() {
        let text = |text: &str| text.to_owned();
        let thinking = AgentEvent::activity(ActivityKind::Thinking, None);
        let tool = AgentEvent::activity(ActivityKind::ToolUse, Some("exec"));
        let wait = AgentEvent::activity(ActivityKind::Waiting, Some(GATEWAY));
        let told = AgentEvent::TextDelta { delta: text("One two") };
        let call =
            AgentEvent::ToolCall { id: text("c1"), name: text("exec"), arguments: text("{}"), cut_bytes: 3 };
        let result =
            AgentEvent::ToolResult { id: text("c1"), result: text("out"), is_error: true, cut_bytes: 3 };
        let expected = [&thinking, &told, &call, &tool, &wait, &tool, &result, &thinking];
        assert_eq!(recorded(Generation::Four, turn()).iter().collect::<Vec<_>>(), expected);
        // The data plane reports the tools of an older gateway.
        let expected = [&thinking, &told, &tool, &wait, &tool, &thinking];
        assert_eq!(recorded(Generation::Three, turn()).iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn activities_beyond_the_limit_are_counted() {
        let phases = [TurnPhase::Compacting, TurnPhase::Model];
        let count = usize::try_from(limit::ACTIVITIES).unwrap() + 3;
        let events = phases.into_iter().cycle().take(count).map(TurnEvent::Status).collect();
        let stored = recorded(Generation::Four, events);
        assert_eq!(stored.len() as u64, limit::ACTIVITIES + 1);
        assert_eq!(stored.last(), Some(&AgentEvent::Missed { count: 3 }));
    }
}
