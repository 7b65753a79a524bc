//! mcp tests the Model Context Protocol, with raw messages. Its official clients are played against a whole system.

use std::time::Duration;

use http::Method;
use platform_core::host_tools::header;
use platform_runtime::task;
use runner_store::ToolCallState;
use serde_json::{Value, json};

use crate::{
    double::{GitHubFault, GitHubRoute},
    world::{self, Answer, RawCall, World, eventually, id, raw_nest},
};

const TIME: &str = "core__get_current_time";

fn message(body: &Value) -> RawCall {
    RawCall::of("/mcp", TIME, body.to_string().into_bytes())
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

async fn send(world: &World, body: &Value) -> Answer {
    world.send(message(body)).await
}

#[tokio::test]
async fn a_message_is_answered_with_json() {
    let world = World::start().await;
    let initialize = json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
    let answer = send(&world, &initialize).await;
    assert_eq!((answer.status, &answer.body["id"]), (200, &json!("a")), "{answer:?}");
    assert_eq!(answer.body["result"]["serverInfo"]["name"], json!("sluicegate"));
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("application/json"));
    assert!(answer.headers.get("mcp-session-id").is_none() && answer.outcome().is_empty());
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(&world, &note).await.status, 202);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let listed = world
        .send(
            message(&list)
                .with(header::GRANTED, "core__get_current_time,runs__status,core__metrics_query,absent"),
        )
        .await;
    let names: Vec<_> =
        listed.body["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, [json!(TIME), json!("runs__status")], "granted and available");
    assert_eq!(listed.body["result"]["tools"][0]["inputSchema"]["type"], json!("object"));
    let called = send(&world, &call(TIME, &json!({}))).await;
    assert_eq!((called.outcome(), &called.body["id"]), ("done", &json!(7)), "{called:?}");
    assert!(called.body["result"]["structuredContent"]["utc"].is_string(), "{called:?}");
    let stored =
        eventually("the call is stored", async || world.store.tool_calls(&id("r1")).await.unwrap().pop())
            .await;
    assert_eq!((stored.state, &stored.id), (ToolCallState::Done, &stored.call), "it has the data plane's id");
}

#[tokio::test]
async fn bad_messages_are_refused() {
    let world = World::start().await;
    let comment = call("github__comment", &json!({ "number": 1, "body": "x" }));
    for (body, code, outcome) in [
        (call(TIME, &json!({ "x": 1 })), "invalid_arguments", "failed"),
        (comment.clone(), "tool_mismatch", "denied"),
    ] {
        let answer = send(&world, &body).await;
        assert_eq!((answer.status, answer.outcome()), (200, outcome), "{answer:?}");
        assert_eq!(answer.body["result"]["isError"], json!(true));
        assert_eq!(answer.body["result"]["structuredContent"]["error"]["code"], json!(code), "{answer:?}");
    }
    let nested = call(TIME, &json!("nest")).to_string().replace("\"nest\"", &raw_nest(15));
    let answer = world.send(RawCall::of("/mcp", TIME, nested.into_bytes())).await;
    assert_eq!((answer.status, answer.outcome()), (200, "failed"), "{answer:?}");
    let not_granted = message(&comment).with(header::TOOL, "github__comment");
    let answer = world.send(not_granted).await;
    assert_eq!(answer.body["result"]["structuredContent"]["error"]["code"], json!("policy_denied"));
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"core__get_current_time","arguments":{},"arguments":{"x":1}}}"#;
    for text in [
        "[]",
        "{",
        twice,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"core__get_current_time"}}"#,
    ] {
        let answer = world.send(RawCall::of("/mcp", TIME, text.as_bytes().to_vec())).await;
        assert_eq!((answer.status, answer.outcome()), (400, ""), "{text}: {answer:?}");
    }
    assert!(world.github.exchanges().is_empty());
    assert_eq!(send(&world, &call(TIME, &json!({}))).await.outcome(), "done", "the control");
}

#[tokio::test]
async fn no_other_method_than_post_is_served() {
    let world = World::start().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let call = RawCall { method, ..message(&json!({})) };
        let answer = world.send(call).await;
        assert_eq!((answer.status, answer.headers["allow"].as_bytes()), (405, &b"POST"[..]), "{answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_call() {
    let world = World::start().await;
    world.github.script(GitHubRoute::ReadIssue, [GitHubFault::Slow(Duration::from_secs(600))]);
    let call = message(&call("github__read_issue", &json!({ "number": 1 })));
    let call = call.with(header::TOOL, "github__read_issue").with(header::GRANTED, "github__read_issue");
    let socket = world.socket();
    let client = task::spawn("client", async move { world::send(&socket, call).await });
    let is_asked = async || (!world.github.has_fault(GitHubRoute::ReadIssue)).then_some(());
    eventually("GitHub is asked", is_asked).await;
    client.abort();
    let stored =
        eventually("the call is stored", async || world.store.tool_calls(&id("r1")).await.unwrap().pop())
            .await;
    assert_eq!((stored.state, stored.code.as_deref()), (ToolCallState::Failed, Some("cancelled")));
}
