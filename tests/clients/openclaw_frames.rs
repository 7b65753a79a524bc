//! Checks the bridge's frames to gateways against OpenClaw's own schema of its protocol.

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

/// Returns the faults of each of `frames` by the schema; none if the frame is valid.
async fn judged(frames: &[Value]) -> Vec<Vec<String>> {
    let mut child = Command::new("scripts/openclaw.sh")
        .args(["node", "tests/openclaw/validate.mjs"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let verdicts: Vec<_> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(verdicts.len(), frames.len());
    verdicts
}

/// Returns every frame that the bridge sends in its own tests.
fn sent() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway-bridge/tests/golden/sent.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["frame"].take()).collect()
}

/// Returns whether `frame` uses one of the two extensions that no stock gateway has.
fn is_extension(frame: &Value) -> bool {
    let method = frame["method"].as_str().unwrap_or_default();
    frame["params"].get("outboundHeaders").is_some() || method.starts_with("sluicegate.")
}

#[tokio::test]
async fn bridge_frames_follow_the_protocol() {
    let frames = sent();
    let (extensions, stock): (Vec<_>, Vec<_>) = frames.into_iter().partition(is_extension);
    for method in ["connect", "agent", "chat.send", "chat.abort", "agent.wait", "chat.history"] {
        assert!(stock.iter().any(|frame| frame["method"] == method), "no frame of {method}");
    }
    for (frame, wrong) in stock.iter().zip(judged(&stock).await) {
        assert!(wrong.is_empty(), "{frame}: {wrong:?}");
    }
    // The extension is the only fault of an extended frame.
    for (frame, wrong) in extensions.iter().zip(judged(&extensions).await) {
        assert_eq!(wrong.len(), 1, "{frame}: {wrong:?}");
    }
}

#[tokio::test]
async fn a_frame_with_one_thing_wrong_is_not() {
    let right = json!({
        "type": "req", "id": "1", "method": "agent",
        "params": { "message": "hello", "sessionKey": "agent:main:a:1", "idempotencyKey": "run-1", "deliver": false },
        "traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
    });
    let mut frames = vec![right.clone()];
    let mut spoil = |change: fn(&mut Value)| {
        let mut frame = right.clone();
        change(&mut frame);
        frames.push(frame);
    };
    spoil(|frame| frame["more"] = json!(1));
    spoil(|frame| frame["id"] = json!(1));
    spoil(|frame| frame["method"] = json!("no.such"));
    spoil(|frame| frame["params"]["outboundHeaders"] = json!({}));
    spoil(|frame| frame["params"]["idempotencyKey"] = Value::Null);
    spoil(|frame| frame["params"]["timeout"] = json!("60"));
    let verdicts = judged(&frames).await;
    assert!(verdicts[0].is_empty(), "{:?}", verdicts[0]);
    for (frame, wrong) in frames.iter().zip(&verdicts).skip(1) {
        assert!(!wrong.is_empty(), "{frame}");
    }
}
