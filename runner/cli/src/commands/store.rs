//! Implements `sluice store`: shows the host that the store of runs serves, and moves the store to this host.

use std::io::{self, Write};

use platform_core::name::label;
use platform_runtime::terminal;
use runner_store::{Adopted, Present, Served, Store};
use serde_json::{Value, json};

use super::{Context, Error, exit::Exit, times::format_time};
use crate::plural::counted;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Show the store, the host it serves and the runs that have not ended
    #[command(after_help = "\
Examples:
  sluice store show
  sluice store show --json | jq -r .serves.host   print the host that may use the store")]
    Show(ShowArguments),
    /// Move the store to this host from a host that is gone or no longer uses it
    ///
    /// Refused while the other host has a lease: while `sluice up` or `sluice run` is active there, and for
    /// `worker.lease_duration` after that. Queued runs begin here. Runs with an agent on the other host end as
    /// `container_lost`: their containers are not here. Nothing on the other host is removed.
    #[command(after_help = "\
Examples, to move the store without losing a run:
  sluice runs ls --state running   on the other host: wait until none runs, then stop `sluice up`
  sluice store adopt               on this host, after the lease of the other host has ended
  sluice up")]
    Adopt,
}

#[derive(clap::Args)]
pub(super) struct ShowArguments {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) async fn store(context: &Context, command: Command) -> Result<Exit, Error> {
    let store = context.store().await?;
    match command {
        Command::Show(arguments) => show(context, &store, &arguments).await,
        Command::Adopt => adopt(context, &store).await,
    }
}

async fn show(context: &Context, store: &Store, arguments: &ShowArguments) -> Result<Exit, Error> {
    let this_host = context.host()?;
    let served = store.served().await?;
    let unfinished_runs = store.present().await?;
    let serves_this_host = served.as_ref().is_some_and(|served| served.host.id == this_host.id);
    let mut out = io::stdout();
    if arguments.json {
        let runs: serde_json::Map<String, Value> =
            unfinished_runs.states.iter().map(|(state, runs)| (state.clone(), json!(runs))).collect();
        let serves = served.as_ref().map(|Served { host, since, seen }| {
            json!({ "host": host.id.as_str(), "name": host.name, "since_ms": since, "seen_ms": seen })
        });
        let line = json!({
            "store": store.describe(), "serves": serves, "this_host": this_host.id.as_str(),
            "serves_this_host": serves_this_host,
            "unfinished_runs": runs,
        });
        writeln!(out, "{}", terminal::safe_json(&line.to_string()))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "store      {}", terminal::safe(&store.describe()))?;
    match &served {
        None => writeln!(out, "serves     no host yet: the one that uses it next")?,
        Some(Served { host, since, seen }) => {
            let whose = if serves_this_host { "this host" } else { "another host" };
            let name = terminal::safe(&host.name);
            writeln!(out, "serves     {whose}: {}, `{name}`, since {}", host.id, format_time(*since))?;
            writeln!(out, "last seen  {}", format_time(*seen))?;
        }
    }
    writeln!(out, "this host  {}, `{}`", this_host.id, this_host.name)?;
    writeln!(out, "runs       {}", describe_unfinished(&unfinished_runs))?;
    Ok(Exit::Success)
}

/// Returns the numbers of unfinished runs by state, in words.
fn describe_unfinished(present: &Present) -> String {
    let states: Vec<_> = present.states.iter().map(|(state, runs)| format!("{runs} {state}")).collect();
    if states.is_empty() { "all have ended".to_owned() } else { states.join(", ") }
}

async fn adopt(context: &Context, store: &Store) -> Result<Exit, Error> {
    let this_host = context.host()?;
    let adopted = store.adopt(&this_host).await?;
    let mut out = io::stdout();
    match adopted {
        Adopted::First => {
            writeln!(out, "the store serves this host, {}; before, it served none", this_host.id)?
        }
        Adopted::Already => writeln!(out, "the store serves this host already, {}", this_host.id)?,
        Adopted::From { before, unfinished } => {
            let name = terminal::safe(&before.host.name);
            writeln!(
                out,
                "the store serves this host, {}; before, it served {}, `{name}`",
                this_host.id, before.host.id
            )?;
            if unfinished > 0 {
                writeln!(
                    out,
                    "{} unfinished: `sluice up` begins those that wait, and ends as container_lost those \
                     whose agents ran on `{name}`",
                    counted(unfinished, "run")
                )?;
            }
            let filter = format!("label={}={}", label::INSTALLATION, context.settings.sandbox.installation);
            writeln!(
                out,
                "if `{name}` is still there, stop its proxy and remove its containers: \
                 docker rm --force $(docker ps --all --quiet --filter {filter})"
            )?;
        }
    }
    Ok(Exit::Success)
}
