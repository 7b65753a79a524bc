//! Tests of the recorder's batches and bounds.

use platform_core::control::TapEvent;
use runner_docker::{Capture, OutputState};

use super::*;

const STDOUT: OutputStream = OutputStream::Stdout;

fn log(text: &str) -> AgentEvent {
    AgentEvent::Log { stream: STDOUT, text: text.to_owned() }
}

fn ended(stdout: &[u8], kept: u64) -> ContainerExit {
    let captured = |bytes| {
        let mut capture = Capture::new(ByteSize(kept));
        capture.push(bytes);
        capture.finish()
    };
    let (stdout, stderr) = (captured(stdout), captured(b""));
    ContainerExit {
        exit_code: Some(0),
        killed_by: None,
        oom_seen: false,
        output: OutputState::Whole,
        stdout,
        stderr,
    }
}

fn print(recorder: &EventRecorder<'_>, text: &str, to: u64) {
    let line_end = text.rfind('\n').map(|at| to - (text.len() - at - 1) as u64);
    recorder.record_output(Piece { stream: STDOUT, text: text.to_owned(), to, line_end });
}

fn rules(capture_limit: u64) -> OutputRules {
    OutputRules {
        reporter: Reporter::DataPlane,
        stream: Stream::Progress,
        capture_limit: ByteSize(capture_limit),
    }
}

#[test]
fn the_middle_of_a_long_output_is_counted() {
    let (reader, _received) = mpsc::channel(1);
    let recorder = EventRecorder::new(EventCursor::default(), &reader, rules(16));
    print(&recorder, "01234", 5);
    print(&recorder, "56789", 10);
    print(&recorder, "left out", 18);
    let first = recorder.pending.borrow_mut().next_batch().unwrap();
    assert_eq!((first.number, &first.events), (1, &vec![log("0123456789")]));
    assert_eq!((first.cursor.stdout.bytes, first.cursor.stdout.events), (10, 1));
    recorder.record_output_end(&ended(b"0123456789left out, and the end", 16));
    let pending = recorder.pending_batches();
    assert_eq!(pending[0], *first, "it is not known to be stored");
    let cut = AgentEvent::LogCut { stream: STDOUT, bytes: 13 };
    assert_eq!((pending[1].number, &pending[1].events), (2, &vec![cut, log(" the end")]));
    assert_eq!(recorder.pending_batches(), []);
}

#[test]
fn a_new_worker_records_after_the_old_position() {
    let (reader, _received) = mpsc::channel(1);
    let mut recorded = EventCursor::default();
    recorded.stdout.bytes = 4;
    let recorder = EventRecorder::new(recorded, &reader, rules(1 << 20));
    print(&recorder, "efgh", 8);
    recorder.record_output_end(&ended(b"abcdefghij", 1 << 20));
    assert_eq!(recorder.pending_batches()[0].events, [log("efghij")]);
}

#[test]
fn the_bound_applies_to_the_escaped_text() {
    const MOST: usize = 256 << 10;
    const PIECES: u64 = 400;
    for letter in ["\u{1}", "\"", "x", "\u{fffd}"] {
        let (reader, _received) = mpsc::channel(1);
        let recorder = EventRecorder::new(EventCursor::default(), &reader, rules(4 << 20));
        let piece = letter.repeat(4096);
        let printed = piece.repeat(usize::try_from(PIECES).unwrap());
        (1..=PIECES).for_each(|n| print(&recorder, &piece, n * piece.len() as u64));
        recorder.record_output_end(&ended(printed.as_bytes(), 4 << 20));
        let events = recorder.pending_batches().into_iter().flat_map(|batch| batch.events);
        let (mut kept, mut bytes) = (0, 0);
        for event in events {
            let json = serde_json::to_string(&event).unwrap().len();
            assert!(json < 64 << 10, "{letter:?}: an event of {json} bytes");
            kept += json;
            bytes += match event {
                AgentEvent::Log { text, .. } => text.len(),
                AgentEvent::LogCut { bytes, .. } => usize::try_from(bytes).unwrap(),
                other => panic!("{other:?}"),
            };
        }
        assert_eq!(bytes, printed.len(), "{letter:?}: what is not kept is counted");
        assert!((2 * MOST - 8..2 * MOST + (40 << 10)).contains(&kept), "{letter:?}: {kept} bytes are kept");
    }
}

