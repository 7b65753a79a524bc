//! Tests the metering of calls that hide their usage, through the real LiteLLM. `tests/examples/metering.rs` makes two
//! thousand.

use harness::{
    Models,
    agent::Answering,
    metering::{End, Evidence, Metering},
};
use http::StatusCode;
use platform_core::record::{Outcome, TokensSource};
use serde_json::{Value, json};

use crate::{streams::PROMPT, world_with_litellm};

/// A method of hiding a call's usage.
struct Row {
    name: &'static str,
    path: &'static str,
    answering: Answering,
    hide: fn(&mut Value),
}

/// Methods of hiding usage. An answer of `/v1/responses` repeats its request in front of its usage, and LiteLLM leaves
/// out `"error": null`.
const ROWS: [Row; 7] = [
    Row { name: "control", path: RESPONSES, answering: Answering::Streamed, hide: |_| () },
    Row {
        name: "a delta in a tool",
        path: RESPONSES,
        answering: Answering::Streamed,
        hide: |body| body["tools"] = json!([tool(&json!({ "delta": "x" }))]),
    },
    Row {
        name: "an event in the format of the text",
        path: RESPONSES,
        answering: Answering::Streamed,
        hide: |body| {
            let schema = json!({ "type": "object", "default": { "type": "response.output_text.delta", "delta": "x" } });
            let format = json!({ "type": "json_schema", "name": "f", "strict": false, "schema": schema });
            body["text"] = json!({ "format": format });
        },
    },
    Row {
        name: "usage in a tool",
        path: RESPONSES,
        answering: Answering::Streamed,
        hide: |body| {
            let usage = json!({ "usage": { "input_tokens": 1, "output_tokens": 1 } });
            body["tools"] = json!([tool(&json!({ "response": usage, "usage": null }))]);
        },
    },
    Row {
        name: "instructions of two megabytes",
        path: RESPONSES,
        answering: Answering::Streamed,
        hide: |body| body["instructions"] = " ".repeat(2 << 20).into(),
    },
    Row {
        name: "instructions of seventeen megabytes",
        path: RESPONSES,
        answering: Answering::Whole,
        hide: |body| body["instructions"] = " ".repeat(17 << 20).into(),
    },
    Row {
        name: "vectors of twenty megabytes",
        path: "/v1/embeddings",
        answering: Answering::Whole,
        hide: |body| {
            let mut inputs = vec![json!("x"); 1100];
            inputs.push(body["input"].take());
            (body["input"], body["dimensions"]) = (inputs.into(), json!(3072));
        },
    },
];

const RESPONSES: &str = "/v1/responses";

fn tool(default: &Value) -> Value {
    let parameters = json!({ "type": "object", "properties": {}, "default": default });
    json!({ "type": "function", "name": "f", "parameters": parameters, "strict": false })
}

/// The journal has what LiteLLM bills, to the token.
#[tokio::test]
async fn an_agent_cannot_hide_usage() {
    let (world, litellm) = world_with_litellm().await;
    let run = world.run("r1", "acct-1").await;
    let mut wrong = Vec::new();
    for (made, Row { name, path, answering, hide }) in ROWS.into_iter().enumerate() {
        let mut body = Models::OpenAi.saying(path, "fake-usage300x6000", answering, PROMPT).unwrap();
        hide(&mut body);
        let answer = run.agent.post(path, &body).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let ours = world.records(made + 1).await.pop().unwrap().record;
        let theirs = litellm.record_of(&ours.litellm_call_id.to_string()).await;
        let output = if path == RESPONSES { 6000 } else { 0 };
        assert_eq!(
            (&theirs["prompt_tokens"], &theirs["completion_tokens"]),
            (&json!(300), &json!(output)),
            "{name}: {theirs}"
        );
        let booked = (ours.outcome, ours.tokens_source, ours.tokens.input, ours.tokens.output);
        if booked != (Outcome::Complete, TokensSource::Exact, 300, output) {
            wrong.push((name, booked));
        }
    }
    assert_eq!(wrong, []);
}

/// Each call has one record with the usage that the upstream reported. The judge finds each kind of fault.
#[tokio::test]
async fn reported_usage_is_recorded() {
    let evidence = Metering { seed: 20_261_123, calls: 40, giants: 1, largest: 2 << 20 }.play().await;
    let found = evidence.judge();
    assert_eq!(found.faults, Vec::<String>::new(), "{found:#?}");
    let reported: u64 = found.kinds.values().map(|figures| figures.reported).sum();
    assert!(reported >= 15, "too few calls told their usage: {found:#?}");

    let exact = exact(&evidence);
    is_found("lowered", &evidence, |evidence| evidence.journal[exact].record.tokens.output -= 1);
    is_found("raised", &evidence, |evidence| evidence.journal[exact].record.tokens.input += 1);
    is_found("missing", &evidence, |evidence| drop(evidence.journal.remove(exact)));
    is_found("twice", &evidence, |evidence| {
        let line = evidence.journal[exact].clone();
        evidence.journal.push(line);
    });
    is_found("another report", &evidence, |evidence| {
        evidence.reported.values_mut().for_each(|reported| reported.output += 1);
    });
    is_found("an estimate beyond all bounds", &evidence, |evidence| {
        let record = &mut evidence.journal[exact].record;
        (record.tokens_source, record.tokens.output) = (TokensSource::Estimated, u64::MAX);
    });
}

/// Returns the journal's index of a record of a call that received its whole answer.
fn exact(evidence: &Evidence) -> usize {
    let is_whole = |run: &str| {
        let number: usize = run.trim_start_matches('m').parse().unwrap();
        evidence.calls[number].end == End::Answered(StatusCode::OK) && evidence.reported.contains_key(&number)
    };
    evidence.journal.iter().position(|line| is_whole(line.record.run_id.as_str())).unwrap()
}

/// Checks as a control that changed evidence has a fault.
fn is_found(name: &str, evidence: &Evidence, change: impl FnOnce(&mut Evidence)) {
    let mut evidence = evidence.clone();
    change(&mut evidence);
    assert_ne!(evidence.judge().faults, Vec::<String>::new(), "{name}");
}
