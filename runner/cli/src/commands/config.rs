//! Implements `sluice config`.

use std::{
    io::{self, Write},
    path::Path,
};

use platform_runtime::{config::DEFAULT_FILE, settings::Settings, terminal};

use super::{Context, Error, exit::Exit};
use crate::plural::counted;

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
    let agents = counted(context.settings.agents.len(), "agent");
    let file = source_in_words(context.sources.file.as_deref(), Path::new(DEFAULT_FILE));
    writeln!(io::stdout(), "the configuration is valid, {agents}, {}", terminal::safe(&file))?;
    Ok(Exit::Success)
}

/// Returns which file the configuration was read from: the `named` one, else the `default` one if it exists.
fn source_in_words(named: Option<&Path>, default: &Path) -> String {
    match named.or_else(|| default.exists().then_some(default)) {
        Some(path) => format!("from {}", path.display()),
        None => format!("from no file: none is named, and there is no {}", default.display()),
    }
}

pub(super) fn schema() -> Result<Exit, Error> {
    writeln!(io::stdout(), "{:#}", Settings::json_schema())?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_names_the_file_it_read() {
        let [missing, there] = ["/nowhere/sluice.toml", "/proc/self/stat"].map(Path::new);
        assert_eq!(source_in_words(Some(missing), there), "from /nowhere/sluice.toml");
        assert_eq!(source_in_words(None, there), "from /proc/self/stat");
        let none = source_in_words(None, missing);
        assert_eq!(none, "from no file: none is named, and there is no /nowhere/sluice.toml");
    }
}
