//! Networks and processes that fail while a page follows a run.

use harness::{
    Dashboard,
    bridge::free_port,
    shell_agents::{prints, reporting_agent},
};
use serde_json::{Value, json};

const CASES: [&str; 1] = ["each_once"];

/// Returns an agent that reports calls of a tool over some time.
fn ticks() -> String {
    let call = prints(&[json!({ "type": "tool_call", "id": "TICK", "name": "TICK ", "arguments": {} })]);
    let call = call.replace("TICK", "tick-'$i'");
    let whole = prints(&[json!({ "type": "result", "text": "all ticks" })]);
    let script = format!("for i in $(seq 14); do {call} sleep 1; done; {whole}");
    let agent = reporting_agent(&script, "stream = 'answer'\nrun_timeout = '60s'");
    agent.replace("test:sh", "test:ticks") + "[worker]\nlease_duration = '3s'\n"
}

#[tokio::test]
async fn each_event_is_shown_once() {
    // Where the page is, and where `sluice up` is again after a kill.
    let (home, listen) = (format!("http://{}", free_port()), free_port());
    let api = format!("listen = '{listen}'\norigins = ['{home}']");
    let mut dashboard = Dashboard::start(&api, &ticks()).await;
    let cases = dashboard
        .directed("network", json!({ "home": home }), &CASES, async |dashboard, fault| match fault {
            "kill the proxy" => dashboard.there.up.kill_proxy().await,
            "kill sluice up" => dashboard.kill().await,
            "start sluice up" => dashboard.start_again().await,
            fault => panic!("no fault {fault}"),
        })
        .await;
    let case = cases.of("each_once");
    assert_eq!((&case["state"], &case["crashes"]), (&json!("succeeded"), &json!([])), "{case:#}");
    let events = case["events"].as_array().unwrap();
    let numbers: Value = events.iter().map(|event| event[0].clone()).collect();
    assert_eq!(case["seen"], numbers, "each event once, in their order: {case:#}");
    let calls = events.iter().filter(|event| event[1] == "tool_call").count();
    assert_eq!(calls, 14, "no tick is lost, and none comes twice: {case:#}");
    assert!(case["streams"].as_u64().unwrap() >= 3, "control: the stream was lost twice: {case:#}");
    dashboard.end().await;
}
