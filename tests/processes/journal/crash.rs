//! A proxy that is killed: what the upstream saw is in the journal, once, by call id.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use harness::{
    Raw, World,
    agent::{Answering, chat_body},
    eventually,
    eventually::PATIENCE,
};
use platform_core::{
    control::Usage,
    record::{CostSource, JournalLine, Outcome, TokensSource},
};
use platform_runtime::task;
use serde_json::json;

pub(super) const CHAT: &str = "/v1/chat/completions";
/// Number of times the proxy is killed under load.
const KILLS: usize = 6;
/// Agents that call all the time.
const AGENTS: usize = 4;

/// Returns the call ids that the upstream saw, and how often it saw each.
pub(super) fn seen(world: &World) -> BTreeMap<String, usize> {
    world.upstream.ledger().all().iter().fold(BTreeMap::new(), |mut seen, call| {
        *seen.entry(call.header("x-litellm-call-id")[0].to_owned()).or_default() += 1;
        seen
    })
}

/// Counts slots with a mark in them: of calls in flight, and of some that are over.
fn marks(world: &World) -> usize {
    let marks = world.marks_files().iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>().concat();
    marks.chunks(4096).filter(|slot| slot[..8] != [0; 8]).count()
}

pub(super) fn id(line: &JournalLine) -> String {
    line.record.litellm_call_id.to_string()
}

/// Asserts that every call the upstream saw has one record, and that no record reports an answer that was not given.
pub(super) fn assert_told_once(world: &World, lines: &[JournalLine]) {
    let seen = seen(world);
    assert!(seen.values().all(|times| *times == 1), "no call is sent twice: {seen:?}");
    let told: Vec<_> = lines.iter().map(id).collect();
    let once: BTreeSet<_> = told.iter().cloned().collect();
    assert_eq!(told.len(), once.len(), "no call is recorded twice");
    let lost: Vec<_> = seen.keys().filter(|id| !once.contains(*id)).collect();
    assert_eq!(lost, Vec::<&String>::new(), "of {} calls some are not recorded", seen.len());
    for line in lines.iter().filter(|line| !seen.contains_key(&id(line))) {
        let record = &line.record;
        let is_unsent =
            matches!(record.outcome, Outcome::Interrupted | Outcome::ClientGone | Outcome::Refused);
        assert!(is_unsent, "{record:?} was not seen by the upstream");
    }
}

#[tokio::test]
async fn calls_in_flight_at_a_kill_are_recorded_once() {
    let mut world = World::start().await;
    for round in 0..KILLS {
        let before = world.upstream.ledger().len();
        let run = world.run(&format!("r{round}"), "acct-1").await;
        let callers: Vec<_> = (0..AGENTS)
            .map(|n| {
                let (agent, model) = (run.agent.clone(), ["fake", "fake-words3-gap1ms"][n % 2]);
                let body = chat_body(model, if n % 2 == 0 { Answering::Whole } else { Answering::Streamed });
                task::spawn("caller", async move {
                    while agent.request(http::Method::POST, CHAT, body.to_string().into()).await.is_ok() {}
                })
            })
            .collect();
        let calls = 20 + round * 7;
        world.upstream.ledger().wait_for(before + calls, PATIENCE).await.unwrap();
        world.kill_proxy().await;
        for caller in callers {
            caller.await.unwrap();
        }
        world.start_proxy().await;
    }
    let lines = world.journal().await;
    assert_told_once(&world, &lines);
    assert!(lines.iter().any(|line| line.record.outcome == Outcome::Interrupted), "some were under way");
    assert!(lines.iter().zip(1..).all(|(line, seq)| line.seq == seq));
}

/// Kills the proxy while one call waits for its answer and another one streams.
async fn killed_in_the_middle(world: &mut World) {
    let run = world.run("r1", "acct-1").await;
    let waiting =
        Raw::post(CHAT, &json!({ "model": "fake-hang", "max_tokens": 100 })).begin(&run.agent).await;
    world.upstream.ledger().wait_for(1, PATIENCE).await.unwrap();
    let stream = run.agent.stream("fake-stall3").await;
    world.upstream.ledger().wait_for(2, PATIENCE).await.unwrap();
    world.kill_proxy().await;
    drop((waiting, stream));
}

