//! Tests the whole path: a question goes into a sealed container, its answer comes out, and the journal has the record.

use std::time::{Duration, Instant};

use harness::World;
use platform_core::record::Outcome;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Answer of the scripted upstream, a word per event.
const ANSWER: &str = "Hello from the scripted upstream, it is a lovely day.";
const WORDS: usize = 10;
/// Pause between the words of `fake-gap300ms`.
const GAP: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_sealed_agent_is_answered_and_journaled() {
    let world = World::start().await;
    let outcome = world
        .sluice()
        .run(&["run", "--account", "acct-1", "--run-id", "r1", "--model", "fake", "Hello?"])
        .await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");

    let asked = world.upstream.ledger().last().unwrap();
    let record = &world.records(1).await[0].record;
    assert_eq!(
        (record.run_id.as_str(), record.account.as_str(), record.outcome),
        ("r1", "acct-1", Outcome::Complete)
    );
    assert_eq!(asked.header("x-litellm-end-user-id"), ["acct-1"]);
    assert_eq!(asked.header("x-litellm-call-id"), [record.litellm_call_id.to_string()]);
    assert_eq!(asked.json().unwrap()["messages"][0]["content"], "Hello?");
    world.assert_nothing_left().await;
}

/// Returns the events of a run, each with the time it came.
async fn events_as_they_come(world: &World, model: &str) -> Vec<(Value, Instant)> {
    let mut child = world.sluice().spawn(&["run", "--json", "--model", model, "Hello?"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut events = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        events.push((serde_json::from_str(&line).unwrap(), Instant::now()));
    }
    assert!(child.wait().await.unwrap().success(), "{events:?}");
    events
}

fn text_deltas(events: &[(Value, Instant)]) -> Vec<(&str, Instant)> {
    let deltas = events.iter().filter(|(event, _)| event["type"] == "text_delta");
    deltas.map(|(event, at)| (event["delta"].as_str().unwrap(), *at)).collect()
}

#[tokio::test]
async fn words_stream_out_of_the_sandbox() {
    let world = World::start().await;
    let events = events_as_they_come(&world, "fake-gap300ms").await;
    let deltas = text_deltas(&events);
    let spread = |deltas: &[(&str, Instant)]| deltas[deltas.len() - 1].1 - deltas[0].1;
    assert_eq!(deltas.iter().map(|(text, _)| *text).collect::<String>(), ANSWER);
    assert_eq!(deltas.len(), WORDS, "a delta per event of the model: {deltas:?}");
    // A busy machine may hold back the first ones, hence half.
    assert!(spread(&deltas) > GAP * 9 / 2, "words of nine gaps came within {:?}", spread(&deltas));
    let end = events.iter().find(|(event, _)| event["type"] == "assistant_final").unwrap().1;
    assert!(deltas.iter().all(|(_, at)| *at < end), "words that come after the answer are of no use");

    // Control: the same measurement recognises a model without pauses.
    let events = events_as_they_come(&world, "fake").await;
    assert!(spread(&text_deltas(&events)) < GAP * 9 / 2);
}

#[tokio::test]
async fn events_are_ordered_and_end_with_one_result() {
    let world = World::start().await;
    let outcome =
        world.sluice().run(&["run", "--json", "--run-id", "r1", "--account", "acct-1", "Hello?"]).await;
    let events = outcome.events();
    let mut kinds: Vec<_> = events
        .iter()
        .map(|event| event["phase"].as_str().or(event["type"].as_str()).unwrap())
        .filter(|kind| *kind != "log")
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "preparing",
            "starting",
            "running",
            "text_delta",
            "settling",
            "assistant_final",
            "usage_report",
            "done",
            "result"
        ]
    );
    let result = outcome.result();
    assert_eq!(
        (result["ok"].as_bool(), &result["run_id"], &result["account"]),
        (Some(true), &"r1".into(), &"acct-1".into())
    );
    assert_eq!(
        (result["text"].as_str(), &result["exit_code"], &result["error"]),
        (Some(ANSWER), &0.into(), &Value::Null)
    );
    let record = &world.records(1).await[0].record;
    assert_eq!(result["usage"]["calls"], 1);
    assert_eq!(result["usage"]["tokens"]["output"], record.tokens.output);
    assert!(record.tokens.output > 0);
}

#[tokio::test]
async fn in_a_pipe_there_is_only_the_answer() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["run", "Hello?"]).await;
    assert_eq!(
        (outcome.code, outcome.stdout, outcome.stderr),
        (Some(0), format!("{ANSWER}\n"), String::new())
    );
}

#[tokio::test]
async fn a_terminal_shows_the_answer_word_by_word() {
    let world = World::start().await;
    let shown = world.sluice().on_terminal(&["run", "--model", "fake-gap300ms", "Hello?"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let text = shown.text();
    assert_eq!(text.matches(ANSWER).count(), 1, "{text:?}");
    let came = |word: &str| shown.pieces.iter().find(|(piece, _)| piece.contains(word)).unwrap().1;
    assert!(came("day.") - came("Hello") > GAP * 9 / 2, "{shown:?}");
    assert!(text.contains(": 1 call, "), "the summary follows: {text:?}");
}

/// Progress is one line, which is gone when there is output.
#[tokio::test]
async fn a_terminal_shows_progress_until_output() {
    let ask = r#"curl --silent --output /dev/null http://localhost:8080/v1/chat/completions --json '
        { "model": "fake-gap300ms", "stream": true, "messages": [{ "role": "user", "content": "q" }] }'"#;
    let world = crate::sandbox::world_with(&format!("{ask}; sleep 2; echo the answer")).await;
    let shown = world.sluice().on_terminal(&["run", "--agent", "test:sh", "q"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let text = shown.text();
    let lines: Vec<_> = text.split("\r\x1b[K").collect();
    assert!(
        lines.iter().any(|line| line.contains("· running ") && line.contains("a lovely day.")),
        "{lines:?}"
    );
    assert!(
        lines.last().unwrap().starts_with("the answer"),
        "the line is gone when the answer is there: {lines:?}"
    );
    // Control: without a terminal nothing is drawn.
    let piped = world.sluice().run(&["run", "--agent", "test:sh", "q"]).await;
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("the answer\n", ""));
}

#[tokio::test]
async fn a_long_question_is_read_from_stdin() {
    let world = World::start().await;
    // Far more than an argument can hold.
    let question = format!("{}\n\"quoted\" $(id) `id` 你好 \\ end\n", "long ".repeat((4 << 20) / 5));
    let file = world.path().join("question");
    std::fs::write(&file, &question).unwrap();
    let sluice = world.sluice().stdin(std::fs::File::open(file).unwrap());
    let outcome = sluice.run(&["run", "-"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let asked = world.upstream.ledger().last().unwrap().json().unwrap();
    assert!(asked["messages"][0]["content"] == question, "the question arrived changed");
}
