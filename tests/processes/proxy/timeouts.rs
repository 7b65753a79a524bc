//! Tests timeouts: each by itself ends what waits for too long, says which it was, and gives everything back. None of
//! them ends what is alive.

use std::time::Duration;

use harness::{
    Run, World,
    agent::{Answering, Wire, body_for, chat_body},
    events::{events, spoken},
    eventually,
    eventually::PATIENCE,
    grant, pace,
    raw::{Raw, read_until},
};
use platform_core::{
    grant::{CallLimits, CallTimes, RunGrant},
    limit::{ByteSize, Millis},
    record::{ExchangeRecord, Outcome, Timeout, Tokens},
    refusal::Refusal,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// A limit that passes at once, and one that what is alive keeps well within.
const SHORT: Millis = Millis(200);
const AMPLE: Millis = Millis(2000);
/// Longer than any ample limit as a whole, and never long silent.
const ALIVE: &str = "fake-words15-gap200ms";

pub(crate) fn timed(run: &str, times: CallTimes) -> RunGrant {
    RunGrant { limits: CallLimits { times, ..CallLimits::default() }, ..grant(run, "acct-1") }
}

/// Asserts that nothing is held any more for any call, and returns the last record of `count`.
pub(crate) async fn released(world: &World, run: &Run, count: usize) -> ExchangeRecord {
    let record = world.records(count).await.pop().unwrap().record;
    let view = || async { world.control.run(&run.grant.run_id).await.unwrap() };
    let view = eventually("no call is in flight", view, |view| view.in_flight == 0).await;
    assert!(view.limits.iter().all(|limit| limit.reserved == 0), "{:?}", view.limits);
    let metrics = world.control.send(http::Method::GET, "/v1/metrics", String::new()).await.text();
    assert!(metrics.contains("\nsluicegate_body_memory_bytes 0\n"), "{metrics}");
    assert!(metrics.contains("\nsluicegate_reserved_requests 0\n"), "{metrics}");
    record
}

fn assert_late(record: &ExchangeRecord, timeout: Timeout, refusal: Option<Refusal>) {
    assert_eq!(
        (record.outcome, record.timeout, record.refusal),
        (Outcome::TimedOut, Some(timeout), refusal),
        "{record:?}"
    );
}

#[tokio::test]
async fn an_answer_that_does_not_begin_times_out() {
    let world = World::start().await;
    let table = [
        (CallTimes { first_byte_ms: SHORT, ..CallTimes::default() }, Timeout::FirstByte),
        (CallTimes { call_ms: SHORT, ..CallTimes::default() }, Timeout::Call),
    ];
    let mut count = 0;
    for (times, timeout) in table {
        let run = world.run_with(timed(timeout.word().replace('_', "-").as_str(), times)).await;
        for path in [CHAT, MESSAGES] {
            count += 1;
            let answer = run.agent.post(path, &body_for(path, "fake-hang", Answering::Streamed)).await;
            let error = answer.json()["error"].clone();
            assert_eq!((answer.status.as_u16(), &error["code"]), (504, &"upstream_timeout".into()));
            let message = error["message"].as_str().unwrap();
            let expected = format!("200ms, the limit {} of this run", timeout.word());
            assert!(message.ends_with(&expected), "{message}");
            assert_late(&released(&world, &run, count).await, timeout, Some(Refusal::UpstreamTimeout));
        }
    }
    // Control: one that begins in time, and then goes on for longer than that.
    let times = CallTimes { first_byte_ms: AMPLE, ..CallTimes::default() };
    let run = world.run_with(timed("alive", times)).await;
    assert_eq!(spoken(&run.agent.stream(ALIVE).await.whole().await.unwrap().text()).len(), 15);
    assert_eq!(released(&world, &run, count + 1).await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn a_silent_or_endless_stream_ends_with_an_event() {
    let world = World::start().await;
    let table = [
        ("fake-stall3", CallTimes { between_bytes_ms: SHORT, ..CallTimes::default() }, Timeout::BetweenBytes),
        (ALIVE, CallTimes { call_ms: SHORT, ..CallTimes::default() }, Timeout::Call),
    ];
    let mut count = 0;
    for (model, times, timeout) in table {
        let run = world.run_with(timed(timeout.word().replace('_', "-").as_str(), times)).await;
        for path in [CHAT, MESSAGES] {
            count += 1;
            let body = body_for(path, model, Answering::Streamed).to_string();
            let stream = run.agent.send(http::Method::POST, path, body.into()).await.unwrap();
            let (text, ended) = stream.until_break().await;
            assert!(ended.is_err(), "never a clean end: {text}");
            let last = events(&text).pop().unwrap();
            let data = last.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            let error: Value = serde_json::from_str::<Value>(data).unwrap()["error"].clone();
            assert_eq!(error["code"], "upstream_timeout", "{last}");
            let expected = format!("200ms, the limit {} of this run", timeout.word());
            assert!(error["message"].as_str().unwrap().ends_with(&expected), "{last}");
            let record = released(&world, &run, count).await;
            assert_late(&record, timeout, None);
            assert_eq!(record.status, 200);
            let ending = world.upstream.ledger().wait_for_ending(count as u64, PATIENCE).await;
            assert!(
                matches!(ending.unwrap().ending, bench::upstream::Ending::ClientGone { .. }),
                "cancelled"
            );
        }
    }
    // Control: together it is silent for longer, but never at once.
    let times = CallTimes { between_bytes_ms: AMPLE, ..CallTimes::default() };
    let run = world.run_with(timed("alive", times)).await;
    assert_eq!(spoken(&run.agent.stream(ALIVE).await.whole().await.unwrap().text()).len(), 15);
    assert_eq!(released(&world, &run, count + 1).await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn a_silent_document_is_never_complete() {
    let world = World::start().await;
    let times = CallTimes { between_bytes_ms: SHORT, ..CallTimes::default() };
    let run = world.run_with(timed("r1", times)).await;
    let body = chat_body("fake-stall1", Answering::Whole).to_string();
    let (text, ended) =
        run.agent.send(http::Method::POST, CHAT, body.into()).await.unwrap().until_break().await;
    assert!(ended.is_err() && !text.contains("upstream_timeout"), "{text}");
    assert_late(&released(&world, &run, 1).await, Timeout::BetweenBytes, None);

    let silent = harness::KeepOpenUpstream::answering(
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 100\r\n\r\n{\"error\":",
    )
    .await;
    let upstream = bench::upstream::ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &silent.base_url(), "").await;
    let run = world.run_with(timed("r1", times)).await;
    assert_eq!(run.agent.chat("fake").await.status, 500);
    let record = released(&world, &run, 1).await;
    assert_late(&record, Timeout::BetweenBytes, None);
}

/// Begins a call with its body still to come, `length` bytes of it.
async fn begin_body(run: &Run, length: usize) -> Box<dyn Wire> {
    let head = Raw::request("POST", CHAT).header("content-length", &length.to_string());
    head.begin(&run.agent).await
}

/// Returns all that comes back until the connection ends.
async fn rest(mut wire: Box<dyn Wire>) -> String {
    let mut text = Vec::new();
    // A reset is an end, too.
    wire.read_to_end(&mut text).await.ok();
    String::from_utf8_lossy(&text).into_owned()
}

/// A body that takes long at a sufficient rate passes.
#[tokio::test]
async fn only_a_slow_body_is_refused() {
    let world = World::start().await;
    let body = chat_body("fake", Answering::Whole).to_string();
    let times = CallTimes { body_ms: SHORT, body_rate: ByteSize::kib(1), ..CallTimes::default() };
    let run = world.run_with(timed("stalls", times)).await;
    let mut wire = begin_body(&run, body.len()).await;
    wire.write_all(&body.as_bytes()[..10]).await.unwrap();
    let text = rest(wire).await;
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("\"code\":\"body_too_slow\""), "{text}");
    assert!(text.contains("200ms, the limit body of this run") && text.contains("retry-after: 1"), "{text}");
    let record = released(&world, &run, 1).await;
    assert_late(&record, Timeout::Body, Some(Refusal::BodyTooSlow));
    assert_eq!((record.status, record.request_bytes, record.tokens.input), (408, 10, 0));

    // One byte now and then is as slow.
    let mut wire = begin_body(&run, body.len()).await;
    let mut sent = 0;
    while sent < body.len() && wire.write_all(&body.as_bytes()[sent..=sent]).await.is_ok() {
        sent += 1;
        pace(Duration::from_millis(20)).await;
    }
    assert!(sent < body.len(), "it was cut in the middle");
    assert_late(&released(&world, &run, 2).await, Timeout::Body, Some(Refusal::BodyTooSlow));

    // As long as it comes fast enough, it may take as long as the call.
    let times = CallTimes { body_ms: AMPLE, body_rate: ByteSize(100), ..CallTimes::default() };
    for (name, times, late) in [
        ("long", times, None),
        (
            "too-long",
            CallTimes { call_ms: AMPLE, body_ms: Millis::seconds(60), ..times },
            Some(Timeout::Call),
        ),
    ] {
        let run = world.run_with(timed(name, times)).await;
        let text = upload_slowly(&run).await;
        let count = world.journal().await.len();
        let record = released(&world, &run, count.max(3)).await;
        match late {
            None => assert_eq!((&text[..13], record.outcome), ("HTTP/1.1 200 ", Outcome::Complete)),
            Some(timeout) => {
                assert!(text.contains("2s, the limit call of this run"), "{text}");
                assert_late(&record, timeout, Some(Refusal::BodyTooSlow));
            }
        }
    }
}

/// Sends a good body over three seconds, and returns what comes back.
async fn upload_slowly(run: &Run) -> String {
    let mut body = chat_body("fake", Answering::Whole);
    body["messages"][0]["content"] = "x".repeat(6000).into();
    let body = body.to_string();
    let mut wire = begin_body(run, body.len()).await;
    for piece in body.as_bytes().chunks(body.len().div_ceil(15)) {
        if wire.write_all(piece).await.is_err() {
            break;
        }
        pace(Duration::from_millis(200)).await;
    }
    let mut seen = vec![0; 64 << 10];
    let length = wire.read(&mut seen).await.unwrap();
    String::from_utf8_lossy(&seen[..length]).into_owned()
}

#[tokio::test]
async fn connect_and_answer_timeouts_are_told_apart() {
    // No process accepts, and the queue is full: new connections wait.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let deaf = socket.listen(0).unwrap();
    let address = deaf.local_addr().unwrap();
    let knocking: Vec<_> = (0..4).map(|_| tokio::net::TcpStream::connect(address)).collect();
    let filled = tokio::time::timeout(SHORT.duration(), futures_util::future::join_all(knocking));
    let upstream = bench::upstream::ScriptedUpstream::start().await.unwrap();
    let mut world = World::in_front_of(upstream, &format!("http://{address}"), "").await;
    assert!(world.stop_proxy().await);
    world.reconfigure("default_model = 'fake'", "default_model = 'fake'\nconnect_timeout = '1s'");
    world.start_proxy().await;
    assert!(filled.await.is_err(), "its queue is full");
    let run = world.run("r1", "acct-1").await;
    // The clients that filled it have left, but no process has taken them out of the queue.
    let answer = run.agent.chat("fake").await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status.as_u16(), &error["code"]), (503, &"upstream_unreachable".into()), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("1s, the gateway's setting upstream.connect_timeout"), "{message}");
    assert_eq!(answer.headers["retry-after"], "1", "nothing was sent");
    let record = released(&world, &run, 1).await;
    assert_late(&record, Timeout::Connect, Some(Refusal::UpstreamUnreachable));
    assert_eq!(record.tokens.input, 0);
    // Nor does it cost a client that leaves before there is a connection.
    let in_flight = || async { world.control.health().await.unwrap().in_flight };
    tokio::select! {
        answer = run.agent.chat("fake") => panic!("it waits: {answer:?}"),
        _ = eventually("it waits", in_flight, |calls| *calls == 1) => {}
    }
    let record = released(&world, &run, 2).await;
    assert_eq!((record.outcome, record.tokens), (Outcome::ClientGone, Tokens::default()));
}

/// A client that pauses is not.
#[tokio::test]
async fn a_client_that_takes_nothing_is_cut() {
    let world = World::start().await;
    let times = CallTimes { client_ms: SHORT, ..CallTimes::default() };
    let run = world.run_with(timed("never", times)).await;
    let body = chat_body("fake-big4m", Answering::Whole);
    let mut wire = Raw::post(CHAT, &body).begin(&run.agent).await;
    read_until(&mut wire, "HTTP/1.1 200 ").await;
    let record = released(&world, &run, 1).await;
    assert_late(&record, Timeout::Client, None);
    assert!(record.response_bytes < 4 << 20, "{record:?}");
    assert!(!rest(wire).await.ends_with('}'), "what is left of it is not a whole document");

    let times = CallTimes { client_ms: AMPLE, ..CallTimes::default() };
    let run = world.run_with(timed("pauses", times)).await;
    let mut wire = Raw::post(CHAT, &body).begin(&run.agent).await;
    let mut left = 4 << 20;
    let mut piece = vec![0; 300 << 10];
    while left > 0 {
        let length = wire.read_exact(&mut piece[..left.min(300 << 10)]).await.unwrap();
        left -= length;
        pace(Duration::from_millis(200)).await;
    }
    assert_eq!(released(&world, &run, 2).await.outcome, Outcome::Complete);
}
