//! Tests that the real OpenClaw, the official clients of the Model Context Protocol, and its inspector call host tools from a
//! sandbox.
//! `sluice up` executes them.

use std::time::Duration;

use harness::{
    McpClient, Up, World,
    docker::containers_of,
    eventually::eventually,
    mcp_clients::{McpCalls, inspect_from},
    shell_agents::shell_agent,
    tool_latency::ToolLatency,
};
use platform_core::{host_tools::ToolOutcome, record::Kind};
use rustix::process::Signal;
use serde_json::{Value, json};

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

/// A run with an agent that waits, so that other programs call host tools from its network.
struct WaitingRun {
    world: World,
    up: Up,
    container: String,
}

impl WaitingRun {
    /// Starts the run, which may read the clock.
    async fn start() -> Self {
        let agent =
            shell_agent("touch /workspace/ready; sleep 600", "host_tools = ['core__get_current_time']\n");
        let mut world = World::with(&agent).await;
        assert!(world.stop_proxy().await);
        let up = Up::start(world.sluice()).await;
        let order = ["run", "--agent", "test:sh", "--run-id", "r1", "--detach", "q"];
        let ordered = world.sluice().run(&order).await;
        assert_eq!(ordered.code, Some(0), "{ordered:?}");
        let workspace = world.workspace("r1").await;
        eventually("the agent runs", || async { workspace.join("ready").exists() }, |ready| *ready).await;
        let mut containers = containers_of(&world.installation()).await;
        assert_eq!(containers.len(), 1, "{containers:?}");
        Self { world, up, container: containers.remove(0) }
    }

    /// Cancels the run, and checks that nothing is left.
    async fn end(self) {
        let cancelled = self.world.sluice().run(&["runs", "cancel", "r1"]).await;
        assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
        self.up.stop(Signal::TERM).await;
        self.world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn official_mcp_clients_call_a_tool() {
    let calls = McpCalls { tool: "core__get_current_time", arguments: "{}", denied: "runs__status" };
    let waiting = WaitingRun::start().await;
    for client in [McpClient::Python, McpClient::TypeScript] {
        let seen = client.call_from(&waiting.container, calls).await;
        assert_eq!(seen["tools"], json!(["core__get_current_time"]), "{client:?}: {seen:#}");
        assert_eq!(seen["called"]["failed"], json!(false), "{client:?}: {seen:#}");
        assert!(seen["called"]["text"].as_str().unwrap().contains("unix_ms"), "{client:?}: {seen:#}");
        assert!(seen["invalid"].to_string().contains("no_such_argument"), "{client:?}: {seen:#}");
        assert!(seen["denied"]["error"].to_string().contains("was not granted"), "{client:?}: {seen:#}");
    }
    let records = waiting.world.journal().await;
    assert!(records.iter().all(|line| line.record.kind == Kind::Tool), "{records:#?}");
    let outcomes: Vec<_> = records.iter().filter_map(|line| line.record.tool.as_ref()).collect();
    let done = outcomes.iter().filter(|tool| tool.outcome == ToolOutcome::Done).count();
    assert_eq!(done, 2, "one for each client: {records:#?}");
    waiting.end().await;
}

#[tokio::test]
async fn the_mcp_inspector_finds_no_fault() {
    let clock = "core__get_current_time";
    let waiting = WaitingRun::start().await;
    let container = waiting.container.as_str();
    let listed = inspect_from(container, "tools/list", &["--strict"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let tools = listed.printed["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), [clock], "{listed:?}");
    let called = inspect_from(container, "tools/call", &["--tool-name", clock]).await;
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.printed["structuredContent"]["unix_ms"].is_u64(), "{called:?}");
    let invalid = ["--tool-name", clock, "--tool-arg", "no_such_argument=1"];
    let refused = inspect_from(container, "tools/call", &invalid).await;
    assert!(refused.printed.to_string().contains("no_such_argument"), "{refused:?}");
    let unlisted = inspect_from(container, "tools/call", &["--tool-name", "runs__status"]).await;
    assert_ne!(unlisted.code, Some(0), "{unlisted:?}");
    let records = waiting.world.journal().await;
    let outcomes: Vec<_> = records.iter().filter_map(|line| line.record.tool.as_ref()).collect();
    let done = outcomes.iter().filter(|tool| tool.outcome == ToolOutcome::Done).count();
    assert_eq!(done, 1, "the valid call alone: {records:#?}");
    waiting.end().await;
}

/// The short form of `tests/examples/tool-latency.rs`, which checks the records of all calls.
#[tokio::test]
async fn each_way_to_call_a_tool_is_measured() {
    let rows = ToolLatency { calls: 3 }.measure().await;
    assert_eq!(rows.iter().map(|row| row.calls).collect::<Vec<_>>(), [3, 3, 3], "{rows:?}");
    assert!(rows.iter().all(|row| row.p50_us > 0 && row.p50_us <= row.p99_us), "{rows:?}");
}
