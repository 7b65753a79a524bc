//! Implements the commands of `sluice`: turns arguments into calls of library crates, and results into exit codes.

mod again;
mod agents;
mod api;
mod audit;
mod backup;
mod billing;
mod chat;
mod columns;
#[cfg(test)]
mod command_lines;
mod config;
mod connections;
mod context;
mod count;
mod dashboard;
mod demo;
mod dispatch;
mod doctor;
#[cfg(test)]
mod documented_tests;
mod error;
mod error_code;
mod events;
mod exit;
mod failed_run;
mod figures;
mod files;
mod forget;
mod freeze;
mod gateway;
mod gc;
mod git;
#[cfg(test)]
mod help_tests;
mod images;
mod init;
mod left;
mod limit;
mod logs;
mod man;
mod metrics;
mod models;
mod palette;
mod preflight;
mod principals;
mod progress;
mod record;
mod reload;
mod repo;
mod run;
mod run_reference;
mod runs;
mod runtime;
mod screen;
mod show;
mod spending;
mod status;
mod store;
mod table;
mod times;
mod token;
mod tool_line;
mod tools;
mod up;
mod usage;
mod wait;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

pub use self::dispatch::main;
use self::{context::Context, error::Error};
use crate::reload::Purpose;

/// Run untrusted coding agents in isolated containers: no network, no credentials, no identity of their own
#[derive(Parser)]
#[command(
    name = "sluice",
    version,
    after_help = "\
Examples:
  sluice init                             write a first configuration
  sluice up                               start the data plane and a worker
  sluice run \"Why is the sky blue?\"       ask the default agent and show its answer
  sluice run --model gpt-4o --json \"Hi\"   print a stream of JSON events
  sluice runs ls --state running          list running runs
  sluice doctor                           check everything that a run needs
  sluice audit tail -f                    follow the journal of model calls
  sluice audit top                        show live usage, like top(1)"
)]
struct Arguments {
    /// Configuration file [default: $SLUICE_CONFIG, else /etc/sluicegate/sluice.toml if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Override one setting; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE", global = true)]
    set: Vec<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a first configuration: ask for the upstream, its key and a model, check them, print the next commands
    ///
    /// Writes the file of --config, else $SLUICE_CONFIG, else /etc/sluicegate/sluice.toml, and the key beside it as
    /// upstream.key, closed to other users. Asks only on a terminal.
    Init(init::Arguments),
    /// Show one agent through everything, on temporary paths, with a scripted model
    ///
    /// Starts a model API that answers by a script and `sluice up`, runs an agent, has a call refused and allowed, and
    /// shows the records.
    Demo(demo::Arguments),
    /// Start the data plane, keep it running and execute runs, until Ctrl-C
    ///
    /// Executes runs submitted with `sluice run --detach`, takes over runs of dead processes where they stand, and
    /// removes leftover resources. Without a terminal as standard output it runs as a service, and signals mean
    /// something else.
    #[command(after_help = "\
Signals on a terminal:
  SIGHUP                     read the configuration again, as `sluice reload` does; a closed
                             terminal sends it as well, which means the same as SIGTERM
  SIGINT (Ctrl-C), SIGTERM   cancel active runs and stop; a second one leaves them to the next
                             worker

Signals as a service:
  SIGHUP             read the configuration again, here and in the proxy; agents change at once
  SIGINT, SIGTERM    stop, and leave active runs to the next worker")]
    Up,
    /// Run an agent once and show its answer
    Run(Box<run::Arguments>),
    /// Talk to an agent: one run for each message, each with the earlier messages of its thread
    Chat(chat::Arguments),
    /// List and inspect runs, wait for them, cancel them, and remove their leftover resources
    #[command(subcommand)]
    Runs(runs::Command),
    /// Show what became of runs' commits, and push them again
    #[command(subcommand)]
    Git(git::Command),
    /// Back up the store of runs to a file while it stays in use
    #[command(after_help = "Example:\n  sluice backup /var/backups/sluice.ndjson")]
    Backup(backup::BackupArguments),
    /// Restore the store of runs from a backup of any backend, completely or not at all
    ///
    /// Refuses a store that serves another host, and a store in which another installation is active (exit code
    /// 75). The restored store serves this host.
    #[command(after_help = "Example:\n  sluice restore /var/backups/sluice.ndjson")]
    Restore(backup::RestoreArguments),
    /// Show which host the store of runs serves, or move the store to this host
    #[command(subcommand)]
    Store(store::Command),
    /// List agents and their obstacles; add coding agents that ship
    Agents(agents::Arguments),
    /// Build the images that sandboxes need, or load them from archives
    #[command(subcommand)]
    Images(images::Command),
    /// Run OpenClaw gateways without a network; list, check and pair configured gateways
    #[command(subcommand)]
    Gateway(gateway::Command),
    /// Mirror repositories that agents mount read-only; list, refresh and remove them
    #[command(subcommand)]
    Repo(repo::Command),
    /// List host tools, try one, and explain which of them a run may call
    #[command(subcommand)]
    Tools(tools::Command),
    /// Add, list, test and remove connections: credentials of accounts that host tools use
    #[command(subcommand)]
    Connections(connections::Command),
    /// Check that everything a run needs is available
    #[command(after_help = "\
Examples:
  sluice doctor
  sluice doctor --reap --dry-run    list leftover resources and the decision on each")]
    Doctor(doctor::Arguments),
    /// Inspect the journal of model calls: follow, explain, summarize, export and verify it
    #[command(subcommand)]
    Audit(audit::Command),
    /// List receipts of calls, reconcile them, credit accounts, and show their balances and statements
    #[command(subcommand)]
    Billing(billing::Command),
    /// Create, inspect and revoke run tokens, for clients of shared listeners
    #[command(subcommand)]
    Token(token::Command),
    /// Add, list and revoke principals: the people and programs that may use the HTTP API
    #[command(subcommand)]
    Principals(principals::Command),
    /// Print a link with which a browser signs in to the dashboard, once and soon
    ///
    /// Needs a running `sluice up` with `api.listen`. The browser that opens the link first acts for the principal.
    #[command(after_help = "\
Examples:
  sluice dashboard --open
  sluice dashboard --principal ann --json | jq -r .link")]
    Dashboard(dashboard::Arguments),
    /// Freeze model calls of an account, of a model, or all of them; without arguments, list freezes
    ///
    /// Refuses new calls and cuts calls in flight. A freeze survives restarts and holds until `sluice thaw`. An
    /// unknown name is frozen, too, with a warning that it may be mistyped.
    #[command(after_help = "\
Examples:
  sluice freeze --account acct-7          stop all spending of this account
  sluice freeze --model gpt-4o --json     stop a model for all accounts
  sluice freeze --all                     stop every call
  sluice freeze                           list freezes")]
    Freeze(freeze::Arguments),
    /// Lift freezes made by `sluice freeze`
    ///
    /// Name each freeze as it was made. The exit code is 1 if something named was not frozen, or if `--all` leaves
    /// freezes of single accounts or models.
    #[command(after_help = "\
Examples:
  sluice thaw --account acct-7 --model gpt-4o
  sluice thaw --all                       lift the freeze of all calls")]
    Thaw(freeze::Arguments),
    /// Show usage of runs and accounts, and how much of their limits is left
    #[command(after_help = concat!("\
Examples:
  sluice usage                            show all accounts and live runs
  sluice usage --run run-19c1-5f0e -f     follow the limits of one run
  sluice usage --account acct-7 --json | jq '.limits[] | select(.left == 0)'

", figures::legend!(), "\nThe overview leaves out account `doctor`, of the trial runs of `sluice doctor`, unless --all is given."))]
    Usage(usage::Arguments),
    /// Change limits of a live run or an account; limits that are not named stay
    ///
    /// Past usage still counts, and calls in flight continue. A run keeps its new limits. New limits of an account
    /// hold until the proxy stops or the configuration of the account changes. For permanent limits, use `[agents]`
    /// and `[accounts]` in the configuration.
    #[command(after_help = "\
Examples:
  sluice limit --run run-19c1-5f0e --total-tokens 500000
  sluice limit --account acct-7 --cost 25 --calls-in-flight 4
  sluice limit --account acct-7 --none requests-per-minute")]
    Limit(limit::Arguments),
    /// Print the metrics of the proxy and of `sluice up` in the Prometheus format
    ///
    /// To scrape them with Prometheus, set `proxy.metrics_listen` and `api.listen`, and scrape both.
    #[command(after_help = "\
Examples:
  sluice metrics | grep sluicegate_calls_total   calls by route, outcome and refusal
  sluice metrics | grep sandbox_runs_total       ended runs by agent and outcome
  sluice metrics | grep lag_max                  longest delay of the data plane's threads")]
    Metrics,
    /// Make the proxy and `sluice up` read their configuration again, and show the changes
    ///
    /// With any mistake in the configuration, nothing changes. A new key, token secrets, prices, and budgets of
    /// accounts and runs apply to later calls. `sluice up` follows the proxy within moments: agents apply to later runs.
    /// Other changed settings of the proxy need a restart, and are listed.
    #[command(after_help = "Example:\n  sluice reload --json | jq -r '.changed[]'")]
    Reload(reload::Arguments),
    /// List the models that the upstream offers or the configuration names, with their prices and agents
    Models(models::Arguments),
    /// Check the configuration, show the values in effect and their sources, or print its schema
    #[command(subcommand)]
    Config(config::Command),
    /// Describe the HTTP API of `sluice up`
    #[command(subcommand)]
    Api(api::Command),
    /// Print shell completions
    Completions {
        /// Shell to print completions for
        shell: clap_complete::Shell,
    },
    /// Write a manual page of each command into a directory, for packages
    #[command(after_help = "Example:\n  sluice man /usr/share/man/man1")]
    Man {
        /// Directory of the pages, which must exist
        directory: PathBuf,
    },
}

impl Command {
    /// Returns the purpose for which this command reads the configuration.
    const fn purpose(&self) -> Purpose {
        match self {
            Self::Up | Self::Run(_) | Self::Gateway(gateway::Command::Up(_)) => Purpose::Execute,
            Self::Agents(arguments) => arguments.purpose(),
            _ => Purpose::Inspect,
        }
    }
}

/// Returns the definition of the command line.
fn command_line() -> clap::Command {
    exit::with_exit_codes(Arguments::command())
}

/// Parses a command line, and returns the error if it is invalid.
#[cfg(test)]
pub(crate) fn parses(words: &[String]) -> clap::error::Result<()> {
    Arguments::try_parse_from(words).map(drop)
}
