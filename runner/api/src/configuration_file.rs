//! Names the configuration file, for drafts of what it could have.

use std::path::PathBuf;

use platform_runtime::config::Environment;

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
