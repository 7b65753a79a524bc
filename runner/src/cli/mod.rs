//! The commands of `sluice`: what was typed, turned into calls of the library and an exit code.

mod agents;
mod audit;
mod backup;
mod columns;
mod config;
mod doctor;
mod events;
mod exit;
mod freeze;
mod gateway;
mod gc;
mod limit;
mod logs;
mod metrics;
mod record;
mod reload;
mod run;
mod runs;
mod screen;
mod show;
mod spending;
mod status;
mod store;
mod table;
mod token;
mod up;
mod usage;
mod wait;

use std::{io, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use platform_core::{name, secret::Secret};
use platform_runtime::{
    config::{Environment, Mistakes, Values},
    report,
    settings::Settings,
    telemetry,
};

use self::exit::Exit;
use crate::{
    failpoint,
    reload::Origins,
    store::{Address, Bounds, Error as StoreError, HostIdentity, Store},
};

/// Runs untrusted coding agents in sealed containers: no network, no credential, no identity of their own.
#[derive(Parser)]
#[command(
    name = "sluice",
    version,
    after_help = "\
Examples:
  sluice up                               start the data plane and keep it running
  sluice run \"Why is the sky blue?\"       ask the default agent, watch the answer come
  sluice run --model gpt-4o --json \"Hi\"   the same as a stream of JSON events
  sluice runs ls --state running          what runs now?
  sluice doctor                           is everything there that a run needs?
  sluice audit tail -f                    every model call, as it is recorded
  sluice audit top                        who uses how much, as it changes

Exit codes:
  0 success             69 there is no proxy, Docker or store
  1 the agent failed    70 Sluicegate, Docker or an image failed the run
  2 wrong usage or configuration
  124 time limit, 130 cancelled, 137 memory limit"
)]
struct Arguments {
    /// Configuration file [default: $SLUICE_CONFIG, else /etc/sluicegate/sluice.toml if there is one]
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
    /// Start the data plane and keep it running, and work on runs, until Ctrl-C
    ///
    /// Runs of `sluice run --detach` are worked on, runs whose process died are taken over where they stand, and what is left
    /// behind is removed. Ctrl-C cancels what runs; a service that is stopped (SIGTERM) leaves it to whoever starts next.
    Up,
    /// Run an agent once and show its answer
    Run(run::Arguments),
    /// Show what ran, what is running, how it ended and what it used
    #[command(subcommand)]
    Runs(runs::Command),
    /// Write the store of runs to a file, while it is used
    #[command(after_help = "Example:\n  sluice backup /var/backups/sluice.ndjson")]
    Backup(backup::BackupArguments),
    /// Make of the store what a backup says; of any backend, whole or not at all
    ///
    /// A store that serves another host is refused. What was restored serves no host, until one first uses it.
    #[command(after_help = "Example:\n  sluice restore /var/backups/sluice.ndjson")]
    Restore(backup::RestoreArguments),
    /// Show which host the store of runs serves, and move it to this one
    #[command(subcommand)]
    Store(store::Command),
    /// List the agents that can run here, and say why the others cannot
    Agents(agents::Arguments),
    /// Run OpenClaw gateways without a network, look at those that are configured, and pair with those elsewhere
    #[command(subcommand)]
    Gateway(gateway::Command),
    /// Look whether everything is there that a run needs
    #[command(after_help = "\
Examples:
  sluice doctor
  sluice doctor --reap --dry-run    what is left of runs that are over, and what would become of it?")]
    Doctor(doctor::Arguments),
    /// Who called what: watch, explain, sum up, export and check the journal of model calls
    #[command(subcommand)]
    Audit(audit::Command),
    /// Make and check run tokens, for clients of listeners that runs share
    #[command(subcommand)]
    Token(token::Command),
    /// Stop model calls of an account, for a model, or all of them; without arguments, show what is stopped
    ///
    /// New calls are refused and those in flight are cut. It holds over restarts, until `sluice thaw`. A name that nothing
    /// here has is stopped as well, with a warning: it may be mistyped.
    #[command(after_help = "\
Examples:
  sluice freeze --account acct-7          nobody spends on this account any more
  sluice freeze --model gpt-4o --json     the same for a model, whoever asks for it
  sluice freeze --all                     every call, everywhere
  sluice freeze                           what is stopped?")]
    Freeze(freeze::Arguments),
    /// Let go on what `sluice freeze` stopped
    ///
    /// Each stop is lifted by the name it was made with. The exit code is 1 if something named was not stopped, or if
    /// `--all` leaves what was stopped by name.
    #[command(after_help = "\
Examples:
  sluice thaw --account acct-7 --model gpt-4o
  sluice thaw --all                       lift the stop of everything")]
    Thaw(freeze::Arguments),
    /// Show what runs and accounts have used, and how much of their limits is left
    #[command(after_help = "\
Examples:
  sluice usage                            every account and live run
  sluice usage --run run-19c1-5f0e -f     one run's limits, as they are used up
  sluice usage --account acct-7 --json | jq '.limits[] | select(.left == 0)'")]
    Usage(usage::Arguments),
    /// Change the limits of a live run or an account; those that are not named stay
    ///
    /// What was used stays counted, and calls in flight go on. A run keeps its limits; an account's hold until the proxy stops or
    /// the configuration says something else of it: what is to hold for good is configuration, in `[agents]` and `[accounts]`.
    #[command(after_help = "\
Examples:
  sluice limit --run run-19c1-5f0e --total-tokens 500000
  sluice limit --account acct-7 --cost 25 --calls-in-flight 4
  sluice limit --account acct-7 --none requests-per-minute")]
    Limit(limit::Arguments),
    /// Print the metrics of the proxy and of `sluice up`, as Prometheus reads them
    ///
    /// For Prometheus itself, set `proxy.metrics_listen` and `api.listen`, and have it scrape both.
    #[command(after_help = "\
Examples:
  sluice metrics | grep sluicegate_calls_total   how many calls, by route, outcome and refusal
  sluice metrics | grep sandbox_runs_total       how did runs end, of which agents?
  sluice metrics | grep lag_max                  how late do the data plane's threads come?")]
    Metrics,
    /// Have the proxy read its configuration again, and show what that changed
    ///
    /// All of it or nothing: with a mistake anywhere, everything stays as it was. Key, token secrets, prices, budgets of
    /// accounts and runs change for calls to come; what else would change needs a restart, and is named.
    #[command(after_help = "Example:\n  sluice reload --json | jq -r '.changed[]'")]
    Reload(reload::Arguments),
    /// Check the configuration, or print its schema
    #[command(subcommand)]
    Config(config::Command),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What a command is given besides its own arguments.
struct Context {
    settings: Settings,
    /// What each of them was found to be.
    values: Values,
    /// Where they are read again.
    origins: Origins,
    /// What `--config` and `--set` said, to hand on to a child.
    passed_on: Vec<String>,
    /// Secret that run tokens are signed with, if no file has it.
    token_secret: Option<Secret>,
    /// Password of the store's database, if no file has it.
    store_password: Option<Secret>,
}

impl Context {
    /// Opens the store for this host: to order runs, work on them and remove what they leave. A store that serves no host serves
    /// this one from now on.
    async fn serving_store(&self) -> Result<Store, StoreError> {
        let host = self.host()?;
        self.store().await?.serving(host).await
    }

