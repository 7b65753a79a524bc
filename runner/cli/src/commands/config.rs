//! Implements `sluice config`.

use std::io::{self, Write};

use platform_runtime::{settings::Settings, terminal};

use super::{Context, Error, exit::Exit};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Check the configuration as a run reads it, and report every mistake
    Check,
    /// Print the JSON Schema of the configuration file
    Schema,
}

/// Reports files and sockets of the configuration that other users can change or read. The configuration itself is
/// valid: otherwise the command would have ended before.
pub(super) fn check(context: &Context) -> Result<Exit, Error> {
    let exposed = context.settings.exposures(Some(context.sources.configuration_path()));
    for exposure in &exposed {
        writeln!(io::stderr(), "{}", terminal::safe(&exposure.to_string()))?;
    }
    for exposure in context.settings.exposed_sockets() {
        writeln!(io::stderr(), "warning: {}", terminal::safe(&exposure.to_string()))?;
    }
    if !exposed.is_empty() {
        return Ok(Exit::Usage);
    }
    writeln!(io::stdout(), "the configuration is valid, {} agents", context.settings.agents.len())?;
    Ok(Exit::Success)
}

pub(super) fn schema() -> Result<Exit, Error> {
    writeln!(io::stdout(), "{:#}", Settings::json_schema())?;
    Ok(Exit::Success)
}