#[test]
fn a_slow_reader_gets_the_count_of_missed_events() {
    let (reader, mut received) = mpsc::channel(1);
    let recorder = EventRecorder::new(EventCursor::default(), &reader, rules(16));
    for phase in [Phase::Preparing, Phase::Starting, Phase::Running] {
        recorder.send_phase(phase);
    }
    assert_eq!(received.try_recv().unwrap(), AgentEvent::Status { phase: Phase::Preparing });
    recorder.send_phase(Phase::Settling);
    assert_eq!(received.try_recv().unwrap(), AgentEvent::Missed { count: 2 });
    recorder.send_phase(Phase::Queued);
    assert_eq!(received.try_recv().unwrap(), AgentEvent::Missed { count: 1 });
}

#[test]
fn tools_beyond_the_limit_are_counted() {
    let (reader, _received) = mpsc::channel(1);
    let recorder = EventRecorder::new(EventCursor::default(), &reader, rules(16));
    let call = "01900000-0000-7000-8000-000000000000".parse().unwrap();
    for n in 1..=limit::TOOLS + 3 {
        recorder.record_tap_line(TapLine { n, event: TapEvent::Tool { call, name: "ls".to_owned() } });
    }
    recorder.record_output_end(&ended(b"", 16));
    let batch = recorder.pending_batches().remove(0);
    assert_eq!(batch.events.len() as u64, limit::TOOLS + 1);
    assert_eq!(batch.events.last(), Some(&AgentEvent::Missed { count: 3 }));
    assert_eq!(batch.cursor.tap, limit::TOOLS + 3);
}

/// Settings of an agent that reports its events.
fn reports(stream: Stream) -> OutputRules {
    OutputRules { reporter: Reporter::Agent, stream, ..rules(1 << 20) }
}

fn tool_call(n: u64, arguments: &str) -> String {
    format!("{{\"type\":\"tool_call\",\"id\":\"c{n}\",\"name\":\"bash\",\"arguments\":{arguments}}}\n")
}

const REPORTED: &str = "starting up\n\
    {\"type\":\"text\",\"text\":\"I \"}\n{\"type\":\"text\",\"text\":\"look €\"}\n\
    {\"type\":\"tool_call\",\"id\":\"c1\",\"name\":\"bash\",\"arguments\":{\"cmd\":\"ls\"}}\n\n\
    {\"type\":\"tool_result\",\"id\":\"c1\",\"result\":\"a\",\"is_error\":true}\n\
    {\"type\":\"usage\",\"input_tokens\":5,\"output_tokens\":2}\n\
    {\"type\":\"result\",\"text\":\"done\"}\nbye";

