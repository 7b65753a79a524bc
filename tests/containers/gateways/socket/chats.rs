//! Tests turns that clients order: each is a stored run, and its events reach all clients of the account.

use harness::gateway::{Cue, Step};
use serde_json::{Value, json};

use super::{PATIENCE, Scene, last_event, reaches, refusal, send, text_of};

const SESSION: &str = "agent:main:main";

/// Returns the texts of a session's messages.
fn texts(history: &Value) -> Vec<&str> {
    let messages = history["payload"]["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_message_becomes_a_stored_run() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    let mut other = scene.client("own", &ann).await;
    scene.own.always(vec![Step::say("Hello "), Step::say("there.")]);
    let run = send(&mut client, SESSION, "Say hello", "key-1").await;
    assert_eq!(text_of(&last_event(&mut client, &run).await), "Hello there.");
    assert_eq!(text_of(&last_event(&mut other, &run).await), "Hello there.", "all clients are told");
    let delta = client.seen.iter().find(|frame| frame["payload"]["state"] == "delta").expect("a delta");
    assert_eq!(delta["payload"]["sessionKey"], SESSION, "{delta}");
    let numbers: Vec<_> = client.seen.iter().filter_map(|frame| frame["seq"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "without a gap: {numbers:?}");

    let stored = reaches(&scene.api(&ann), &run, "succeeded").await;
    assert_eq!((&stored["account"], &stored["user"]), (&json!("acct-1"), &json!("ann")), "{stored}");
    assert_eq!((&stored["stateKey"], &stored["answer"]), (&json!("main"), &json!("Hello there.")));
    assert_eq!(send(&mut client, SESSION, "Say hello", "key-1").await, run, "the same order again");
    let order = json!({ "sessionKey": SESSION, "message": "Other", "idempotencyKey": "key-1" });
    assert!(refusal(&client.call("chat.send", order).await).1.contains("belongs to another order"));

    let history = client.call("chat.history", json!({ "sessionKey": SESSION, "limit": 10 })).await;
    assert_eq!(texts(&history), ["Say hello", "Hello there."], "{history}");
    assert_eq!(history["payload"]["inFlightRun"], Value::Null);
    let listed = client.call("sessions.list", json!({})).await;
    assert_eq!(listed["payload"]["sessions"][0]["key"], SESSION, "{listed}");
    let described = client.call("sessions.describe", json!({ "key": SESSION })).await;
    assert_eq!(described["payload"]["session"]["status"], "done", "{described}");
    let preview = client.call("sessions.preview", json!({ "keys": [SESSION] })).await;
    assert_eq!(preview["payload"]["previews"][0]["items"][1]["text"], "Hello there.", "{preview}");

    let wait = client.call("agent.wait", json!({ "runId": "key-1" })).await;
    assert_eq!(wait["payload"]["status"], "ok", "by the key of its order: {wait}");
    let calls = client.call("sessions.list", json!({ "agentId": "main" })).await.to_string();
    assert!(!calls.contains("acct"), "the gateway's own names stay there: {calls}");
    scene.end().await;
}

/// The page is closed in mid-answer, and comes back.
#[tokio::test]
async fn a_client_comes_back_in_mid_answer() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let cue = Cue::default();
    scene.own.always(vec![
        Step::say("One "),
        Step::say("two "),
        Step::Until(cue.clone()),
        Step::say("three."),
    ]);
    let mut client = scene.client("own", &ann).await;
    let run = send(&mut client, SESSION, "Count", "key-1").await;
    let has_two = |frame: &Value| text_of(&frame["payload"]) == "One two ";
    tokio::time::timeout(PATIENCE, client.until(has_two)).await.expect("the beginning");
    drop(client);

    let mut client = scene.client("own", &ann).await;
    let history = client.call("chat.history", json!({ "sessionKey": SESSION })).await;
    assert_eq!(texts(&history), ["Count"], "{history}");
    let running = json!({ "runId": run, "text": "One two " });
    assert_eq!(history["payload"]["inFlightRun"], running);
    cue.give();
    assert_eq!(text_of(&last_event(&mut client, &run).await), "One two three.");
    let finals = client.seen.iter().filter(|frame| frame["payload"]["state"] == "final");
    assert_eq!(finals.count(), 1, "nothing is told twice");
    let history = client.call("chat.history", json!({ "sessionKey": SESSION })).await;
    assert_eq!(texts(&history), ["Count", "One two three."]);
    scene.end().await;
}

#[tokio::test]
async fn a_turn_is_aborted() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    scene.own.always(vec![Step::say("I begin"), Step::Never]);
    let mut client = scene.client("own", &ann).await;
    for (at, stop) in [
        ("chat.abort", json!({ "sessionKey": SESSION })),
        ("chat.send", json!({ "sessionKey": SESSION, "message": "/stop", "idempotencyKey": "s" })),
    ]
    .into_iter()
    .enumerate()
    {
        let run = send(&mut client, SESSION, "Go", &format!("key-{at}")).await;
        let begun = |frame: &Value| frame["payload"]["runId"] == run.as_str() && frame["event"] == "chat";
        tokio::time::timeout(PATIENCE, client.until(begun)).await.expect("it begins");
        let (method, params) = stop;
        let answer = client.call(method, params).await;
        assert_eq!(
            (&answer["payload"]["aborted"], &answer["payload"]["runIds"][0]),
            (&json!(true), &json!(run)),
            "{answer}"
        );
        assert_eq!(last_event(&mut client, &run).await["state"], "aborted");
        reaches(&scene.api(&ann), &run, "cancelled").await;
    }
    let nothing = client.call("chat.abort", json!({ "sessionKey": SESSION })).await;
    assert_eq!(nothing["payload"]["aborted"], false, "{nothing}");
    scene.end().await;
}

