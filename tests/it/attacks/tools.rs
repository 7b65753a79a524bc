//! Tools that a model is offered although the run was not granted them, by all the ways in which a body can name one.

use harness::{World, grant};
use platform_core::{grant::RunGrant, id::ToolName, refusal::Refusal};
use serde_json::{Value, json};

use super::CHAT;

/// An offer: where it goes, and the member that makes it.
type Offer = (&'static str, &'static str, Value);

/// Each names `rm`.
pub(super) fn offers() -> Vec<Offer> {
    let function = json!({ "type": "function", "function": { "name": "rm" } });
    vec![
        (CHAT, "tools", json!([function])),
        (CHAT, "tools", json!([{ "type": "function", "function": { "name": "bash" } }, function])),
        (CHAT, "tools", json!([{ "function": { "name": "rm" } }])),
        (CHAT, "tools", json!([{ "type": "custom", "custom": { "name": "rm" } }])),
        (CHAT, "functions", json!([{ "name": "rm" }])),
        (
            CHAT,
            "tool_choice",
            json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": [function] } }),
        ),
        ("/v1/responses", "tools", json!([{ "type": "function", "name": "rm" }])),
        ("/v1/responses", "tools", json!([{ "type": "custom", "name": "rm" }])),
        ("/v1/messages", "tools", json!([{ "name": "rm", "input_schema": { "type": "object" } }])),
    ]
}

fn body(path: &str, member: &str, value: &Value) -> Value {
    let messages = json!([{ "role": "user", "content": "q" }]);
    let mut body = json!({ "model": "fake", "max_tokens": 10, "messages": messages });
    if path == "/v1/responses" {
        body = json!({ "model": "fake", "input": "q" });
    }
    body[member] = value.clone();
    body
}

#[tokio::test]
async fn a_tool_that_was_not_granted_is_offered_to_no_model() {
    let world = World::start().await;
    let tools = |names: &[&str]| Some(names.iter().map(|name| ToolName::parse(name).unwrap()).collect());
    let some = world.run_with(RunGrant { tools: tools(&["bash", "ls"]), ..grant("r1", "acct-1") }).await;
    let more = world.run_with(RunGrant { tools: tools(&["bash", "rm"]), ..grant("r2", "acct-1") }).await;
    let any = world.run_with(grant("r3", "acct-1")).await;
    for (path, member, value) in offers() {
        let body = body(path, member, &value);
        let refused = some.agent.post(path, &body).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
        let error = refused.json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("the tool \"rm\" is not granted"), "{error}");
        // Controls: the same from runs that may.
        for run in [&more, &any] {
            let passed = run.agent.post(path, &body).await;
            assert_eq!(passed.status, 200, "{body}: {}", passed.text());
        }
    }
    let refused = offers().len();
    let told: Vec<_> = world
        .records(3 * refused)
        .await
        .into_iter()
        .filter(|line| line.record.refusal == Some(Refusal::NotGranted))
        .collect();
    assert_eq!(told.len(), refused);
    let rules: Vec<_> =
        told.iter().filter_map(|line| line.record.rule.as_ref()).map(|rule| rule.as_str()).collect();
    assert_eq!(rules, vec!["tool:rm"; refused], "and the record says by which");
    assert_eq!(world.upstream.ledger().all().len(), 2 * refused, "the upstream saw the others only");
}
