//! Tests the live tap: a client that the grant lets watch receives a run's answers while they are written.

use harness::{Lines, Run, World, grant};
use platform_core::grant::{RunGrant, Tap};
use serde_json::{Value, json};

async fn watched_run(world: &World) -> (Run, Lines) {
    let run = world.run_with(RunGrant { tap: Tap::Text, ..grant("r1", "acct-1") }).await;
    let tap = world.control.tap(&run.grant.run_id).await;
    (run, tap)
}

/// Returns the content of an event, without its number and the id of its call.
fn told(mut event: Value) -> Value {
    assert!(event.as_object_mut().unwrap().remove("n").is_some_and(|n| n.as_u64() > Some(0)), "{event}");
    let call = event.as_object_mut().unwrap().remove("call");
    assert!(call.is_some_and(|call| call.as_str().is_some_and(|call| call.len() == 36)), "{event}");
    event
}

/// Returns the texts among `events`.
fn texts(events: &[Value]) -> String {
    events.iter().filter(|event| event["type"] == "text").map(text).collect()
}

fn text(event: &Value) -> &str {
    event["delta"].as_str().unwrap_or_else(|| panic!("{event}"))
}

#[tokio::test]
async fn deltas_are_told_while_they_stream() {
    let world = World::start().await;
    let (run, mut tap) = watched_run(&world).await;
    let stream = run.agent.stream("fake-words4-gap100ms").await;
    // The upstream has most of its pauses still before it when the first word arrives.
    assert_eq!(told(tap.next().await.unwrap()), json!({ "type": "text", "delta": "Hello" }));
    assert!(world.upstream.ledger().last().unwrap().ending.is_open());
    stream.whole().await.unwrap();
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    assert_eq!(texts(&tap.rest().await), " from the scripted", "the tap ends with its run");
}

#[tokio::test]
async fn tools_are_named_and_whole_answers_told_too() {
    let world = World::start().await;
    let (run, mut tap) = watched_run(&world).await;
    run.agent.stream("fake-tools").await.whole().await.unwrap();
    assert_eq!(told(tap.next().await.unwrap()), json!({ "type": "tool", "name": "get_weather" }));
    assert_eq!(tap.next().await.unwrap()["type"], "ended");
    run.agent.chat("fake-words3").await;
    assert_eq!(told(tap.next().await.unwrap()), json!({ "type": "text", "delta": "Hello from the" }));
}

#[tokio::test]
async fn one_run_is_not_told_of_another() {
    let world = World::start().await;
    let (run, mut tap) = watched_run(&world).await;
    let other = world.run_with(RunGrant { tap: Tap::Text, ..grant("r2", "acct-1") }).await;
    other.agent.chat("fake-words2").await;
    run.agent.chat("fake-words1").await;
    assert_eq!(text(&tap.next().await.unwrap()), "Hello");
}

/// The call is not slowed down, and the missed pieces are counted.
#[tokio::test]
async fn a_slow_tap_reader_misses_pieces() {
    const WORDS: usize = 40_000;
    let world = World::start().await;
    let (run, tap) = watched_run(&world).await;
    // The test does not read the tap until the answer has been read to its end.
    let answer = run.agent.stream(&format!("fake-words{WORDS}")).await.whole().await.unwrap();
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let told = tap.rest().await;
    let missed: u64 = told
        .iter()
        .filter(|event| event["type"] == "missed")
        .map(|event| event["count"].as_u64().unwrap())
        .sum();
    let came = told.iter().filter(|event| event["type"] != "missed").count();
    assert!(missed > 0 && came > 0, "{missed} missed, {came} told");
    assert_eq!(missed + came as u64, WORDS as u64 + 1, "what was missed is counted");
}

/// A tap that comes back goes on at the number it names.
#[tokio::test]
async fn a_late_tap_gets_the_kept_pieces() {
    let world = World::start().await;
    let (run, mut tap) = watched_run(&world).await;
    run.agent.chat("fake-words3").await;
    let first = tap.next().await.unwrap();
    drop(tap);
    run.agent.chat("fake-echo").await;
    let follow = async |after: u64| {
        let path = format!("/v1/runs/{}/tap?after={after}", run.grant.run_id);
        Lines::of(world.control.follow(&path).await)
    };
    let mut back = follow(first["n"].as_u64().unwrap()).await;
    let types = |events: &[Value]| events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>();
    let mut late = world.control.tap(&run.grant.run_id).await;
    assert_eq!(late.next().await.unwrap(), first, "with the same number");
    let since = [back.next().await.unwrap(), back.next().await.unwrap(), back.next().await.unwrap()];
    assert_eq!(types(&since), ["ended", "text", "ended"]);
    let numbers: Vec<_> = since.iter().map(|event| event["n"].as_u64().unwrap()).collect();
    assert!(first["n"].as_u64().unwrap() < numbers[0] && numbers.is_sorted(), "{numbers:?}");
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    assert_eq!(late.rest().await, since);
}

#[tokio::test]
async fn that_a_run_could_be_watched_is_in_its_records() {
    let world = World::start().await;
    let (watched, _) = watched_run(&world).await;
    let unwatched = world.run("r2", "acct-1").await;
    watched.agent.chat("fake").await;
    unwatched.agent.chat("fake").await;
    let taps: Vec<_> = world.records(2).await.into_iter().map(|line| line.record.tap).collect();
    assert_eq!(taps, [Tap::Text, Tap::Off]);
}

#[tokio::test]
async fn parallel_calls_are_tapped_apart() {
    let world = World::start().await;
    let (run, tap) = watched_run(&world).await;
    let words = ["fake-words3-gap20ms", "fake-words5-gap20ms"];
    let streams = [run.agent.stream(words[0]).await, run.agent.stream(words[1]).await];
    for stream in streams {
        stream.whole().await.unwrap();
    }
    drop(run.agent.stream("fake-stall1").await);
    let records = world.records(3).await;
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let told = tap.rest().await;
    for record in records.into_iter().map(|line| line.record) {
        let mut of_call: Vec<_> =
            told.iter().filter(|event| event["call"] == json!(record.litellm_call_id)).cloned().collect();
        of_call.iter_mut().for_each(|event| drop(event.as_object_mut().unwrap().remove("n")));
        let end = json!({ "type": "ended", "call": record.litellm_call_id, "outcome": record.outcome,
            "tokens": record.tokens, "tokens_source": record.tokens_source });
        assert_eq!(of_call.last(), Some(&end), "{told:?}");
        let said = match record.model_asked.as_ref().unwrap().as_str() {
            "fake-words3-gap20ms" => "Hello from the",
            "fake-words5-gap20ms" => "Hello from the scripted upstream,",
            _ => continue,
        };
        assert_eq!(texts(&of_call), said);
    }
}

#[tokio::test]
async fn a_large_answer_is_tapped_in_small_pieces() {
    let world = World::start().await;
    let (run, tap) = watched_run(&world).await;
    let answer = run.agent.chat("fake-big100k").await;
    assert!(answer.body.len() > 100 << 10);
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let told = tap.rest().await;
    assert!(told.iter().filter(|event| event["type"] == "text").all(|event| text(event).len() <= 4096));
    assert_eq!(texts(&told).len(), 100 << 10, "and nothing of it is lost");
}
