//! Tests the chat of the HTTP API: streams in the AI SDK's protocol, threads, and what a client may not do.

use harness::{
    Agent, Answer,
    eventually::eventually_within,
    shell_agents::{RECALLS, prints, reporting_agent, shell_agent, toml_argument},
};
use http::Method;
use serde_json::{Value, json};

use super::orders::{Served, assert_problem, ended};
use crate::recovery::survival::{PATIENCE, let_go};

pub(in crate::runs) const CHAT: &str = "/api/v1/ai/chat";

/// Returns a chat's request with one message.
pub(in crate::runs) fn says(thread: &str, id: &str, text: &str) -> Value {
    let message = json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] });
    json!({ "id": thread, "messages": [message], "trigger": "submit-message", "graphName": "test:sh", "model": "fake" })
}

/// Returns the chunks of a stream, which must end as the protocol says.
pub(in crate::runs) fn chunks(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    for (header, value) in [
        ("content-type", "text/event-stream"),
        ("x-vercel-ai-ui-message-stream", "v1"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.headers[header], value);
    }
    let text = answer.text();
    let mut data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    data.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(chunks: &[Value]) -> Vec<&str> {
    let shown = chunks.iter().filter(|chunk| chunk["type"] != "data-status");
    shown.map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

/// Returns the text of the last text part.
pub(in crate::runs) fn last_text(chunks: &[Value]) -> String {
    let last = chunks.iter().rfind(|chunk| chunk["type"] == "text-start").expect("a text part");
    let deltas = chunks.iter().filter(|chunk| chunk["id"] == last["id"]);
    deltas.filter_map(|chunk| chunk["delta"].as_str()).collect()
}

/// Sends a message and returns the text of its answer.
async fn asks(api: &Agent, body: &Value) -> String {
    last_text(&chunks(&api.post(CHAT, body).await))
}

async fn roles(api: &Agent, thread: &str) -> Vec<String> {
    let shown = api.get(&format!("/api/v1/threads/{thread}")).await.json();
    let messages = shown["messages"].as_array().unwrap().iter();
    let text = |message: &Value| {
        message["parts"].as_array().unwrap().last().map_or(String::new(), |part| part["text"].to_string())
    };
    messages.map(|message| format!("{} {}", message["role"].as_str().unwrap(), text(message))).collect()
}

#[tokio::test]
async fn a_chat_remembers_what_was_said() {
    let there = Served::of("", RECALLS).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let first = app.post(CHAT, &says("t1", "m1", "one")).await;
    let received = chunks(&first);
    let all = ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"];
    assert_eq!(types(&received), all);
    assert_eq!(last_text(&received), "user:one");
    let run = received[0]["messageId"].as_str().unwrap();
    assert_eq!(first.headers["x-state-key"], "t1");
    assert_eq!(first.headers["x-cogni-run-id"], run);
    assert_eq!(received.last().unwrap()["messageMetadata"]["done"], true);
    let record = app.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&record["answer"], &record["stateKey"]), (&json!("user:one"), &json!("t1")));

    let second = "user:one|assistant:user:one|user:two";
    assert_eq!(asks(&app, &says("t1", "m2", "two")).await, second);
    assert_eq!(asks(&app, &says("t2", "m2", "two")).await, "user:two", "another thread");
    assert_eq!(
        roles(&app, "t1").await,
        ["user \"one\"", "assistant \"user:one\"", "user \"two\"", &format!("assistant \"{second}\"")]
    );
    // The same request again is the same run, and an edited question takes the place of the first.
    assert_eq!(asks(&app, &says("t1", "m2", "two")).await, second);
    assert_eq!(asks(&app, &says("t1", "m2", "2")).await, "user:one|assistant:user:one|user:2");
    let again = json!({ "trigger": "regenerate-message", "messageId": run });
    let mut again_body = says("t1", "m1", "one");
    again_body.as_object_mut().unwrap().extend(again.as_object().unwrap().clone());
    assert_eq!(asks(&app, &again_body).await, "user:one");
    assert_eq!(roles(&app, "t1").await.len(), 2, "the thread goes on from the new answer");
    there.end().await;
}

