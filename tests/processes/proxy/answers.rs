//! Checks what an answer reports: its headers to the agent, its figures to the journal.

use std::collections::BTreeSet;

use bench::upstream::ScriptedUpstream;
use harness::{
    Agent, Answer, KeepOpenUpstream, Raw, World,
    agent::{Answering, saying},
    raw::read_until,
};
use platform_core::{
    record::{CostSource, ExchangeRecord, Outcome, Tokens, TokensSource},
    route::Route,
};
use serde_json::Value;

/// Thirty-three bytes: nine prompt tokens by the scripted upstream's rule, two of them from its cache.
const PROMPT: &str = "Please tell me about the weather.";
const INPUT: Tokens =
    Tokens { input: 9, output: 0, cached: 2, cache_written: 0, cache_written_1h: 0, reasoning: 0 };

fn header_names(answer: &Answer) -> BTreeSet<&str> {
    answer.headers.keys().map(http::HeaderName::as_str).collect()
}

#[tokio::test]
async fn only_harmless_response_headers_pass() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let whole = run.agent.chat("fake-cost").await;
    assert_eq!(
        header_names(&whole),
        BTreeSet::from(["content-length", "content-type", "date", "x-litellm-call-id"])
    );
    assert_eq!(whole.headers["x-litellm-call-id"].to_str().unwrap(), call_id(&world, 0).await);
    let streamed = run.agent.stream("fake-cost").await.whole().await.unwrap();
    assert_eq!(
        header_names(&streamed),
        BTreeSet::from(["content-type", "date", "transfer-encoding", "x-litellm-call-id"])
    );
    assert_eq!(streamed.headers["content-type"], "text/event-stream");
    assert_eq!(streamed.headers["x-litellm-call-id"].to_str().unwrap(), call_id(&world, 1).await);
    let limited = run.agent.chat("fake-status429").await;
    assert_eq!(limited.headers["retry-after"], "7");
    // The upstream did send one that must not pass.
    let direct = Agent::over_tcp(world.upstream.address()).chat("fake-cost").await;
    assert!(direct.headers.contains_key("x-litellm-response-cost"), "{:?}", direct.headers);
}

async fn call_id(world: &World, index: usize) -> String {
    world.records(index + 1).await[index].record.litellm_call_id.to_string()
}

/// Builds a request of each API, for the prompt above.
fn asked(path: &str, model: &str, answering: Answering) -> Value {
    saying(path, model, answering, PROMPT)
}

#[tokio::test]
async fn usage_is_recorded_as_the_upstream_counted_it() {
    // Ten words. OpenAI's APIs say that a fifth of them was reasoning, Anthropic's and the embeddings' do not.
    let (written, reasoned) = (Tokens { output: 10, ..INPUT }, Tokens { output: 10, reasoning: 2, ..INPUT });
    let table = [
        ("/v1/chat/completions", Route::ChatCompletions, reasoned),
        ("/v1/completions", Route::Completions, reasoned),
        ("/v1/responses", Route::Responses, reasoned),
        ("/v1/messages", Route::Messages, written),
        ("/v1/embeddings", Route::Embeddings, Tokens { cached: 0, ..INPUT }),
    ];
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut calls = 0;
    for (path, route, tokens) in table {
        for (answering, model) in
            [(Answering::Whole, "fake-words10-cost"), (Answering::Streamed, "fake-words10-cost")]
        {
            calls += 1;
            let answer = run.agent.post(path, &asked(path, model, answering)).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let record = world.records(calls).await.pop().unwrap().record;
            assert_eq!(
                (record.route, record.tokens, record.tokens_source),
                (route, tokens, TokensSource::Exact)
            );
            let micro_dollars = tokens.input + 2 * record.tokens.output.max(embedded_words(route));
            let expected = match (route, answering) {
                // The upstream's figure is of the stream's last event.
                (Route::Messages, Answering::Streamed) => (None, CostSource::None),
                _ => (Some(micro_dollars * 1000), CostSource::Upstream),
            };
            assert_eq!(cost(&record), expected, "{path} {answering:?}");
            let asked_to_stream = answering == Answering::Streamed && route != Route::Embeddings;
            assert_eq!(record.stream, asked_to_stream);
            assert_eq!(record.response_bytes, answer.body.len() as u64);
            assert_eq!(record.model_answered.as_ref().unwrap().as_str(), model);
        }
    }
}

/// Returns the words that the scripted upstream charges for an embedding, which has no text.
fn embedded_words(route: Route) -> u64 {
    if route == Route::Embeddings { 10 } else { 0 }
}

fn cost(record: &ExchangeRecord) -> (Option<u64>, CostSource) {
    (record.cost_nanodollars.map(|cost| cost.0), record.cost_source)
}

#[tokio::test]
async fn unreported_usage_is_estimated() {
    // Fifty-three bytes of text, in however many pieces; embeddings have none.
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut calls = 0;
    for path in PATHS {
        for answering in [Answering::Whole, Answering::Streamed] {
            calls += 1;
            let body = asked(path, "fake-nousage", answering);
            run.agent.post(path, &body).await;
            let record = world.records(calls).await.pop().unwrap().record;
            let output = if record.route == Route::Embeddings { 0 } else { estimated(53) };
            // A digit is a token.
            let digits = body.to_string().bytes().filter(u8::is_ascii_digit).count() as u64;
            let input = estimated(record.request_bytes - digits) + digits;
            let expected = Tokens { input, output, ..Tokens::default() };
            assert_eq!(
                (record.tokens, record.tokens_source),
                (expected, TokensSource::Estimated),
                "{path} {answering:?}"
            );
            assert_eq!(cost(&record), (None, CostSource::None));
        }
    }
}

