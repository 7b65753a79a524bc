//! Asks the upstream for its models through `sluice-proxy`, which will ask it in the same way later.
//!
//! The key goes to that program in its environment, which other users cannot read. The configuration goes there in
//! memory: a user who stops this leaves no file behind.

use std::{
    fs::File,
    io::{self, Write},
    process::Command,
};

use platform_core::{
    control::UpstreamHealth,
    json::{self, Bounds},
    name,
};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Draft, Error, GivenKey, Site};
use crate::supervise;

/// Path of standard input, which can be opened again.
const STANDARD_INPUT: &str = "/proc/self/fd/0";

/// Returns the health of the upstream that `draft` names, asked with `key`. Mistakes that `sluice-proxy` finds in the
/// configuration are errors.
///
/// # Errors
/// If the program cannot be started, or refuses the configuration.
pub(crate) fn ask_upstream(
    site: &Site,
    draft: &Draft,
    key: Option<&GivenKey>,
) -> Result<UpstreamHealth, Error> {
    let program = supervise::proxy_program();
    let started = |source| Error::Program { program: program.clone(), source };
    let mut command = Command::new(&program);
    command.args(["--check-upstream", "--config", STANDARD_INPUT]).env_clear();
    command.stdin(in_memory(&draft.text()).map_err(started)?);
    if let Some(key) = key {
        command.env(name::env::LITELLM_MASTER_KEY, key.expose());
    }
    let output = command.output().map_err(started)?;
    let failed = |said: &[u8]| {
        let said = String::from_utf8_lossy(said).trim_end().to_owned();
        // The name in messages is that of the file that would have been written.
        Error::Check { said: said.replace(STANDARD_INPUT, &site.configuration().display().to_string()) }
    };
    if !output.status.success() {
        return Err(failed(&output.stderr));
    }
    json::from_slice(&output.stdout, Bounds::STORED).map_err(|_error| failed(&output.stdout))
}

/// Returns a file without a name that has this text.
fn in_memory(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("sluice-init", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}
