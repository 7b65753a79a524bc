//! Explains refusals of calls of host tools.

use platform_core::refusal::Refusal;

use super::{Advice, AdvisedCall, Rule, explain, toml_list, toml_quote};

/// Lists that decide, and how each changes.
const LISTS: &str = "`host_tools` of its agent, of its account and of its order (`--host-tool`) each have to name it, and `sluice tools explain` says which one does not; a changed list is for runs that are ordered after the reload";

impl AdvisedCall<'_> {
    /// Explains a call of a host tool that was refused, or that has no answer.
    pub(super) fn explain_tools(self, refusal: Refusal, rule: Rule<'_>) -> Advice {
        match (refusal, rule) {
            (Refusal::MethodNotAllowed, _) => explain(
                "host tools are called with POST alone; MCP clients that ask for a stream with GET go on without it",
            ),
            (Refusal::PolicyDenied, Rule::Tool(name)) => self.explain_tool_lists(
                &format!("the run was not granted the host tool {name}: {LISTS}"),
                Some(toml_list(name)),
            ),
            (Refusal::PolicyDenied, _) => {
                self.explain_tool_lists(&format!("the run was granted no host tool: {LISTS}"), None)
            }
            (Refusal::RunMismatch, _) => {
                explain("the body names another run than the one that made the call; an agent acts for its own run alone")
            }
            (Refusal::ToolsUnavailable, _) => {
                explain("`sluice up` did not take the call on the tool socket, or a user who is not trusted listens there; nothing ran")
                    .command("sluice doctor")
                    .setting("tools", "socket", None)
                    .setting("proxy", "control_uids", None)
            }
            (Refusal::ToolTimeout, _) => {
                explain("the tool did not end in time, or no person approved the call; it may have had its effect")
                    .setting("tools", "call_timeout", None)
            }
            (Refusal::ToolAnswerTooLarge, _) => {
                explain("the tool has run, and its answer is larger than the run may receive")
                    .setting("tools", "max_answer", None)
            }
            _ => explain(
                "the connection to `sluice up` broke during the call; the tool may have had its effect, and the call is not repeated",
            )
            .command("sluice doctor"),
        }
    }

    /// Explains that one of the lists of host tools lacks `tool`, for the reason `why`.
    fn explain_tool_lists(self, why: &str, tool: Option<String>) -> Advice {
        let account = format!("accounts.{}", toml_quote(self.record.account.as_str()));
        explain(why)
            .command(format!("sluice tools explain {}", self.record.run_id))
            .command("sluice reload")
            .setting(&self.agent_section(), "host_tools", tool.clone())
            .setting(&account, "host_tools", tool)
    }

    /// Explains a limit of calls of host tools.
    pub(super) fn explain_tool_limit(self, limit: &str) -> Advice {
        let run = self.record.run_id.as_str();
        let (words, key) = match limit {
            "calls_per_minute" => ("calls host tools faster than its limit allows", "calls_per_minute"),
            "calls_in_flight" => {
                ("has as many calls of host tools in flight as it may have", "max_calls_in_flight")
            }
            _ => ("has made, or is making, all the calls of host tools that it may make", "max_calls"),
        };
        explain(&format!("run {run} {words}")).setting("tools", key, None)
    }
}
