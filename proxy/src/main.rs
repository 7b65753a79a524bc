//! `sluice-proxy`: parse, build, run, drain, exit code. All else is in the library.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use platform_core::name;
use platform_runtime::{
    config::{Environment, Sources},
    report,
    settings::Settings,
    shutdown, telemetry,
};
use proxy::{App, Config, FromEnvironment};

/// Sluicegate's data plane: identity, credentials, metering and journal for every model call.
///
/// Normally started by `sluice up`. The upstream's key is read from the file named by
/// `upstream.key_file`, or from LITELLM_MASTER_KEY; it is never an argument.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example:\n  sluice-proxy --config /etc/sluicegate/sluice.toml --set proxy.threads=2"
)]
struct Arguments {
    /// Configuration file [default: $SLUICE_CONFIG, else /etc/sluicegate/sluice.toml if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override one setting; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut environment = Environment::capture();
    telemetry::init(environment.get(name::env::SLUICE_LOG));
    let secrets = FromEnvironment {
        key: environment.take_secret(name::env::LITELLM_MASTER_KEY),
        token_secret: environment.take_secret(name::env::PROXY_SHARED_SECRET),
    };
    match run(arguments, environment, secrets) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error("sluice-proxy", error.as_ref());
            ExitCode::FAILURE
        }
    }
}

fn run(
    arguments: Arguments,
    environment: Environment,
    secrets: FromEnvironment,
) -> Result<(), Box<dyn std::error::Error>> {
    let sources = Sources::locate(arguments.config, environment, arguments.set)?;
    let config = Config::resolve(Settings::read(&sources)?, secrets)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let app = App::build(config)?;
        let signalled = shutdown::signalled(shutdown::RunBy::Service)?;
        let stop = shutdown::Shutdown::new();
        let watch = stop.watch();
        tracing::info!(control = %app.control_socket().display(), version = env!("CARGO_PKG_VERSION"), "ready");
        let trigger = async {
            signalled.await;
            tracing::info!("stopping, calls in flight may end");
            stop.begin();
            std::future::pending().await
        };
        tokio::select! {
            () = app.run(watch) => {}
            () = trigger => {}
        }
        tracing::info!("stopped");
        Ok(())
    })
}
