//! Tests what runs on gateways tell their followers: activities, the gateway's own text, and calls of tools.

use std::{fs::OpenOptions, io::Write, net::SocketAddr};

use harness::{
    Agent, Up, canary,
    eventually::eventually_within,
    gateway::{Cue, Dialect, Step},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    AGENT, Sessions, answer,
    survival::{order, provide},
};
use crate::recovery::survival::{PATIENCE, ended};

/// Returns the events of a run, as a process reads them that does not execute it.
async fn events(there: &Sessions, run: &str) -> Vec<Value> {
    let outcome = there.world.sluice().run(&["runs", "events", run, "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.events()
}

/// Returns the activities among the events, each as its kind and its label.
fn activities(events: &[Value]) -> Vec<String> {
    let of_kind = events.iter().filter(|event| event["type"] == "activity");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_kind.map(|event| format!("{} {}", text(&event["kind"]), text(&event["label"]))).collect()
}

fn text(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["delta"].as_str()).collect()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

fn lifecycle(phase: &str) -> Step {
    Step::Event("lifecycle", json!({ "phase": phase, "approvalId": "a1" }))
}

fn compaction(phase: &str) -> Step {
    Step::Event("compaction", json!({ "phase": phase }))
}

#[tokio::test]
async fn a_turn_is_told_as_its_gateway_tells_it() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    there.gateway.always(vec![
        Step::say("One "),
        compaction("start"),
        compaction("start"),
        compaction("end"),
        lifecycle("waiting-approval"),
        lifecycle("approval-resolved"),
        Step::Tool,
        Step::say("two."),
        Step::Again,
    ]);
    let outcome = there.run("r1", "acct-1", "hello").await;
    assert_eq!(answer(&outcome), "One two.");
    let stored = events(&there, "r1").await;
    let expected = [
        "thinking ",
        "compacting ",
        "thinking ",
        "waiting approval",
        "thinking ",
        "tool_use exec",
        "thinking ",
    ];
    assert_eq!(activities(&stored), expected, "{stored:#?}");
    assert_eq!(text(&stored), "One two.");
    let call = stored.iter().find(|event| event["type"] == "tool_call").expect("a call");
    assert_eq!(call["name"], "exec", "{call}");
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert!(arguments["command"].is_string(), "{call}");
    let result = stored.iter().find(|event| event["type"] == "tool_result").expect("a result");
    assert_eq!((&result["id"], &result["is_error"]), (&call["id"], &json!(false)), "{result}");
    assert!(!result["result"].as_str().unwrap().is_empty(), "{result}");
    let watched = outcome.events();
    assert_eq!((text(&watched), activities(&watched)), (text(&stored), activities(&stored)));
}

/// The tap would repeat the gateway's text, and what models write besides.
#[tokio::test]
async fn text_of_the_tap_is_not_followed() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    let go = Cue::default();
    there.gateway.always(vec![Step::Ask("fake-echo"), Step::Until(go.clone()), Step::say(" more")]);
    let running = there.world.sluice().spawn(&["run", "--json", "--agent", AGENT, "--run-id", "r1", "words"]);
    let stored = || async {
        let outcome = there.world.sluice().run(&["runs", "events", "r1", "--json"]).await;
        if outcome.code == Some(0) { text(&outcome.events()) } else { String::new() }
    };
    eventually_within(PATIENCE, "the text is stored", stored, |text| text == "words").await;
    let follower = there.world.sluice().spawn(&["runs", "events", "-f", "--json", "r1"]);
    go.give();
    assert!(running.wait_with_output().await.unwrap().status.success());
    let output = follower.wait_with_output().await.unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let followed: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(text(&followed), "words more", "{followed:#?}");
    assert!(followed.iter().all(|event| event["live"].is_null()), "{followed:#?}");
}