#[tokio::test]
async fn calls_without_a_model_are_not_estimated() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let refused = run.agent.post(PATHS[0], &serde_json::json!({ "model": "fake", "nonsense": 1 })).await;
    let failed = run.agent.chat("fake-status500").await;
    assert_eq!((refused.status.as_u16(), failed.status.as_u16()), (400, 500));
    for line in world.records(2).await {
        assert_eq!(
            (line.record.tokens, line.record.tokens_source),
            (Tokens::default(), TokensSource::None),
            "{:?}",
            line.record
        );
    }
}

const PATHS: [&str; 5] =
    ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"];

/// Returns the tokens that the proxy estimates for so many bytes.
fn estimated(bytes: u64) -> u64 {
    (bytes * 2).div_ceil(7)
}

#[tokio::test]
async fn an_image_is_not_taken_for_text() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut body = asked(PATHS[0], "fake-nousage", Answering::Whole);
    let image = format!("data:image/png;base64,{}", "A".repeat(1 << 20));
    body["messages"][0]["content"] =
        serde_json::json!([{ "type": "image_url", "image_url": { "url": image } }]);
    assert_eq!(run.agent.post(PATHS[0], &body).await.status, 200);
    let tokens = world.records(1).await.pop().unwrap().record.tokens;
    assert!((1000..1100).contains(&tokens.input), "{tokens:?}");
}

#[tokio::test]
async fn called_tools_are_recorded_by_name_only() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut calls = 0;
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        for answering in [Answering::Whole, Answering::Streamed] {
            calls += 1;
            let answer = run.agent.post(path, &asked(path, "fake-tools", answering)).await;
            assert!(answer.text().contains("Par"), "the arguments reach the agent: {}", answer.text());
            let record = world.records(calls).await.pop().unwrap().record;
            let tools: Vec<_> = record.tools.iter().map(|tool| tool.as_str()).collect();
            assert_eq!(tools, ["get_weather"], "{path} {answering:?}");
            let reason = match path {
                "/v1/chat/completions" => "tool_calls",
                "/v1/responses" => "completed",
                _ => "tool_use",
            };
            assert_eq!(record.finish_reason.unwrap().as_str(), reason, "{path} {answering:?}");
        }
    }
}

/// An agent that leaves once it has all it wants is billed for no less than it used.
#[tokio::test]
async fn an_abandoned_answer_counts_as_read() {
    let table = [
        ("/v1/chat/completions", "\"total_tokens\""),
        ("/v1/completions", "\"total_tokens\""),
        ("/v1/messages", "message_delta"),
    ];
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (calls, (path, last_words)) in (1..).zip(table) {
        let model = if path == "/v1/completions" { "fake-words5-gap50ms" } else { "fake-tools-gap50ms" };
        let mut wire = Raw::post(path, &asked(path, model, Answering::Streamed)).begin(&run.agent).await;
        read_until(&mut wire, last_words).await;
        drop(wire);
        let record = world.records(calls).await.pop().unwrap().record;
        assert_eq!(record.outcome, Outcome::ClientGone, "{path}");
        assert_eq!(
            (record.tokens_source, record.tokens.input, record.tokens.output),
            (TokensSource::Exact, 9, 5),
            "{path}"
        );
        assert_eq!(record.model_answered.unwrap().as_str(), model, "{path}");
        assert_eq!(record.tools.is_empty(), path == "/v1/completions", "{path}");
    }
}

/// An agent with an official SDK closes the connection at `[DONE]`, and LiteLLM ends the body some milliseconds after
/// it. The call counts as complete.
#[tokio::test]
async fn leaving_after_the_last_event_is_complete() {
    let chat = r#"data: {"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}"#;
    let responses = r#"{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":9,"output_tokens":5}}}"#;
    let message = r#"{"type":"message_delta","usage":{"input_tokens":9,"output_tokens":5}}"#;
    let table = [
        ("/v1/chat/completions", format!("{chat}\n\ndata: [DONE]\n\n")),
        ("/v1/completions", format!("{chat}\n\ndata: [DONE]\n\n")),
        ("/v1/responses", format!("event: response.completed\ndata: {responses}\n\n")),
        (
            "/v1/messages",
            format!("data: {message}\n\nevent: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"),
        ),
    ];
    for (path, stream) in table {
        let keep_open = KeepOpenUpstream::streaming(&stream).await;
        let world =
            World::in_front_of(ScriptedUpstream::start().await.unwrap(), &keep_open.base_url(), "").await;
        let run = world.run("r1", "acct-1").await;
        let mut wire = Raw::post(path, &asked(path, "m", Answering::Streamed)).begin(&run.agent).await;
        read_until(&mut wire, &stream).await;
        drop(wire);
        let record = world.records(1).await.pop().unwrap().record;
        let figures = (record.tokens_source, record.tokens.input, record.tokens.output);
        assert_eq!((record.outcome, figures), (Outcome::Complete, (TokensSource::Exact, 9, 5)), "{path}");
    }
}
