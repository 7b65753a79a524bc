//! Lets a coding agent call a host tool, in its real image: `sluice up` executes it.

use platform_core::{host_tools::ToolOutcome, record::Kind};
use rustix::process::Signal;
use serde_json::Value;

use crate::{Outcome, Up, World};

/// Tool that the run may call.
const GRANTED: &str = "core__get_current_time";

/// A run of an agent that may call one host tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostToolRun<'r> {
    /// Name of the agent.
    pub(crate) agent: &'r str,
    /// Name of the tool for the model; absent if the agent has no client of the Model Context Protocol.
    pub(crate) tool: Option<&'r str>,
}

impl HostToolRun<'_> {
    /// Plays the run in `world`, with `order` for its command line, and returns what happened.
    ///
    /// # Panics
    /// If the call is not made once, or the agent does not read of the tool.
    pub(crate) async fn play(self, world: &World, order: impl AsyncFnOnce(String) -> Outcome) -> String {
        let entry = format!("[agents.\"sandbox:{}\"]\n", self.agent);
        let granted = format!("{entry}host_tools = [\"{GRANTED}\"]\n");
        world.reconfigure(&entry, &granted);
        let up = Up::start(world.sluice()).await;
        let step = self.tool.map(|tool| format!("call: {tool} {{}}\n")).unwrap_or_default();
        let outcome = order(format!("Please:\n{step}say: I have read the clock.")).await;
        up.stop(Signal::TERM).await;
        world.reconfigure(&granted, &entry);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let last: Value = world.upstream.ledger().last().unwrap().json().unwrap();
        let example = format!("cogni-tool exec {GRANTED} '{{}}'");
        assert!(last.to_string().contains(&example), "the agent reads of the tool: {last}");
        if self.tool.is_none() {
            return "its instructions name cogni-tool".to_owned();
        }
        assert_eq!(outcome.result()["text"], "I have read the clock.", "{outcome:?}");
        assert!(last.to_string().contains("unix_ms"), "the model got the result: {last}");
        let records = world.journal().await;
        let tools = records.iter().filter(|line| line.record.kind == Kind::Tool);
        // The other messages of the protocol have records without a tool.
        let calls: Vec<_> = tools.filter_map(|line| line.record.tool.as_ref()).collect();
        let [call] = &calls[..] else { panic!("not one call of a tool: {calls:#?}") };
        assert_eq!((call.name.as_str(), call.outcome), (GRANTED, ToolOutcome::Done), "{call:?}");
        format!("{GRANTED}: done")
    }
}
