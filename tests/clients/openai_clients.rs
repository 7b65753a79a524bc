//! Tests the part of OpenAI's API in which a model is an agent, with OpenAI's SDKs, LangChain, and requests as chat programs
//! make them. The programs are `tests/sdk/facade.py` and `tests/sdk/facade.mjs`; the requests are in `tests/sdk/requests`.

use harness::{Agent, Sdk, eventually};
use serde_json::{Value, json};

use crate::chat_clients::{clients, served_agents};

/// Requests with the fields that their programs need of an answer.
const REQUESTS: [&str; 4] = [
    include_str!("../sdk/requests/librechat.json"),
    include_str!("../sdk/requests/zed.json"),
    include_str!("../sdk/requests/zed-whole.json"),
    include_str!("../sdk/requests/continue.json"),
];

/// Returns what each case of a client has to say. `errors` are its classes for an unknown agent, a failed run, and an
/// invalid token.
fn expected(client: &str, errors: [&str; 3]) -> Vec<(&'static str, Value)> {
    let [unknown, failed, unauthenticated] = errors;
    let models = ["test:fails", "test:long", "test:model", "test:sh", "test:slow", "test:tools"];
    let own = [
        ("models", json!(models)),
        ("model", json!("model")),
        ("invalid", json!(["BadRequestError", 400, "invalid_request"])),
        ("failed_streamed", json!(["APIError", null, "container_failed"])),
        ("repeated", json!(1)),
    ];
    let own = own.into_iter().filter(|_| client == "openai");
    let common = [
        ("whole", json!("system:Be short.|user:one")),
        ("metered", json!([true, true])),
        ("streamed", json!([true, ["stop"], [true, true]])),
        ("unknown", json!([unknown, 404, "unknown_agent"])),
        ("failed", json!([failed, 502, "container_failed"])),
        ("unauthenticated", json!([unauthenticated, 401, "unauthenticated"])),
    ];
    own.chain(common).collect()
}

/// Checks what a client has said: each case once.
fn check(lines: &[Value], client: &str, errors: [&str; 3]) {
    let of_client: Vec<_> = lines.iter().filter(|line| line["client"] == client).collect();
    let expected = expected(client, errors);
    for (case, value) in &expected {
        let line = of_client.iter().find(|line| line["case"] == *case);
        let line = line.unwrap_or_else(|| panic!("{client} has no case {case}"));
        assert_eq!(&line["value"], value, "{client} {case}");
    }
    let others = ["cancelled", "retried"];
    let others = of_client.iter().filter(|line| others.contains(&line["case"].as_str().unwrap()));
    assert_eq!(of_client.len(), expected.len() + others.count(), "{client}");
}

async fn runs(app: &Agent, agent: &str) -> Vec<Value> {
    let listed = app.get(&format!("/api/v1/runs?agent={agent}")).await.json();
    listed["runs"].as_array().unwrap().clone()
}

#[tokio::test]
async fn openai_clients_use_agents_as_models() {
    let there = served_agents().await;
    let (app, programs) = clients(&there).await;
    let (python, node) = tokio::join!(programs.facade(Sdk::Python), programs.facade(Sdk::Node));
    let own = ["NotFoundError", "InternalServerError", "AuthenticationError"];
    check(&python, "openai", own);
    check(&node, "openai", own);
    // LangChain for Python has its own classes, below those of the SDK.
    let renamed = ["OpenAIModelNotFoundError", "OpenAIAPIError", "OpenAIAuthenticationError"];
    check(&python, "langchain", renamed);
    check(&node, "langchain", own);
    // Each of six failed calls is one run, because no client tries again. The control is the seventh, of LangChain for
    // Node: with a retry it is two runs.
    assert_eq!(runs(&app, "test:fails").await.len(), 6 + 2);
    // Each stream that a client left is a cancelled run.
    let left = || runs(&app, "test:long");
    let are_over = |runs: &Vec<Value>| runs.iter().all(|run| run["state"] == "cancelled");
    assert_eq!(eventually("the runs are cancelled", left, are_over).await.len(), 4);
    there.end().await;
}

/// Checks that `value` has all fields that `paths` name.
fn has(value: &Value, paths: &Value) {
    for path in paths.as_array().into_iter().flatten() {
        let pointer = format!("/{}", path.as_str().unwrap().replace('.', "/"));
        assert!(value.pointer(&pointer).is_some_and(|field| !field.is_null()), "no {pointer} in {value:#}");
    }
}

/// Checks a stream, and returns its text.
fn streamed(request: &Value, text: &str) -> String {
    let mut data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    let chunks: Vec<Value> = data.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let choices: Vec<_> = chunks.iter().flat_map(|chunk| chunk["choices"].as_array().unwrap()).collect();
    assert!(choices.iter().all(|choice| choice["index"] == 0), "{text}");
    chunks.iter().for_each(|chunk| has(chunk, &request["every_chunk"]));
    if request["usage"] == true {
        let fields = json!(["usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens"]);
        has(chunks.last().unwrap(), &fields);
    }
    choices.iter().filter_map(|choice| choice["delta"]["content"].as_str()).collect()
}

#[tokio::test]
async fn requests_of_chat_programs_are_answered() {
    let there = served_agents().await;
    let (app, _) = clients(&there).await;
    let models = app.get("/v1/models").await.json();
    for request in REQUESTS {
        let request: Value = serde_json::from_str(request).unwrap();
        has(&models, &request["models"]);
        let answer = app.post("/v1/chat/completions", &request["body"]).await;
        assert_eq!(answer.status, 200, "{}: {}", request["comment"], answer.text());
        if request["body"]["stream"] == true {
            assert!(streamed(&request, &answer.text()).ends_with("user:one"), "{}", answer.text());
        } else {
            has(&answer.json(), &request["whole"]);
        }
    }
    there.end().await;
}
