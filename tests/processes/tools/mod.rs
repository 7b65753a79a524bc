//! Tests host tools: calls that run on the host, for agents that have no network.

mod attacks;
mod data_plane;
mod limits;

use harness::{Answer, Run, ToolSocket, World, grant};
use platform_core::{
    grant::RunGrant,
    host_tools::{HostTools, ToolLimits},
    id::ToolName,
    record::{ExchangeRecord, Kind},
};
use serde_json::{Value, json};

/// The tool that runs here are granted.
const CLOCK: &str = "core__get_current_time";

/// A world in which this test plays the control plane on the tool socket.
struct Tools {
    world: World,
    socket: ToolSocket,
}

impl Tools {
    async fn start() -> Self {
        let world = World::start().await;
        let socket = ToolSocket::below(&world.path().join("run"));
        Self { world, socket }
    }

    /// Registers a run that may call [`CLOCK`], under `limits`.
    async fn run_within(&self, run: &str, limits: ToolLimits) -> Run {
        self.world.run_with(granted(run, limits)).await
    }

    async fn run(&self, run: &str) -> Run {
        self.run_within(run, ToolLimits::default()).await
    }

    /// Returns the last of `count` records.
    async fn last(&self, count: usize) -> ExchangeRecord {
        self.world.records(count).await.pop().unwrap().record
    }
}

fn granted(run: &str, limits: ToolLimits) -> RunGrant {
    let host_tools = HostTools { names: vec![ToolName::parse(CLOCK).unwrap()], limits };
    RunGrant { host_tools, ..grant(run, "acct-1") }
}

/// Returns the body of a call.
fn call(run: &str, tool: &str) -> Value {
    json!({ "runId": run, "callId": "c1", "tool": tool, "args": { "zone": "UTC" } })
}

/// Returns the message of the Model Context Protocol that calls `tool`.
fn message(tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": tool, "arguments": { "zone": "UTC" } } })
}

/// Returns status and code of a refusal, in the shape of the route that was called.
fn refusal(answer: &Answer) -> (u16, String) {
    let json = answer.json();
    let error = &json["error"];
    let code = if json["jsonrpc"] == "2.0" { &error["data"]["code"] } else { &error["code"] };
    assert!(json["jsonrpc"] == "2.0" || json["ok"] == false, "{json}");
    assert!(error["message"].is_string(), "{json}");
    (answer.status.as_u16(), code.as_str().unwrap_or_else(|| panic!("{json}")).to_owned())
}

/// Asserts that a record is of a tool call, and costs nothing.
fn assert_of_tool(record: &ExchangeRecord) {
    assert_eq!((record.kind, record.cost_nanodollars), (Kind::Tool, None));
    assert_eq!((record.tokens.input, record.tokens.output), (0, 0));
}
