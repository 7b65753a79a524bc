//! Tests errors of the upstream as an agent receives them: they say what is wrong, and nothing of the upstream's
//! internals.

use harness::{Agent, CANARY_KEY, KeepOpenUpstream, World, agent::Answer};
use platform_core::{
    record::{ExchangeRecord, Outcome},
    refusal::Refusal,
};
use serde_json::json;

/// Builds an error as an upstream writes it.
fn error(status: &str, headers: &str, message: &str, kind: &str) -> String {
    let body =
        json!({ "error": { "message": message, "type": kind, "param": null, "code": "x" } }).to_string();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns what an agent receives from an upstream that answers so, and what is recorded.
async fn told(answer: &str) -> (Answer, ExchangeRecord, KeepOpenUpstream) {
    let keep_open = KeepOpenUpstream::answering(answer).await;
    let upstream = bench::upstream::ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &keep_open.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    let answer = run.agent.chat("m").await;
    (answer, world.records(1).await.pop().unwrap().record, keep_open)
}

#[tokio::test]
async fn upstream_internals_are_redacted_from_errors() {
    let hash = "9f86d081884c7d659a2feaa0c55ad015".repeat(2);
    let insides =
        ["sk-abcdefgh1234", &hash, "10.1.2.3", "http://db.internal:5432/x", "litellm:4000", CANARY_KEY];
    let message = format!("litellm.BadRequestError: max_tokens is too large; {}", insides.join(", "));
    let (answer, record, upstream) =
        told(&error("400 Bad Request", "", &message, "invalid_request_error")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["type"]),
        (400, &json!("invalid_request_error"))
    );
    assert!(answer.text().contains("BadRequestError: max_tokens is too large"), "{}", answer.text());
    for secret in insides {
        assert!(!answer.text().contains(secret), "{secret}: {}", answer.text());
    }
    assert_eq!((record.outcome, record.status, record.refusal), (Outcome::Complete, 400, None));
    assert_eq!(record.response_bytes, answer.body.len() as u64);
    // Control: without Sluicegate the agent receives all of it.
    let address = upstream.base_url().trim_start_matches("http://").parse().unwrap();
    let direct = Agent::over_tcp(address).chat("m").await.text();
    assert!(insides.iter().all(|secret| direct.contains(secret)), "{direct}");
}

/// Errors that the agent caused pass.
#[tokio::test]
async fn our_own_budget_errors_are_hidden() {
    for (status, kind, expected) in [
        ("422 Unprocessable Entity", "budget_exceeded", (502, Some(Refusal::UpstreamAuth))),
        ("400 Bad Request", "budget_exceeded", (502, Some(Refusal::UpstreamAuth))),
        ("402 Payment Required", "x", (502, Some(Refusal::UpstreamAuth))),
        ("422 Unprocessable Entity", "invalid_request_error", (422, None)),
        ("400 Bad Request", "invalid_request_error", (400, None)),
    ] {
        let (answer, record, _) = told(&error(status, "", "Budget has been exceeded!", kind)).await;
        assert_eq!((answer.status.as_u16(), record.refusal), expected, "{status} {kind}");
        assert_eq!(record.status.to_string(), status[..3], "the record keeps the real status");
        let is_ours = expected.1.is_some();
        assert_eq!(answer.text().contains("Budget"), !is_ours, "{}", answer.text());
        assert_eq!(answer.headers.contains_key("x-should-retry"), is_ours);
    }
}

/// LiteLLM answers 403 for a model outside its virtual key, as it was measured.
#[tokio::test]
async fn a_model_outside_the_key_is_named() {
    let message = "The requested model 'm' is not available for this API key, ...";
    let denied = error("403 Forbidden", "", message, "key_model_access_denied");
    let (answer, record, _) = told(&denied).await;
    assert_eq!((answer.status.as_u16(), record.status), (502, 403));
    assert_eq!(record.refusal, Some(Refusal::UpstreamAuth));
    let said =
        "the gateway's key may not use model m: its operator must add the model to that key, or set another";
    assert_eq!(answer.json()["error"]["message"], said);
    let (other, ..) = told(&error("403 Forbidden", "", "no", "auth_error")).await;
    assert!(other.text().contains("does not accept the gateway's own access"), "control: {}", other.text());
}

#[tokio::test]
async fn when_to_come_again_is_told_as_sdks_read_it() {
    for (headers, expected) in [
        ("llm_provider-retry-after: 7\r\n", Some("7")),
        ("retry-after: 3\r\nllm_provider-retry-after: 7\r\n", Some("3")),
        ("llm_provider-x-ratelimit-reset: 7\r\n", None),
    ] {
        let (answer, ..) =
            told(&error("429 Too Many Requests", headers, "slow down", "throttling_error")).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.headers.get("retry-after").map(|value| value.to_str().unwrap()), expected);
        assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("llm_provider")));
    }
}

#[tokio::test]
async fn an_error_without_end_is_told_in_one_sentence() {
    let endless = error("500 Internal Server Error", "", &"trace ".repeat(100_000), "server_error");
    let (answer, record, _) = told(&endless).await;
    assert_eq!((answer.status.as_u16(), record.status), (500, 500));
    assert!(
        answer.body.len() < 500 && answer.json()["error"]["code"] == "upstream_failed",
        "{}",
        answer.text()
    );
}
