//! Tests the chat of the HTTP API with the packages that applications use: Vercel's AI SDK in its first and newest
//! version of each major. Each rebuilds the messages that the thread has. The program is `tests/sdk/ai_chat.mjs`.

use harness::{
    Agent, Served,
    chat_clients::ChatClients,
    shell_agents::{RECALLS, prints, reporting_agent, shell_agent},
};
use serde_json::{Value, json};

/// Versions of the AI SDK, and the newest as React uses it.
const CLIENTS: [&str; 7] =
    ["ai-5.0.0", "ai-5.0.277", "ai-6.0.0", "ai-6.0.326", "ai-7.0.0", "ai-7.0.173", "react"];
/// Clients that take the chunk `reset-step`, which others refuse.
const NEWEST: [&str; 2] = ["ai-7.0.173", "react"];
/// Version that stays in this status after an answer that nothing is active.
const STAYS_SUBMITTED: &str = "ai-5.0.0";
/// Cases of the program.
const CASES: usize = 8;
/// Agent that makes a model call, and so has usage.
const ASKS_MODEL: &str = "[agents.'test:model']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nname = 'Model'\n";

/// Starts a world with an agent for each kind of answer.
pub(crate) async fn served_agents() -> Served {
    let look = json!({ "type": "text", "text": "Let me look." });
    let result = json!({ "type": "result", "text": "the answer" });
    let call =
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "arguments": { "command": "ls -la" } });
    let output = json!({ "type": "tool_result", "id": "c1", "result": "one\ntwo" });
    let slow =
        format!("{}sleep 2; {}", prints(std::slice::from_ref(&look)), prints(std::slice::from_ref(&result)));
    let streams = "stream = 'answer'";
    let agents = [
        reporting_agent(&prints(&[look, call, output, result]), streams).replace("test:sh", "test:tools"),
        reporting_agent(&slow, streams).replace("test:sh", "test:slow"),
        shell_agent("exit 3", "").replace("test:sh", "test:fails"),
        ASKS_MODEL.to_owned(),
    ];
    Served::of(&format!("\n{}\n", agents.concat()), RECALLS).await
}

/// Adds a principal; returns the API as it uses it, and as programs do.
pub(crate) async fn clients(there: &Served) -> (Agent, ChatClients) {
    let token = there.token(&["app", "--account", "acct-7"]).await;
    (there.authorized(&token), ChatClients { url: there.url(), token })
}

/// Returns what a message says: its id, its role, its texts, and its calls of tools.
fn said(message: &Value) -> Value {
    let parts = message["parts"].as_array().unwrap().iter();
    let parts = parts.filter_map(|part| match part["type"].as_str().unwrap() {
        "text" => Some(json!(["text", part["text"]])),
        "dynamic-tool" => {
            let fields = ["toolName", "toolCallId", "state", "input", "output"];
            Some(fields.iter().map(|field| part[field].clone()).collect())
        }
        _ => None,
    });
    json!([message["id"], message["role"], parts.collect::<Value>()])
}

pub(crate) fn all_said(messages: &Value) -> Vec<Value> {
    messages.as_array().unwrap().iter().map(said).collect()
}

/// Returns the parts of the last answer that a client has rebuilt.
fn last_parts(line: &Value) -> Value {
    all_said(&line["messages"]).pop().unwrap()[2].clone()
}

/// Checks what a client says of a case, beside the messages.
async fn check(app: &Agent, line: &Value) {
    let text = |text: &str| json!(["text", text]);
    let client = line["client"].as_str().unwrap();
    let is_broken = line["case"] == "error" || line["case"] == "refused";
    let rests = client == STAYS_SUBMITTED && line["case"] == "resume";
    let status = if is_broken {
        "error"
    } else if rests {
        "submitted"
    } else {
        "ready"
    };
    assert_eq!((&line["status"], line["error"].is_null()), (&json!(status), !is_broken), "{line:#}");
    match line["case"].as_str().unwrap() {
        "text" => {
            assert_eq!(last_parts(line), json!([text("user:one|assistant:user:one|user:two")]));
            assert_eq!(line["messages"].as_array().unwrap().len(), 4, "the first answer was asked anew");
        }
        "tools" | "read" => {
            let tool = json!(["bash", "c1", "output-available", { "command": "ls -la" }, "one\ntwo"]);
            assert_eq!(last_parts(line), json!([text("Let me look."), tool, text("the answer")]));
        }
        "error" => assert!(line["error"].as_str().unwrap().contains("ended with exit code 3"), "{line:#}"),
        "refused" => assert!(line["error"].as_str().unwrap().contains("unknown_agent"), "{line:#}"),
        "stop" => {
            assert_eq!(line["stopped"], 202);
            let run = line["messages"][1]["id"].as_str().unwrap();
            assert_eq!(app.get(&format!("/api/v1/runs/{run}")).await.json()["state"], "cancelled");
        }
        "resume" => {
            assert_eq!(line["before"]["messages"], json!([]));
            assert_eq!(
                (&line["resumed"]["status"], &line["resumed"]["error"]),
                (&json!("ready"), &Value::Null)
            );
            assert_eq!(line["resumed"]["messages"], line["messages"], "a resume of nothing changes nothing");
            assert_eq!(last_parts(line), json!([text("Let me look."), text("the answer")]));
        }
        "unknown" => assert_eq!(line["unknown"] == "ready", NEWEST.contains(&client), "control: {line:#}"),
        other => panic!("no case {other}"),
    }
}

#[tokio::test]
async fn every_ai_sdk_rebuilds_the_thread() {
    let there = served_agents().await;
    let (app, programs) = clients(&there).await;
    let lines = programs.ai_sdk().await;
    for client in CLIENTS {
        let cases = lines.iter().filter(|line| line["client"] == client);
        assert_eq!(cases.count(), CASES, "{client}");
    }
    for line in &lines {
        check(&app, line).await;
        let shown = app.get(&format!("/api/v1/threads/{}", line["thread"].as_str().unwrap())).await;
        if line["case"] == "refused" || line["case"] == "unknown" {
            assert_eq!(shown.status, 404, "{}", shown.text());
        } else {
            assert_eq!(all_said(&line["messages"]), all_said(&shown.json()["messages"]), "{line:#}");
        }
    }
    there.end().await;
}
