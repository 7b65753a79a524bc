//! Networks and processes that fail while a page follows a run.

use std::fs;

use harness::{
    Dashboard, World,
    bridge::free_port,
    eventually,
    shell_agents::{prints, reporting_agent},
};
use serde_json::{Value, json};

const CASES: [&str; 1] = ["each_once"];

/// Returns an agent that reports calls of a tool, as many as the test has released.
fn ticks() -> String {
    let call = prints(&[json!({ "type": "tool_call", "id": "TICK", "name": "TICK ", "arguments": {} })]);
    let call = call.replace("TICK", "tick-'$i'");
    let whole = prints(&[json!({ "type": "result", "text": "all ticks" })]);
    let is_released = r#"[ $i -le "$(cat released 2>/dev/null)" ] 2>/dev/null"#;
    let script =
        format!("for i in $(seq 14); do until {is_released}; do sleep 0.1; done; {call} done; {whole}");
    let agent = reporting_agent(&script, "stream = 'answer'\nrun_timeout = '200s'");
    agent.replace("test:sh", "test:ticks") + "[worker]\nlease_duration = '3s'\n"
}

/// Lets the agent tick so often.
async fn release(world: &World, ticks: &str) {
    fs::write(world.workspace("ticks").await.join("released"), ticks).unwrap();
}

/// Waits until so many ticks are stored.
async fn ticked(world: &World, ticks: usize) {
    let stored = || async {
        let events = world.sluice().run(&["runs", "events", "ticks", "--json"]).await.events();
        events.iter().filter(|event| event["type"] == "tool_call").count()
    };
    eventually("the ticks are stored", stored, |stored| *stored >= ticks).await;
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
            other => {
                let (what, ticks) = other.rsplit_once(' ').unwrap();
                release(&dashboard.there.world, ticks).await;
                match what {
                    "tick to" => ticked(&dashboard.there.world, ticks.parse().unwrap()).await,
                    "release" => {}
                    _ => panic!("no fault {other}"),
                }
            }
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
