//! Calls host tools from inside a sandbox: lists those that the run may call, and executes one.
//!
//! Prints results as JSON on standard output, and the reason for a missing one as JSON on standard error. Sends each
//! request once: the host may have acted on one that got no answer.

mod answer;
mod arguments;
mod connection;
mod error;
mod exec;
mod gateway;
mod list;
mod settings;

use std::{
    env,
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use self::{
    arguments::{Command, HELP},
    error::Error,
    settings::ToolSettings,
};

fn main() -> ExitCode {
    let outcome = run(env::args_os().skip(1).collect()).and_then(|output| print(&output));
    outcome.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS)
}

/// Returns the text for standard output.
fn run(arguments: Vec<OsString>) -> Result<String, Error> {
    match Command::parse(arguments)? {
        Command::Help => Ok(HELP.to_owned()),
        Command::Version => Ok(concat!("cogni-tool ", env!("CARGO_PKG_VERSION"), "\n").to_owned()),
        Command::List { form } => list::list(&ToolSettings::from_environment()?, form),
        Command::Exec(call) => exec::exec(&ToolSettings::from_environment()?, &call),
    }
}

fn print(output: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(output.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Output)
}

/// Prints the reason for a missing result, as one line of JSON.
#[expect(clippy::print_stderr, reason = "the agent reads it there")]
fn report(error: &Error) -> ExitCode {
    eprintln!("{}", error.to_json());
    ExitCode::from(error.exit_code())
}
