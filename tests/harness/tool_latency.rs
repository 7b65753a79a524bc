//! Measures how long a host tool that does nothing takes, seen from inside a sandbox.
//!
//! The agent calls the clock, one call after the other. It posts to `/tool/exec` and `/mcp` over one connection, and starts
//! `cogni-tool` for each further call. The last contains the start of that process.

use std::time::Duration;

use platform_core::{host_tools::ToolOutcome, record::Kind};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{up::Up, world::World};

const AGENT: &str = include_str!("tool_latency.mjs");
/// Calls of each way that come before those that count.
const WARM_UP: usize = 20;
/// Longest duration of the run.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Ways to call a tool, as the agent names them, and as people do.
const WAYS: [(&str, &str); 3] =
    [("exec", "`POST /tool/exec`"), ("mcp", "`POST /mcp`"), ("cogni_tool", "`cogni-tool exec`")];

/// Number of calls of each way.
#[derive(Debug, Clone, Copy)]
pub struct ToolLatency {
    /// Calls that count.
    pub calls: usize,
}

/// Durations of the calls of one way, in microseconds.
#[derive(Debug, Serialize)]
pub struct LatencyRow {
    /// Name of the way.
    pub way: &'static str,
    /// Number of calls.
    pub calls: usize,
    /// Half of the calls took no longer.
    pub p50_us: u64,
    /// Nine of ten calls took no longer.
    pub p90_us: u64,
    /// Ninety-nine of a hundred calls took no longer.
    pub p99_us: u64,
}

impl ToolLatency {
    /// Measures every way in one run.
    ///
    /// # Panics
    /// If a call fails, has no record, or the two HTTP ways need more than one connection.
    pub async fn measure(self) -> Vec<LatencyRow> {
        let all = (self.calls + WARM_UP) * WAYS.len();
        let world = World::quiet(&entry(self.calls, all)).await;
        let up = Up::start(world.sluice()).await;
        let order = ["run", "--agent", "bench:tools", "--run-id", "r1", "--json", "q"];
        let outcome = world.sluice().within(RUN_TIMEOUT).run(&order).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let found: Value = serde_json::from_str(outcome.result()["text"].as_str().unwrap()).unwrap();
        assert_eq!(found["connections"], json!(1), "one connection for both HTTP ways");
        let records = world.journal().await;
        let tools = records.iter().filter(|line| line.record.kind == Kind::Tool);
        let done = tools
            .filter_map(|line| line.record.tool.as_ref())
            .filter(|call| call.outcome == ToolOutcome::Done);
        assert_eq!(done.count(), all, "each call has a record");
        up.stop(Signal::TERM).await;
        world.assert_nothing_left().await;
        WAYS.map(|(name, way)| LatencyRow::of(way, micros(&found["micros"][name]))).into()
    }
}

/// Returns the entry of the agent, and limits above all its calls.
fn entry(calls: usize, all: usize) -> String {
    let script = crate::shell_agents::toml_argument(AGENT);
    format!(
        "[tools]\nmax_calls = {all}\ncalls_per_minute = {limit}\n\
         [agents.'bench:tools']\nimage = 'sluicegate/sandbox-runtime:latest'\nprotocol = 'text'\nrun_timeout = '240s'\n\
         argv = ['node', '--input-type=module', '-e', {script}]\nenvironment = {{ CALLS = '{calls}' }}\n\
         host_tools = ['core__get_current_time']\n",
        limit = all * 10,
    )
}

fn micros(found: &Value) -> Vec<u64> {
    serde_json::from_value(found.clone()).unwrap()
}

impl LatencyRow {
    fn of(way: &'static str, mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        let at = |percent: usize| micros[(micros.len() * percent / 100).min(micros.len() - 1)];
        Self { way, calls: micros.len(), p50_us: at(50), p90_us: at(90), p99_us: at(99) }
    }
}
