//! Runs the programs of the host that create, mount and remove file systems.

use std::{
    ffi::OsStr,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use super::error::Error;

/// `PATH` that programs are looked up in. They get no other variable of our environment.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a program that works on `path` to its end. The program gets its own process group, so that only this process
/// reacts to Ctrl-C.
pub(super) fn run(program: &'static str, path: &Path, arguments: &[&OsStr]) -> Result<(), Error> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", PATH).stdin(Stdio::null()).process_group(0);
    let output = command.output().map_err(|source| Error::NoProgram { program, source })?;
    // e2fsck: 1 is "errors corrected".
    if output.status.success() || (program == "e2fsck" && output.status.code() == Some(1)) {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_message = |line: &&str| !line.is_empty() && !line.starts_with("dmesg(1)");
    let message = stderr.lines().map(str::trim).rfind(is_message);
    let message = message.map_or_else(|| output.status.to_string(), |line| line.chars().take(300).collect());
    Err(Error::Program { program, path: path.to_owned(), message })
}
