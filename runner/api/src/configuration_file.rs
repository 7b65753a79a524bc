//! Names and reads the configuration file, for drafts of what it could have.

use std::{fs, io, path::PathBuf};

use platform_runtime::{
    config::{ConfigErrors, Environment, Sources},
    report,
    settings::Settings,
};

use crate::error::Error;

/// Configuration file, with the other sources that a check of it needs.
#[derive(Debug)]
pub struct ConfigurationFile {
    /// Path of the file, which need not exist.
    pub path: PathBuf,
    /// Environment of this process.
    pub environment: Environment,
    /// Settings of the command line.
    pub flags: Vec<String>,
}

impl ConfigurationFile {
    /// Returns the text of the file; empty if the file does not exist.
    pub(crate) fn text(&self) -> io::Result<String> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }

    /// Reads the settings as they were with the text `text`.
    pub(crate) fn read(&self, text: &str) -> Result<Settings, ConfigErrors> {
        let file = Some((self.path.clone(), text.to_owned()));
        Settings::read(&Sources { file, environment: self.environment.clone(), flags: self.flags.clone() })
    }

    /// Logs that the file cannot be read. Clients see no path.
    pub(crate) fn unreadable(&self, error: &io::Error) -> Error {
        let path = self.path.display();
        tracing::error!(%path, error = report::chain(error), "no draft: the file cannot be read");
        Error::Internal
    }
}
