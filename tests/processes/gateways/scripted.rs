//! Tests the scripted gateway itself: it says what the real ones were recorded to say, and does each thing that a story
//! needs.

use std::time::Duration;

use harness::{
    World,
    gateway::{Cue, Dialect, Door, GatewayClient, ScriptedGateway, Step, TOKEN, turn},
};
use serde_json::{Value, json};

const KEY: &str = "agent:main:acct1:1";

async fn connected(gateway: &ScriptedGateway) -> GatewayClient {
    GatewayClient::connect(&gateway.url(), TOKEN).await
}

/// Returns the kinds of a run's events in order; successive events of one kind count once.
fn kinds(frames: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = frames
        .iter()
        .filter(|frame| frame["event"] == "agent" || frame["event"] == "chat")
        .map(|frame| {
            let payload = &frame["payload"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!(
                "{} {}{}{}",
                text(&frame["event"]),
                text(&payload["stream"]),
                text(&payload["state"]),
                text(&payload["data"]["phase"])
            )
        })
        .collect();
    kinds.dedup();
    kinds
}

#[tokio::test]
async fn a_turn_is_told_in_the_shapes_of_its_dialect() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::start(dialect).await;
        gateway.script(KEY, vec![Step::say("One "), Step::say("two.")]);
        let mut client = connected(&gateway).await;
        let answer = client.call("agent", turn("run-1", KEY, "hello")).await;
        assert_eq!(answer["payload"]["result"]["payloads"][0]["text"], "One two.", "{answer}");
        assert_eq!(answer["payload"]["runId"], "run-1");
        let kinds = kinds(&client.seen);
        for kind in
            ["agent lifecyclestart", "agent assistant", "chat delta", "agent lifecycleend", "chat final"]
        {
            assert!(kinds.iter().any(|seen| seen == kind), "{dialect:?} has no {kind}: {kinds:?}");
        }
        let deltas: Vec<&Value> =
            client.seen.iter().filter(|frame| frame["payload"]["state"] == "delta").collect();
        assert_eq!(deltas[1]["payload"]["message"]["content"][0]["text"], "One two.");
        let own_delta = match dialect {
            Dialect::Three => &Value::Null,
            Dialect::Four => &json!("two."),
        };
        assert_eq!(&deltas[1]["payload"]["deltaText"], own_delta, "{dialect:?}");
        let of_runs =
            client.seen.iter().filter(|frame| frame["event"] == "agent" || frame["event"] == "chat");
        for frame in of_runs {
            let payload = &frame["payload"];
            assert_eq!(
                (&payload["runId"], &payload["sessionKey"]),
                (&json!("run-1"), &json!(KEY)),
                "{frame}"
            );
        }
    }
}

#[tokio::test]
async fn a_door_lets_in_whom_a_real_one_lets_in() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::start(dialect).await;
        for (token, code) in [(TOKEN, Value::Null), ("wrong", json!("INVALID_REQUEST"))] {
            let (mut client, answer) =
                GatewayClient::try_connect(&gateway.url(), token, &["operator.read"]).await;
            assert_eq!(answer["error"]["code"], code, "{answer}");
            if answer["ok"] == false {
                assert_eq!(client.next().await, None);
            }
        }
        gateway.door(Door::NotYet(Duration::from_millis(70)));
        let (_, answer) = GatewayClient::try_connect(&gateway.url(), TOKEN, &[]).await;
        assert_eq!(
            (&answer["error"]["retryAfterMs"], &answer["error"]["retryable"]),
            (&json!(70), &json!(true))
        );
    }
}

#[tokio::test]
async fn an_abort_does_what_the_dialects_gateway_does() {
    for (dialect, method, stops) in [
        (Dialect::Three, "agent", false),
        (Dialect::Three, "chat.send", true),
        (Dialect::Four, "agent", true),
        (Dialect::Four, "chat.send", true),
    ] {
        let gateway = ScriptedGateway::start(dialect).await;
        let cue = Cue::default();
        gateway.script(KEY, vec![Step::say("One "), Step::Until(cue.clone()), Step::say("two.")]);
        let mut client = connected(&gateway).await;
        client.send(method, turn("run-1", KEY, "hello"), None).await;
        let answer = client.call("chat.abort", json!({ "sessionKey": KEY, "runId": "run-1" })).await;
        assert_eq!(answer["payload"]["aborted"], stops, "{dialect:?} {method}: {answer}");
        cue.give();
        let wait = json!({ "runId": "run-1", "timeoutMs": 10_000 });
        let status = client.call("agent.wait", wait).await["payload"]["status"].clone();
        assert_eq!(status, if stops { "error" } else { "ok" }, "{dialect:?} {method}");
    }
}

#[tokio::test]
async fn a_restarted_gateway_knows_its_turns_no_more() {
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    gateway.script(KEY, vec![Step::say("One "), Step::Restart]);
    let mut client = connected(&gateway).await;
    client.send("agent", turn("run-1", KEY, "hello"), None).await;
    while client.next().await.is_some() {}
    assert_eq!(client.seen.last().unwrap()["event"], "shutdown");
    let mut client = connected(&gateway).await;
    let answer = client.call("agent.wait", json!({ "runId": "run-1", "timeoutMs": 20 })).await;
    assert_eq!(answer["payload"]["status"], "timeout");
}

#[tokio::test]
async fn a_turn_calls_a_model_as_openclaw_does() {
    let world = World::start().await;
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    gateway.provider_at(&world.upstream.base_url());
    gateway.set(|options| options.takes_headers = true);
    gateway.always(vec![Step::Ask("fake"), Step::Ask("fake-status401")]);
    let mut client = connected(&gateway).await;
    let mut params = turn("run-1", KEY, "hello");
    params["outboundHeaders"] = json!({ "x-run-token": "secret" });
    let trace = "0123456789abcdef0123456789abcdef";
    let id = client.send("agent", params, Some(&format!("00-{trace}-0123456789abcdef-01"))).await;
    let answer = client.answer(&id).await;
    assert_eq!(answer["ok"], false, "{answer}");
    let calls = world.upstream.ledger().all();
    assert_eq!(calls.len(), 2);
    for call in &calls {
        assert_eq!(call.path, "/v1/chat/completions");
        assert_eq!(call.header("x-run-token"), ["secret"]);
        assert_eq!(call.header("traceparent")[0].split('-').nth(1), Some(trace));
    }
    assert_ne!(
        calls[0].header("traceparent"),
        calls[1].header("traceparent"),
        "each call has a span of its own"
    );
    assert_eq!(gateway.calls().iter().map(|call| call.status).collect::<Vec<_>>(), [Some(200), Some(401)]);
}
