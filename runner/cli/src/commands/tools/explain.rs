//! Implements `sluice tools explain`.

use std::io::{self, Write};

use platform_core::{host_tools::HostTools, id::ToolName};
use platform_runtime::terminal;
use runner_control_client::DataPlane;
use runner_engine::{
    run_request::RunRequest,
    tool_lists::{ToolList, ToolLists},
};
use runner_store::StoredToolCall;
use runner_tools::CatalogEntry;
use serde::Serialize;
use serde_json::json;

use super::{
    super::{run_reference::RunChoice, table::Table},
    Context, Error, Exit, gateway,
};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    run: RunChoice,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Answer to the question whether a run may call a tool.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ToolAccess {
    name: ToolName,
    allowed: bool,
    /// True if neither list nor grant leaves it out.
    granted: bool,
    /// List that lacks the tool.
    lacking: Option<&'static str>,
    /// Reason why the tool cannot be used here.
    unavailable: Option<String>,
}

pub(super) async fn explain(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let run_id = arguments.run.in_store(&store).await?;
    let record = store.record(&run_id).await?;
    let request = RunRequest::stored(&record)?;
    let calls = store.tool_calls(&run_id).await?;
    let lists = ToolLists::of(&request, &context.settings);
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    // A run that has ended has no grant any more; nor has one while no proxy runs.
    let grant = data_plane.run(&run_id).await.ok().map(|run| run.grant.host_tools);
    let judge = ToolJudge { lists, grant };
    let tools = judge.accesses(&gateway(context, &store).catalog().await);
    let mut out = io::stdout();
    if arguments.json {
        let json = json!({
            "run_id": run_id,
            "agent": request.agent_id,
            "account": request.account,
            "judged_by": judge.word(),
            "tools": tools,
            "calls": calls,
        });
        writeln!(out, "{}", terminal::safe_json(&json.to_string()))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "run {run_id}, agent {}, account {}", request.agent_id, request.account)?;
    writeln!(out, "{}", judge.basis())?;
    let mut table = Table::new(["TOOL", "MAY CALL", "WHY"]);
    for tool in &tools {
        let may = if tool.allowed { "yes" } else { "no" };
        table.row([tool.name.to_string(), may.to_owned(), judge.reason(tool, &request)]);
    }
    writeln!(out, "{table}")?;
    write!(out, "{}", calls_in_words(&calls))?;
    Ok(Exit::Success)
}

/// Judge that says which tools a run may call, and why.
struct ToolJudge<'l> {
    /// Lists of the order, and that of the account as it is configured now.
    lists: ToolLists<'l>,
    /// Tools that the run was granted, while it has a grant.
    grant: Option<HostTools>,
}

impl ToolJudge<'_> {
    /// Returns what decides, in a word.
    const fn word(&self) -> &'static str {
        if self.grant.is_some() { "grant" } else { "configuration" }
    }

    /// Returns what decides, in a sentence.
    const fn basis(&self) -> &'static str {
        match self.grant {
            Some(_) => "as the run was granted when it began:",
            None => {
                "by the configuration of now, because the run has no grant: it has ended, or no proxy knows it. \
                 What it was granted may have been something else:"
            }
        }
    }

    /// Returns the access to each tool that exists, and to each that a list names.
    fn accesses(&self, catalog: &[CatalogEntry]) -> Vec<ToolAccess> {
        let entry = |name: &ToolName| catalog.iter().find(|entry| entry.name == *name);
        let named = self.lists.agent.iter().chain(self.lists.order.unwrap_or_default());
        let granted = self.grant.iter().flat_map(|grant| &grant.names);
        let mut names: Vec<_> = catalog.iter().map(|entry| &entry.name).chain(named).chain(granted).collect();
        names.sort_unstable();
        names.dedup();
        let access = |name: &ToolName| {
            let lacking = self.lists.lacking(name);
            let granted = self.grant.as_ref().map_or(lacking.is_none(), |grant| grant.allows(name));
            let unavailable = match entry(name) {
                Some(entry) => entry.unavailable.clone(),
                None => Some("there is no such tool".to_owned()),
            };
            ToolAccess {
                name: name.clone(),
                allowed: granted && unavailable.is_none(),
                granted,
                lacking: lacking.filter(|_| !granted).map(ToolList::word),
                unavailable,
            }
        };
        names.into_iter().map(access).collect()
    }

    /// Returns why the run may or may not call a tool, with the setting that decides.
    fn reason(&self, tool: &ToolAccess, request: &RunRequest) -> String {
        let RunRequest { agent_id, account, .. } = request;
        match (self.lists.lacking(&tool.name).filter(|_| !tool.granted), &tool.unavailable) {
            (Some(ToolList::Agent), _) => {
                format!("not in agents.\"{agent_id}\".host_tools when the run was ordered")
            }
            (Some(ToolList::Account), _) => format!("not in accounts.\"{account}\".host_tools"),
            (Some(ToolList::Order), _) => "the order of the run leaves it out (--host-tool)".to_owned(),
            (None, _) if !tool.granted => {
                format!("not in accounts.\"{account}\".host_tools when the run began; it is by now")
            }
            (None, Some(reason)) => format!("unavailable: {reason}"),
            (None, None) => "agent, account and order have it".to_owned(),
        }
    }
}

fn calls_in_words(calls: &[StoredToolCall]) -> String {
    if calls.is_empty() {
        return "no calls; the journal has those that were refused before they began: `sluice audit show`\n"
            .to_owned();
    }
    let mut table = Table::new(["CALL", "TOOL", "OUTCOME", "RESULT", "TIME"]);
    for call in calls {
        let outcome = match &call.code {
            Some(code) => format!("{}: {code}", call.state.word()),
            None => call.state.word().to_owned(),
        };
        let size = call.result_bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes} B"));
        let time = call.ended.map(|ended| ended.0.saturating_sub(call.began.0));
        let time = time.map_or_else(|| "-".to_owned(), |millis| format!("{millis} ms"));
        table.row([call.id.clone(), call.tool.to_string(), outcome, size, time]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<ToolName> {
        names.iter().map(|name| ToolName::parse(name).unwrap()).collect()
    }

    #[test]
    fn a_tool_that_does_not_exist_is_not_allowed() {
        let [agent, order] = [tools(&["gone__tool"]), tools(&["other__tool"])];
        let lists = ToolLists { agent: &agent, account: None, order: Some(&order) };
        let found = ToolJudge { lists, grant: None }.accesses(&[]);
        let summary: Vec<_> =
            found.iter().map(|tool| (tool.name.as_str(), tool.allowed, tool.lacking)).collect();
        assert_eq!(summary, [("gone__tool", false, Some("run")), ("other__tool", false, Some("agent"))]);
        assert!(found.iter().all(|tool| tool.unavailable.as_deref() == Some("there is no such tool")));
    }

    #[test]
    fn a_grant_decides_while_there_is_one() {
        let [agent, account] = [tools(&["a__x", "a__y"]), tools(&["a__y"])];
        let lists = ToolLists { agent: &agent, account: Some(&account), order: None };
        let granted = |grant| {
            let found = ToolJudge { lists, grant }.accesses(&[]);
            found.into_iter().map(|tool| (tool.granted, tool.lacking)).collect::<Vec<_>>()
        };
        assert_eq!(granted(None), [(false, Some("account")), (true, None)], "the lists of now");
        let grant = HostTools { names: tools(&["a__x"]), ..HostTools::default() };
        assert_eq!(
            granted(Some(grant)),
            [(true, None), (false, None)],
            "the account's list has changed since"
        );
    }
}