#[tokio::test]
async fn any_agent_continues_a_thread() {
    let other = format!(
        "[agents.'test:other']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['bash', '-c', {}]\nprotocol = 'text'\nprompt = 'Be short.'\nrun_timeout = '20s'",
        toml_argument(RECALLS)
    );
    let there = Served::of(&format!("\n{other}\n"), RECALLS).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let mut body = says("t1", "m1", "one");
    body["graphName"] = "test:other".into();
    assert_eq!(asks(&app, &body).await, "system:Be short.|user:one");
    let expected = "user:one|assistant:system:Be short.|user:one|user:two";
    assert_eq!(asks(&app, &says("t1", "m2", "two")).await, expected);
    // The command line continues the same thread.
    let run =
        ["run", "--agent", "test:sh", "--model", "fake", "--account", "acct-7", "--state-key", "t1", "three"];
    let outcome = there.world.sluice().run(&run).await;
    assert!(
        outcome.stdout.contains("user:two|assistant:") && outcome.stdout.contains("|user:three"),
        "{outcome:?}"
    );
    assert_eq!(roles(&app, "t1").await.len(), 6);
    there.end().await;
}

#[tokio::test]
async fn tools_and_texts_are_parts_of_an_answer() {
    let lines = [
        json!({ "type": "text", "text": "Let me look." }),
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "arguments": { "command": "ls" } }),
        json!({ "type": "tool_result", "id": "c1", "result": "one" }),
        json!({ "type": "result", "text": "the answer" }),
    ];
    let agent = reporting_agent(&prints(&lines), "stream = 'answer'").replace("test:sh", "test:tools");
    let there = Served::of(&format!("\n{agent}\n"), "true").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let mut body = says("t1", "m1", "one");
    body["graphName"] = "test:tools".into();
    let received = chunks(&app.post(CHAT, &body).await);
    let all = [
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "tool-input-start",
            "tool-input-available",
        ]
        .as_slice(),
        &["tool-output-available", "text-start", "text-delta", "text-end", "finish-step", "finish"],
    ];
    assert_eq!(types(&received), all.concat(), "{received:#?}");
    assert_eq!(last_text(&received), "the answer");
    let shown = app.get("/api/v1/threads/t1").await.json();
    let tool = json!({
        "type": "dynamic-tool", "toolName": "bash", "toolCallId": "c1", "state": "output-available",
        "input": { "command": "ls" }, "output": "one", "providerExecuted": true,
    });
    let text = |text: &str| json!({ "type": "text", "text": text, "state": "done" });
    assert_eq!(shown["messages"][1]["parts"], json!([text("Let me look."), tool, text("the answer")]));
    there.end().await;
}

/// The agent reports the call, too: it is shown once, in the control plane's words.
#[tokio::test]
async fn a_host_tool_is_one_part_of_an_answer() {
    let name = "mcp__host__core__get_current_time";
    let reports = [
        json!({ "type": "tool_call", "id": "c1", "name": name, "arguments": {} }),
        json!({ "type": "tool_result", "id": "c1", "result": "noon" }),
        json!({ "type": "result", "text": "the answer" }),
    ];
    let script = format!("cogni-tool exec core__get_current_time '{{}}' >/dev/null; {}", prints(&reports));
    let agent = reporting_agent(&script, "host_tools = ['core__get_current_time']");
    let there = Served::of(&format!("\n{}\n", agent.replace("test:sh", "test:tools")), "true").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let mut body = says("t1", "m1", "one");
    body["graphName"] = "test:tools".into();
    let received = chunks(&app.post(CHAT, &body).await);
    let all = ["start", "start-step", "tool-input-start", "tool-input-available", "data-host-tool"];
    let rest = ["tool-output-available", "text-start", "text-delta", "text-end", "finish-step", "finish"];
    assert_eq!(types(&received), [&all[..], &rest].concat(), "{received:#?}");
    let run = received[0]["messageId"].as_str().unwrap();
    let listed = app.get(&format!("/api/v1/runs/{run}/tools")).await.json();
    let call = &listed["calls"][0];
    assert_eq!(
        [&call["tool"], &call["state"], &call["effect"], &call["arguments"], &listed["nextCursor"]],
        [&json!("core__get_current_time"), &json!("done"), &json!("reads"), &json!("{}"), &Value::Null],
        "{listed}"
    );
    let part = json!({
        "type": "dynamic-tool", "toolName": "core__get_current_time",
        "toolCallId": format!("host-{}", call["callId"].as_str().unwrap()), "state": "output-available",
        "input": {}, "providerExecuted": true,
        "output": { "state": "done", "resultBytes": call["resultBytes"], "durationMs": call["durationMs"] },
    });
    let shown = app.get("/api/v1/threads/t1").await.json();
    let answer = json!({ "type": "text", "text": "the answer", "state": "done" });
    assert_eq!(shown["messages"][1]["parts"], json!([part, answer]), "{shown:#}");
    let other = there.principal(&["other", "--account", "acct-8"]).await;
    assert_eq!(other.get(&format!("/api/v1/runs/{run}/tools")).await.status, 404);
    there.end().await;
}

