//! Implements `sluice man`: writes manual pages for packages, from the same definitions as the help.

use std::path::Path;

use clap::CommandFactory;

use super::{Arguments, Error, error::Misused, exit::Exit};

/// Writes a page for each command into `directory`.
pub(super) fn write(directory: &Path) -> Result<Exit, Error> {
    clap_mangen::generate_to(Arguments::command(), directory).map_err(|error| {
        Misused(format!("cannot write manual pages into {}: {error}", directory.display()))
    })?;
    Ok(Exit::Success)
}
