//! Implements `sluice api`.

use std::io::{self, Write};

use super::{Error, exit::Exit};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Print the OpenAPI document, from which programs generate clients
    #[command(after_help = "Example:\n  sluice api openapi > openapi.json")]
    Openapi,
}

/// Runs a subcommand. None needs the configuration.
pub(super) fn api(command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Openapi => io::stdout().write_all(runner_api::openapi_document().as_bytes())?,
    }
    Ok(Exit::Success)
}