/// Its budget counts it at the most that it can have used.
#[tokio::test]
async fn an_interrupted_call_counts_at_its_maximum() {
    let mut world = World::with("[prices.'*']\ninput = '1'\noutput = '10'").await;
    killed_in_the_middle(&mut world).await;
    world.start_proxy().await;
    let lines = world.journal().await;
    assert_told_once(&world, &lines);
    assert_eq!(lines.len(), 2);
    let mut used = Usage::default();
    for line in &lines {
        let record = &line.record;
        assert_eq!((record.outcome, record.tokens_source), (Outcome::Interrupted, TokensSource::Estimated));
        assert_eq!(record.cost_source, CostSource::Priced);
        assert!(record.tokens.output >= 100, "{record:?}");
        used.add(record);
    }
    let run = world.run("r1", "acct-1").await;
    assert_eq!((used.inexact.estimated, used.inexact.unpriced), (2, 0));
    assert_eq!(world.control.run(&run.grant.run_id).await.unwrap().usage, used, "its budget knows of them");
    for _ in 0..2 {
        world.kill_proxy().await;
        world.start_proxy().await;
        assert_eq!(world.journal().await, lines, "and they are recorded once, however often it starts");
    }
}

#[tokio::test]
async fn without_marks_interrupted_calls_are_lost() {
    let mut world = World::start().await;
    killed_in_the_middle(&mut world).await;
    world.marks_files().into_iter().for_each(|path| fs::remove_file(path).unwrap());
    world.start_proxy().await;
    assert_eq!((world.journal().await.len(), seen(&world).len()), (0, 2));
}

#[tokio::test]
async fn ended_calls_leave_no_marks() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for model in ["fake", "fake-status500", "fake-cut0", "fake-cut2-gap1ms", "fake-errmid1"] {
        drop(run.agent.stream(model).await.until_break().await);
        let whole = chat_body(model, Answering::Whole).to_string();
        drop(run.agent.request(http::Method::POST, CHAT, whole.into()).await);
    }
    drop(run.agent.stream("fake-stall2").await);
    run.agent.post("/v1/files", &json!({})).await;
    world.records(12).await;
    let load = || async { world.control.health().await.unwrap().in_flight };
    eventually("all calls have ended", load, |in_flight| *in_flight == 0).await;
    let was_used = |path| fs::read(path).unwrap().iter().any(|byte| *byte != 0);
    assert!(world.marks_files().into_iter().any(was_used), "there were marks");
    let marks = || async { marks(&world) };
    eventually("its marks are swept", marks, |marks| *marks == 0).await;
}

#[tokio::test]
async fn an_orderly_stop_leaves_no_marks() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let call = || async {
        run.agent.chat("fake").await;
        marks(&world)
    };
    eventually("a mark stays when its call ends", call, |marks| *marks > 0).await;
    let lines = world.journal().await;
    assert!(world.stop_proxy().await);
    assert_eq!(marks(&world), 0);
    world.start_proxy().await;
    assert_eq!(world.journal().await, lines);
}

#[tokio::test]
async fn stale_marks_make_no_call_interrupted() {
    let mut world = World::start().await;
    let mut found = 0;
    for round in 0..3 {
        let run = world.run(&format!("r{round}"), "acct-1").await;
        let streams: Vec<_> = (0..8).map(|_| run.agent.stream("fake-words20-gap1ms")).collect();
        for stream in futures_util::future::join_all(streams).await {
            stream.until_break().await.1.unwrap();
        }
        let call = || async {
            run.agent.chat("fake").await;
            marks(&world)
        };
        eventually("marks are there", call, |marks| *marks > 0).await;
        let lines = world.journal().await;
        world.kill_proxy().await;
        found += marks(&world);
        world.start_proxy().await;
        assert_eq!(world.journal().await, lines);
    }
    assert!(found > 0, "the proxy found some");
}

#[tokio::test]
async fn durability_disk_changes_no_outcome() {
    let mut world = World::with("[journal]\ndurability = 'disk'").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let (text, ended) = run.agent.stream("fake-words3").await.until_break().await;
    assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(run.agent.stream("fake-cut2-gap1ms").await.until_break().await.1.is_err());
    assert_eq!(run.agent.chat("fake-status500").await.status, 500);
    assert_eq!(run.agent.chat("fake-status401").await.status, 502);
    assert_eq!(run.agent.chat("fake-cut0").await.status, 502);
    drop(run.agent.stream("fake-stall2").await);
    let lines = world.records(7).await;
    assert_told_once(&world, &lines);
    killed_after(&mut world, 7).await;
}

/// Kills the proxy while a call is in flight, after `before` that have ended.
async fn killed_after(world: &mut World, before: usize) {
    let run = world.run("r2", "acct-1").await;
    let stream = run.agent.stream("fake-stall3").await;
    world.kill_proxy().await;
    drop(stream);
    world.start_proxy().await;
    let lines = world.journal().await;
    assert_eq!((lines.len(), lines.last().unwrap().record.outcome), (before + 1, Outcome::Interrupted));
    assert_told_once(world, &lines);
}
