//! Tests how hosted tools of a run without the capability are treated: the call is refused, with all reasons, or the
//! tools are left out.

use harness::{Run, World, grant};
use platform_core::{
    grant::{RunGrant, UngrantedTools},
    refusal::Refusal,
};
use serde_json::{Value, json};

const RESPONSES: &str = "/v1/responses";

/// A call as Codex makes it: what the agent runs itself, and a search of the web that the provider runs.
fn codex() -> Value {
    json!({
        "model": "fake-words3", "input": [{ "role": "user", "content": "Hello" }], "store": false, "tool_choice": "auto",
        "parallel_tool_calls": true, "include": ["reasoning.encrypted_content", "web_search_call.action.sources"],
        "tools": [{ "type": "function", "name": "exec_command" }, { "type": "web_search", "external_web_access": false }],
        "client_metadata": { "session_id": "s" },
    })
}

async fn dropping(world: &World, run: &str) -> Run {
    world.run_with(RunGrant { ungranted_tools: UngrantedTools::Drop, ..grant(run, "acct-1") }).await
}

#[tokio::test]
async fn a_run_drops_the_tools_that_it_may_not_use() {
    let world = World::start().await;
    let answer = dropping(&world, "r1").await.agent.post(RESPONSES, &codex()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = world.upstream.ledger().last().unwrap().json().unwrap();
    assert_eq!(seen["tools"], json!([{ "type": "function", "name": "exec_command" }]));
    assert_eq!(seen["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!((&seen["tool_choice"], &seen["parallel_tool_calls"]), (&json!("auto"), &json!(true)));
    // Control: a run with a grant that says nothing.
    let refused = world.run("r2", "acct-1").await.agent.post(RESPONSES, &codex()).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (400, &json!("not_granted")));
    assert_eq!(world.upstream.ledger().len(), 1);
}

#[tokio::test]
async fn without_tools_nothing_is_said_of_tools() {
    let world = World::start().await;
    let run = dropping(&world, "r1").await;
    let hosted = json!([{ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }]);
    let messages = json!([{ "role": "user", "content": "Hello" }]);
    // Claude Code's own search is such a call.
    let body = json!({ "model": "fake-words3", "max_tokens": 9, "messages": messages, "tools": hosted,
        "tool_choice": { "type": "tool", "name": "web_search" } });
    let answer = run.agent.post("/v1/messages", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = world.upstream.ledger().last().unwrap().json().unwrap();
    assert_eq!((seen.get("tools"), seen.get("tool_choice")), (None, None), "{seen}");
    assert_eq!(seen["messages"], messages);
}

#[tokio::test]
async fn a_refusal_names_all_reasons_at_once() {
    let world = World::start().await;
    let mut body = codex();
    body["previous_response_id"] = json!("resp_1");
    body["service_tire"] = json!("auto");
    let answer = world.run("r1", "acct-1").await.agent.post(RESPONSES, &body).await;
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    for reason in [
        "\"web_search\" is not granted to this run",
        "\"previous_response_id\" is not granted to this run; no answer is stored: send the history as input",
        "\"service_tire\" is not a field of this route",
    ] {
        assert!(message.contains(reason), "{reason}: {message}");
    }
    let record = world.records(1).await.pop().unwrap().record;
    // Members arrive in alphabetical succession.
    assert_eq!(record.refusal, Some(Refusal::NotGranted));
    assert_eq!(record.rule.unwrap().as_str(), "capability:stored_responses");
    // Where agents share a listener, nothing of it is repeated; see `refusal`.
    assert!(world.upstream.ledger().is_empty());
}