#[tokio::test]
async fn a_chat_survives_its_client_and_is_stopped() {
    let there = Served::of("", "until [ -e go ]; do sleep 0.1; done; echo it is done").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let (stream, stop) = (format!("{CHAT}/t1/stream"), format!("{CHAT}/t1/stop"));
    assert_eq!(app.get(&stream).await.status, 204, "nothing is active");
    let begun = app.send(Method::POST, CHAT, says("t1", "m1", "one").to_string().into()).await.unwrap();
    let run = begun.headers["x-cogni-run-id"].to_str().unwrap().to_owned();
    let state = || async { app.get(&format!("/api/v1/runs/{run}")).await.json()["state"].clone() };
    eventually_within(PATIENCE, "it runs", state, |state| state == "running").await;
    drop(begun);
    // One turn at a time: nothing of the second is stored.
    assert_problem(&app.post(CHAT, &says("t1", "m2", "two")).await, 409, "thread_busy");
    assert_problem(
        &app.request(Method::DELETE, "/api/v1/threads/t1", "".into()).await.unwrap(),
        409,
        "run_active",
    );
    let resumed = app.send(Method::GET, &stream, "".into()).await.unwrap();
    let_go(&there.world, &run).await;
    let received = chunks(&resumed.whole().await.unwrap());
    assert_eq!((types(&received)[0], last_text(&received).as_str()), ("start", "it is done"));

    let body = says("t1", "m3", "three").to_string();
    let begun = app.send(Method::POST, CHAT, body.into()).await.unwrap();
    let run = begun.headers["x-cogni-run-id"].to_str().unwrap().to_owned();
    assert_eq!(app.post(&stop, &Value::Null).await.status, 202);
    let received = chunks(&begun.whole().await.unwrap());
    assert_eq!(types(&received).last(), Some(&"abort"), "{received:#?}");
    assert_eq!(ended(&app, &run).await["state"], "cancelled");
    assert_eq!(app.post(&stop, &Value::Null).await.json()["runId"], Value::Null);
    there.end().await;
}

#[tokio::test]
async fn threads_of_others_do_not_exist() {
    let there = Served::of("", RECALLS).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let other = there.principal(&["other", "--account", "acct-8"]).await;
    let operator = there.principal(&["op", "--account", "acct-1", "--role", "operator"]).await;
    let viewer = there.principal(&["viewer", "--account", "acct-7", "--role", "viewer"]).await;
    asks(&app, &says("t1", "m1", "one")).await;
    let remove = async |api: &Agent, path: &str| api.request(Method::DELETE, path, "".into()).await.unwrap();
    assert_problem(&other.get("/api/v1/threads/t1").await, 404, "not_found");
    assert_problem(&remove(&other, "/api/v1/threads/t1").await, 404, "not_found");
    assert_problem(&other.get("/api/v1/threads/t1?account=acct-7").await, 404, "not_found");
    assert_problem(&other.get("/api/v1/threads/a%20b").await, 404, "not_found");
    assert_eq!(other.get(&format!("{CHAT}/t1/stream")).await.status, 204);
    assert_eq!(other.get("/api/v1/threads").await.json()["threads"], json!([]));
    assert_eq!(asks(&other, &says("t1", "m1", "mine")).await, "user:mine", "the same key is another thread");
    assert_problem(&remove(&viewer, "/api/v1/threads/t1").await, 403, "forbidden");
    assert_problem(&viewer.post(CHAT, &says("t1", "m2", "two")).await, 403, "forbidden");
    // Control: those who may see it do.
    assert_eq!(roles(&viewer, "t1").await.len(), 2);
    assert_eq!(operator.get("/api/v1/threads/t1?account=acct-7").await.status, 200);
    let listed = app.get("/api/v1/threads?limit=1").await.json();
    assert_eq!(
        (&listed["threads"][0]["stateKey"], &listed["threads"][0]["title"]),
        (&json!("t1"), &json!("one"))
    );

    assert_eq!(remove(&app, "/api/v1/threads/t1").await.status, 204);
    assert_problem(&app.get("/api/v1/threads/t1").await, 404, "not_found");
    let runs = app.get("/api/v1/runs").await.json();
    let run = runs["runs"][0]["runId"].as_str().unwrap().to_owned();
    let record = app.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&record["state"], &record["answer"]), (&json!("succeeded"), &Value::Null), "its run stays");
    assert_eq!(roles(&other, "t1").await.len(), 2, "that of the other account stays");
    there.end().await;
}

