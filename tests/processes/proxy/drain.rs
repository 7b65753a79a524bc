//! Tests the two deadlines of a stop. Calls that end within the first are whole; the rest are cut and recorded. The
//! process ends after the second even if something hangs.

use std::{collections::BTreeMap, time::Duration};

use harness::{
    Agent, Lines, Raw, Run, World,
    agent::{Answering, Wire, chat_body},
    events::spoken,
    eventually, holds_for,
    process::has_ended,
    raw::read_until,
};
use platform_core::record::Outcome;
use platform_runtime::task;
use rustix::process::Signal;
use tokio::io::AsyncReadExt;

/// Starts a world with a drain that lasts so long.
async fn draining(drain: &str, cut: &str) -> (World, Run) {
    let world = World::start().await;
    world.reconfigure(
        "drain_timeout = '2s'",
        &format!("drain_timeout = '{drain}'\ndrain_abort_timeout = '{cut}'"),
    );
    let reloaded = world.sluice().run(&["reload"]).await;
    assert!(reloaded.stdout.contains("proxy.drain_timeout\n"), "{reloaded:?}");
    let run = world.run("r1", "acct-1").await;
    (world, run)
}

async fn in_flight(world: &World, calls: u64) {
    let look = || async { world.control.health().await.map_or(0, |health| health.in_flight) };
    eventually("so many calls are in flight", look, |seen| *seen == calls).await;
}

async fn outcomes(world: &mut World) -> BTreeMap<String, usize> {
    world.start_proxy().await;
    let mut outcomes = BTreeMap::new();
    for line in world.journal().await {
        *outcomes.entry(format!("{:?}", line.record.outcome)).or_default() += 1;
    }
    outcomes
}

/// Two hundred streams end in time. The others are cut and recorded.
#[tokio::test]
async fn streams_that_end_within_the_drain_are_whole() {
    let (mut world, run) = draining("10s", "2s").await;
    let streams: Vec<_> = (0..200)
        .map(|_| {
            let agent = run.agent.clone();
            task::spawn(
                "stream",
                async move { agent.stream("fake-words20-gap50ms").await.until_break().await },
            )
        })
        .collect();
    let stalled: Vec<_> = (0..5)
        .map(|_| {
            let agent = run.agent.clone();
            task::spawn("stalled", async move { agent.stream("fake-stall3").await.until_break().await })
        })
        .collect();
    in_flight(&world, 205).await;
    assert!(world.stop_proxy().await, "the exit code tells of success");
    for stream in streams {
        let (text, ended) = stream.await.unwrap();
        assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{ended:?}: {text}");
        assert_eq!(spoken(&text).len(), 20);
    }
    for stream in stalled {
        let (text, ended) = stream.await.unwrap();
        assert!(ended.is_err(), "nobody takes it for whole: {text}");
    }
    let expected = [("Complete", 200), ("Interrupted", 5)];
    assert_eq!(
        outcomes(&mut world).await,
        expected.map(|(outcome, count)| (outcome.to_owned(), count)).into()
    );
}

#[tokio::test]
async fn a_second_signal_cuts_at_once() {
    // Longer than `stop_proxy` waits: only the second signal ends it.
    let (mut world, run) = draining("60s", "2s").await;
    let stream = run.agent.stream("fake-stall3").await;
    in_flight(&world, 1).await;
    world.signal_proxy(Signal::TERM);
    let ask = || async { run.agent.get("/v1/models").await.status };
    eventually("the proxy drains", ask, |status| *status == 503).await;
    assert!(world.stop_proxy().await, "told a second time");
    assert!(stream.until_break().await.1.is_err());
    assert_eq!(outcomes(&mut world).await["Interrupted"], 1);
}

#[tokio::test]
async fn idle_readers_and_followers_delay_no_stop() {
    let (mut world, run) = draining("1s", "1s").await;
    let mut tapped = harness::grant("r2", "acct-1");
    tapped.tap = platform_core::grant::Tap::Text;
    world.run_with(tapped).await;
    let _journal = Lines::of(world.control.follow("/v1/journal?after=0&follow").await);
    let _tap = world.control.tap(&"r2".parse().unwrap()).await;
    let _unread = unread(&run.agent, "fake-big8m").await;
    in_flight(&world, 1).await;
    assert!(world.stop_proxy().await, "and it is not a failure");
    assert_eq!(outcomes(&mut world).await["Interrupted"], 1);
}

/// Begins a call, and waits for its answer without reading it.
async fn unread(agent: &Agent, model: &str) -> Box<dyn Wire> {
    let request = Raw::post("/v1/chat/completions", &chat_body(model, Answering::Whole));
    let mut wire = request.header("connection", "close").begin(agent).await;
    read_until(&mut wire, "HTTP/1.1 200 ").await;
    wire
}

/// The stop comes when the answer is recorded already.
#[tokio::test]
async fn a_slow_client_gets_its_whole_answer() {
    let (mut world, run) = draining("60s", "1s").await;
    // More than a socket holds (208 KiB), and less than the proxy reads from the upstream without a reading client: it keeps
    // sixteen pieces, which are small on a busy machine.
    let mut slow = unread(&run.agent, "fake-big250k").await;
    let is_recorded = eventually("it is recorded", || world.journal(), |lines| lines.len() == 1).await;
    assert_eq!(is_recorded[0].record.outcome, Outcome::Complete);
    in_flight(&world, 0).await;
    world.signal_proxy(Signal::TERM);
    let gone = || async { world.control.health().await.is_err() };
    eventually("the proxy drains", gone, |gone| *gone).await;
    // Long enough for a proxy that does not wait for it to be gone.
    let pid = world.proxy_pid();
    let has_ended = || async { has_ended(pid) };
    holds_for(Duration::from_millis(300), "it waits for its client", has_ended, |ended| !ended).await;
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    let text = String::from_utf8_lossy(&rest);
    assert!(
        // The rest of an answer of which the client had read only the head.
        rest.len() > 230 << 10 && text.ends_with("}}"),
        "{} bytes, ending in {:?}",
        rest.len(),
        text.get(text.len() - 40..)
    );
    assert!(world.stop_proxy().await);
}
