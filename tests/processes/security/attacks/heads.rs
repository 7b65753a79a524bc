//! Attacks by connections that send no request. Some send heads that do not end, are too large or no HTTP. Others send
//! bytes behind a call that is in flight. The proxy counts all memory of them, and every refusal.

use std::time::Duration;

use harness::{
    Agent, Run, World,
    agent::{Answering, Wire, chat_body},
    eventually,
    eventually::PATIENCE,
    grant,
    heads::{flood, half_a_head, head_bytes},
    pace,
    raw::{Raw, read_until},
    shared::{register_shared, share, token},
};
use platform_core::{
    record::{Identity, Outcome},
    refusal::Refusal,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{CHAT, status, told};

const MIB: u64 = 1 << 20;

/// Returns heads that are refused before they are a request, and the reason.
pub(super) fn unread() -> Vec<(&'static str, Vec<u8>, Refusal)> {
    let get = |line: &str| format!("GET /v1/models HTTP/1.1\r\nhost: a\r\n{line}").into_bytes();
    vec![
        ("a head without end", half_a_head(400 << 10), Refusal::HeadTooLarge),
        ("a head of 64 KiB and one byte", half_a_head((64 << 10) + 1), Refusal::HeadTooLarge),
        (
            "a whole head that is too large",
            get(&format!("x: {}\r\n\r\n", "y".repeat(65 << 10))),
            Refusal::HeadTooLarge,
        ),
        ("many small headers", get(&format!("{}\r\n", "a: b\r\n".repeat(200))), Refusal::HeadTooLarge),
        (
            "a target without end",
            format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(65_530)).into_bytes(),
            Refusal::HeadTooLarge,
        ),
        ("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), Refusal::HeadInvalid),
        ("a line without a colon", get("x\r\n\r\n"), Refusal::HeadInvalid),
        (
            "another protocol's version",
            b"GET /v1/models HTTP/9.9\r\nhost: a\r\n\r\n".to_vec(),
            Refusal::HeadInvalid,
        ),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), Refusal::HeadInvalid),
        ("a fragment", post("/v1/chat/completions#x"), Refusal::HeadInvalid),
        ("a fragment without a name", post("/v1/chat/completions#"), Refusal::HeadInvalid),
        ("a fragment behind a query", post("/v1/chat/completions?a#b"), Refusal::HeadInvalid),
    ]
}

fn post(target: &str) -> Vec<u8> {
    Raw::post(target, &chat_body("fake", Answering::Whole)).header("connection", "close").bytes()
}

/// Starts a world with such limits of memory; returns it with its own run socket and a client of the shared
/// listener.
async fn limited(listener: &str, all: &str) -> (World, Run, Agent) {
    let mut world = World::start().await;
    let settings =
        format!("threads = 2\nmax_header_memory = '{all}'\nmax_header_memory_per_listener = '{listener}'");
    world.reconfigure("threads = 2", &settings);
    share(&mut world, "clients").await;
    let address = register_shared(&world, grant("shared", "acct-1")).await;
    let run = world.run("own", "acct-2").await;
    (world, run, Agent::over_tcp(address))
}

/// Returns whether the connection is still open after all that came on it.
async fn is_open(wire: &mut Box<dyn Wire>) -> bool {
    let mut text = Vec::new();
    timeout(Duration::from_millis(20), wire.read_to_end(&mut text)).await.is_err()
}

/// A client leaves heads of 60 KiB unfinished, on the listener of tokens and on a run's own socket; the memory of the
/// proxy stays bounded. A thousand of them would be 60 MiB.
#[tokio::test]
async fn unfinished_heads_hold_bounded_memory() {
    const HEADS: usize = 1000;
    let (world, run, shared) = limited("2 MiB", "3 MiB").await;
    for (agent, heads) in [(&shared, HEADS), (&run.agent, 400)] {
        let (flooded, mut open) = flood(&world, agent, heads, 60 << 10).await;
        assert!(flooded.counted_bytes <= 2 * MIB, "{flooded:?}");
        // Those that give way are closed a moment later, so that more of them are there than count.
        assert!(flooded.rss_after_kib < flooded.rss_before_kib + (30 << 10), "{flooded:?}");
        // The oldest give way, and receive a 408 that says so.
        let mut text = String::new();
        open[0].read_to_string(&mut text).await.ok();
        assert!(text.starts_with("HTTP/1.1 408 ") || text.is_empty(), "{text}");
        let mut rest = Vec::new();
        let closed = timeout(PATIENCE, open[heads / 2].read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "one of the older ones is closed");
        // Others are served, also one with a head in two pieces.
        let call = Raw::post(CHAT, &chat_body("fake", Answering::Whole))
            .header("x-run-token", &token("shared", 0, "new", 3600));
        let mut wire = agent.connect().await.unwrap();
        wire.write_all(&call.bytes()[..30]).await.unwrap();
        pace(Duration::from_millis(20)).await;
        wire.write_all(&call.bytes()[30..]).await.unwrap();
        assert!(read_until(&mut wire, "\"usage\"").await.starts_with("HTTP/1.1 200"));
        drop(open);
        eventually("nothing is held", || head_bytes(&world), |bytes| *bytes == 0).await;
    }
    let text = world.control.send(http::Method::GET, "/v1/metrics", String::new()).await.text();
    assert!(text.contains("refusal=\"head_too_slow\""), "those that were closed are counted");
    // Control: where the limits are wide, memory grows with what is sent.
    let (world, _run, shared) = limited("1 GiB", "1 GiB").await;
    let (flooded, _open) = flood(&world, &shared, HEADS, 60 << 10).await;
    assert!(flooded.rss_after_kib > flooded.rss_before_kib + (50 << 10), "{flooded:?}");
}

