//! Names and reads the configuration file, for drafts of what it could have.

use std::{fs, io, path::PathBuf};

use platform_runtime::{config::ConfigErrors, report, settings::Settings};
use runner_proposals::SettingsReader;

use crate::error::Error;

/// Configuration file, with the reader that checks it.
#[derive(Debug)]
pub struct ConfigurationFile {
    /// Path of the file, which need not exist.
    pub path: PathBuf,
    /// Reader of such files, with the other sources of settings.
    pub reader: SettingsReader,
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
        self.reader.read(&self.path, text)
    }

    /// Logs that the file cannot be read. Clients see no path.
    pub(crate) fn unreadable(&self, error: &io::Error) -> Error {
        let path = self.path.display();
        tracing::error!(%path, error = report::chain(error), "no draft: the file cannot be read");
        Error::Internal
    }
}
