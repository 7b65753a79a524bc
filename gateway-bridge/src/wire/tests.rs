//! Tests the codec against frames recorded from both real versions (`tests/openclaw/frames`), and checks the frames it
//! sends.
//!
//! Other tests check the sent frames against OpenClaw's own schema.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use platform_core::{
    id::{GatewayProvider, RunId},
    json::{self, Bounds, RawBuf},
};
use serde_json::{Value, json};

use super::{
    answer::{self, TurnReply},
    connect::{self, Challenge},
    frame::{self, Frame},
    hello, message, request, run, transcript,
};
use crate::{
    Attribution, BootId, Ending, OutboundHeaders, Scope, Scopes, SessionKey, Settings, Turn, TurnFailure,
    hello::Generation, outcome::Code, tests::raw_nest, turn_state::TurnState, verdict,
    wire::run::ConversationEnd,
};

fn frames() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openclaw/frames")
}

const VERSIONS: [(&str, Generation); 2] = [("2026.2.6-3", Generation::Three), ("2026.9.6", Generation::Four)];

/// Returns the received frames of a recording, and the requests that were sent.
fn story(version: &str, name: &str) -> (Vec<String>, Vec<Value>) {
    let path = frames().join(version).join(format!("{name}.jsonl"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |dir: &str| {
        lines.iter().filter(|line| line["dir"] == dir).map(|line| line["frame"].clone()).collect()
    };
    let (received, sent): (Vec<Value>, Vec<Value>) = (of("recv"), of("send"));
    (received.iter().map(Value::to_string).collect(), sent)
}

fn stories(version: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(frames().join(version))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[test]
fn every_recorded_frame_is_read() {
    for (version, _) in VERSIONS {
        assert!(stories(version).len() > 20, "{version}: the recordings are missing");
        for name in stories(version) {
            for text in story(version, &name).0 {
                let read = frame::read(&text);
                match read {
                    Ok(Frame::Event { name: event, payload }) if event == "agent" || event == "chat" => {
                        let read = run::read(&event, payload);
                        assert!(read.is_ok(), "{version} {name}: {text}");
                    }
                    Ok(Frame::Event { .. } | Frame::Response { .. }) => {}
                    other => panic!("{version} {name}: {other:?} of {text}"),
                }
            }
        }
    }
}

/// Replays a recorded turn: returns the text that the bridge reported, and the ending.
fn replayed(version: &str, generation: Generation, name: &str) -> (String, Ending) {
    let (received, sent) = story(version, name);
    let start =
        sent.iter().find(|frame| frame["method"] == "agent" || frame["method"] == "chat.send").unwrap();
    let id = start["params"]["idempotencyKey"].as_str().unwrap();
    let key = &start["params"]["sessionKey"];
    let account = platform_core::id::AccountId::parse("a").unwrap();
    let state = TurnState::new(
        RunId::parse(id).unwrap(),
        SessionKey::new("main", &account, "k").unwrap(),
        1 << 20,
        Arc::default(),
    );
    let mut last = None;
    for text in &received {
        match frame::read(text).unwrap() {
            Frame::Event { name, payload } if name == "agent" || name == "chat" => {
                let (target, signal) = run::read(&name, payload).unwrap();
                if target.run_id == id && target.session.as_deref() == key.as_str() {
                    state.observe(signal);
                }
            }
            Frame::Response { id, answer } if start["id"] == id.as_ref() => last = Some(answer),
            _ => {}
        }
    }
    let evidence = state.evidence();
    let report = last.and_then(|answer| match answer::read(&answer).unwrap() {
        TurnReply::Ended(report) => Some(*report),
        TurnReply::Accepted | TurnReply::InFlight => None,
    });
    let ending = match (report, state.conversation_end()) {
        (Some(report), _) => verdict::of_report(report, &evidence),
        (None, Some(end)) => verdict::of_conversation(&end, &evidence),
        (None, None) => panic!("{version} {name}: no end ({generation:?})"),
    };
    (state.unread_text(), ending)
}

fn text_of(ending: &Ending) -> &str {
    match ending {
        Ending::Completed { text, .. } => text,
        Ending::Failed(failure) => panic!("{failure}"),
    }
}

#[test]
fn the_streamed_pieces_are_the_final_text() {
    for (version, generation) in VERSIONS {
        for name in ["success", "words", "tool", "chat-history", "model-per-session", "wait"] {
            let (streamed, ending) = replayed(version, generation, name);
            assert_eq!(streamed.trim(), text_of(&ending).trim(), "{version} {name}");
            assert!(!streamed.is_empty(), "{version} {name}");
        }
    }
    let (_, ending) = replayed("2026.9.6", Generation::Four, "success");
    let Ending::Completed { usage, model, .. } = ending else { panic!() };
    assert!(usage.unwrap().output > 0);
    assert_eq!(model.unwrap().as_str(), "fake");
}

#[test]
fn each_recorded_failure_has_one_name() {
    let upstream = |code: &str| TurnFailure::Upstream { code: Code::new(code) };
    let table: [(&str, TurnFailure, TurnFailure); 10] = [
        ("status-401", TurnFailure::NoAnswer, upstream("auth")),
        ("status-402", TurnFailure::NoAnswer, upstream("billing")),
        ("status-403", TurnFailure::NoAnswer, upstream("auth")),
        // The newer version repeats the call until its timeout passes.
        ("status-429", TurnFailure::NoAnswer, TurnFailure::TimedOut),
        ("status-500", TurnFailure::NoAnswer, upstream("server_error")),
        ("refused", TurnFailure::NoAnswer, upstream("timeout")),
        ("empty", TurnFailure::NoAnswer, TurnFailure::NoAnswer),
        ("overflow", TurnFailure::NoAnswer, upstream("context_overflow")),
        ("timeout", TurnFailure::TimedOut, TurnFailure::TimedOut),
        ("chat-abort", TurnFailure::Aborted, TurnFailure::Aborted),
    ];
    for (name, old, new) in table {
        for ((version, generation), expected) in VERSIONS.into_iter().zip([old, new]) {
            let (_, ending) = replayed(version, generation, name);
            assert_eq!(ending, Ending::Failed(expected), "{version} {name}");
        }
    }
    // An older gateway reports a cut as an answer, and only its attempts and the journal say otherwise.
    let (_, new) = replayed("2026.9.6", Generation::Four, "cut");
    assert_eq!(new, Ending::Failed(upstream("timeout")));
}

#[test]
fn hellos_describe_their_gateway() {
    for (version, generation) in VERSIONS {
        let (received, _) = story(version, "handshake");
        let hello = received.iter().find_map(|text| match frame::read(text).unwrap() {
            Frame::Response { answer, .. } => {
                Some(hello::read(answer.payload.as_ref().map(RawBuf::as_raw), &Scopes::default(), UNIX_EPOCH))
            }
            _ => None,
        });
        let hello = hello.unwrap().unwrap().unwrap();
        assert_eq!(hello.generation, generation);
        assert_eq!(hello.tick, Duration::from_secs(30));
        let (size, boot) = match generation {
            Generation::Three => (512 << 10, false),
            Generation::Four => (25 << 20, true),
        };
        assert_eq!((hello.max_payload, hello.boot != BootId::default()), (size, boot));
        assert_eq!(hello.takes_traces(), boot);
        assert!(hello.has("sessions.list"));
    }
}

#[test]
fn transcripts_name_the_turn_of_an_answer() {
    for (version, generation) in VERSIONS {
        let (received, sent) = story(version, "chat-history");
        let request = sent.iter().find(|frame| frame["method"] == "chat.history").unwrap();
        let turn = sent.iter().find(|frame| frame["method"] == "chat.send").unwrap();
        let turn = RunId::parse(turn["params"]["idempotencyKey"].as_str().unwrap()).unwrap();
        let payload = received.iter().find_map(|text| match frame::read(text).unwrap() {
            Frame::Response { id, answer } if request["id"] == id.as_ref() => answer.payload,
            _ => None,
        });
        let entries = transcript::read(&payload.unwrap()).unwrap();
        let texts: Vec<_> = entries.iter().map(|entry| entry.message.text.as_str()).collect();
        assert_eq!(texts, ["{{say Remember this.}}", "Remember this."], "{version}");
        assert_eq!(text_of(&transcript::last_answer(entries.iter()).unwrap()), "Remember this.");
        let named = transcript::answer_of(&entries, &turn).is_some();
        assert_eq!(named, generation == Generation::Four, "{version}");
    }
}

#[test]
fn unknown_frames_are_valid_and_broken_ones_not() {
    for bad in ["", "{", "[]", "null", "\"event\"", "{}", r#"{"type":"res","id":"1"}"#, r#"{"type":"event"}"#]
    {
        assert!(frame::read(bad).is_err(), "{bad}");
    }
    for new in [
        r#"{"type":"bye","more":1}"#,
        r#"{"type":"event","event":"new.event","payload":7,"more":{}}"#,
        r#"{"type":"event","event":"agent","payload":{"runId":"r","stream":"new","data":7},"new":1}"#,
        r#"{"type":"event","event":"agent","payload":{"runId":"r","stream":"lifecycle","data":{"phase":"new"}}}"#,
        r#"{"type":"event","event":"chat","payload":{"runId":"r","state":"new"}}"#,
    ] {
        match frame::read(new).unwrap() {
            Frame::Event { name, payload } if name == "agent" || name == "chat" => {
                let (target, signal) = run::read(&name, payload).unwrap();
                assert_eq!((target.session, signal), (None, run::Signal::Nothing), "{new}");
            }
            Frame::Event { .. } | Frame::Other => {}
            Frame::Response { .. } => panic!("{new}"),
        }
    }
    let silent = raw(r#"{"runId":"r","state":"final"}"#);
    let old = run::read("chat", Some(silent.as_raw())).unwrap();
    assert_eq!(old.1, run::Signal::Ended(ConversationEnd::Final(None)));
}

#[test]
fn a_frame_that_nests_harms_no_reader() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let frames = |inner: &str| {
        [
            format!(r#"{{"type":"event","event":"presence","payload":{inner}}}"#),
            format!(
                r#"{{"type":"event","event":"chat","payload":{{"runId":"r","state":"final","message":{{"content":{inner}}}}}}}"#
            ),
            format!(
                r#"{{"type":"event","event":"agent","payload":{{"runId":"r","stream":"tool","data":{{"phase":"result","result":{inner}}}}}}}"#
            ),
            format!(r#"{{"type":"res","id":"1","ok":true,"payload":{inner}}}"#),
            format!(r#"{{"type":"res","id":"1","ok":false,"error":{{"details":{inner}}}}}"#),
        ]
    };
    for frame in frames(&nested(100_000)) {
        assert!(frame::read(&frame).is_err(), "{}", &frame[..80]);
    }
    // What a model gave a tool may be deep, or have two meanings, and is handed on as text.
    for frame in [frames(&nested(9_000)), frames(&raw_nest(15))].concat() {
        match frame::read(&frame).unwrap() {
            Frame::Event { name, payload } if name == "agent" => {
                let (_, signal) = run::read(&name, payload).unwrap();
                let run::Signal::Tool { state: crate::ToolState::Finished, .. } = signal else {
                    panic!("{signal:?}")
                };
            }
            Frame::Event { name, payload } => assert!(run::read(&name, payload).is_err(), "{name}"),
            Frame::Response { answer, .. } => {
                assert_eq!(answer::read(&answer).is_err(), answer.error.is_none())
            }
            Frame::Other => panic!("{}", &frame[..80]),
        }
    }
}

#[test]
fn a_message_with_other_parts_has_a_text() {
    let content = |json: &str| message::text_of(raw(json).as_raw()).ok();
    for (json, text) in [
        (r#""plain""#, Some("plain")),
        ("[]", Some("")),
        (
            r#"[{"type":"text","text":"a"},{"type":"toolCall","args":{"x":[[[]]]}},{"type":"text","text":"b"},{}]"#,
            Some("ab"),
        ),
        ("[1]", None),
        ("{}", None),
        ("7", None),
    ] {
        assert_eq!(content(json).as_deref(), text, "{json}");
    }
}

fn raw(json: &str) -> RawBuf {
    json::from_str(json, Bounds::STORED).unwrap()
}

fn turn(attribution: Attribution) -> Turn {
    let account = platform_core::id::AccountId::parse("Acct-1").unwrap();
    Turn {
        run_id: RunId::parse("run-1").unwrap(),
        session: SessionKey::new("main", &account, "state-1").unwrap(),
        message: "Say hello to /etc".into(),
        model: Some(platform_core::id::ModelName::parse("fake").unwrap()),
        directory: Some("/workspace/sessions/1".into()),
        attribution,
        deadline: tokio::time::Instant::now(),
    }
}

fn call(method: &str, params: &impl serde::Serialize) -> String {
    request::encode(7, method, params, None).unwrap()
}

/// Returns a frame of each kind that is sent, by name.
fn sent() -> Vec<(&'static str, String)> {
    let headers = OutboundHeaders::new([("x-run-token", "run-1|0|9.c2ln")]).unwrap();
    let provider = GatewayProvider::parse("sluicegate-1").unwrap();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
    let traced = turn(Attribution::Trace(trace));
    let slot = turn(Attribution::Slot { provider: provider.clone() });
    let (extended, plugged) =
        (turn(Attribution::Headers(headers.clone())), turn(Attribution::Plugin(headers.clone())));
    let left = Duration::from_secs(60);
    let start = |turn: &Turn, generation| turn.start(7, generation, Some(&provider), left).unwrap().text;
    let patch = |turn: &Turn, generation| call("sessions.patch", &turn.patch(generation, None).unwrap());
    vec![
        ("connect", connect_frame()),
        ("agent by trace", start(&traced, Generation::Four)),
        ("agent by slot", start(&slot, Generation::Four)),
        ("agent by headers (an extension)", start(&extended, Generation::Four)),
        ("chat.send", start(&slot, Generation::Three)),
        ("chat.send again", call("chat.send", &slot.repeated_chat())),
        ("sessions.create", call("sessions.create", &slot.session_with_directory().unwrap())),
        ("sessions.patch of the model", patch(&slot, Generation::Three)),
        ("sessions.patch of headers (an extension)", patch(&extended, Generation::Four)),
        ("sessions.patch of nothing", patch(&plugged, Generation::Four)),
        (
            "sluicegate.headers.set (our plugin)",
            call(request::HEADERS_SET, &request::SetHeaders { session_id: "s", headers: &headers }),
        ),
        (
            "sluicegate.headers.clear (our plugin)",
            call(request::HEADERS_CLEAR, &request::ClearHeaders { session_id: "s" }),
        ),
        ("chat.abort", call("chat.abort", &request::Abort::new(&slot.session, &slot.run_id))),
        ("agent.wait", call("agent.wait", &request::Wait::new(&slot.run_id, left))),
        ("chat.history", call("chat.history", &request::History::new(&slot.session))),
        (
            "exec.approval.resolve",
            call("exec.approval.resolve", &request::Resolve { id: "a", decision: "allow-once" }),
        ),
    ]
}

/// Returns the first frame of a device, with the signature left out: it is another one for every key.
fn connect_frame() -> String {
    let token = platform_core::secret::Secret::new("t".into());
    let mut settings = Settings::new("ws://gateway:1".parse().unwrap(), Some(token));
    settings.scopes = Scopes::of([Scope::Admin, Scope::Read, Scope::Write, Scope::Approvals, Scope::Pairing]);
    let dir = tempfile::tempdir().unwrap();
    settings.device = Some(crate::DeviceKey::open(&dir.path().join("key")).unwrap());
    let challenge = Challenge::read(Some(raw(r#"{"nonce":"n","ts":1}"#).as_raw())).unwrap();
    let text = call("connect", &connect::params(&settings, &challenge));
    let mut frame: Value = serde_json::from_str(&text).unwrap();
    for name in ["id", "publicKey", "signature"] {
        assert!(frame["params"]["device"][name].as_str().unwrap().len() > 40);
        frame["params"]["device"][name] = json!(format!("<{name}>"));
    }
    frame.to_string()
}

#[test]
fn sent_frames_match_the_checked_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sent.jsonl");
    let lines = sent().into_iter().map(|(name, text)| {
        let frame: Value = serde_json::from_str(&text).unwrap();
        json!({ "name": name, "frame": frame }).to_string() + "\n"
    });
    let made: String = lines.collect();
    if !path.exists() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &made).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert_eq!(
        made,
        golden,
        "{} is not what is sent: delete it, run this again, check it anew",
        path.display()
    );
}

#[test]
fn on_protocol_3_no_message_is_a_command() {
    let sent = |message: &str| {
        let slot = Attribution::Slot { provider: GatewayProvider::parse("p").unwrap() };
        let turn = Turn { message: message.into(), ..turn(slot) };
        let start = turn.start(1, Generation::Three, None, Duration::from_secs(1)).unwrap();
        let frame: Value = serde_json::from_str(&start.text).unwrap();
        frame["params"]["message"].as_str().unwrap().to_owned()
    };
    for message in
        ["/config set a b", "  /restart", "[x] /new", "User: /elevated on", "!ls", "stop", " Wait \n"]
    {
        assert_eq!(sent(message), format!("Request follows.\n\n{message}"));
    }
    assert_eq!(sent("please stop here"), "please stop here");
}
