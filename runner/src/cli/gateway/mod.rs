//! `sluice gateway`

mod check;
mod ls;
mod pair;
mod up;

use platform_core::id::GatewayId;

use super::{Context, Error, exit::Exit};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Run a gateway here, in a container without a network; one that runs as it is configured is left alone
    ///
    /// Its token, its slots and its configuration are made from the registry and what the upstream offers. If it runs and would be
    /// another, what differs is said, its sessions get its `drain` to end, and it is made anew. Docker brings it back after a restart of its
    /// own, `sluice up` after one of the machine.
    #[command(after_help = "\
Examples:
  sluice gateway up coding --wait     and wait until it answers
  sluice gateway up coding --json | jq -r '.changed[]'")]
    Up(up::UpArguments),
    /// End a gateway that runs here; what it knows stays, for the next `up`
    #[command(after_help = "\
Examples:
  sluice gateway down coding          its sessions get its `drain` to end
  sluice gateway down coding --purge  and its conversations, token and slots are removed")]
    Down(up::DownArguments),
    /// List the gateways that are configured
    #[command(
        after_help = "Example:\n  sluice gateway ls --json | jq -r '.gateways[] | select(.state != \"up\").id'"
    )]
    Ls(ls::Arguments),
    /// Look whether runs can be sessions of a gateway, and are apart there; say what is wrong, and how to mend it
    ///
    /// Judged is the configuration that the gateway says it has; of one that runs here and does not answer, that in its file.
    #[command(after_help = "\
Examples:
  sluice gateway check                exit 1 if something is wrong with a gateway, 69 if one does not say
  sluice gateway check coding --json | jq -r '.gateways[].findings[].code'")]
    Check(check::Arguments),
    /// Make this client known to a gateway that runs elsewhere: newer ones give a token alone no rights there
    #[command(after_help = "\
Example:
  sluice gateway pair there           prints what to type on the gateway's host, and waits for it")]
    Pair(pair::Arguments),
}

pub(super) async fn gateway(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Up(arguments) => up::up(context, arguments).await,
        Command::Down(arguments) => up::down(context, arguments).await,
        Command::Ls(arguments) => ls::ls(context, &arguments).await,
        Command::Check(arguments) => check::check(context, arguments).await,
        Command::Pair(arguments) => pair::pair(context, arguments).await,
    }
}

/// The gateway that a command is about.
#[derive(clap::Args)]
struct Named {
    /// Its name in [gateways.NAME]
    #[arg(value_name = "NAME")]
    id: GatewayId,
}
