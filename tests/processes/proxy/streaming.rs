//! Tests that answers stream: event by event as the upstream sends them. They come no faster than the client reads
//! them, and the upstream sends no longer than the client is there.

use std::{
    fs,
    time::{Duration, Instant},
};

use bench::upstream::Ending;
use harness::{
    Agent, Bridge, Init, Raw, World,
    agent::{Answering, chat_body},
    events::{events, spoken},
    eventually,
    eventually::{PATIENCE, settled},
    process::cpu_ticks,
    raw::read_until,
};
use http::Method;
use platform_core::record::{Outcome, TokensSource};

/// Least interval between events of `fake-gap100ms` at the client: the upstream's, less what a busy machine may lose.
const SPACED: Duration = Duration::from_millis(60);
/// Longest time until the upstream is rid of a call whose client has left.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Attempts at a measurement that a busy machine may delay. A program that is slow by its nature fails all of them.
const ATTEMPTS: usize = 10;

/// A streamed answer as it arrived.
#[derive(Debug)]
struct Arrivals {
    pieces: Vec<String>,
    /// Smallest interval between two pieces.
    gap: Duration,
}

impl Arrivals {
    async fn of(agent: &Agent, model: &str) -> Self {
        let mut stream = agent.stream(model).await;
        let (mut pieces, mut times) = (Vec::new(), Vec::new());
        while let Some((piece, at)) = stream.next().await.unwrap() {
            pieces.push(String::from_utf8(piece.to_vec()).unwrap());
            times.push(at);
        }
        let gap = times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
        Self { pieces, gap }
    }

    fn are_single_and_spaced(&self) -> bool {
        let single = |piece: &String| events(piece).len() == 1 && piece.ends_with("\n\n");
        self.pieces.iter().all(single) && self.gap >= SPACED
    }
}

#[tokio::test]
async fn events_keep_the_upstreams_spacing() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    for agent in [&run.agent, &socat.agent, &init.agent] {
        let mut attempts = Vec::new();
        while attempts.len() < ATTEMPTS && !attempts.last().is_some_and(Arrivals::are_single_and_spaced) {
            attempts.push(Arrivals::of(agent, "fake-words4-gap100ms").await);
            assert_eq!(spoken(&attempts.last().unwrap().pieces.concat()).concat(), "Hello from the scripted");
        }
        assert!(attempts.last().unwrap().are_single_and_spaced(), "{attempts:#?}");
    }
    // A stream that was not spaced on its way in is seen as such.
    let unspaced = Arrivals::of(&run.agent, "fake-words4").await;
    assert!(!unspaced.are_single_and_spaced(), "{unspaced:#?}");
}

/// A client that leaves in the middle of a stream, or before its answer.
struct Departure {
    model: &'static str,
    answering: Answering,
    read: &'static str,
}

const IN_A_STREAM: Departure =
    Departure { model: "fake-stall3", answering: Answering::Streamed, read: " the\"" };

#[tokio::test]
async fn a_client_that_leaves_a_stream_cancels_it() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    let mut calls = 0;
    for agent in [&run.agent, &socat.agent, &init.agent] {
        let mut fastest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            calls += 1;
            let (ending, after) = depart(&world, agent, &IN_A_STREAM, calls).await;
            assert!(matches!(ending, Ending::ClientGone { .. }), "{ending:?}");
            assert_eq!(ending.events(), Some(3));
            fastest = fastest.min(after);
            if fastest < AT_ONCE {
                break;
            }
        }
        assert!(fastest < AT_ONCE, "cancelled after {fastest:?}");
    }
    for record in world.records(calls).await.into_iter().map(|line| line.record) {
        assert_eq!((record.outcome, record.refusal), (Outcome::ClientGone, None));
        assert_eq!(record.tokens_source, TokensSource::Estimated);
        // Of a stream no more was made than came.
        assert!(record.tokens.output < 100, "{record:?}");
    }
}

