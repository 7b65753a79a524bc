//! Implements `sluice gateway agents sessions`.

use std::io::{self, Write};

use platform_core::id::AccountId;
use platform_runtime::terminal;
use runner_store::{AccountScope, GatewayAgentKey, GatewaySession};
use serde_json::{Value, json};

use super::{AgentArguments, Context, Error, Exit};
use crate::commands::{table::Table, times::format_time};

/// Longest question in a table, in characters.
const MAX_QUESTION: usize = 60;

#[derive(clap::Args)]
pub(in crate::commands) struct SessionsArguments {
    #[command(flatten)]
    agent: AgentArguments,
    /// Only sessions of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Most sessions to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn sessions(context: &Context, arguments: SessionsArguments) -> Result<Exit, Error> {
    let SessionsArguments { agent, account, limit, json } = arguments;
    let (gateway, _) = context.settings.gateway(&agent.gateway)?;
    let key = GatewayAgentKey { gateway: gateway.clone(), agent: agent.agent };
    let scope = account.map_or(AccountScope::All, AccountScope::Only);
    let store = context.store().await?;
    let sessions = store.gateway_sessions(&key, &scope, None, limit).await?;
    let mut out = io::stdout();
    if json {
        let sessions: Vec<_> = sessions.iter().map(to_json).collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "sessions": sessions }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["LAST", "ACCOUNT", "RUNS", "COST", "STATE", "LAST RUN", "QUESTION"]);
    for session in &sessions {
        table.row([
            format_time(session.changed),
            session.account.to_string(),
            session.runs.to_string(),
            session.cost.to_string(),
            session.state.name().to_owned(),
            session.last_run.to_string(),
            question(session),
        ]);
    }
    write!(out, "{table}")?;
    if let Some(last) = sessions.first() {
        writeln!(io::stderr(), "next: sluice runs show {}", last.last_run)?;
    }
    Ok(Exit::Success)
}

/// Returns the beginning of the last question.
fn question(session: &GatewaySession) -> String {
    let text = session.question.as_deref().unwrap_or("-");
    let beginning: String = text.chars().take(MAX_QUESTION).collect();
    terminal::safe(&beginning).to_string()
}

fn to_json(session: &GatewaySession) -> Value {
    json!({
        "session": session.name,
        "account": session.account,
        "state_key": session.thread,
        "question": session.question,
        "runs": session.runs,
        "nanodollars": session.cost,
        "last_run": session.last_run,
        "state": session.state.name(),
        "created_ms": session.began,
        "changed_ms": session.changed,
    })
}
