//! Implements `sluice repo refresh`.

use std::io::{self, Write};

use runner_repos::{RefreshOutcome, Repos};
use serde_json::json;

use super::{Context, Error, Exit, NameArgument};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    repository: NameArgument,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn refresh(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let name = &arguments.repository.name;
    let outcome = Repos::open(&context.settings).await?.refresh(name).await?;
    let mut out = io::stdout();
    let (sha, refreshed_ms) = match &outcome {
        RefreshOutcome::Shown { commit, at_ns } => (Some(commit), Some(at_ns / 1_000_000)),
        RefreshOutcome::Pending => (None, None),
    };
    if arguments.json {
        writeln!(out, "{}", json!({ "name": name, "sha": sha, "refreshed_ms": refreshed_ms }))?;
    } else {
        match sha {
            Some(sha) => writeln!(out, "{name} is at {sha}")?,
            None => writeln!(out, "{name} is being fetched (`sluice repo ls`)")?,
        }
    }
    Ok(if sha.is_some() { Exit::Success } else { Exit::TryAgain })
}