/// LiteLLM goes on with a call that its client leaves before the head, and with an answer in one piece, and charges it.
/// The call keeps its place; a whole answer is booked exactly, and a stream is cut at its head.
#[tokio::test]
async fn a_call_goes_on_without_its_client() {
    let whole = |model| Departure { model, answering: Answering::Whole, read: "" };
    let table = [
        (whole("fake-words3-firstbyte400ms"), TokensSource::Exact),
        // Its head comes, and the rest later.
        (whole("fake-words3-gap400ms"), TokensSource::Exact),
        (
            Departure { model: "fake-firstbyte400ms-gap50ms", answering: Answering::Streamed, read: "" },
            TokensSource::Estimated,
        ),
    ];
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    let mut calls = 0;
    for agent in [&run.agent, &socat.agent, &init.agent] {
        for (departure, source) in &table {
            calls += 1;
            let (ending, after) = depart(&world, agent, departure, calls).await;
            assert!(after > AT_ONCE, "{}: it ended after {after:?}", departure.model);
            let is_exact = *source == TokensSource::Exact;
            assert_eq!(
                matches!(ending, Ending::Answered { .. }),
                is_exact,
                "{}: {ending:?}",
                departure.model
            );
            let record = world.records(calls).await.pop().unwrap().record;
            assert_eq!((record.outcome, record.tokens_source), (Outcome::ClientGone, *source), "{record:?}");
            let output = record.tokens.output;
            assert!(if is_exact { output == 3 } else { (60..1000).contains(&output) }, "{record:?}");
        }
    }
    let in_flight = || async { world.control.health().await.unwrap().in_flight };
    eventually("no call is in flight", in_flight, |calls| *calls == 0).await;
    // Control: one that is cut before its end costs all that was granted.
    let left = Raw::post("/v1/chat/completions", &chat_body("fake-hang", Answering::Whole));
    let wire = left.begin(&run.agent).await;
    world.upstream.ledger().wait_for(calls + 1, PATIENCE).await.unwrap();
    drop(wire);
    eventually("it goes on", in_flight, |calls| *calls == 1).await;
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let record = world.records(calls + 1).await.pop().unwrap().record;
    assert_eq!((record.outcome, record.tokens.output), (Outcome::RunClosed, 8192), "{record:?}");
}

/// Returns how the upstream saw call number `seq` end, and how long after its client had left.
async fn depart(world: &World, agent: &Agent, departure: &Departure, seq: usize) -> (Ending, Duration) {
    let body = chat_body(departure.model, departure.answering);
    let mut wire = Raw::post("/v1/chat/completions", &body).begin(agent).await;
    let ledger = world.upstream.ledger();
    let seen = ledger.wait_for(seq, PATIENCE).await.unwrap();
    read_until(&mut wire, departure.read).await;
    assert!(seen.last().unwrap().ending.is_open());
    let left = Instant::now();
    drop(wire);
    let ended = ledger.wait_for_ending(seq as u64, PATIENCE).await.unwrap().ending;
    (ended, ended.at().unwrap() - left)
}

#[tokio::test]
async fn a_client_that_stays_cancels_nothing() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let answer = run.agent.stream("fake-words3-firstbyte300ms-gap50ms").await.whole().await.unwrap();
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    assert!(matches!(world.upstream.ledger().last().unwrap().ending, Ending::Answered { events: 3, .. }));
    assert_eq!(world.records(1).await[0].record.outcome, Outcome::Complete);
}

/// Most memory that a slow client's answer may occupy in the proxy.
const SLACK_KIB: u64 = 8 << 10;

/// The proxy's memory does not grow meanwhile.
#[tokio::test]
async fn an_unread_answer_holds_back_the_upstream() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    let before = memory_kib(&world);
    let body = chat_body("fake-big48m", Answering::Whole).to_string();
    let stream = run.agent.send(Method::POST, "/v1/chat/completions", body.into()).await.unwrap();
    let cpu = || async { cpu_ticks(world.proxy_pid()) };
    settled("the proxy's reading", Duration::from_millis(100), cpu).await;
    let grown = memory_kib(&world).saturating_sub(before);
    assert!(grown < SLACK_KIB, "48 MiB are on their way, the proxy has grown by {grown} KiB");
    // Nothing is lost by waiting.
    let length: u64 = stream.headers["content-length"].to_str().unwrap().parse().unwrap();
    assert!(length > 48 << 20);
    assert_eq!(stream.whole().await.unwrap().body.len() as u64, length);
    let record = &world.records(2).await[1].record;
    assert_eq!((record.outcome, record.response_bytes), (Outcome::Complete, length));
}

fn memory_kib(world: &World) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", world.proxy_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
