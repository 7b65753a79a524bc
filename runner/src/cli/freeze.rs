//! `sluice freeze` and `sluice thaw`: stopping model calls of an account, for a model, or all, and letting them go on.

use std::io::{self, Write};

use platform_core::{
    control::Frozen,
    id::{AccountId, ModelName},
};
use serde_json::json;

use super::{
    Context, Error,
    exit::{Exit, Misused},
    table::Table,
};
use crate::data_plane::DataPlane;

/// What to stop or to let go on.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Calls of this account; may be repeated
    #[arg(long, value_name = "ACCOUNT")]
    account: Vec<AccountId>,
    /// Calls that ask for this model, by the name they ask for; may be repeated
    #[arg(long, value_name = "MODEL")]
    model: Vec<ModelName>,
    /// Every call
    #[arg(long)]
    all: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn named(&self) -> Vec<Frozen> {
        let accounts = self.account.iter().cloned().map(Frozen::Account);
        let models = self.model.iter().cloned().map(Frozen::Model);
        accounts.chain(models).chain(self.all.then_some(Frozen::All)).collect()
    }
}

/// Stops what is named, and shows everything that is stopped.
pub(super) async fn freeze(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let named = arguments.named();
    let frozen =
        if named.is_empty() { data_plane.frozen().await? } else { data_plane.freeze(&named).await? };
    show(&frozen, &arguments)
}

/// Lets go on what is named, and shows what is still stopped.
pub(super) async fn thaw(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let named = arguments.named();
    if named.is_empty() {
        return Err(Box::new(Misused(
            "name what to thaw: --account ACCOUNT, --model MODEL or --all; `sluice freeze` shows what is stopped"
                .to_owned(),
        )));
    }
    let frozen = DataPlane::at(&context.settings.proxy.control_socket()).thaw(&named).await?;
    show(&frozen, &arguments)
}

fn show(frozen: &[Frozen], arguments: &Arguments) -> Result<Exit, Error> {
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", json!({ "frozen": frozen }))?;
        return Ok(Exit::Success);
    }
    if frozen.is_empty() {
        writeln!(out, "nothing is stopped")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["STOPPED", "NAME"]);
    for one in frozen {
        table.row(match one {
            Frozen::All => ["all".to_owned(), String::new()],
            Frozen::Account(account) => ["account".to_owned(), account.to_string()],
            Frozen::Model(model) => ["model".to_owned(), model.to_string()],
        });
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}
