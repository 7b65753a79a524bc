//! Tests a proxy that is stopped: calls in flight may end, and nothing new begins. Its files say where the next one
//! goes on.

use std::{
    fs,
    time::{Duration, Instant},
};

use bench::upstream::Ending;
use harness::{
    Raw, Run, World,
    agent::{Answering, chat_body},
    events::spoken,
    eventually,
    eventually::PATIENCE,
    grant,
    raw::read_until,
};
use platform_core::record::Outcome;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// `proxy.drain_timeout` in every world.
const DRAIN: Duration = Duration::from_secs(2);

/// Stops the proxy and returns once it says so on the socket of `run`.
async fn begin_stop(world: &World, run: &Run, signal: Signal) {
    world.signal_proxy(signal);
    let ask = || async { run.agent.get("/v1/models").await.status };
    eventually("the proxy drains", ask, |status| *status == 503).await;
}

#[tokio::test]
async fn an_answer_in_flight_ends_before_the_proxy() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut world = World::start().await;
        let run = world.run("r1", "acct-1").await;
        let stream = run.agent.stream("fake-words10-gap50ms").await;
        begin_stop(&world, &run, signal).await;
        let (text, ended) = stream.until_break().await;
        assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{signal:?}: {text}");
        assert_eq!(spoken(&text).len(), 10);
        assert!(world.stop_proxy().await, "{signal:?}: the exit code tells of success");

        world.start_proxy().await;
        let journal = world.journal().await;
        let streamed = journal.iter().find(|line| line.record.stream).unwrap();
        assert_eq!(streamed.record.outcome, Outcome::Complete);
    }
}

#[tokio::test]
async fn an_idle_proxy_stops_at_once() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    world.reconfigure("drain_timeout = '2s'", "drain_timeout = '10min'");
    assert_eq!(world.sluice().run(&["reload"]).await.code, Some(0));
    assert!(world.stop_proxy().await, "in much less time than a drain may take");
}

#[tokio::test]
async fn a_proxy_that_stops_begins_no_call() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let request = Raw::post("/v1/chat/completions", &chat_body("fake", Answering::Whole));
    let mut kept = request.begin(&run.agent).await;
    read_until(&mut kept, "\"total_tokens\"").await;
    let bytes = request.bytes();
    let (begun, rest) = bytes.split_at(20);
    let mut late = run.agent.connect().await.unwrap();
    late.write_all(begun).await.unwrap();
    let stream = run.agent.stream("fake-words20-gap50ms").await;
    begin_stop(&world, &run, Signal::TERM).await;

    late.write_all(rest).await.unwrap();
    kept.write_all(&bytes).await.unwrap();
    for connection in [&mut late, &mut kept] {
        let refused = read_until(connection, "draining").await;
        // The two seconds that the drain takes, and then it is the next proxy's turn.
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: 2"), "{refused}");
        assert!(!refused.contains("x-should-retry"), "{refused}");
        assert!(refused.contains("connection: close"), "{refused}");
    }
    assert!(world.control.health().await.is_err(), "nor is a run opened any more");

    assert!(stream.until_break().await.1.is_ok());
    assert!(world.stop_proxy().await);
    assert_eq!(world.upstream.ledger().len(), 2, "the late call was not sent");
}

#[tokio::test]
async fn a_call_past_the_drain_is_interrupted() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut waiting =
        Raw::post("/v1/chat/completions", &json!({ "model": "fake-hang" })).begin(&run.agent).await;
    world.upstream.ledger().wait_for(1, PATIENCE).await.unwrap();
    let stream = run.agent.stream("fake-stall3").await;
    let told = Instant::now();
    assert!(world.stop_proxy().await, "cutting calls is not a failure of the proxy");
    assert!(told.elapsed() >= DRAIN, "{:?}", told.elapsed());

    let (text, ended) = stream.until_break().await;
    assert!(
        ended.is_err() && spoken(&text).len() == 3,
        "a client must not take the part for the whole: {text}"
    );
    let mut answer = Vec::new();
    drop(waiting.read_to_end(&mut answer).await);
    assert!(answer.is_empty(), "{answer:?}");
    for seq in [1, 2] {
        let call = world.upstream.ledger().wait_for_ending(seq, PATIENCE).await.unwrap();
        assert!(matches!(call.ending, Ending::ClientGone { .. }), "{:?}", call.ending);
    }
    world.start_proxy().await;
    let outcomes: Vec<_> = world.journal().await.iter().map(|line| line.record.outcome).collect();
    assert_eq!(outcomes, [Outcome::Interrupted, Outcome::Interrupted]);
}

/// The sockets in them are removed, and the next proxy makes them again.
#[tokio::test]
async fn run_directories_outlive_the_proxy() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let directory = run.socket.parent().unwrap();
    assert!(world.stop_proxy().await);
    assert_eq!(fs::read_dir(directory).unwrap().count(), 0, "a container has it mounted");
    assert_eq!(fs::read_dir(world.path().join("run/control")).unwrap().count(), 0);

    world.start_proxy().await;
    assert_eq!(
        run.agent.chat("fake").await.status,
        200,
        "the same socket answers again, and nobody had to ask for it"
    );
    let registered = world.control.register(&grant("r1", "acct-1")).await.unwrap();
    assert_eq!(registered.socket.unwrap().path, directory);
}

#[tokio::test]
async fn stale_sockets_do_not_block_a_start() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    world.signal_proxy(Signal::KILL);
    eventually("it is dead", || async { world.control.health().await.is_err() }, |dead| *dead).await;
    assert!(run.socket.exists() && world.path().join("run/control/control.sock").exists());
    world.kill_proxy().await;
    world.start_proxy().await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    assert_eq!(world.records(2).await[1].seq, 2, "and the journal goes on");
}
