//! Implements `sluice tools`: the host tools of this installation, who may call them, and what runs called.

mod accept;
mod explain;
mod ls;
mod of_run;
mod pending;
mod test;

use runner_store::{Error as StoreError, Store};
use runner_tools::ToolGateway;

use super::{Context, Error, exit::Exit};

pub(super) use self::of_run::ToolCallsOfRun;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List host tools: what each does, and which agents and accounts may call it
    #[command(after_help = "\
Examples:
  sluice tools ls
  sluice tools ls --json | jq '.tools[] | select(.name == \"core__get_current_time\").schema'")]
    Ls(ls::Arguments),
    /// Show what third-party servers say about their tools, and accept it
    ///
    /// A tool of a server can be called once its description and schema are accepted, and only as long as the server
    /// describes it so. Shows each new description, and the difference to the one that was accepted before. Asks before it
    /// accepts; without a terminal it accepts by the digest that it showed before.
    #[command(after_help = "\
Examples:
  sluice tools accept memory
  sluice tools accept memory create_entities --json | jq -r '.tools[] | .difference, .digest'
  sluice tools accept memory create_entities --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

Exit codes: 1 a tool is not accepted, cannot be, or is described otherwise than by the digest")]
    Accept(accept::Arguments),
    /// Show which host tools a run may call, why not the others, and the calls that it made
    #[command(after_help = "\
Examples:
  sluice tools explain run-19c1-5f0e
  sluice tools explain --last --json | jq '.calls[] | select(.state == \"unknown\")'")]
    Explain(explain::Arguments),
    /// Call a host tool as an operator, for an account, and print its result
    ///
    /// The tool runs in this process, with the credentials of this installation, and its effect is real. No run calls
    /// it, so neither lists nor limits apply, and the call is not recorded.
    #[command(after_help = "\
Examples:
  sluice tools test core__get_current_time '{}'
  sluice tools test runs__status '{\"run_id\": \"run-19c1-5f0e\"}' --account acct-7

Exit codes: 1 the tool failed, or refused the arguments")]
    Test(test::Arguments),
    /// List calls that wait for an approval, with their arguments
    ///
    /// Calls of the tools in `tools.approval` wait until a person decides. Secrets in arguments are not shown.
    #[command(after_help = "\
Examples:
  sluice tools pending
  sluice tools pending --json | jq '.calls[] | {run_id, id, tool, args}'")]
    Pending(pending::PendingArguments),
    /// Let a call that waits run
    #[command(after_help = "\
Example:
  sluice tools approve run-19c1-5f0e call-1

Exit codes: 1 there is no such call, or it does not wait")]
    Approve(pending::ApproveArguments),
    /// Deny a call that waits
    #[command(after_help = "\
Example:
  sluice tools deny run-19c1-5f0e call-1 --reason 'the comment names a customer'

Exit codes: 1 there is no such call, or it does not wait")]
    Deny(pending::DenyArguments),
}

pub(super) async fn tools(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Ls(arguments) => ls::ls(context, &arguments).await,
        Command::Accept(arguments) => accept::accept(context, &arguments).await,
        Command::Explain(arguments) => explain::explain(context, &arguments).await,
        Command::Test(arguments) => test::test(context, &arguments).await,
        Command::Pending(arguments) => pending::pending(context, &arguments).await,
        Command::Approve(arguments) => pending::approve(context, arguments).await,
        Command::Deny(arguments) => pending::deny(context, arguments).await,
    }
}

/// Opens the store for a command that asks servers or providers. A connection may have to be refreshed, which a store for
/// reads refuses.
async fn store(context: &Context) -> Result<Store, StoreError> {
    match &context.settings.connections.key_file {
        Some(_) => context.serving_store().await,
        None => context.store().await,
    }
}

/// Returns the host tools of this installation, which use `store`.
fn gateway(context: &Context, store: &Store) -> ToolGateway {
    crate::host_tools::gateway(&context.settings, store, &context.github())
}
