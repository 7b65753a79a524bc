//! Runs `sluice-proxy`: parses arguments, builds the proxy, runs it, returns an exit code. The library does the rest.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use platform_core::name;
use platform_runtime::{
    config::{ConfigErrors, Environment},
    notify::Notifier,
    report,
    shutdown::{RunBy, Signals},
    telemetry,
};
use proxy::{App, ConfigSources};

/// Run the data plane of Sluicegate: identity, credentials, metering and journal for every model call
///
/// Normally started by `sluice up`. The upstream's key is read from the file named by `upstream.key_file`, or from
/// LITELLM_MASTER_KEY; it is never an argument.
#[derive(Parser)]
#[command(
    name = "sluice-proxy",
    version,
    after_help = "\
Examples:
  sluice-proxy --config /etc/sluicegate/sluice.toml --set proxy.threads=2
  sluice-proxy --check                    check the configuration, key and secrets
  sluice-proxy --check-upstream           check the upstream, too; `sluice init` asks this

Signals:
  SIGTERM, SIGINT   stop; calls in flight get proxy.drain_timeout to end; a second signal cuts them
  SIGHUP            read the configuration again

Exit codes:
  0 stopped, or no mistake found   1 could not start   2 wrong usage or configuration"
)]
struct Arguments {
    /// Configuration file [default: $SLUICE_CONFIG, else /etc/sluicegate/sluice.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override one setting; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Check configuration, key and secrets, report every mistake, and start nothing
    #[arg(long)]
    check: bool,
    /// As --check; then ask the upstream for its models, and print the answer as JSON
    #[arg(long, conflicts_with = "check")]
    check_upstream: bool,
}

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = Environment::capture();
    telemetry::init(environment.get(name::env::SLUICE_LOG));
    run(arguments, environment).map_or_else(
        |error| {
            report::error("sluice-proxy", error.as_ref());
            if error.is::<ConfigErrors>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        },
        |()| ExitCode::SUCCESS,
    )
}

fn run(arguments: Arguments, environment: Environment) -> Result<(), Error> {
    let notifier = Notifier::from_environment(&environment)?;
    let config_sources = ConfigSources::new(arguments.config, environment, arguments.set);
    if arguments.check {
        config_sources.check()?;
        return Ok(writeln!(io::stdout(), "the configuration is valid")?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if arguments.check_upstream {
        let health = runtime.block_on(config_sources.check()?.upstream_health());
        runtime.shutdown_background();
        return Ok(writeln!(io::stdout(), "{}", serde_json::to_string(&health)?)?);
    }
    let config = config_sources.read()?;
    let outcome = runtime.block_on(async {
        let signals = Signals::install(RunBy::Service)?;
        let app = App::build(config, config_sources).await?;
        tracing::info!(control = %app.control_socket().display(), version = env!("CARGO_PKG_VERSION"), "ready");
        app.run(signals, notifier).await;
        tracing::info!("stopped");
        Ok(())
    });
    // A name lookup may take longer than this process may take to end.
    runtime.shutdown_background();
    outcome
}
