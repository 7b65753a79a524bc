//! Implements `sluice repo ls`.

use std::io::{self, Write};

use platform_core::id::RepoName;
use platform_runtime::terminal;
use runner_repos::{RepoStatus, Repos};
use serde_json::{Value, json};

use super::{Context, Error, Exit};
use crate::commands::table::Table;

/// Digits of a commit in the table.
const SHORT: usize = 12;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn ls(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let repos = Repos::open(&context.settings).await?;
    let mut found = Vec::new();
    for name in repos.registry().list()?.into_keys() {
        let status = repos.status(&name).await?;
        found.push((name, status));
    }
    let mut out = io::stdout();
    if arguments.json {
        let entries: Vec<_> = found.iter().map(|(name, status)| entry_json(name, status)).collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "repositories": entries }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["REPO", "STATE", "COMMIT", "BRANCH", "URL", "VOLUME"]);
    for (name, status) in found {
        let last = status.last.as_ref();
        let commit = last.and_then(|last| last.commit.clone()).unwrap_or_else(|| "-".to_owned());
        let error = last.and_then(|last| last.error.as_ref());
        let state = error.map_or(status.state.word().to_owned(), |error| format!("failing: {error}"));
        table.row([
            name.to_string(),
            state,
            commit.chars().take(SHORT).collect(),
            status.entry.branch.to_string(),
            status.entry.url.to_string(),
            status.volume,
        ]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}

fn entry_json(name: &RepoName, status: &RepoStatus) -> Value {
    let last = status.last.as_ref();
    json!({
        "name": name,
        "url": status.entry.url,
        "branch": status.entry.branch,
        "period": status.entry.period.to_string(),
        "depth": status.entry.depth,
        "token_file": status.entry.token_file,
        "volume": status.volume,
        "state": status.state.word(),
        "sha": last.and_then(|last| last.commit.as_ref()),
        "synced_ms": last.map(|last| last.ended_ns / 1_000_000),
        "error": last.and_then(|last| last.error.as_ref()),
    })
}