#[tokio::test]
async fn what_no_chat_can_be_is_refused() {
    let picky =
        shell_agent(RECALLS, "model = 'fake'\nmodels = ['fake', 'other']").replace("test:sh", "test:picky");
    let there = Served::of(&format!("\n{picky}\n"), RECALLS).await;
    let app = there.principal(&["app", "--account", "acct-7", "--agent", "test:sh"]).await;
    let with = |field: &str, value: Value| {
        let mut body = says("t1", "m1", "one");
        body[field] = value;
        body
    };
    for (body, status, code) in [
        (with("graphName", json!("test:long")), 403, "agent_forbidden"),
        (with("model", json!("")), 400, "invalid_request"),
        (with("messages", json!([])), 400, "invalid_request"),
        (with("id", json!("../x")), 400, "invalid_request"),
        (with("trigger", json!("resume")), 400, "invalid_request"),
    ] {
        assert_problem(&app.post(CHAT, &body).await, status, code);
    }
    let free = there.principal(&["free", "--account", "acct-7"]).await;
    assert_problem(&free.post(CHAT, &with("graphName", json!("none"))).await, 404, "unknown_agent");
    let mut unknown = with("graphName", json!("test:picky"));
    unknown["model"] = json!("gpt-0");
    let refused = free.post(CHAT, &unknown).await;
    assert_problem(&refused, 400, "model_not_granted");
    let refused = refused.json();
    let named = (&refused["models"], &refused["defaultModelId"]);
    assert_eq!(named, (&json!(["fake", "other"]), &json!("fake")), "{refused}");
    assert_eq!(app.get("/api/v1/runs").await.json()["runs"], json!([]), "nothing is stored");
    assert_problem(&there.api.post(CHAT, &says("t1", "m1", "one")).await, 401, "unauthenticated");
    assert_eq!(asks(&app, &with("messageId", json!("m1"))).await, "user:one", "control");
    there.end().await;
}

/// A client that holds all its streams could not read the answer.
#[tokio::test]
async fn no_run_is_ordered_without_a_stream() {
    let there = Served::of("", RECALLS).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let order = json!({ "agentId": "test:long", "model": "fake", "input": "q" });
    let long = app.post("/api/v1/runs", &order).await.json()["runId"].as_str().unwrap().to_owned();
    let mut open = Vec::new();
    for _ in 0..32 {
        let events = format!("/api/v1/runs/{long}/events");
        open.push(app.send(Method::GET, &events, "".into()).await.unwrap());
    }
    let completion = json!({ "model": "test:sh", "messages": [{ "role": "user", "content": "q" }] });
    assert_problem(&app.post(CHAT, &says("t1", "m1", "one")).await, 429, "too_many_streams");
    let refused = app.post("/v1/chat/completions", &completion).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["code"]),
        (429, &json!("too_many_streams"))
    );
    let runs = app.get("/api/v1/runs").await.json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 1, "only the one that is followed");
    drop(open);
    let asked = || async { app.post(CHAT, &says("t1", "m1", "one")).await.status };
    eventually_within(PATIENCE, "control: with a stream it is", asked, |status| *status == 200).await;
    assert_eq!(app.post(&format!("/api/v1/runs/{long}/cancel"), &Value::Null).await.status, 202);
    ended(&app, &long).await;
    there.end().await;
}
