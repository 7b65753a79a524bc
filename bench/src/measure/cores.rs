//! Assigns processors: the load generator and its upstream to the first, the measured peer to the last. So the
//! scheduler moves neither, and the figures do not depend on its choices.

use std::{io, process::Command, thread};

/// Processor of the load generator and its upstream.
const OWN: usize = 0;

/// Pins this process to its processor. On a machine with one processor, peers share it.
///
/// # Errors
/// If `taskset` is missing or not allowed.
pub fn pin_self() -> io::Result<()> {
    let pid = std::process::id().to_string();
    let output = Command::new("taskset").args(["-cp", &OWN.to_string(), &pid]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("taskset: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Returns a command that starts `program` on the measured peer's processor. The command becomes the program and keeps
/// its process id.
#[must_use]
pub fn pinned(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(last().to_string()).arg(program);
    command
}

/// Returns the index of the last processor. A peer has one worker and uses no more than one.
fn last() -> usize {
    // `nproc` alone counts only the processors that a pinned process may use; `nproc --all` counts all.
    let all = Command::new("nproc").arg("--all").output().ok();
    let count = all.and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse::<usize>().ok());
    count.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).saturating_sub(1)
}
