//! `sluice audit trace`: the steps of a real call, in order, without a word of what is said.

use harness::{World, eventually::PATIENCE, grant};
use platform_core::{budget::Budget, grant::RunGrant};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr},
    time::timeout,
};

/// A trace, and lines of its standard error.
type Tracing = (Child, Lines<BufReader<ChildStderr>>);

/// Starts a trace; returns it when it waits for a call.
async fn tracing(world: &World, flags: &[&str]) -> Tracing {
    let mut trace = world.sluice().spawn(&[&["audit", "trace", "r1"], flags].concat());
    let mut complaints = BufReader::new(trace.stderr.take().unwrap()).lines();
    let line = timeout(PATIENCE, complaints.next_line()).await.expect("it waits").unwrap();
    assert_eq!(line.as_deref(), Some("waiting for the next call of run r1"));
    (trace, complaints)
}

async fn text_of((trace, _complaints): Tracing) -> String {
    let output = timeout(PATIENCE, trace.wait_with_output()).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn steps_of(trace: Tracing) -> Vec<Value> {
    text_of(trace).await.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(steps: &[Value]) -> Vec<&str> {
    steps.iter().map(|step| step["step"].as_str().unwrap()).collect()
}

const STREAMED: [&str; 9] = [
    "accepted",
    "admitted",
    "body_read",
    "reserved",
    "sent",
    "first_byte",
    "first_event",
    "ended",
    "settled",
];

#[tokio::test]
async fn a_streamed_call_is_traced_step_by_step() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let trace = tracing(&world, &["--json"]).await;
    // The trace contains nothing of another run.
    world.run("r2", "acct-1").await.agent.chat("fake").await;
    let answer = run.agent.stream("fake-words8-gap100ms").await.whole().await.unwrap();
    assert!(answer.text().contains("Hello"), "control: it was said");
    let steps = steps_of(trace).await;
    let told = names(&steps);
    let once: Vec<_> = told.iter().filter(|name| **name != "progress").copied().collect();
    assert_eq!(once, STREAMED, "{steps:?}");
    assert!(told.iter().filter(|name| **name == "progress").count() >= 2, "{steps:?}");

    let record = world.records(2).await.pop().unwrap().record;
    let at: Vec<_> = steps.iter().map(|step| step["at_us"].as_u64().unwrap()).collect();
    assert!(at.is_sorted() && at[5] <= record.duration_us, "{at:?}");
    let call = record.litellm_call_id.to_string();
    assert!(steps.iter().all(|step| step["call"] == call), "{steps:?}");
    let step = |name: &str| &steps[told.iter().position(|told| *told == name).unwrap()];
    assert_eq!(step("accepted")["identity"], "socket");
    assert_eq!(step("body_read")["bytes"], record.request_bytes);
    assert_eq!(
        (&step("body_read")["model"], &step("body_read")["stream"]),
        (&"fake-words8-gap100ms".into(), &true.into())
    );
    assert_eq!(step("sent")["connection"], "fresh");
    assert_eq!(
        (&step("ended")["outcome"], &step("ended")["bytes"]),
        (&"complete".into(), &record.response_bytes.into())
    );
    assert_eq!(step("settled")["tokens"]["output"], record.tokens.output);
    let all = format!("{steps:?}");
    assert!(!all.contains("Hello") && !all.contains("Say hello"), "nothing of what was said: {all}");
}

/// Readers see a column of times, and whether a connection was used again.
#[tokio::test]
async fn trace_text_shows_times_and_connection_reuse() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    let trace = tracing(&world, &[]).await;
    run.agent.chat("fake").await;
    let text = text_of(trace).await;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("call ") && lines[1].trim_start().starts_with("0."), "{text}");
    for (line, words) in lines[1..].iter().zip([
        "ms  accepted     identified by its socket",
        "ms  admitted     to chat_completions",
        "ms  body read    ",
        "ms  reserved     at most ",
        "ms  sent         upstream, on a ",
        "ms  first byte   status 200",
        "ms  ended        complete, status 200, ",
        "ms  settled      3 tokens in, 10 out (exact)",
    ]) {
        assert!(line.contains(words), "{words} is not in {line}");
    }
}

/// The trace has no step of sending: nothing was sent.
#[tokio::test]
async fn a_refused_call_is_traced_with_its_rule() {
    let world = World::start().await;
    let budget = Budget { total_tokens: Some(5), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    let trace = tracing(&world, &["--json"]).await;
    assert_eq!(run.agent.chat("fake").await.status, 400);
    let steps = steps_of(trace).await;
    assert_eq!(names(&steps), ["accepted", "admitted", "body_read", "ended", "settled"]);
    assert_eq!(
        (&steps[3]["refusal"], &steps[3]["rule"]),
        (&"quota_exhausted".into(), &"run.total_tokens".into())
    );
}

#[tokio::test]
async fn a_run_that_closes_or_is_not_open_is_told_of() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["audit", "trace", "r1"]).await;
    assert!(outcome.code == Some(1) && outcome.stderr.contains("run r1 is not open"), "{outcome:?}");
    let run = world.run("r1", "acct-1").await;
    let (trace, mut complaints) = tracing(&world, &[]).await;
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let output = timeout(PATIENCE, trace.wait_with_output()).await.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(complaints.next_line().await.unwrap().as_deref(), Some("sluice: run r1 was closed"));
}

/// The calls are not slowed down, and the missed steps are counted.
#[tokio::test]
async fn a_slow_trace_reader_misses_steps() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let trace = world.control.follow("/v1/runs/r1/trace").await;
    // The test does not read the trace until all calls are done.
    for _ in 0..400 {
        run.agent.post("/v1/nothing", &serde_json::json!({})).await;
    }
    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let told = harness::Lines::of(trace).rest().await;
    let missed: u64 = told.iter().filter_map(|event| event["count"].as_u64()).sum();
    let came = told.iter().filter(|event| event["type"] == "step").count() as u64;
    // Accepted, ended and settled.
    assert_eq!(missed + came, 3 * 400, "what was missed is counted: {missed} and {came}");
}
