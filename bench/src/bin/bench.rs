//! `bench`: runs the benchmark, which is implemented in the library.

use std::{io, process::ExitCode};

use bench::cli;
use clap::Parser;

fn main() -> ExitCode {
    match run(cli::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            cli::say(&format!("bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs on a single thread: upstream and load generator share it, and a clock.
fn run(arguments: cli::Arguments) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(cli::run(arguments))
}
