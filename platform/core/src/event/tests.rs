//! Tests that events are read as they are written.

use super::*;

#[test]
fn an_event_says_of_itself_what_is_written_of_it() {
    let stream = OutputStream::Stderr;
    let text = || "t".to_owned();
    let events = [
        AgentEvent::Status { phase: Phase::Queued },
        AgentEvent::activity(ActivityKind::Thinking, None),
        AgentEvent::activity(ActivityKind::ToolUse, Some("exec")),
        AgentEvent::TextDelta { delta: text() },
        AgentEvent::Progress { text: text() },
        AgentEvent::Tool { name: text() },
        AgentEvent::ToolCall { id: text(), name: text(), arguments: "{}".to_owned(), cut_bytes: 0 },
        AgentEvent::ToolResult { id: text(), result: text(), is_error: true, cut_bytes: 0 },
        AgentEvent::HostTool {
            id: text(),
            name: text(),
            state: ToolCallState::Done,
            arguments: Some("{}".to_owned()),
            code: None,
            result_bytes: Some(7),
            duration_ms: Some(1),
        },
        AgentEvent::AgentUsage { input_tokens: 1, output_tokens: 2, cached_tokens: 0 },
        AgentEvent::Commits { stage: text(), branch: text(), commit: None, pull_request: Some(text()) },
        AgentEvent::Log { stream, text: text() },
        AgentEvent::LogCut { stream, bytes: 7 },
        AgentEvent::Missed { count: 7 },
        AgentEvent::Pruned { count: 7 },
        AgentEvent::UsageReport { calls: 1, tokens: Tokens::default() },
        AgentEvent::AssistantFinal { content: text(), cut_bytes: 0 },
        AgentEvent::Done,
        AgentEvent::Error { code: RunErrorCode::Timeout, message: text() },
    ];
    for event in events {
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["type"], event.kind());
        assert!(json.get("cut_bytes").is_none(), "what was not cut is not said to be: {json}");
        assert_eq!(serde_json::from_value::<AgentEvent>(json).unwrap(), event);
    }
}

#[test]
fn names_are_those_that_are_written() {
    for phase in Phase::ALL {
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.name());
    }
    for kind in
        [ActivityKind::Thinking, ActivityKind::ToolUse, ActivityKind::Compacting, ActivityKind::Waiting]
    {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
    for code in RunErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.code());
    }
    for stream in OutputStream::ALL {
        assert_eq!(serde_json::to_value(stream).unwrap(), stream.name());
    }
}

#[test]
fn a_label_is_short_and_printable() {
    for (label, kept) in [
        (Some("exec"), Some("exec".to_owned())),
        (Some("a\u{1b}[31mb\n"), Some("a[31mb".to_owned())),
        (Some("\u{7}"), None),
        (None, None),
        (Some("ä".repeat(100).as_str()), Some("ä".repeat(events::ACTIVITY_LABEL))),
    ] {
        let event = AgentEvent::activity(ActivityKind::ToolUse, label);
        assert_eq!(event, AgentEvent::Activity { kind: ActivityKind::ToolUse, label: kept });
    }
}