/// A client has a call in flight on each connection, and behind it seven kilobytes that belong to no call. The proxy
/// counts them, and closes the oldest connections.
#[tokio::test]
async fn bytes_behind_a_running_call_are_counted() {
    let (world, run, _shared) = limited("256 KiB", "1 MiB").await;
    let call = Raw::post(CHAT, &chat_body("fake-hang", Answering::Whole)).bytes();
    let with_more = [&call[..], &half_a_head(7000)].concat();
    let mut open = Vec::new();
    for _ in 0..100 {
        let mut wire = run.agent.connect().await.unwrap();
        wire.write_all(&with_more).await.unwrap();
        open.push(wire);
    }
    let records = world.records(60).await;
    assert!(records.iter().all(|line| line.record.outcome == Outcome::ClientGone), "the oldest are closed");
    assert!(head_bytes(&world).await <= 256 << 10);
    let mut next = run.agent.connect().await.unwrap();
    next.write_all(&with_more).await.unwrap();
    assert!(is_open(&mut next).await, "and one that comes later goes on");
    // Control: without more behind them all go on.
    let (world, run, _shared) = limited("256 KiB", "1 MiB").await;
    let mut open = Vec::new();
    for _ in 0..100 {
        open.push(Raw::post(CHAT, &chat_body("fake-hang", Answering::Whole)).begin(&run.agent).await);
    }
    let in_flight = || async { world.control.health().await.unwrap().in_flight };
    eventually("all are in flight", in_flight, |calls| *calls == 100).await;
    assert_eq!(head_bytes(&world).await, 0);
}

/// A client sends bytes that are not a request; the refusal is in Sluicegate's words, with a record of the run that the
/// socket belongs to, or of no run.
#[tokio::test]
async fn bytes_that_are_no_request_are_recorded() {
    let (world, run, shared) = limited("16 MiB", "64 MiB").await;
    let mut count = 0;
    for (agent, identity) in [(&run.agent, Identity::Socket), (&shared, Identity::None)] {
        for (name, bytes, refusal) in unread() {
            let answer = told(agent, &bytes).await;
            count += 1;
            let record = world.records(count).await.pop().unwrap().record;
            assert_eq!((record.identity, record.outcome), (identity, Outcome::Refused), "{name}");
            if identity == Identity::None && record.refusal == Some(Refusal::TokenMissing) {
                continue; // a whole request, and nothing proves its run
            }
            assert_eq!(record.refusal, Some(refusal), "{name}: {answer}");
            let words = answer.contains(&format!("\"code\":\"{}\"", refusal.code()));
            assert!(words && status(&answer) == record.status || name == "HTTP/2", "{name}: {answer}");
        }
    }
    assert!(world.upstream.ledger().is_empty());
    let text = world.control.send(http::Method::GET, "/v1/metrics", String::new()).await.text();
    for refusal in ["head_invalid", "head_too_large"] {
        let series =
            format!("sluicegate_calls_total{{route=\"unknown\",outcome=\"refused\",refusal=\"{refusal}\"}}");
        assert!(text.contains(&series), "{series} is not in\n{text}");
    }
    // Control: without the fragment it is a route, and a head of 60 KiB is a head.
    assert_eq!(status(&told(&run.agent, &post("/v1/chat/completions")).await), 200);
    let large = Raw::post(CHAT, &chat_body("fake", Answering::Whole)).header("x", &"y".repeat(60 << 10));
    assert!(large.ask(&run.agent).await.starts_with("HTTP/1.1 200"));
}
