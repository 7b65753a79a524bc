//! Asks the upstream for its models through `sluice-proxy`, which will ask it in the same way later.
//!
//! The key goes to that program in its environment, which other users cannot read.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use platform_core::{control::UpstreamHealth, name};

use super::{Error, GivenKey};
use crate::supervise;

/// Returns the health of the upstream that the configuration in `file` names, asked with `key`. Mistakes that
/// `sluice-proxy` finds in the configuration are errors.
///
/// # Errors
/// If the program cannot be started, or refuses the configuration.
pub(crate) fn ask_upstream(file: &Path, key: Option<&GivenKey>) -> Result<UpstreamHealth, Error> {
    let program = supervise::proxy_program();
    let mut command = Command::new(&program);
    command.arg("--check-upstream").arg("--config").arg(file).env_clear().stdin(Stdio::null());
    if let Some(key) = key {
        command.env(name::env::LITELLM_MASTER_KEY, key.expose());
    }
    let output = command.output().map_err(|source| Error::Program { program, source })?;
    let failed = |said: &[u8]| Error::Check { said: String::from_utf8_lossy(said).trim_end().to_owned() };
    if !output.status.success() {
        return Err(failed(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).map_err(|_error| failed(&output.stdout))
}
