//! Tests calls through LiteLLM that fail or are cut.

use std::time::{Duration, Instant};

use bench::upstream::Ending;
use harness::{
    Raw, Run, World,
    agent::{Answering, chat_body},
    events::{events, spoken},
    eventually::PATIENCE,
    raw::read_until,
};
use platform_core::{
    record::{ExchangeRecord, Outcome},
    refusal::Refusal,
};

use crate::world_with_litellm;

/// Longest time until a stream ends at the model provider, behind LiteLLM, after its agent has left.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn failures_behind_litellm_are_told_apart() {
    let (world, _litellm) = world_with_litellm().await;
    let run = world.run("r1", "acct-1").await;
    an_error_in_mid_stream_is_a_failed_stream(&world, &run).await;
    errors_before_the_answer_keep_their_status(&world, &run).await;
    an_agent_that_leaves_a_stream_cancels_it_at_the_provider(&world, &run).await;
}

async fn last_record(world: &World, count: usize) -> ExchangeRecord {
    world.records(count).await.pop().unwrap().record
}

async fn an_error_in_mid_stream_is_a_failed_stream(world: &World, run: &Run) {
    let (text, _) = run.agent.stream("fake-errmid3").await.until_break().await;
    assert_eq!(spoken(&text).concat(), "Hello from the");
    assert!(events(&text).pop().unwrap().contains("\"error\""), "{text}");
    assert_eq!(last_record(world, 1).await.outcome, Outcome::StreamError);
}

async fn errors_before_the_answer_keep_their_status(world: &World, run: &Run) {
    let table = [
        ("fake-status429", 429, 429, None),
        ("fake-status400", 400, 400, None),
        ("fake-status500", 500, 500, None),
        ("fake-status401", 502, 401, Some(Refusal::UpstreamAuth)),
        ("no-such-model", 400, 400, None),
    ];
    for (n, (model, answered, recorded, refusal)) in table.into_iter().enumerate() {
        let answer = run.agent.chat(model).await;
        let record = last_record(world, n + 2).await;
        assert_eq!(
            (answer.status.as_u16(), record.status, record.refusal),
            (answered, recorded, refusal),
            "{model}: {}",
            answer.text()
        );
    }
}

async fn an_agent_that_leaves_a_stream_cancels_it_at_the_provider(world: &World, run: &Run) {
    let ledger = world.upstream.ledger();
    let body = chat_body("fake-words1000-gap20ms", Answering::Streamed);
    let mut wire = Raw::post("/v1/chat/completions", &body).begin(&run.agent).await;
    read_until(&mut wire, " scripted").await;
    let call = ledger.last().unwrap();
    assert!(call.ending.is_open());
    let left = Instant::now();
    drop(wire);
    let ended = ledger.wait_for_ending(call.seq, PATIENCE).await.unwrap().ending;
    assert!(matches!(ended, Ending::ClientGone { .. }), "{ended:?}");
    assert!(ended.at().unwrap() - left < CANCEL_TIMEOUT, "cancelled after {:?}", ended.at().unwrap() - left);
    assert_eq!(last_record(world, 7).await.outcome, Outcome::ClientGone);
}
