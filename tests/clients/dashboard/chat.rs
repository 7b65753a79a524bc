//! Conversations with agents: each question is one run, whatever happens to the page meanwhile.

use harness::{Cases, Dashboard, bridge::free_port, shell_agents::shell_agent};
use serde_json::{Value, json};

use super::agents::configuration;

const CASES: [&str; 11] = [
    "finish",
    "stop",
    "reload",
    "ready",
    "cut",
    "double_click",
    "absent_agent",
    "clients",
    "queue_full",
    "used_up",
    "busy",
];
/// Script of an agent that asks its model once, and fails if it gets no answer.
const ASKS_MODEL: &str = "curl -s --fail-with-body http://localhost:8080/v1/chat/completions -H 'content-type: application/json' \
     -d '{\"model\":\"fake\",\"max_tokens\":400,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}' >&2 || exit 3; \
     echo done";
/// A stop takes a second. A machine with other work may need two more.
const MAX_STOP_MS: u64 = 3000;
const WHOLE: [&str; 1] = ["one two three four five six"];

/// Returns the configuration of a small queue, with agents that ask a model.
fn agents() -> String {
    let of_model = |name, settings| shell_agent(ASKS_MODEL, settings).replace("test:sh", name);
    let others = of_model("test:model", "") + &of_model("test:own", "total_tokens = 1");
    let workers = "max_concurrent_runs = 2\nmax_queued_per_account = 3";
    configuration().replace("max_concurrent_runs = 4", workers) + &others
}

/// Each major of the SDK finishes a run in a browser, with the cookie of the session.
fn assert_clients(case: &Value) {
    for major in ["5", "6", "7"] {
        let seen = &case["seen"][major];
        assert_eq!((&seen["status"], &seen["error"]), (&json!("ready"), &Value::Null), "{major}: {case:#}");
        assert_eq!(seen["text"], WHOLE[0], "{major}: {case:#}");
        assert!(seen["texts"].as_u64().unwrap() >= 3, "{major}: it is streamed: {case:#}");
    }
    assert_eq!(case["states"], json!(["succeeded", "succeeded", "succeeded"]));
}

/// A refusal says after which time, or by which setting, it would be none.
fn assert_refusals(cases: &Cases) {
    let full = cases.of("queue_full");
    let refused = full["refused"].as_str().unwrap();
    assert!(refused.contains("queue_full") && refused.contains("Send again in "), "{full:#}");
    assert_eq!(full["answers"], 0, "{full:#}");
    let used_up = &cases.of("used_up")["seen"];
    let of_account = used_up["test:model"].as_str().unwrap();
    assert!(of_account.contains("sluice limit --account acct-low --total-tokens"), "{used_up:#}");
    let of_run = used_up["test:own"].as_str().unwrap();
    assert!(of_run.contains("total_tokens in [agents.\"test:own\"]"), "{used_up:#}");
}

#[tokio::test]
async fn each_question_is_answered_once() {
    let home = format!("http://{}", free_port());
    let dashboard = Dashboard::start(&format!("origins = ['{home}']"), &agents()).await;
    let cases = dashboard.suite("chat", json!({ "home": home }), &CASES).await;
    let finish = cases.of("finish");
    assert!(finish["texts"].as_u64().unwrap() >= 3, "it is shown as it comes: {finish:#}");
    for name in ["finish", "reload", "cut"] {
        let case = cases.of(name);
        assert_eq!(
            (&case["prose"], &case["answers"], &case["posts"]),
            (&json!(WHOLE), &json!(1), &json!(1)),
            "{case:#}"
        );
    }
    let stop = cases.of("stop");
    assert!(stop["text"].as_str().unwrap().contains("cancelled") && stop["ready"] == 1, "{stop:#}");
    assert!(stop["took"].as_u64().unwrap() < MAX_STOP_MS, "{stop:#}");
    let ready = cases.of("ready");
    assert_eq!((&ready["ready"], &ready["prose"]), (&json!(1), &json!(["it is done"])), "{ready:#}");
    let streams = ready["streams"].as_array().unwrap();
    let is_quiet = streams.iter().all(|answer| answer.as_str().unwrap().starts_with("204"));
    assert!(!streams.is_empty() && is_quiet, "{ready:#}");
    let double = cases.of("double_click");
    assert_eq!((&double["once"], &double["again"]), (&json!([1, 1]), &json!([2, 1])), "{double:#}");
    assert_eq!(double["questions"], 1, "{double:#}");
    let absent = cases.of("absent_agent");
    let offered = absent["offered"].to_string();
    assert!(offered.contains("test:sh") && !offered.contains("test:missing"), "{absent:#}");
    let row = absent["row"].as_str().unwrap();
    assert!(row.contains("cannot run") && row.contains("nowhere:1"), "{absent:#}");
    assert_clients(cases.of("clients"));
    assert_refusals(&cases);
    let busy = cases.of("busy");
    assert!(
        busy["refused"].as_str().unwrap().contains("thread_busy") && busy["draft"] == "Me too",
        "{busy:#}"
    );
    assert!(busy["text"].as_str().unwrap().contains("By a program"), "{busy:#}");
    dashboard.end().await;
}
