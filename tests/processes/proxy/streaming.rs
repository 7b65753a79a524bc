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
/// Longest time until the upstream is rid of a call after its client has left.
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

/// A client that leaves once it has read so much of the answer to a request.
struct Departure {
    model: &'static str,
    answering: Answering,
    read: &'static str,
    /// Content events the upstream has sent by then.
    after_events: usize,
}

const DEPARTURES: [Departure; 5] = [
    Departure { model: "fake-hang", answering: Answering::Streamed, read: "", after_events: 0 },
    Departure { model: "fake-hang", answering: Answering::Whole, read: "", after_events: 0 },
    Departure { model: "fake-firstbyte60000ms", answering: Answering::Streamed, read: "", after_events: 0 },
    Departure { model: "fake-stall3", answering: Answering::Streamed, read: " the\"", after_events: 3 },
    // Of an answer in one piece nothing passes before it has come.
    Departure { model: "fake-stall1", answering: Answering::Whole, read: "", after_events: 0 },
];

#[tokio::test]
async fn a_client_that_leaves_cancels_its_call_at_once() {
    let world = World::start().await;
    world.bound_left_calls("0s").await;
    let run = world.run("r1", "acct-1").await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    let mut calls = 0;
    for departure in DEPARTURES {
        for agent in [&run.agent, &socat.agent, &init.agent] {
            let mut fastest = Duration::MAX;
            for _ in 0..ATTEMPTS {
                calls += 1;
                let (ending, after) = depart(&world, agent, &departure, calls).await;
                let Departure { model, after_events, .. } = departure;
                assert!(matches!(ending, Ending::ClientGone { .. }), "{model}: {ending:?}");
                assert_eq!(ending.events(), Some(after_events), "{model}");
                fastest = fastest.min(after);
                if fastest < AT_ONCE {
                    break;
                }
            }
            assert!(fastest < AT_ONCE, "{}: cancelled after {fastest:?}", departure.model);
        }
    }
    eventually(
        "no call is in flight",
        || world.control.health(),
        |health| health.as_ref().unwrap().in_flight == 0,
    )
    .await
    .unwrap();
    let records: Vec<_> = world.journal().await.into_iter().map(|line| line.record).collect();
    assert_eq!(records.len(), calls, "one record per call");
    for record in records {
        assert_eq!((record.outcome, record.refusal), (Outcome::ClientGone, None));
        assert_eq!(record.tokens_source, TokensSource::Estimated);
        // LiteLLM goes on with a call that is not yet answered, or that is answered in one piece; it is billed for the
        // most it can have used.
        if record.stream && record.ttfb_us.is_some() {
            // Of a stream no more was made than came. Words of its prompt are two tokens for seven bytes at least.
            assert!(record.tokens.input >= record.request_bytes * 2 / 7, "{record:?}");
            assert!(record.tokens.output <= 40, "{record:?}");
        } else {
            assert_eq!(record.tokens.output, 8192);
        }
    }
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
