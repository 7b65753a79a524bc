//! Tests that bodies which both OpenClaw versions send pass unchanged through a gateway's listener. The real programs
//! sent these bodies; `tests/openclaw/record_bodies.mjs` recorded them.

use bytes::Bytes;
use harness::{
    Agent, World, grant,
    shared::{register_shared, share},
};
use http::Method;
use platform_core::record::{Identity, JournalLine, Outcome, TokensSource};
use serde::Deserialize;
use serde_json::{Value, json};

/// A call as it was recorded.
#[derive(Deserialize)]
struct Call {
    path: String,
    headers: std::collections::BTreeMap<String, String>,
    body: Value,
}

const SLOT: &str = "0123456789abcdef0123456789abcdef";

/// Each version in each of its dialects.
const RECORDED: [(&str, &str); 6] = [
    ("2026.2.6-3 chat", include_str!("../../openclaw/bodies/2026.2.6-3/openai-completions.json")),
    ("2026.2.6-3 responses", include_str!("../../openclaw/bodies/2026.2.6-3/openai-responses.json")),
    ("2026.2.6-3 messages", include_str!("../../openclaw/bodies/2026.2.6-3/anthropic-messages.json")),
    ("2026.9.6 chat", include_str!("../../openclaw/bodies/2026.9.6/openai-completions.json")),
    ("2026.9.6 responses", include_str!("../../openclaw/bodies/2026.9.6/openai-responses.json")),
    ("2026.9.6 messages", include_str!("../../openclaw/bodies/2026.9.6/anthropic-messages.json")),
];

fn calls() -> Vec<(&'static str, Call)> {
    let of = |recorded| serde_json::from_str::<Vec<Call>>(recorded).unwrap();
    RECORDED
        .iter()
        .flat_map(|(name, recorded)| of(recorded).into_iter().map(move |call| (*name, call)))
        .collect()
}

/// Returns the trace id of a call. Only the version that has trace ids sends them; a slot distinguishes the other's
/// calls.
fn trace(call: &Call) -> Option<&str> {
    call.headers.get("traceparent").and_then(|parent| parent.split('-').nth(1))
}

#[tokio::test]
async fn recorded_openclaw_bodies_pass_unchanged() {
    let mut world = World::start().await;
    share(&mut world, "gateways").await;
    let address = register_shared(&world, grant("r1", "acct-1")).await;
    let put = async |what: String| {
        let path = format!("/v1/runs/r1/{what}");
        assert_eq!(world.control.send(Method::PUT, &path, String::new()).await.status, 200, "{path}");
    };
    put(format!("slots/{SLOT}")).await;
    for (count, (name, call)) in (1..).zip(calls()) {
        let (path, identity) = match trace(&call) {
            Some(trace) => {
                put(format!("traces/{trace}")).await;
                (call.path.clone(), Identity::Trace)
            }
            None => (format!("/slot/{SLOT}{}", call.path), Identity::Slot),
        };
        let agent =
            call.headers.iter().fold(Agent::over_tcp(address).searched(), |agent, (header, value)| {
                agent.with_header(header, value)
            });
        let answer = agent.request(Method::POST, &path, Bytes::from(call.body.to_string())).await.unwrap();
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let line: JournalLine = world.records(count).await.pop().unwrap();
        assert_eq!(
            (line.record.identity, line.record.outcome, line.record.tokens_source, line.record.refusal),
            (identity, Outcome::Complete, TokensSource::Exact, None),
            "{name}"
        );
        assert_eq!(world.upstream.ledger().last().unwrap().json().unwrap(), call.body, "{name}: changed");
    }
}

#[tokio::test]
async fn a_recorded_body_with_a_field_more_is_refused() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (name, mut call) in calls() {
        call.body["fallbacks"] = json!(["fake"]);
        let answer = run.agent.post(&call.path, &call.body).await;
        assert_eq!(answer.status, 400, "{name}");
    }
    assert!(world.upstream.ledger().is_empty());
}
