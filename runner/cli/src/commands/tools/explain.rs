//! Implements `sluice tools explain`.

use std::io::{self, Write};

use platform_core::id::ToolName;
use platform_runtime::{settings::Settings, terminal};
use runner_engine::{
    request::RunRequest,
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
    /// List that lacks the tool.
    lacking: Option<&'static str>,
    /// Reason why the tool cannot be used here.
    unavailable: Option<String>,
}

pub(super) async fn explain(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let run_id = arguments.run.in_store(&store).await?;
    let record = store.record(&run_id).await?;
    let request = RunRequest::stored(&record).map_err(|error| Error::Lease(error.into()))?;
    let calls = store.tool_calls(&run_id).await?;
    let lists = ToolLists::of(&request, &context.settings);
    let tools = accesses(&lists, &gateway(context, &store).catalog().await);
    let mut out = io::stdout();
    if arguments.json {
        let json = json!({
            "run_id": run_id,
            "agent": request.agent_id,
            "account": request.account,
            "tools": tools,
            "calls": calls,
        });
        writeln!(out, "{}", terminal::safe_json(&json.to_string()))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "run {run_id}, agent {}, account {}", request.agent_id, request.account)?;
    let mut table = Table::new(["TOOL", "MAY CALL", "WHY"]);
    for tool in &tools {
        let may = if tool.allowed { "yes" } else { "no" };
        table.row([tool.name.to_string(), may.to_owned(), reason(tool, &request, &context.settings)]);
    }
    writeln!(out, "{table}")?;
    write!(out, "{}", calls_in_words(&calls))?;
    Ok(Exit::Success)
}

/// Returns the access to each tool that exists, and to each that a list names.
fn accesses(lists: &ToolLists<'_>, catalog: &[CatalogEntry]) -> Vec<ToolAccess> {
    let entry = |name: &ToolName| catalog.iter().find(|entry| entry.name == *name);
    let named = lists.agent.iter().chain(lists.order.unwrap_or_default());
    let mut names: Vec<_> = catalog.iter().map(|entry| &entry.name).chain(named).collect();
    names.sort_unstable();
    names.dedup();
    let access = |name: &ToolName| {
        let lacking = lists.lacking(name);
        let unavailable = match entry(name) {
            Some(entry) => entry.unavailable.clone(),
            None => Some("there is no such tool".to_owned()),
        };
        ToolAccess {
            name: name.clone(),
            allowed: lacking.is_none() && unavailable.is_none(),
            lacking: lacking.map(ToolList::word),
            unavailable,
        }
    };
    names.into_iter().map(access).collect()
}

fn reason(tool: &ToolAccess, request: &RunRequest, settings: &Settings) -> String {
    let lists = ToolLists::of(request, settings);
    match (lists.lacking(&tool.name), &tool.unavailable) {
        (Some(ToolList::Agent), _) => {
            format!("not in `host_tools` of {} when the run was ordered", request.agent_id)
        }
        (Some(ToolList::Account), _) => format!("not in `host_tools` of account {}", request.account),
        (Some(ToolList::Order), _) => "the order of the run leaves it out".to_owned(),
        (None, Some(reason)) => format!("unavailable: {reason}"),
        (None, None) => "agent, account and order have it".to_owned(),
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
        let found = accesses(&lists, &[]);
        let summary: Vec<_> =
            found.iter().map(|tool| (tool.name.as_str(), tool.allowed, tool.lacking)).collect();
        assert_eq!(summary, [("gone__tool", false, Some("run")), ("other__tool", false, Some("agent"))]);
        assert!(found.iter().all(|tool| tool.unavailable.as_deref() == Some("there is no such tool")));
    }
}
