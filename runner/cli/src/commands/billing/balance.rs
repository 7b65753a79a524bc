//! Implements `sluice billing balance`.

use std::io::{self, Write};

use platform_core::id::AccountId;
use platform_runtime::terminal;
use serde_json::json;

use crate::commands::{Context, Error, exit::Exit, table::Table, times::format_time};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Only the balance of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn balance(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { account, json } = arguments;
    let balances = context.store().await?.balances(account.as_ref()).await?;
    let mut out = io::stdout();
    if json {
        let balances: Vec<_> = balances
            .iter()
            .map(|balance| {
                json!({
                    "account": balance.account,
                    "credits": balance.credits,
                    "floor": context.settings.floor_of(&balance.account),
                    "changed_ms": balance.changed,
                })
            })
            .collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "balances": balances }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["ACCOUNT", "CREDITS", "FLOOR", "STATE", "CHANGED"]);
    for balance in balances {
        let floor = context.settings.floor_of(&balance.account);
        let is_exhausted = context.settings.floor_above(&balance.account, balance.credits).is_some();
        table.row([
            balance.account.to_string(),
            balance.credits.to_string(),
            floor.map_or_else(|| "-".to_owned(), |floor| floor.to_string()),
            if is_exhausted { "exhausted" } else { "ok" }.to_owned(),
            format_time(balance.changed),
        ]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}
