//! Which processor runs what: the load generator with its upstream on the first, whatever is measured on the last, so
//! that neither is moved about and their figures do not depend on where the scheduler put them.

use std::{io, process::Command, thread};

/// The processor of the load generator and its upstream.
const OWN: usize = 0;

/// Keeps this process on its processor. On a machine with one, peers share it.
///
/// # Errors
/// If `taskset` is not there or not allowed to.
pub fn pin_self() -> io::Result<()> {
    let pid = std::process::id().to_string();
    let output = Command::new("taskset").args(["-cp", &OWN.to_string(), &pid]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("taskset: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// A command that starts `program` on the processor of what is measured. It becomes the program: same process id.
#[must_use]
pub fn pinned(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(last().to_string()).arg(program);
    command
}

/// Every processor but the measured one's neighbour is of no use to a peer with one worker.
fn last() -> usize {
    // Asked before this process was pinned it would be all of them, asked later only one: `nproc --all` knows.
    let all = Command::new("nproc").arg("--all").output().ok();
    let count = all.and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse::<usize>().ok());
    count.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).saturating_sub(1)
}