/// Gateways of one account name a session of one agent and thread alike, and a queued run has the name alone.
#[tokio::test]
async fn a_queued_turn_belongs_to_its_gateway() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    scene.own.always(vec![Step::say("I begin"), Step::Never]);
    let mut client = scene.client("own", &ann).await;
    let first = send(&mut client, SESSION, "First", "key-1").await;
    let begun = |frame: &Value| frame["event"] == "chat";
    tokio::time::timeout(PATIENCE, client.until(begun)).await.expect("it begins");
    let queued = send(&mut client, SESSION, "Queued", "key-2").await;

    let mut other = scene.client("down", &ann).await;
    let history = other.call("chat.history", json!({ "sessionKey": SESSION })).await;
    assert_eq!(texts(&history), Vec::<&str>::new(), "{history}");
    assert_eq!(history["payload"]["inFlightRun"], Value::Null);
    let preview = other.call("sessions.preview", json!({ "keys": [SESSION] })).await;
    assert_eq!(preview["payload"]["previews"][0]["status"], "empty", "{preview}");
    let stop = json!({ "sessionKey": SESSION, "message": "/stop", "idempotencyKey": "s" });
    for (method, params) in [("chat.abort", json!({ "sessionKey": SESSION })), ("chat.send", stop)] {
        let answer = other.call(method, params).await;
        assert_eq!(answer["payload"]["aborted"], false, "{method}: {answer}");
    }

    let history = client.call("chat.history", json!({ "sessionKey": SESSION })).await;
    assert_eq!(texts(&history), ["First", "Queued"], "control: {history}");
    for run in [&first, &queued] {
        let answer = client.call("chat.abort", json!({ "sessionKey": SESSION })).await;
        assert_eq!(answer["payload"]["runIds"][0], json!(run), "the first one that has not ended: {answer}");
        reaches(&scene.api(&ann), run, "cancelled").await;
    }
    scene.end().await;
}

#[tokio::test]
async fn an_agent_call_is_answered_twice() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    scene.own.always(vec![Step::say("It is done.")]);
    let params = json!({ "message": "Do it", "agentId": "main", "idempotencyKey": "a1", "deliver": false });
    let id = client.send("agent", params, None).await;
    let ended = client.answer(&id).await;
    assert_eq!(ended["payload"]["result"]["payloads"][0]["text"], "It is done.", "{ended}");
    let accepted = client.seen.iter().find(|frame| frame["payload"]["status"] == "accepted");
    assert_eq!(accepted.expect("an acceptance")["payload"]["sessionKey"], SESSION);
    scene.end().await;
}

#[tokio::test]
async fn commands_do_not_pass() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    for message in ["/exec host=gateway security=full", "please /exec ask=off", "/new"] {
        let order = json!({ "sessionKey": SESSION, "message": message, "idempotencyKey": "k" });
        let answer = client.call("chat.send", order).await;
        assert_eq!(refusal(&answer).0, "COMMAND_REFUSED", "{message}");
    }
    for (name, value) in [("attachments", json!([])), ("outboundHeaders", json!({ "x-run-token": "a" }))] {
        let mut order = json!({ "sessionKey": SESSION, "message": "hi", "idempotencyKey": "k" });
        order[name] = value;
        let (code, message) = refusal(&client.call("chat.send", order).await);
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains(&format!("unexpected property '{name}'")), "{message}");
    }
    assert!(scene.own.requests("agent").is_empty(), "nothing reached the gateway");
    scene.end().await;
}
