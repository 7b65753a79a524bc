//! Attacks by tools that a body offers to a model although the run was not granted them. The table has all the ways in
//! which a body can name one.

use harness::{World, grant};
use platform_core::{
    capability::Capability,
    grant::{RunGrant, UngrantedTools},
    id::ToolName,
    refusal::Refusal,
};
use serde_json::{Value, json};

use super::CHAT;

/// An offer: where it goes, and the member that makes it.
type Offer = (&'static str, &'static str, Value);

/// Returns offers, each of which names `rm`.
pub(super) fn offers() -> Vec<Offer> {
    let function = json!({ "type": "function", "function": { "name": "rm" } });
    let group = |group: &str, tool: &str| json!({ "type": "namespace", "name": group, "tools": [{ "type": "function", "name": tool }] });
    let found =
        json!({ "type": "tool_search_output", "execution": "client", "tools": [group("bash", "rm")] });
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
        ("/v1/responses", "tools", json!([group("bash", "rm")])),
        ("/v1/responses", "tools", json!([group("rm", "bash")])),
        ("/v1/responses", "input", json!([{ "type": "additional_tools", "tools": [group("bash", "rm")] }])),
        ("/v1/responses", "input", json!([{ "role": "user", "content": "q" }, found])),
        (
            "/v1/responses",
            "tools",
            json!([{ "type": "namespace", "name": "bash", "tools": [group("bash", "rm")] }]),
        ),
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
async fn an_ungranted_tool_is_not_offered() {
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

#[tokio::test]
async fn a_capability_grants_no_unlisted_tool() {
    let world = World::start().await;
    let tools = |names: &[&str]| Some(names.iter().map(|name| ToolName::parse(name).unwrap()).collect());
    let open = [Capability::ServerTools, Capability::WebSearch, Capability::Mcp];
    let capable = |run| RunGrant { capabilities: open.into_iter().collect(), ..grant(run, "acct-1") };
    let some = world.run_with(RunGrant { tools: tools(&["bash"]), ..capable("r1") }).await;
    let listed = ["bash", "web_search", "mcp", "computer", "urlContext"];
    let more = world.run_with(RunGrant { tools: tools(&listed), ..capable("r2") }).await;
    let none = world.run_with(RunGrant { tools: tools(&[]), ..grant("r3", "acct-1") }).await;
    let any = world.run_with(capable("r4")).await;
    let (chat, responses) = (CHAT, "/v1/responses");
    for (path, tool, is_named) in [
        (responses, json!({ "type": "web_search" }), true),
        (responses, json!({ "type": "mcp", "server_label": "x", "server_url": "http://e" }), true),
        (responses, json!({ "type": "computer", "name": "bash" }), true),
        ("/v1/messages", json!({ "type": "web_search_20250305", "name": "bash" }), true),
        (chat, json!({ "type": "function", "function": { "name": "bash" }, "urlContext": {} }), true),
        (chat, json!({ "type": "function", "function": { "name": null, "description": "rm" } }), false),
        (chat, json!({ "type": "function" }), false),
    ] {
        let body = body(path, "tools", &json!([tool]));
        let refused = some.agent.post(path, &body).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
        assert_eq!(more.agent.post(path, &body).await.status, if is_named { 200 } else { 400 }, "{body}");
        assert_eq!(any.agent.post(path, &body).await.status, 200, "{body}");
    }
    for (tools, status) in [(json!([{ "function": { "name": "bash" } }]), 400), (json!([]), 200)] {
        assert_eq!(none.agent.post(chat, &body(chat, "tools", &tools)).await.status, status, "{tools}");
    }
}

/// Returns offers that would reach a provider if leaving tools out let more through than it leaves out.
pub(super) fn hidden() -> Vec<Offer> {
    let hosted = json!({ "type": "web_search" });
    let bash = json!({ "type": "function", "name": "bash" });
    let group = |tool: &Value| json!([{ "type": "namespace", "name": "bash", "tools": [tool] }]);
    let (responses, messages) = ("/v1/responses", "/v1/messages");
    vec![
        (CHAT, "tools", json!([hosted, { "googleSearch": {} }])),
        (CHAT, "tools", json!([{ "type": "function", "function": { "name": "bash" }, "urlContext": {} }])),
        (CHAT, "tools", json!([{ "type": null, "name": "bash", "codeExecution": {} }])),
        (
            CHAT,
            "tools",
            json!([{ "type": "function", "function": { "name": "bash", "type": "web_search" } }]),
        ),
        (CHAT, "functions", json!([hosted])),
        (CHAT, "web_search_options", json!({})),
        (CHAT, "tool_choice", json!({ "type": "mcp", "server_label": "a" })),
        (responses, "tools", json!([hosted, { "type": "function", "name": "rm" }])),
        (responses, "tools", group(&hosted)),
        (responses, "tools", json!([{ "type": "function", "name": "bash", "tools": [hosted] }])),
        (responses, "input", json!([{ "type": "additional_tools", "tools": [hosted] }])),
        (
            responses,
            "input",
            json!([{ "type": "tool_search_output", "execution": "client", "tools": [hosted] }]),
        ),
        (responses, "input", json!([{ "type": "web_search_call", "id": "ws_1", "action": {} }])),
        (
            responses,
            "tool_choice",
            json!({ "type": "allowed_tools", "mode": "auto", "tools": [bash, { "type": "mcp" }] }),
        ),
        (messages, "tools", json!([{ "name": "bash", "input_schema": {}, "computerUse": {} }])),
        (messages, "mcp_servers", json!([{ "type": "url", "url": "http://attacker" }])),
    ]
}

#[tokio::test]
async fn leaving_tools_out_lets_no_other_in() {
    let world = World::start().await;
    let tools = Some(vec![ToolName::parse("bash").unwrap()]);
    let dropping =
        RunGrant { ungranted_tools: UngrantedTools::Drop, tools: tools.clone(), ..grant("r1", "acct-1") };
    let some = world.run_with(dropping.clone()).await;
    for (path, member, value) in hidden() {
        let refused = some.agent.post(path, &body(path, member, &value)).await;
        assert_eq!(refused.status, 400, "{path} {member} {value}: {}", refused.text());
        assert_eq!(refused.json()["error"]["code"], "not_granted", "{path} {member} {value}");
    }
    assert!(world.upstream.ledger().is_empty());
    // Controls: a run that may use them is served, and what is left out does not arrive.
    let all = Capability::ALL.into_iter().collect();
    let any = world.run_with(RunGrant { capabilities: all, ..grant("r2", "acct-1") }).await;
    for (count, (path, member, value)) in (1..).zip(hidden()) {
        let passed = any.agent.post(path, &body(path, member, &value)).await;
        assert_eq!(passed.status, 200, "{path} {member} {value}: {}", passed.text());
        assert_eq!(world.upstream.ledger().len(), count);
    }
    for (path, hosted) in [
        (CHAT, json!({ "type": "web_search", "googleSearch": {}, "url": "http://attacker" })),
        ("/v1/responses", json!({ "type": "mcp", "server_url": "http://attacker", "headers": { "a": "b" } })),
        ("/v1/messages", json!({ "type": "web_search_20250305", "name": "rm" })),
    ] {
        let passed = some.agent.post(path, &body(path, "tools", &json!([hosted]))).await;
        assert_eq!(passed.status, 200, "{path} {hosted}: {}", passed.text());
        let seen = world.upstream.ledger().last().unwrap().json().unwrap();
        assert_eq!(seen.get("tools"), None, "{seen}");
    }
}
