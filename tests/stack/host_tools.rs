//! Tests that the real OpenClaw in a sandbox calls a host tool over MCP, which `sluice up` executes.

use std::time::Duration;

use harness::{Up, World};
use platform_core::{host_tools::ToolOutcome, record::Kind};
use rustix::process::Signal;
use serde_json::Value;

/// Longest duration of a run: OpenClaw takes seconds to start, and many on a busy machine.
const PATIENCE: Duration = Duration::from_secs(110);

#[tokio::test]
async fn openclaw_calls_a_host_tool_over_mcp() {
    let world = World::with(
        "[agents.'sandbox:openclaw']\nargv = ['node', '/agent/run.mjs']\nimage = 'sluicegate/sandbox-openclaw:latest'\n\
         memory = '2GiB'\nrun_timeout = '100s'\nhost_tools = ['core__get_current_time']\n",
    )
    .await;
    let up = Up::start(world.sluice()).await;
    let question = "Please:\ncall: host__core__get_current_time {}\nsay: I have read the clock.";
    let arguments =
        ["run", "--agent", "sandbox:openclaw", "--run-id", "r1", "--model", "fake-steps", "--json", question];
    let outcome = world.sluice().within(PATIENCE).run(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.result()["text"], "I have read the clock.");
    let last: Value = world.upstream.ledger().last().unwrap().json().unwrap();
    assert!(last["messages"].to_string().contains("unix_ms"), "the model got the result: {last}");
    let records = world.journal().await;
    let called: Vec<_> = records.iter().filter_map(|line| line.record.tool.as_ref()).collect();
    let executed: Vec<_> = called.iter().filter(|call| call.outcome == ToolOutcome::Done).collect();
    assert_eq!(executed.len(), 1, "{records:?}");
    assert_eq!(executed[0].name.as_str(), "core__get_current_time");
    let models = records.iter().filter(|line| line.record.kind == Kind::Model).count();
    assert_eq!(models, 2, "a call for the step and one for the answer");
    up.stop(Signal::TERM).await;
}
