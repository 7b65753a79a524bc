//! Implements `sluice gateway logs`.

use std::io::{self, Write};

use platform_runtime::terminal;
use runner_gateways::managed::ManagedGateway;

use super::{Context, Error, Exit, GatewayArgument};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    gateway: GatewayArgument,
    /// Number of lines
    #[arg(long, value_name = "N", default_value_t = 200)]
    lines: u32,
}

pub(super) async fn logs(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let managed = ManagedGateway::open(&context.settings, &arguments.gateway.id).await?;
    let text = managed.log(arguments.lines).await?;
    let mut out = io::stdout();
    for line in text.lines() {
        writeln!(out, "{}", terminal::safe(line))?;
    }
    Ok(Exit::Success)
}
