//! Tests the part of OpenAI's API in which a model is an agent.

use harness::{
    Agent, Answer,
    eventually::eventually_within,
    shell_agents::{RECALLS, prints, reporting_agent},
};
use http::Method;
use serde_json::{Value, json};

use super::orders::{Served, ended};
use crate::recovery::survival::PATIENCE;

const COMPLETIONS: &str = "/v1/chat/completions";

fn asks(model: &str) -> Value {
    let messages = json!([
        { "role": "system", "content": "Be short." },
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "1" },
        { "role": "user", "content": [{ "type": "text", "text": "two" }] },
    ]);
    json!({ "model": model, "messages": messages, "temperature": 0.1, "user": "u", "tools": [] })
}

fn streamed(model: &str) -> Value {
    let mut body = asks(model);
    body["stream"] = true.into();
    body["stream_options"] = json!({ "include_usage": true });
    body
}

fn chunks(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let mut data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    data.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_error(answer: &Answer, status: u16, code: &str) {
    let error = &answer.json()["error"];
    assert_eq!((answer.status.as_u16(), &error["code"]), (status, &json!(code)), "{}", answer.text());
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    assert!(error["type"].as_str().is_some_and(|kind| kind.ends_with("_error")), "{error}");
    assert_eq!(answer.headers["content-type"], "application/json");
}

/// Settings of an entry for runs that name no model.
const NO_MODEL: &str = "model = 'fake'";

async fn served(script: &str, more: &str) -> (Served, Agent) {
    let agents = format!(
        "{}{more}",
        reporting_agent(&prints(&tool_lines()), &format!("{NO_MODEL}\nstream = 'answer'"))
            .replace("test:sh", "test:tools")
    );
    let there = Served::of(&format!("\n{agents}\n"), script).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    (there, app)
}

fn tool_lines() -> [Value; 4] {
    [
        json!({ "type": "text", "text": "Let me look." }),
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "arguments": {} }),
        json!({ "type": "tool_result", "id": "c1", "result": "one" }),
        json!({ "type": "result", "text": "the answer" }),
    ]
}

#[tokio::test]
async fn a_completion_is_an_agents_run() {
    let (there, app) = served(RECALLS, "").await;
    let whole = app.post(COMPLETIONS, &asks("test:sh")).await;
    let completion = whole.json();
    let message = &completion["choices"][0]["message"];
    assert_eq!(message["content"], "system:Be short.|user:one|assistant:1|user:two", "{}", whole.text());
    assert_eq!((&completion["object"], &completion["model"]), (&json!("chat.completion"), &json!("test:sh")));
    assert_eq!(completion["usage"]["total_tokens"], 0);
    let run = whole.headers["x-cogni-run-id"].to_str().unwrap();
    assert_eq!(app.get(&format!("/api/v1/runs/{run}")).await.json()["account"], "acct-7");
    let received = chunks(&app.post(COMPLETIONS, &streamed("test:sh")).await);
    let text: String =
        received.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, message["content"].as_str().unwrap());
    assert!(received.iter().all(|chunk| chunk["choices"].is_array()), "Zed reads it in each chunk");
    let usage = received.last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["completion_tokens"]), (&json!([]), &json!(0)));
    let tools = chunks(&app.post(COMPLETIONS, &streamed("test:tools")).await);
    let text: String =
        tools.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Let me look.\n\nthe answer");
    let models = app.get("/v1/models").await.json();
    let listed: Vec<_> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert!(listed.contains(&"test:sh") && listed.contains(&"test:tools"), "{listed:?}");
    assert_eq!(app.get("/v1/models/test:sh").await.json()["object"], "model");
    there.end().await;
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_run() {
    let (there, app) = served("sleep 50", "").await;
    for body in [asks("test:sh"), streamed("test:sh")] {
        let is_streamed = body["stream"] == true;
        let listed = || async { app.get("/api/v1/runs").await.json()["runs"][0]["runId"].clone() };
        let call = app.send(Method::POST, COMPLETIONS, body.to_string().into());
        let stream = if is_streamed {
            Some(call.await.unwrap())
        } else {
            // An answer that is not streamed begins with the end of the run.
            tokio::select! {
                answer = call => panic!("it has begun: {:?}", answer.map(|answer| answer.status)),
                _ = eventually_within(PATIENCE, "it is ordered", listed, Value::is_string) => None,
            }
        };
        let run = eventually_within(PATIENCE, "a run", listed, Value::is_string).await;
        drop(stream);
        assert_eq!(ended(&app, run.as_str().unwrap()).await["state"], "cancelled");
    }
    there.end().await;
}

#[tokio::test]
async fn errors_have_openais_form() {
    let (there, app) = served("exit 3", "").await;
    assert_error(&there.api.get("/v1/models").await, 401, "unauthenticated");
    assert_error(&there.api.post(COMPLETIONS, &asks("test:sh")).await, 401, "unauthenticated");
    assert_error(&app.post(COMPLETIONS, &asks("test:none")).await, 404, "unknown_agent");
    assert_error(&app.get("/v1/models/test:none").await, 404, "not_found");
    assert_error(&app.post(COMPLETIONS, &json!({ "model": "test:sh" })).await, 400, "invalid_request");
    let failed = app.post(COMPLETIONS, &asks("test:sh")).await;
    assert_error(&failed, 502, "container_failed");
    assert_eq!(failed.headers["x-should-retry"], "false", "another try would be another run");
    let received = chunks(&app.post(COMPLETIONS, &streamed("test:sh")).await);
    assert_eq!(received.last().unwrap()["error"]["code"], "container_failed", "{received:#?}");
    let key = app.clone().with_header("idempotency-key", "k");
    let once = key.post(COMPLETIONS, &asks("test:sh")).await;
    let again = key.post(COMPLETIONS, &asks("test:sh")).await;
    assert_error(&again, 502, "container_failed");
    assert_eq!(once.status, again.status);
    let runs = app.get("/api/v1/runs").await.json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 3, "a repeated request is one run");
    there.end().await;
}
