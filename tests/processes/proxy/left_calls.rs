//! Tests calls with a client that leaves before the head of the answer, or before a whole answer. LiteLLM goes on with
//! them and charges them, so they go on here as well. They end at a bound, and with their run.

use bench::upstream::{Ending, Entry};
use harness::{
    Agent, Bridge, Init, Raw, Run, World,
    agent::{Answering, chat_body},
    eventually,
    eventually::PATIENCE,
    grant,
    raw::read_until,
};
use platform_core::{
    budget::Budget,
    grant::RunGrant,
    record::{ExchangeRecord, Outcome, TokensSource},
};
use platform_runtime::task;

const CHAT: &str = "/v1/chat/completions";
/// Answer that never comes.
const NEVER: &str = "fake-hang";
/// Tokens that a call is granted.
const GRANTED: u64 = 8192;

/// A call that its client leaves once it has read so much of the answer.
struct Departure {
    model: &'static str,
    answering: Answering,
    read: &'static str,
}

impl Departure {
    /// Returns the departure from a whole answer that has not come.
    const fn from(model: &'static str) -> Self {
        Self { model, answering: Answering::Whole, read: "" }
    }

    /// Makes the call and leaves. Returns the call's number at the upstream.
    async fn play(&self, world: &World, agent: &Agent) -> u64 {
        let ledger = world.upstream.ledger();
        let seq = ledger.len() + 1;
        let mut wire = Raw::post(CHAT, &chat_body(self.model, self.answering)).begin(agent).await;
        ledger.wait_for(seq, PATIENCE).await.unwrap();
        read_until(&mut wire, self.read).await;
        drop(wire);
        seq as u64
    }
}

/// Returns how the upstream saw call number `seq` end, and its record.
async fn ended(world: &World, seq: u64) -> (Entry, ExchangeRecord) {
    let entry = world.upstream.ledger().wait_for_ending(seq, PATIENCE).await.unwrap();
    let call_id = entry.header("x-litellm-call-id")[0].to_owned();
    let find = || async {
        let mut records = world.journal().await.into_iter().map(|line| line.record);
        records.find(|record| record.litellm_call_id.to_string() == call_id)
    };
    (entry, eventually("the call is recorded", find, Option::is_some).await.unwrap())
}

fn is_cut(entry: &Entry) -> bool {
    matches!(entry.ending, Ending::ClientGone { .. })
}

async fn in_flight(world: &World, count: u64) {
    let health = || async { world.control.health().await.unwrap().in_flight };
    eventually("so many calls are in flight", health, |calls| *calls == count).await;
}

#[tokio::test]
async fn a_left_call_is_booked_exactly() {
    let world = World::start().await;
    world.bound_left_calls("1h").await;
    let run = world.run("r1", "acct-1").await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    let table = [
        Departure::from("fake-words3-firstbyte300ms-cost"),
        // Its head comes, and the rest later.
        Departure::from("fake-words3-gap300ms-cost"),
        // The client leaves while it is sent the answer, which no buffer holds.
        Departure { read: "xxx", ..Departure::from("fake-big8m-cost") },
    ];
    for departure in table {
        let model = departure.model;
        // Control: the same call with a client that stays.
        assert_eq!(run.agent.chat(model).await.status, 200);
        let (_, whole) = ended(&world, world.upstream.ledger().len() as u64).await;
        assert_eq!((whole.outcome, whole.tokens_source), (Outcome::Complete, TokensSource::Exact));
        assert!(whole.cost_nanodollars.is_some());
        for agent in [&run.agent, &socat.agent, &init.agent] {
            let (entry, left) = ended(&world, departure.play(&world, agent).await).await;
            assert!(matches!(entry.ending, Ending::Answered { .. }), "{model}: {entry:?}");
            assert_eq!((left.outcome, left.tokens_source), (Outcome::ClientGone, TokensSource::Exact));
            assert_eq!((left.tokens, left.cost_nanodollars), (whole.tokens, whole.cost_nanodollars));
            assert_eq!(entry.generated.unwrap().output, left.tokens.output);
        }
    }
    in_flight(&world, 0).await;
}

