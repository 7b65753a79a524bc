//! Implements `sluice tools ls`.

use std::io::{self, Write};

use platform_core::id::{AccountId, AgentId, ToolName};
use platform_runtime::{
    settings::{Account, Settings},
    terminal,
};
use runner_tools::{CatalogEntry, ReviewedServer, ServerToolState, ToolGateway};
use serde_json::json;

use super::{super::table::Table, Context, Error, Exit, gateway, store};

/// Name of all accounts that have no entry of their own.
const OTHERS: &str = "*";

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Print JSON, with the schema of the arguments, instead of a table
    #[arg(long)]
    json: bool,
    /// Use this account's sessions with third-party servers
    #[arg(long, default_value = "local", value_name = "ACCOUNT")]
    account: AccountId,
}

/// Answers of third-party servers about their tools.
struct ServerStates {
    servers: Vec<ReviewedServer>,
}

impl ServerStates {
    async fn read(gateway: &ToolGateway, account: &AccountId) -> Result<Self, Error> {
        Ok(Self { servers: gateway.review(None, account).await? })
    }

    fn of(&self, name: &ToolName) -> Option<&ServerToolState> {
        let mut tools = self.servers.iter().flat_map(|server| &server.tools);
        tools.find(|tool| tool.name == *name).map(|tool| &tool.state)
    }
}

/// Prints what is to be done about the tools of a server.
fn print_server(reviewed: &ReviewedServer) -> io::Result<()> {
    let ReviewedServer { server, tools, others } = reviewed;
    let mut err = io::stderr();
    let count = |wanted: &ServerToolState| tools.iter().filter(|tool| tool.state == *wanted).count();
    let [new, changed] = [ServerToolState::New, ServerToolState::Changed].map(|state| count(&state));
    if new + changed > 0 {
        writeln!(err, "{server}: {new} new, {changed} changed; next: sluice tools accept {server}")?;
    }
    if *others > 0 {
        writeln!(err, "{server}: has {others} more, which `tools` of [tools.servers.{server}] leaves out")?;
    }
    Ok(())
}

pub(super) async fn ls(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let settings = &context.settings;
    let gateway = gateway(context, &store(context).await?);
    let entries = gateway.catalog().await;
    let states = ServerStates::read(&gateway, &arguments.account).await;
    gateway.close().await;
    let states = states?;
    let mut out = io::stdout();
    if arguments.json {
        let tools = entries.iter().map(|entry| entry_json(settings, entry, &states));
        let tools = tools.collect::<Result<Vec<_>, _>>()?;
        writeln!(out, "{}", terminal::safe_json(&json!({ "tools": tools }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["TOOL", "EFFECT", "AGENTS", "ACCOUNTS", "DESCRIPTION"]);
    for entry in &entries {
        let first_line = || entry.description.lines().next().unwrap_or_default().to_owned();
        let description = match (states.of(&entry.name), &entry.unavailable) {
            (Some(ServerToolState::Accepted) | None, None) => first_line(),
            (Some(ServerToolState::Accepted | ServerToolState::New) | None, Some(reason)) => {
                format!("unavailable: {reason}")
            }
            (Some(state), _) => state.to_string(),
        };
        let agents: Vec<_> = agents_of(settings, &entry.name).map(AgentId::as_str).collect();
        table.row([
            entry.name.to_string(),
            match settings.tools.needs_approval(&entry.name) {
                true => format!("{}, once approved", entry.effect.word()),
                false => entry.effect.word().to_owned(),
            },
            if agents.is_empty() { "-".to_owned() } else { agents.join(" ") },
            accounts_in_words(settings, &entry.name),
            description,
        ]);
    }
    write!(out, "{table}")?;
    states.servers.iter().try_for_each(print_server)?;
    if settings.agents.values().all(|agent| agent.host_tools.is_empty()) {
        writeln!(io::stderr(), "no agent may call one: name them in `host_tools` of [agents.\"AGENT\"]")?;
    }
    Ok(Exit::Success)
}

/// Returns the agents that may call `tool`.
fn agents_of<'s>(settings: &'s Settings, tool: &ToolName) -> impl Iterator<Item = &'s AgentId> {
    settings.agents.iter().filter(|(_, agent)| agent.host_tools.contains(tool)).map(|(id, _)| id)
}

/// Returns whether the runs of `account` may call `tool` if their agents may.
fn may(account: &Account, tool: &ToolName) -> bool {
    account.host_tools.as_ref().is_none_or(|tools| tools.contains(tool))
}

/// Returns the entries of accounts that may call `tool` in their runs, and of those that may not.
fn accounts_of<'s>(settings: &'s Settings, tool: &ToolName) -> (Vec<&'s str>, Vec<&'s str>) {
    let named = settings.accounts.named.iter().map(|(id, account)| (AccountId::as_str(id), account));
    let entries = named.chain([(OTHERS, &settings.accounts.any)]);
    let (may, may_not): (Vec<_>, Vec<_>) = entries.partition(|(_, account)| may(account, tool));
    let ids = |entries: Vec<(&'s str, _)>| entries.into_iter().map(|(id, _)| id).collect();
    (ids(may), ids(may_not))
}

fn accounts_in_words(settings: &Settings, tool: &ToolName) -> String {
    match accounts_of(settings, tool) {
        (_, may_not) if may_not.is_empty() => "all".to_owned(),
        (may, _) if may.is_empty() => "none".to_owned(),
        (may, may_not) if may.contains(&OTHERS) => format!("all but {}", may_not.join(" ")),
        (may, _) => may.join(" "),
    }
}

fn entry_json(
    settings: &Settings,
    entry: &CatalogEntry,
    states: &ServerStates,
) -> Result<serde_json::Value, Error> {
    let (may, may_not) = accounts_of(settings, &entry.name);
    let mut json = serde_json::to_value(entry)?;
    json["needs_approval"] = settings.tools.needs_approval(&entry.name).into();
    if let Some(state) = states.of(&entry.name) {
        json["state"] = state.word().into();
        json["state_reason"] = state.to_string().into();
    }
    json["agents"] = json!(agents_of(settings, &entry.name).collect::<Vec<_>>());
    json["accounts"] = json!({ "allowed": may, "refused": may_not });
    Ok(json)
}

#[cfg(test)]
mod tests {
    use platform_runtime::config::Sources;

    use super::*;

    #[test]
    fn accounts_are_those_whose_list_has_the_tool() {
        let words = |accounts: &str| {
            let file = Some(("s.toml".into(), accounts.to_owned()));
            let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
            accounts_in_words(&settings, &ToolName::parse("core__get_current_time").unwrap())
        };
        assert_eq!(words(""), "all");
        assert_eq!(words("[accounts.a]\nhost_tools = ['core__get_current_time']"), "all");
        assert_eq!(words("[accounts.a]\nhost_tools = []"), "all but a");
        assert_eq!(words("[accounts.'*']\nhost_tools = []"), "none");
        assert_eq!(
            words("[accounts.a]\nhost_tools = ['core__get_current_time']\n[accounts.'*']\nhost_tools = []"),
            "a"
        );
    }
}
