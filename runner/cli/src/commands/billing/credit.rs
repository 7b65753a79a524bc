//! Implements `sluice billing credit`.

use std::io::{self, Write};

use platform_core::{
    credits::Credits,
    id::{AccountId, ExternalId, TopUpNote},
    invalid::InvalidValue,
};
use platform_runtime::{random, terminal};
use runner_store::{NewTopUp, Store, TopUp, TopUpAdded};
use serde_json::json;

use crate::commands::{Error, error::Misused, exit::Exit};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Account that gets the credits
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountId,
    /// Number of credits; negative to take some back
    #[arg(value_name = "CREDITS", allow_negative_numbers = true, value_parser = parse_credits)]
    credits: Credits,
    /// Note, for the statement
    #[arg(long, value_name = "TEXT")]
    note: Option<TopUpNote>,
    /// Key of this top-up: repeated with the same key, it counts once [default: another one each time]
    #[arg(long, value_name = "KEY")]
    key: Option<ExternalId>,
    /// Print JSON instead of a sentence
    #[arg(long)]
    json: bool,
}

fn parse_credits(text: &str) -> Result<Credits, InvalidValue> {
    let credits =
        text.parse().ok().map(Credits).filter(|credits| credits.is_representable() && credits.0 != 0);
    credits.ok_or_else(|| {
        format!("expected a whole number of credits from 1 to {}, or a negative one", Credits::GREATEST)
            .into()
    })
}

pub(super) async fn credit(store: &Store, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { account, credits, note, key, json } = arguments;
    let id = |text: String| ExternalId::parse(&text).map_err(|error| Misused(error.to_string()));
    let key = match key {
        Some(key) => key,
        None => id(format!("top-up-{:032x}", random::bits()))?,
    };
    let author = id(format!("uid:{}", rustix::process::getuid().as_raw()))?;
    let added = store.add_top_up(&NewTopUp { key, account, credits, note, author }).await?;
    let (is_new, TopUp { top_up, created }) = match added {
        TopUpAdded::New(stored) => (true, stored),
        TopUpAdded::Before(stored) => (false, stored),
    };
    let balance = store.balances(Some(&top_up.account)).await?;
    let balance = balance.first().map_or(Credits(0), |balance| balance.credits);
    let mut out = io::stdout();
    if json {
        let json = json!({
            "key": top_up.key,
            "account": top_up.account,
            "credits": top_up.credits,
            "note": top_up.note,
            "author": top_up.author,
            "created_ms": created,
            "new": is_new,
            "balance": balance,
        });
        writeln!(out, "{}", terminal::safe_json(&json.to_string()))?;
    } else if is_new {
        writeln!(out, "{} has {balance} credits now", top_up.account)?;
    } else {
        writeln!(
            out,
            "nothing changed: this top-up was made before; {} has {balance} credits",
            top_up.account
        )?;
    }
    Ok(Exit::Success)
}