#[tokio::test]
async fn a_left_stream_is_cut_at_its_head() {
    let world = World::start().await;
    world.bound_left_calls("1h").await;
    let run = world.run("r1", "acct-1").await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    let late = Departure::from("fake-words1000-firstbyte400ms-gap50ms");
    let late = Departure { answering: Answering::Streamed, ..late };
    for agent in [&run.agent, &socat.agent, &init.agent] {
        let (entry, record) = ended(&world, late.play(&world, agent).await).await;
        assert!(is_cut(&entry), "{entry:?}");
        assert_eq!((record.outcome, record.tokens_source), (Outcome::ClientGone, TokensSource::Estimated));
        assert!(record.ttfb_us.is_some(), "the head was waited for: {record:?}");
        // The model may have thought until then.
        let least = entry.generated.unwrap().output.max(60);
        assert!((least..GRANTED).contains(&record.tokens.output), "{record:?}");
    }
}

#[tokio::test]
async fn a_left_call_is_cut_at_its_bound() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let table = [
        Departure { answering: Answering::Streamed, ..Departure::from(NEVER) },
        Departure::from(NEVER),
        // Its head comes, and nothing else.
        Departure::from("fake-stall1"),
        // LiteLLM goes on with it longer than the proxy.
        Departure::from("fake-words200-firstbyte60000ms"),
    ];
    for departure in table {
        let model = departure.model;
        let (entry, record) = ended(&world, departure.play(&world, &run.agent).await).await;
        assert!(is_cut(&entry), "{entry:?}");
        assert_eq!((record.outcome, record.timeout), (Outcome::ClientGone, None), "{model}");
        assert_eq!((record.tokens_source, record.tokens.output), (TokensSource::Estimated, GRANTED));
        let generated = entry.generated.map_or(0, |usage| usage.output);
        assert_eq!(generated, if model.contains("words200") { 200 } else { 0 }, "{model}");
        assert!(record.duration_us >= 500_000, "it went on: {record:?}");
    }
    in_flight(&world, 0).await;
}

#[tokio::test]
async fn a_left_call_keeps_its_place() {
    let world = World::start().await;
    world.bound_left_calls("1h").await;
    let budget = Budget { calls_in_flight: Some(2), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    let late = Departure::from("fake-firstbyte2000ms");
    let first = late.play(&world, &run.agent).await;
    assert_eq!(run.agent.chat("fake").await.status, 200, "one place is left");
    let second = late.play(&world, &run.agent).await;
    let refused = run.agent.chat("fake").await;
    assert_eq!(refused.json()["error"]["code"], "concurrency_limited");
    for seq in [first, second] {
        assert_eq!(ended(&world, seq).await.1.tokens_source, TokensSource::Exact);
    }
    in_flight(&world, 0).await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
}

/// Leaves a call that would go on for an hour.
async fn left(world: &World, name: &str) -> (Run, u64) {
    world.bound_left_calls("1h").await;
    let run = world.run(name, "acct-1").await;
    let seq = Departure::from(NEVER).play(world, &run.agent).await;
    in_flight(world, 1).await;
    (run, seq)
}

#[tokio::test]
async fn a_run_that_closes_waits_for_no_left_call() {
    let world = World::start().await;
    let (run, seq) = left(&world, "r1").await;
    // Control: a call with a client is waited for.
    let agent = run.agent.clone();
    let stays = task::spawn("call", async move { agent.chat("fake-firstbyte300ms").await });
    in_flight(&world, 2).await;
    let closed = world.control.close(&run.grant.run_id, 3_600_000).await.unwrap();
    assert_eq!((closed.in_flight, stays.await.unwrap().status.as_u16()), (0, 200));
    let (_, record) = ended(&world, seq).await;
    assert_eq!((record.outcome, record.tokens.output), (Outcome::ClientGone, GRANTED));
}

#[tokio::test]
async fn a_freeze_ends_a_left_call() {
    let world = World::start().await;
    let (_run, seq) = left(&world, "r1").await;
    let frozen = world.sluice().run(&["freeze", "--account", "acct-1"]).await;
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    assert_eq!(ended(&world, seq).await.1.tokens.output, GRANTED);
}

#[tokio::test]
async fn a_stop_waits_for_no_left_call() {
    let mut world = World::start().await;
    world.reconfigure("drain_timeout = '2s'", "drain_timeout = '1h'");
    let (_run, seq) = left(&world, "r1").await;
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let (_, record) = ended(&world, seq).await;
    assert_eq!((record.outcome, record.tokens.output), (Outcome::ClientGone, GRANTED));
}