fn reported() -> Vec<AgentEvent> {
    let text = |text: &str| text.to_owned();
    vec![
        log("starting up\n"),
        AgentEvent::TextDelta { delta: text("I look €") },
        AgentEvent::ToolCall {
            id: text("c1"),
            name: text("bash"),
            arguments: text(r#"{"cmd":"ls"}"#),
            cut_bytes: 0,
        },
        AgentEvent::ToolResult { id: text("c1"), result: text("a"), is_error: true, cut_bytes: 0 },
        AgentEvent::AgentUsage { input_tokens: 5, output_tokens: 2, cached_tokens: 0 },
        log("bye\n"),
    ]
}

#[test]
fn an_agents_lines_become_its_events() {
    let (reader, mut received) = mpsc::channel(10);
    let recorder = EventRecorder::new(EventCursor::default(), &reader, reports(Stream::Answer));
    let call = "01900000-0000-7000-8000-000000000000".parse().unwrap();
    recorder.record_tap_line(TapLine { n: 1, event: TapEvent::Tool { call, name: "bash".to_owned() } });
    print(&recorder, REPORTED, REPORTED.len() as u64);
    recorder.record_output_end(&ended(REPORTED.as_bytes(), 1 << 20));
    let batch = recorder.pending_batches().remove(0);
    assert_eq!(batch.events, reported(), "and the tap's tool call is not repeated");
    assert_eq!(batch.cursor.tap, 1);
    assert_eq!(received.try_recv().unwrap(), log("starting up\n"));
    assert_eq!(received.try_recv().unwrap(), AgentEvent::TextDelta { delta: "I ".to_owned() });
}

/// Wherever the first worker stops, the second one continues after the last whole line that was stored.
#[test]
fn a_takeover_repeats_and_loses_no_event() {
    for cut in (0..=REPORTED.len()).filter(|cut| REPORTED.is_char_boundary(*cut)) {
        let (reader, _received) = mpsc::channel(1);
        let first = EventRecorder::new(EventCursor::default(), &reader, reports(Stream::Answer));
        print(&first, &REPORTED[..cut], cut as u64);
        let stored = first.pending_batches();
        let position = stored.last().map_or_else(EventCursor::default, |batch| batch.cursor);
        let second = EventRecorder::new(position, &reader, reports(Stream::Answer));
        let seen = usize::try_from(position.stdout.bytes).unwrap();
        print(&second, &REPORTED[seen..], REPORTED.len() as u64);
        second.record_output_end(&ended(REPORTED.as_bytes(), 1 << 20));
        let batches = stored.into_iter().chain(second.pending_batches());
        let mut events: Vec<_> = batches.flat_map(|batch| batch.events).collect();
        join_texts(&mut events);
        assert_eq!(events, reported(), "cut at {cut}");
    }
}

/// Joins texts of two batches, which are two events.
fn join_texts(events: &mut Vec<AgentEvent>) {
    events.dedup_by(|next, text| match (next, text) {
        (AgentEvent::TextDelta { delta: next }, AgentEvent::TextDelta { delta: text }) => {
            text.push_str(next);
            true
        }
        _ => false,
    });
}

#[test]
fn an_agents_events_are_bounded_and_counted() {
    let (reader, _received) = mpsc::channel(1);
    let recorder = EventRecorder::new(EventCursor::default(), &reader, reports(Stream::Progress));
    let arguments = format!("\"{}\"", "x".repeat(20 << 10));
    let long_text = format!("{{\"type\":\"text\",\"text\":\"{}\"}}\n", "t".repeat(300 << 10));
    let endless = "e".repeat((1 << 20) + 7) + "\n";
    let calls = (0..limit::AGENT_EVENTS + 5).map(|n| tool_call(n, &arguments));
    let usage = "{\"type\":\"usage\",\"input_tokens\":1}\n".to_owned();
    for line in calls.chain([long_text, endless, usage]) {
        print(&recorder, &line, line.len() as u64);
    }
    recorder.record_output_end(&ended(b"", 1 << 20));
    let events = recorder.pending_batches().remove(0).events;
    let json: usize = events.iter().map(|event| serde_json::to_string(event).unwrap().len()).sum();
    assert!(json < 2 << 20, "{json} bytes are kept");
    let count = |kind| events.iter().filter(|event| event.kind() == kind).count() as u64;
    assert_eq!((count("tool_call"), count("progress")), (limit::AGENT_EVENTS, 32));
    assert!(
        matches!(&events[0], AgentEvent::ToolCall { arguments, cut_bytes: 4099, .. } if arguments.len() == (16 << 10) - 1)
    );
    assert!(
        matches!(&events[100], AgentEvent::ToolCall { arguments, cut_bytes: 20482, .. } if arguments.is_empty())
    );
    assert_eq!(count("agent_usage"), 1, "an agent prints its usage last");
    let left_out = &events[events.len() - 2..];
    let bytes = (1 << 20) + 8 - (256 << 10);
    assert_eq!(left_out, [AgentEvent::LogCut { stream: STDOUT, bytes }, AgentEvent::Missed { count: 5 + 6 }]);
}
