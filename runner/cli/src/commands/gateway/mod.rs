//! Implements `sluice gateway`: managed gateways, their agents, and checks of all gateways.

mod agents;
mod check;
mod explain;
mod logs;
mod ls;
mod pair;
mod up;

use platform_core::id::GatewayId;

use super::{Context, Error, exit::Exit};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Run a gateway here, in a container without a network; leave it alone if it runs as configured
    ///
    /// Creates its token, slots and configuration from the registry and the models of the upstream. If the running
    /// gateway differs, prints the differences, gives its sessions `drain_timeout` to end, and recreates it. Docker
    /// starts it again after a restart of Docker, `sluice up` after a restart of the machine.
    #[command(after_help = "\
Examples:
  sluice gateway up coding --wait     start it and wait until it answers
  sluice gateway up coding --json | jq -r '.changed[]'")]
    Up(up::UpArguments),
    /// Stop a gateway that runs here; its state stays for the next `up`
    #[command(after_help = "\
Examples:
  sluice gateway down coding          give its sessions `drain_timeout` to end
  sluice gateway down coding --purge  also remove its conversations, token and slots")]
    Down(up::DownArguments),
    /// List configured gateways
    #[command(
        after_help = "Example:\n  sluice gateway ls --json | jq -r '.gateways[] | select(.state != \"up\").id'"
    )]
    Ls(ls::Arguments),
    /// Check that runs can be isolated sessions of a gateway; report problems and their fixes
    ///
    /// Checks the configuration that the gateway reports. If a gateway that runs here does not answer, checks the
    /// configuration in its file.
    #[command(after_help = "\
Examples:
  sluice gateway check                check all configured gateways
  sluice gateway check coding --json | jq -r '.gateways[].findings[].code'

Exit codes: 1 a gateway has a problem, 69 a gateway did not answer and could not be judged")]
    Check(check::Arguments),
    /// Make agents in gateways, and say what they may do
    #[command(subcommand)]
    Agents(agents::Command),
    /// Explain what an agent may do: for each tool, the layer that decides and the setting that changes it
    ///
    /// Reads the configuration that the gateway reports; of a managed gateway that does not answer, the one in its file.
    #[command(after_help = "\
Examples:
  sluice gateway explain research-bot
  sluice gateway explain main --gateway coding --json | jq -r '.tools[] | select(.verdict == \"denied\") | .tool, .reason'")]
    Explain(explain::Arguments),
    /// Show what a gateway that runs here has printed
    #[command(after_help = "Example:\n  sluice gateway logs coding --lines 50")]
    Logs(logs::Arguments),
    /// Pair this client with a gateway on another host
    ///
    /// Newer gateways give a token alone no rights to clients on other hosts.
    #[command(after_help = "\
Example:
  sluice gateway pair there           print the command to type on the gateway's host, then wait")]
    Pair(pair::Arguments),
}

pub(super) async fn gateway(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Up(arguments) => up::up(context, arguments).await,
        Command::Down(arguments) => up::down(context, arguments).await,
        Command::Ls(arguments) => ls::ls(context, &arguments).await,
        Command::Check(arguments) => check::check(context, arguments).await,
        Command::Agents(command) => agents::agents(context, command).await,
        Command::Explain(arguments) => explain::explain(context, arguments).await,
        Command::Logs(arguments) => logs::logs(context, &arguments).await,
        Command::Pair(arguments) => pair::pair(context, arguments).await,
    }
}

/// Gateway that a command applies to.
#[derive(clap::Args)]
struct GatewayArgument {
    /// Name of the gateway, as in [gateways.NAME]
    #[arg(value_name = "NAME")]
    id: GatewayId,
}
