//! Runs as the first process of a sandbox. It starts the agent and ends with the agent's exit code. Meanwhile it reaps
//! orphans, passes signals on, and bridges `localhost` to the run's socket. If configured, it also bridges a socket to
//! a port of `localhost`.
//!
//! This process is a convenience inside the sandbox and not part of its isolation. It has the agent's uid and holds
//! nothing that the agent may not have.

mod agent;
mod bridge;
mod error;
mod health;
mod lifecycle;
mod memory;
mod reap;
mod relay;
mod settings;
mod signals;
mod start;

use std::{env, error::Error as _, ffi::OsString, iter, process::ExitCode};

use self::{error::Error, settings::InitSettings};

fn main() -> ExitCode {
    run(env::args_os().skip(1).collect()).map_or_else(report, ExitCode::from)
}

fn run(command: Vec<OsString>) -> Result<u8, Error> {
    let settings = InitSettings::from_environment()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    runtime.block_on(lifecycle::run(command, &settings))
}

/// Prints the reason why no agent runs, in one line with all causes.
#[expect(clippy::print_stderr, reason = "the container's stderr is where its operator looks")]
fn report(error: Error) -> ExitCode {
    let causes: String = iter::successors(error.source(), |cause| (*cause).source())
        .map(|cause| format!(": {cause}"))
        .collect();
    eprintln!("sandbox-init: {error}{causes}");
    ExitCode::from(error.exit_code())
}
