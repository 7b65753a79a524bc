//! mcp tests the Model Context Protocol, with raw messages and with the official client.

use std::collections::HashMap;

use platform_core::host_tools::header;
use rmcp::{
    ServiceExt as _,
    model::CallToolRequestParams,
    transport::{
        StreamableHttpClientTransport, UnixSocketHttpClient,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use runner_store::ToolCallState;
use serde_json::{Value, json};

use crate::world::{Answer, RawCall, World, eventually, id};

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
async fn the_official_client_lists_and_calls() {
    let world = World::start().await;
    let headers = message(&json!({})).headers.into_iter();
    let headers: HashMap<_, _> =
        headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let config =
        StreamableHttpClientTransportConfig::with_uri("http://localhost/mcp").custom_headers(headers);
    let socket = world.socket();
    let client = UnixSocketHttpClient::new(socket.to_str().unwrap(), "http://localhost/mcp");
    let client = ().serve(StreamableHttpClientTransport::with_client(client, config)).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), [TIME]);
    let result = client.call_tool(CallToolRequestParams::new(TIME)).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{result:?}");
    client.cancel().await.unwrap();
}
