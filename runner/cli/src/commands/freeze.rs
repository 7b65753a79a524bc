//! Implements `sluice freeze` and `sluice thaw`: stops and resumes calls of an account, of a model, or all of them.

use std::io::{self, Write};

use platform_core::{
    control::{FreezeChange, Frozen},
    id::{AccountId, ModelName},
};
use runner_audit::advice::shell;
use runner_control_client::DataPlane;
use runner_engine::freezes;
use serde_json::json;

use super::{Context, Error, error::Misused, exit::Exit, table::Table};

/// Selection of calls to freeze or to thaw.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Calls of this account; may be repeated
    #[arg(long, value_name = "ACCOUNT")]
    account: Vec<AccountId>,
    /// Calls that request this model by this name; may be repeated
    #[arg(long, value_name = "MODEL")]
    model: Vec<ModelName>,
    /// All calls; `thaw --all` lifts this freeze only, and leaves freezes of single accounts or models
    #[arg(long)]
    all: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn targets(&self) -> Vec<Frozen> {
        let accounts = self.account.iter().cloned().map(Frozen::Account);
        let models = self.model.iter().cloned().map(Frozen::Model);
        accounts.chain(models).chain(self.all.then_some(Frozen::All)).collect()
    }
}

/// Freezes the named targets, shows all freezes, and warns of names that match nothing known.
pub(super) async fn freeze(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let targets = arguments.targets();
    if targets.is_empty() {
        show(&data_plane.frozen().await?, None, &arguments)?;
        return Ok(Exit::Success);
    }
    let FreezeChange { frozen, unmatched } = data_plane.freeze(&targets).await?;
    let unknown = freezes::unknown_targets(unmatched, &context.settings.agents, &data_plane).await;
    show(&frozen, Some(("unknown", unknown.as_slice())), &arguments)?;
    for target in &unknown {
        writeln!(
            io::stderr(),
            "sluice: warning: {}: it is stopped all the same, but may be mistyped; to undo: sluice thaw {}",
            warning_for(target),
            option(target),
        )?;
    }
    Ok(Exit::Success)
}

/// Thaws the named targets, shows the remaining freezes, and reports names that were not frozen.
pub(super) async fn thaw(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let targets = arguments.targets();
    if targets.is_empty() {
        return Err(Error::from(Misused(
            "name what to thaw: --account ACCOUNT, --model MODEL or --all; `sluice freeze` shows what is stopped"
                .to_owned(),
        )));
    }
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let FreezeChange { frozen, unmatched } = data_plane.thaw(&targets).await?;
    show(&frozen, Some(("not_frozen", unmatched.as_slice())), &arguments)?;
    for target in &unmatched {
        writeln!(
            io::stderr(),
            "sluice: {} was not frozen, so nothing has changed: `sluice freeze` lists what is",
            in_words(target)
        )?;
    }
    // `--all` lifts only the freeze of all calls, not the freezes of single accounts or models.
    let remains = arguments.all && !frozen.is_empty();
    if remains {
        let options: Vec<_> = frozen.iter().map(option).collect();
        writeln!(
            io::stderr(),
            "sluice: `--all` lifts the stop of everything; what was stopped by name still is: sluice thaw {}",
            options.join(" "),
        )?;
    }
    Ok(if unmatched.is_empty() && !remains { Exit::Success } else { Exit::Failure })
}

/// Returns `target` in words.
fn in_words(target: &Frozen) -> String {
    match target {
        Frozen::All => "everything".to_owned(),
        Frozen::Account(account) => format!("account {account}"),
        Frozen::Model(model) => format!("model {model}"),
    }
}

/// Returns the reason to assume that `target` is mistyped.
fn warning_for(target: &Frozen) -> String {
    match target {
        Frozen::Model(_) => {
            format!("no price, agent, open run or list of the upstream names {}", in_words(target))
        }
        _ => format!("no call, run or configuration of {} is known", in_words(target)),
    }
}

/// Returns the option that names `target`.
fn option(target: &Frozen) -> String {
    match target {
        Frozen::All => "--all".to_owned(),
        Frozen::Account(account) => format!("--account {}", shell(account.as_str())),
        Frozen::Model(model) => format!("--model {}", shell(model.as_str())),
    }
}

/// Prints all freezes. Adds to JSON the names that matched nothing, under the given key.
fn show(frozen: &[Frozen], unmatched: Option<(&str, &[Frozen])>, arguments: &Arguments) -> io::Result<()> {
    let mut out = io::stdout();
    if arguments.json {
        let mut shown = json!({ "frozen": frozen });
        if let Some((key, unmatched)) = unmatched {
            shown[key] = json!(unmatched);
        }
        return writeln!(out, "{shown}");
    }
    if frozen.is_empty() {
        return writeln!(out, "nothing is stopped");
    }
    let mut table = Table::new(["STOPPED", "NAME"]);
    for target in frozen {
        table.row(match target {
            Frozen::All => ["all".to_owned(), String::new()],
            Frozen::Account(account) => ["account".to_owned(), account.to_string()],
            Frozen::Model(model) => ["model".to_owned(), model.to_string()],
        });
    }
    write!(out, "{table}")
}
