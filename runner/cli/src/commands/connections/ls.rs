//! Implements `sluice connections ls`.

use std::io::{self, Write};

use platform_core::id::AccountId;
use platform_runtime::terminal;
use runner_store::AccountScope;

use super::{ConnectionView, Context, Error, Exit, format_time, print_json};
use crate::commands::table::Table;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Only connections of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn ls(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let scope = arguments.account.clone().map_or(AccountScope::All, AccountScope::Only);
    let stored = context.store().await?.connections(&scope).await?;
    let views: Vec<_> = stored.into_iter().map(ConnectionView::of).collect();
    if arguments.json {
        print_json(&views)?;
        return Ok(Exit::Success);
    }
    let mut table =
        Table::new(["CONNECTION", "ACCOUNT", "PROVIDER", "SCOPE", "KIND", "EXPIRES", "LAST USED", "STATE"]);
    for view in &views {
        let time = |time| format_time(time);
        table.row([
            view.id.to_string(),
            view.account.to_string(),
            view.provider.to_string(),
            terminal::safe(view.scope.as_str()).into_owned(),
            view.kind.word().to_owned(),
            view.expires.map_or_else(|| "-".to_owned(), time),
            view.used.map_or_else(|| "never".to_owned(), time),
            view.state_in_words().to_owned(),
        ]);
    }
    write!(io::stdout(), "{table}")?;
    Ok(Exit::Success)
}