#[tokio::test]
async fn a_takeover_repeats_no_event_of_a_turn() {
    for dialect in Dialect::ALL {
        let mut there = Sessions::of(dialect, "slot", "").await;
        assert!(there.world.stop_proxy().await);
        let go = Cue::default();
        there.gateway.always(vec![
            Step::Ask("fake-echo"),
            Step::Tool,
            Step::Until(go.clone()),
            Step::say(" and"),
            Step::say(" more"),
        ]);
        let up = Up::start(there.world.sluice()).await;
        provide(&there, "at-first").await;
        order(&there, "r1", &[]).await;
        let tools = usize::from(dialect == Dialect::Four);
        let stored = || async { events(&there, "r1").await };
        let is_stored =
            |events: &Vec<Value>| !text(events).is_empty() && count(events, "tool_result") == tools;
        let first = text(&eventually_within(PATIENCE, "events are stored", stored, is_stored).await);
        up.stop(Signal::TERM).await;
        let next = Up::start(there.world.sluice()).await;
        let asked = || async { there.gateway.requests("agent.wait").len() };
        eventually_within(PATIENCE, "the next worker waits", asked, |asked| *asked > 0).await;
        go.give();
        assert_eq!(ended(&there.world, "r1").await["state"], "succeeded", "{dialect:?}");
        let all = events(&there, "r1").await;
        assert_eq!(text(&all), format!("{first} and more"), "{dialect:?} {all:#?}");
        assert_eq!((count(&all, "tool_call"), count(&all, "tool_result")), (tools, tools), "{dialect:?}");
        let expected: &[_] = match dialect {
            Dialect::Three => &["thinking "],
            Dialect::Four => &["thinking ", "tool_use exec", "thinking "],
        };
        assert_eq!(activities(&all), expected, "{dialect:?}");
        next.stop(Signal::TERM).await;
    }
}

/// Adds the API to the world; returns it as a principal uses it.
async fn with_api(there: &mut Sessions) -> (Up, Agent) {
    assert!(there.world.stop_proxy().await);
    let mut file = OpenOptions::new().append(true).open(there.world.config()).unwrap();
    file.write_all(b"[api]\nlisten = '127.0.0.1:0'\n").unwrap();
    let up = Up::start(there.world.sluice()).await;
    let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://"));
    let address: SocketAddr = address.unwrap_or_else(|| panic!("{}", up.said)).parse().unwrap();
    let added = there.world.sluice().run(&["principals", "add", "app", "--account", "acct-7"]).await;
    let token = added.stdout.trim();
    canary::hand_out(token);
    let api = Agent::over_tcp(address).searched().with_header("authorization", &format!("Bearer {token}"));
    (up, api)
}

/// Sends a message to the thread `t1`; returns the chunks of the answer.
async fn chat(api: &Agent, id: &str, text: &str) -> Vec<Value> {
    let message = json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] });
    let body = json!({
        "id": "t1", "messages": [message], "trigger": "submit-message", "graphName": AGENT, "model": "fake-echo",
    });
    let answer = api.post("/api/v1/ai/chat", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["x-state-key"], "t1");
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|line| *line != "[DONE]");
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_chat_streams_the_turns_of_one_session() {
    let mut there = Sessions::of(Dialect::Four, "trace", "").await;
    let (up, api) = with_api(&mut there).await;
    there.gateway.always(vec![Step::say("One "), Step::Tool, Step::say("two.")]);
    for (id, text) in [("m1", "hello"), ("m2", "again")] {
        let received = chat(&api, id, text).await;
        let last = received.iter().rfind(|chunk| chunk["type"] == "text-start").expect("a text part");
        let parts = received.iter().filter(|chunk| chunk["id"] == last["id"]);
        let answer: String = parts.filter_map(|chunk| chunk["delta"].as_str()).collect();
        assert_eq!(answer, "One two.", "{received:#?}");
        let of_kind = |kind: &str| received.iter().filter(|chunk| chunk["type"] == kind).count();
        assert_eq!((of_kind("tool-input-available"), of_kind("tool-output-available")), (1, 1));
        let activity = json!({ "kind": "tool_use", "label": "exec" });
        assert!(
            received.iter().any(|chunk| chunk["id"] == "activity" && chunk["data"] == activity),
            "{received:#?}"
        );
        assert_eq!(received.last().unwrap()["type"], "finish", "{received:#?}");
    }
    let frames = there.gateway.requests("agent");
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0]["params"]["sessionKey"], frames[1]["params"]["sessionKey"]);
    assert_eq!(frames[1]["params"]["message"], "again", "the session has the first message");
    up.stop(Signal::TERM).await;
}
