//! Tests how the real OpenClaw classifies Sluicegate's refusals. OpenClaw sorts an error by its words. Most of its
//! classes mean eight more calls, or a provider that is locked for every tenant of a gateway.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

/// Every row of the refusal table in both dialects: a golden file that the tests of `proxy` write.
const REFUSALS: &str = include_str!("../../proxy/tests/golden/refusals.jsonl");

/// Returns the verdicts of OpenClaw's classifier on `rows`, one for each.
async fn classified(rows: &str) -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut child = Command::new("scripts/openclaw.sh")
        .args(["node", "tests/openclaw/classify.mjs"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(rows.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn rows() -> Vec<Value> {
    REFUSALS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn openclaw_takes_final_refusals_as_final() {
    let verdicts = classified(REFUSALS).await;
    assert_eq!(verdicts.len(), rows().len());
    for (row, verdict) in rows().iter().zip(&verdicts) {
        assert_eq!(verdict["locks"], Value::Null, "{row} {verdict}");
        // OpenClaw must recognise this refusal, because it then shortens the conversation.
        if row["code"] == "context_overflow" {
            assert_eq!(verdict["reason"], "context_overflow", "{verdict}");
            continue;
        }
        if row["final"] == json!(true) && row["status"].as_u64().unwrap() < 500 {
            assert_eq!(
                (&verdict["reason"], &verdict["final"]),
                (&json!("format"), &json!(true)),
                "{row} {verdict}"
            );
            assert_eq!(verdict["calls"], 1, "{row} {verdict}");
        }
    }
}

#[tokio::test]
async fn a_changed_word_changes_openclaws_verdict() {
    for (addition, reason) in
        [("expired", "auth"), ("byte 401", "auth"), ("spend limit", "billing"), ("timed out", "timeout")]
    {
        let spoilt: Vec<Value> = rows()
            .into_iter()
            .filter(|row| row["code"] == "not_granted" && row["api"] == "openai-completions")
            .map(|mut row| {
                let mut body: Value = serde_json::from_str(row["body"].as_str().unwrap()).unwrap();
                let message = body["error"]["message"].as_str().unwrap().to_owned();
                body["error"]["message"] = json!(format!("{message} {addition}"));
                row["body"] = json!(body.to_string());
                row
            })
            .collect();
        let verdict = classified(&(spoilt[0].to_string() + "\n")).await.remove(0);
        assert_eq!(verdict["reason"], reason, "{verdict}");
    }
}
