//! Implements `sluice repo add`.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use platform_core::{id::RepoName, limit::Millis};
use platform_runtime::settings::Image;
use runner_git::{BaseBranch, RepoUrl};
use runner_repos::{RefreshOutcome, RepoEntry, Repos, tree_volume};

use super::{Context, Error, Exit};
use crate::commands::error::Misused;

/// Shortest time between two syncs.
const MIN_PERIOD: Millis = Millis::seconds(1);

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Name of the repository here
    name: RepoName,
    /// Address of the repository: https:// or http://, without a user
    #[arg(value_parser = RepoUrl::parse)]
    url: RepoUrl,
    /// Branch to mirror
    #[arg(long, default_value = "main", value_parser = BaseBranch::parse)]
    branch: BaseBranch,
    /// Commits of history that agents see; 0 for all [default: 1]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Time between two fetches without a refresh [default: 5m]
    #[arg(long, value_name = "TIME")]
    period: Option<Millis>,
    /// File with a token that may fetch, alone in its directory
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Image of git-sync [default: sluicegate/git-sync:latest]
    #[arg(long)]
    image: Option<Image>,
}

pub(super) async fn add(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { name, url, branch, depth, period, token_file, image } = arguments;
    if period.is_some_and(|period| period < MIN_PERIOD) {
        return Err(Misused(format!("--period is at least {MIN_PERIOD}")).into());
    }
    let defaults = RepoEntry::of(url, branch);
    let entry = RepoEntry {
        depth: depth.unwrap_or(defaults.depth),
        period: period.unwrap_or(defaults.period),
        token_file: token_file.map(|file| absolute(&file)).transpose()?,
        image: image.unwrap_or(defaults.image.clone()),
        ..defaults
    };
    let volume = tree_volume(&context.settings.sandbox.installation, &name);
    let outcome = Repos::open(&context.settings).await?.add(&name, &entry).await?;
    let mut out = io::stdout();
    match outcome {
        RefreshOutcome::Shown { commit, .. } => writeln!(out, "{name} is at {commit}")?,
        RefreshOutcome::Pending => writeln!(out, "{name} is being fetched (`sluice repo ls`)")?,
    }
    writeln!(out, "volumes = [{{ volume = \"{volume}\", container_path = \"/repo\" }}]")?;
    Ok(Exit::Success)
}

/// Returns an absolute path, which other processes find from other directories.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    Ok(std::path::absolute(path)?)
}
