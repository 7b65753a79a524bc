//! Implements `sluice repo`: repositories that agents mount read-only.

mod add;
mod ls;
mod refresh;

use std::io::{self, Write};

use platform_core::id::RepoName;
use runner_repos::Repos;

use super::{Context, Error, exit::Exit};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Mirror a branch of a repository into a volume, which agents mount read-only
    ///
    /// Starts a container that fetches, and waits for the first fetch. Agents mount the printed volume by an entry in
    /// their `volumes` with `container_path = "/repo"`, and read `/repo/current`. `sluice up` keeps the container running.
    #[command(after_help = "\
Examples:
  sluice repo add web https://github.com/example/web.git
  sluice repo add api https://git.example.org/api.git --branch develop --period 60s
  sluice repo add core https://git.example.org/core.git --token-file /etc/sluicegate/core/token

A token needs the right to fetch and no other. Its file belongs to user 1001, is closed to others,
and is alone in its directory. It is read before each fetch: renew it by a rename.")]
    Add(add::Arguments),
    /// List mirrored repositories, with the commit that agents see
    #[command(after_help = "\
Examples:
  sluice repo ls
  sluice repo ls --json | jq -r '.repositories[] | select(.error != null).name'")]
    Ls(ls::Arguments),
    /// Fetch a repository at once, and print the commit that agents see then
    ///
    /// Waits until agents see what the remote has now. Callers at the same time share a fetch.
    #[command(after_help = "\
Examples:
  sluice repo refresh web
  sluice repo refresh web --json | jq -r .sha

Exit codes: 69 the remote cannot be fetched, 75 the fetch takes longer and goes on")]
    Refresh(refresh::Arguments),
    /// Remove a mirrored repository with its container and its volume
    ///
    /// No container may have the volume mounted: end its runs, and gateways with agents that name it, first.
    #[command(after_help = "Example:\n  sluice repo rm web")]
    Rm(NameArgument),
}

/// Repository that a command applies to.
#[derive(clap::Args)]
pub(super) struct NameArgument {
    /// Name of the repository
    name: RepoName,
}

pub(super) async fn repo(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Add(arguments) => add::add(context, arguments).await,
        Command::Ls(arguments) => ls::ls(context, &arguments).await,
        Command::Refresh(arguments) => refresh::refresh(context, &arguments).await,
        Command::Rm(NameArgument { name }) => {
            Repos::open(&context.settings).await?.remove(&name).await?;
            writeln!(io::stdout(), "{name} removed")?;
            Ok(Exit::Success)
        }
    }
}
