//! Conversations with agents: each question is one run, whatever happens to the page meanwhile.

use harness::{Dashboard, bridge::free_port};
use serde_json::json;

use super::agents::configuration;

const CASES: [&str; 8] = ["finish", "stop", "reload", "ready", "cut", "double_click", "absent_agent", "busy"];
const WHOLE: [&str; 1] = ["one two three four five six"];

#[tokio::test]
async fn each_question_is_answered_once() {
    let home = format!("http://{}", free_port());
    let dashboard = Dashboard::start(&format!("origins = ['{home}']"), &configuration()).await;
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
    let ready = cases.of("ready");
    assert_eq!((&ready["ready"], &ready["prose"]), (&json!(1), &json!(["it is done"])), "{ready:#}");
    let streams = ready["streams"].as_array().unwrap();
    assert!(streams.iter().all(|answer| answer.as_str().unwrap().starts_with("204")), "{ready:#}");
    let double = cases.of("double_click");
    assert_eq!((&double["once"], &double["again"]), (&json!([1, 1]), &json!([2, 1])), "{double:#}");
    assert_eq!(double["questions"], 1, "{double:#}");
    let absent = cases.of("absent_agent");
    let offered = absent["offered"].to_string();
    assert!(offered.contains("test:sh") && !offered.contains("test:missing"), "{absent:#}");
    let row = absent["row"].as_str().unwrap();
    assert!(row.contains("cannot run") && row.contains("nowhere:1"), "{absent:#}");
    let busy = cases.of("busy");
    assert!(
        busy["refused"].as_str().unwrap().contains("thread_busy") && busy["draft"] == "Me too",
        "{busy:#}"
    );
    assert!(busy["text"].as_str().unwrap().contains("By a program"), "{busy:#}");
    dashboard.end().await;
}
