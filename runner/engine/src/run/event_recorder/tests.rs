//! Tests of the recorder's batches and bounds.

use platform_core::control::TapEvent;
use runner_docker::Capture;

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
    ContainerExit { exit_code: Some(0), killed_by: None, oom_seen: false, stdout, stderr }
}

fn print(recorder: &EventRecorder<'_>, text: &str, to: u64) {
    recorder.record_output(Piece { stream: STDOUT, text: text.to_owned(), to });
}

#[test]
fn the_middle_of_a_long_output_is_counted() {
    let (reader, _received) = mpsc::channel(1);
    let recorder = EventRecorder::new(EventCursor::default(), &reader, Stream::Progress, ByteSize(16));
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
    let recorder = EventRecorder::new(recorded, &reader, Stream::Progress, ByteSize(1 << 20));
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
        let recorder =
            EventRecorder::new(EventCursor::default(), &reader, Stream::Progress, ByteSize(4 << 20));
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
    let recorder = EventRecorder::new(EventCursor::default(), &reader, Stream::Progress, ByteSize(16));
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
    let recorder = EventRecorder::new(EventCursor::default(), &reader, Stream::Progress, ByteSize(16));
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
