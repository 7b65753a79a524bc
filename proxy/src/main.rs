//! `sluice-proxy`: parse, build, run, drain, exit code. All else is in the library.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use platform_core::name;
use platform_runtime::{
    config::{Environment, Mistakes},
    notify::Notifier,
    report,
    shutdown::{RunBy, Signals},
    telemetry,
};
use proxy::{App, Origins};

/// Sluicegate's data plane: identity, credentials, metering and journal for every model call.
///
/// Normally started by `sluice up`. The upstream's key is read from the file named by
/// `upstream.key_file`, or from LITELLM_MASTER_KEY; it is never an argument.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  sluice-proxy --config /etc/sluicegate/sluice.toml --set proxy.threads=2
  sluice-proxy --check                    is all of the configuration right, key and secrets included?

Signals:
  SIGTERM, SIGINT   stop: calls in flight may end within proxy.drain; a second one cuts them
  SIGHUP            read the configuration again

Exit codes:
  0 stopped, or nothing to complain of   1 could not start   2 wrong usage or configuration"
)]
struct Arguments {
    /// Configuration file [default: $SLUICE_CONFIG, else /etc/sluicegate/sluice.toml if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override one setting; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Read configuration, key and secrets, report every mistake, and start nothing
    #[arg(long)]
    check: bool,
}

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = Environment::capture();
    telemetry::init(environment.get(name::env::SLUICE_LOG));
    run(arguments, environment).map_or_else(
        |error| {
            report::error("sluice-proxy", error.as_ref());
            if error.is::<Mistakes>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        },
        |()| ExitCode::SUCCESS,
    )
}

fn run(arguments: Arguments, environment: Environment) -> Result<(), Error> {
    let notifier = Notifier::from_environment(&environment)?;
    let origins = Origins::new(arguments.config, environment, arguments.set);
    let config = origins.read()?;
    if arguments.check {
        return Ok(writeln!(io::stdout(), "the configuration is valid")?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let signals = Signals::install(RunBy::Service)?;
        let app = App::build(config, origins).await?;
        tracing::info!(control = %app.control_socket().display(), version = env!("CARGO_PKG_VERSION"), "ready");
        app.run(signals, notifier).await;
        tracing::info!("stopped");
        Ok(())
    });
    // Looking up a name may take longer than anybody waits for this process.
    runtime.shutdown_background();
    outcome
}
