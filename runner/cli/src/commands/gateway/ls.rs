//! Implements `sluice gateway ls`.

use std::io::{self, Write};

use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Gateway, terminal};
use runner_gateways::managed;
use serde_json::{Value, json};

use super::{Context, Error, Exit};
use crate::commands::table::Table;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn ls(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let mut entries = Vec::new();
    for (id, gateway) in &context.settings.gateways {
        let state = managed::state(&context.settings, id, gateway).await;
        let state = state.map_or_else(
            |error| format!("not known: {}", report::chain(&error)),
            |state| state.word().to_owned(),
        );
        entries.push(entry_json(id, gateway, &state));
    }
    let mut out = io::stdout();
    if arguments.json {
        let listing = json!({ "gateways": entries });
        writeln!(out, "{}", terminal::safe_json(&listing.to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["GATEWAY", "STATE", "WHERE", "ACCOUNT", "SESSIONS", "ATTRIBUTION"]);
    for entry in entries {
        let text = |field: &str| match &entry[field] {
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        };
        table.row(["id", "state", "url", "account", "sessions", "attribution"].map(|field| {
            match text(field) {
                absent if absent == "-" && field == "url" => "here".to_owned(),
                absent if absent == "-" && field == "account" => "any".to_owned(),
                text => text,
            }
        }));
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}

fn entry_json(id: &GatewayId, gateway: &Gateway, state: &str) -> Value {
    json!({
        "id": id,
        "state": state,
        "url": gateway.url,
        "account": gateway.account,
        "sessions": gateway.max_concurrent_sessions,
        "attribution": gateway.attribution,
        "agents": gateway.is_managed().then_some(&gateway.managed.agents),
    })
}