    /// Returns the identity of this host.
    fn host(&self) -> Result<HostIdentity, StoreError> {
        HostIdentity::of(&self.settings.sandbox.state_dir)
    }

    /// The store, open to read on any host, and with room for as many orders as may wait.
    async fn store(&self) -> Result<Store, StoreError> {
        let address = Address::of(&self.settings.store, self.store_password.as_ref())?;
        let store = Store::open(&address, self.settings.sandbox.installation.clone()).await?;
        let worker = &self.settings.worker;
        Ok(store.bounded(Bounds { all: worker.queue, of_account: worker.queue_per_account }))
    }
}

/// Why a command failed, where its exit code does not say it all.
type Error = Box<dyn std::error::Error>;

/// Parses the arguments and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = Environment::capture();
    let mut quiet =
        "warn,runner::supervise=info,runner::worker=info,runner::reaper=info,runner::reload=info".to_owned();
    if matches!(arguments.command, Command::Up) {
        // A service's log is where executions are looked for; a person sees what they run.
        quiet.push_str(",sandbox=info");
    }
    telemetry::init(environment.get(name::env::SLUICE_LOG).or(Some(&quiet)));
    let outcome = dispatch(arguments, environment).unwrap_or_else(|error| {
        report::error("sluice", error.as_ref());
        exit::of_error(error.as_ref())
    });
    outcome.into()
}

/// Whether a command line means something.
#[cfg(test)]
pub(crate) fn parses(words: &[String]) -> Result<(), String> {
    Arguments::try_parse_from(words).map(|_arguments| ()).map_err(|error| error.to_string())
}

fn dispatch(arguments: Arguments, environment: Environment) -> Result<Exit, Error> {
    let Arguments { config, set, command } = arguments;
    match command {
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "sluice", &mut io::stdout());
            return Ok(Exit::Success);
        }
        Command::Config(config::Command::Schema) => return config::schema(),
        _ => {}
    }
    if let Some(point) = environment.get(name::env::SLUICE_FAILPOINT) {
        failpoint::arm(point)?;
    }
    let context = context(config, set, environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Up => up::up(&context).await,
            Command::Run(arguments) => run::run(&context, arguments).await,
            Command::Runs(command) => runs::runs(&context, command).await,
            Command::Backup(arguments) => backup::backup(&context, arguments).await,
            Command::Restore(arguments) => backup::restore(&context, arguments).await,
            Command::Store(command) => store::store(&context, command).await,
            Command::Agents(arguments) => agents::agents(&context, arguments).await,
            Command::Gateway(command) => gateway::gateway(&context, command).await,
            Command::Doctor(arguments) => doctor::doctor(&context, arguments).await,
            Command::Audit(command) => audit::audit(&context, command).await,
            Command::Token(command) => token::token(&context, command).await,
            Command::Freeze(arguments) => freeze::freeze(&context, arguments).await,
            Command::Thaw(arguments) => freeze::thaw(&context, arguments).await,
            Command::Usage(arguments) => usage::usage(&context, arguments).await,
            Command::Limit(arguments) => limit::limit(&context, arguments).await,
            Command::Metrics => metrics::metrics(&context).await,
            Command::Reload(arguments) => reload::reload(&context, arguments).await,
            Command::Config(_) => config::check(&context),
            Command::Completions { .. } => Ok(Exit::Success),
        }
    })
}

fn context(
    config: Option<PathBuf>,
    set: Vec<String>,
    mut environment: Environment,
) -> Result<Context, Mistakes> {
    let token_secret = environment.take_secret(name::env::PROXY_SHARED_SECRET);
    let store_password = environment.take_secret(name::env::SLUICE_STORE_PASSWORD);
    let named = config.or_else(|| environment.get(name::env::SLUICE_CONFIG).map(PathBuf::from));
    let mut passed_on = Vec::new();
    if let Some(path) = &named {
        passed_on.extend(["--config".to_owned(), path.display().to_string()]);
    }
    for flag in &set {
        passed_on.extend(["--set".to_owned(), flag.clone()]);
    }
    let origins = Origins { file: named, environment, flags: set };
    let (settings, values) = origins.read()?;
    Ok(Context { settings, values, origins, passed_on, token_secret, store_password })
}
